"""The flows of a JobFlow, and the circles in what they wait for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.views.components import Components


class Flow(NamedTuple):
    """One flow: its name, which is also the name of its JobTemplate, and what it waits for."""

    name: str
    pointer: Pointer
    targets: tuple[tuple[Pointer, str], ...]

    def pointer_of(self, target: str) -> Pointer:
        return next((pointer for pointer, name in self.targets if name == target), self.pointer)


def flows(declared: KubeObject) -> Iterator[Flow]:
    """The flows that have a name; others are left to object-matches-schema."""
    for index, value in enumerate(sequence(declared.spec.get("flows"))):
        flow, at = mapping(value), ("spec", "flows", index)
        name = flow.get("name")
        if isinstance(name, str) and name:
            found = enumerate(sequence(mapping(flow.get("dependsOn")).get("targets")))
            targets = [((*at, "dependsOn", "targets", place), each) for place, each in found if isinstance(each, str)]
            yield Flow(name, at, tuple(targets))


def circles(every: Iterable[Flow]) -> Iterator[tuple[Flow, ...]]:
    """The flows that wait for themselves, and of those that wait for each other a shortest circle. Of flows with one
    name the last counts, as it does for Volcano's webhook."""
    known = {flow.name: flow for flow in every}
    edges = {name: _others(flow, known) for name, flow in known.items()}
    yield from ((flow,) for flow in known.values() if any(target == flow.name for _, target in flow.targets))
    for component in Components(edges).found:
        if len(component) > 1:
            inside = set(component)
            first = next(name for name in known if name in inside)
            yield tuple(known[name] for name in _way_back(first, inside, edges))


def _others(flow: Flow, known: Mapping[str, Flow]) -> list[str]:
    return [target for _, target in flow.targets if target in known and target != flow.name]


def _way_back(start: str, inside: set[str], edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The names on a shortest way from the start back to it, the start first."""
    came_from: dict[str, str] = {}
    front = [start]
    while start not in came_from:
        reached = [(each, name) for name in front for each in edges[name] if each in inside]
        front = []
        for each, name in reached:
            if each not in came_from:
                came_from[each] = name
                front.append(each)
    way = [start]
    while (before := came_from[way[-1]]) != start:
        way.append(before)
    return [start, *reversed(way[1:])]
