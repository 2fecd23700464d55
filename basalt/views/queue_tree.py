"""The tree of Volcano Queues as the capacity plugin sees it: parents, children, and amounts as numbers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt import names
from basalt.objects import KubeObject, mapping
from basalt.pointers import Pointer, get
from basalt.quantities import Amount, Resources, parse_map, show

ROOT = "root"
DEFAULT = "default"
BUILT_IN = (ROOT, DEFAULT)  # the scheduler creates both
OPEN = "Open"
GROUP = "scheduling.volcano.sh"
_TERMS = 6  # of a sum, before the rest is put into one
POINTERS: dict[str, Pointer] = {
    "capability": ("spec", "capability"),
    "deserved": ("spec", "deserved"),
    "guarantee": ("spec", "guarantee", "resource"),
}


class Queue(NamedTuple):
    """One Queue; amounts hold only what parses and is not negative. parent is root where the object names none."""

    name: str
    object: KubeObject
    parent: str
    capability: Resources
    deserved: Resources
    guarantee: Resources

    def amounts(self, field: str) -> Resources:
        found: Resources = getattr(self, field)
        return found

    def written(self, field: str) -> Any:
        """What stands at the field, be it readable or not."""
        return get(self.object.value, POINTERS[field])

    @property
    def state(self) -> str:
        """The state that is written; without one, the controller opens the queue."""
        state = mapping(self.object.value.get("status")).get("state")
        return state if isinstance(state, str) and state else OPEN

    def may_name(self, field: str, resource: str) -> bool:
        """Whether the field says something about the resource, or cannot be read: then nothing is missing for sure."""
        value: Any = self.object.value
        for step in (*POINTERS[field], resource):
            if not isinstance(value, Mapping):
                return value is not None
            if step not in value:
                return False
            value = value[step]
        return True


def total_of(queues: Iterable[Queue], field: str, resource: str) -> tuple[Amount, str]:
    """The sum of the queues' amounts, and how it comes about: 40 (research) + 16 (serving) = 56."""
    amounts = {each.name: each.amounts(field)[resource] for each in queues if resource in each.amounts(field)}
    terms = [f"{show(amount, resource)} ({name})" for name, amount in amounts.items()]
    total = sum(amounts.values())
    if len(terms) > _TERMS:
        rest = sum([*amounts.values()][_TERMS - 1 :])
        terms[_TERMS - 1 :] = [f"{show(rest, resource)} ({len(terms) - _TERMS + 1} more)"]
    return total, " + ".join(terms) + (f" = {show(total, resource)}" if len(terms) > 1 else "")


def largest_of(queues: Iterable[Queue], field: str, resource: str) -> Queue:
    """The queue with the largest amount, at which a finding about the sum stands."""
    having = [each for each in queues if resource in each.amounts(field)]
    return max(having, key=lambda each: (each.amounts(field)[resource], each.name))


class QueueTree:
    """All declared queues by name. Cycles and missing parents are allowed: a queue in a cycle is nobody's child, so
    every walk ends, and no other rule counts what queue-tree-has-no-cycle speaks about."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self.queues = {each.name: _queue(each) for each in objects}
        self.circular = frozenset(_circular({name: queue.parent for name, queue in self.queues.items()}))
        self.children: dict[str, list[Queue]] = {}
        for queue in self.queues.values():
            if queue.name != ROOT and queue.name not in self.circular:
                self.children.setdefault(queue.parent, []).append(queue)

    def __iter__(self) -> Iterator[Queue]:
        return iter(self.queues.values())

    def names(self) -> set[str]:
        return {*self.queues, *BUILT_IN}

    def refusal(self, name: str) -> str | None:
        """Why the queue takes no jobs; None where it does, or is not declared."""
        if name == ROOT:
            return "jobs cannot go to root"
        if self.has_children(name):
            children = names.listed(sorted(child.name for child in self.children[name]))
            return f"{name} has queues below it ({children}); only a queue without any takes jobs"
        queue = self.queues.get(name)
        return f"{name} is {queue.state}, it takes no jobs" if queue is not None and queue.state != OPEN else None

    def has_children(self, name: str) -> bool:
        return bool(self.children.get(name))

    def takers(self) -> set[str]:
        """The queues that jobs can name: those without others below them."""
        return {name for name in self.names() if name != ROOT and not self.has_children(name)}

    def leaves(self, name: str) -> list[str]:
        """The queues below that have none below themselves."""
        below = [*self.children.get(name, ())]
        found = []
        while below:
            queue = below.pop()
            below.extend(self.children.get(queue.name, ()))
            if not self.has_children(queue.name):
                found.append(queue.name)
        return sorted(found)

    def ancestors(self, queue: Queue) -> list[Queue]:
        """The declared queues above, nearest first, root left out; a cycle ends the list."""
        found: dict[str, Queue] = {}
        above = self.queues.get(queue.parent)
        while above is not None and above.name not in (ROOT, queue.name) and above.name not in found:
            found[above.name] = above
            above = self.queues.get(above.parent)
        return [*found.values()]

    def cycle(self, queue: Queue) -> list[str]:
        """The names around the cycle that the queue is in, from it back to it; empty where it is in none."""
        if queue.name not in self.circular:
            return []
        return [queue.name, *(above.name for above in self.ancestors(queue)), queue.name]


def _circular(parents: Mapping[str, str]) -> Iterator[str]:
    """The names that their own parents lead back to; root has no parent, whatever it says."""
    settled = {ROOT}
    for start in parents:
        path: dict[str, int] = {}
        name = start
        while name in parents and name not in settled and name not in path:
            path[name] = len(path)
            name = parents[name]
        if name in path:
            yield from list(path)[path[name] :]
        settled.update(path)


def _queue(declared: KubeObject) -> Queue:
    spec = declared.spec
    parent = spec.get("parent")
    return Queue(
        declared.name,
        declared,
        parent if isinstance(parent, str) and parent else ROOT,
        _readable(spec.get("capability")),
        _readable(spec.get("deserved")),
        _readable(mapping(spec.get("guarantee")).get("resource")),
    )


def _readable(values: Any) -> Resources:
    """quantity-is-valid speaks about the rest."""
    return {resource: amount for resource, amount in parse_map(values).items() if amount >= 0}
