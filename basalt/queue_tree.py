"""The tree of Volcano Queues as the capacity plugin sees it: parents, children, and amounts as numbers."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from basalt.objects import KubeObject, mapping
from basalt.quantities import Resources, parse_map

ROOT = "root"
DEFAULT = "default"
BUILT_IN = (ROOT, DEFAULT)  # the scheduler creates both
GROUP = "scheduling.volcano.sh"


class Queue(NamedTuple):
    """One Queue; amounts hold only what parses. parent is root where the object names none."""

    name: str
    object: KubeObject
    parent: str
    capability: Resources
    deserved: Resources
    guarantee: Resources

    def amounts(self, field: str) -> Resources:
        found: Resources = getattr(self, field)
        return found


POINTERS = {
    "capability": ("spec", "capability"),
    "deserved": ("spec", "deserved"),
    "guarantee": ("spec", "guarantee", "resource"),
}


class QueueTree:
    """All declared queues by name; cycles and missing parents are allowed, every walk ends all the same."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self.queues = {each.name: _queue(each) for each in objects}
        self.children: dict[str, list[Queue]] = {}
        for queue in self.queues.values():
            if queue.name != ROOT:
                self.children.setdefault(queue.parent, []).append(queue)

    def __iter__(self) -> Iterator[Queue]:
        return iter(self.queues.values())

    def names(self) -> set[str]:
        return {*self.queues, *BUILT_IN}

    def has_children(self, name: str) -> bool:
        return bool(self.children.get(name))

    def ancestors(self, queue: Queue) -> list[Queue]:
        """The declared queues above, nearest first, root left out; a cycle ends the list."""
        found: list[Queue] = []
        above = self.queues.get(queue.parent)
        while above is not None and above.name != ROOT and above is not queue and above not in found:
            found.append(above)
            above = self.queues.get(above.parent)
        return found

    def cycle(self, queue: Queue) -> list[str]:
        """The names around the cycle that the queue is in, from it back to it; empty where it is in none."""
        names = [queue.name]
        above = self.queues.get(queue.parent)
        while above is not None and above.name != ROOT and above.name not in names:
            names.append(above.name)
            above = self.queues.get(above.parent)
        return [*names, queue.name] if above is not None and above.name == queue.name and len(names) > 1 else []


def _queue(declared: KubeObject) -> Queue:
    spec = declared.spec
    parent = spec.get("parent")
    return Queue(
        declared.name,
        declared,
        parent if isinstance(parent, str) and parent else ROOT,
        parse_map(spec.get("capability")),
        parse_map(spec.get("deserved")),
        parse_map(mapping(spec.get("guarantee")).get("resource")),
    )
