"""Why pods of two kinds do not fit beside each other: where one kind fills every place that there is for it, and too
little is left of the nodes for the other."""

from collections.abc import Iterator
from typing import NamedTuple

from basalt.fit.problem import Domain, Gang, Problem, Shape, holds
from basalt.names import counted
from basalt.quantities import Resources, show


class Leftover(NamedTuple):
    """How many pods of the others have room, and the fact; with the resource that they lack most of, what a pod needs
    of it and what the best node has left."""

    room: int
    message: str
    resource: str
    needed: str
    available: str


def leftover(problem: Problem, gang: Gang) -> Leftover | None:
    """Of the domains where this can be told, that with most room for the others; None where it can be told of none."""
    found = ((each, domain) for domain in problem.allowed(gang.tier) for each in _of_domain(problem, gang, domain))
    best, _ = max(found, key=lambda each: (each[0].room, each[1].name), default=(None, None))
    return best


def _of_domain(problem: Problem, gang: Gang, domain: Domain) -> Iterator[Leftover]:
    needed = [shape for shape in gang.shapes if shape.need]
    for first in needed:
        places = {node: holds(problem.free[node], first.requests) for node in first.nodes & domain.nodes}
        if sum(places.values()) != first.need:
            continue  # they could stand otherwise
        left = {
            node: _less(problem.free[node], first.requests, places.get(node, 0))
            for node in domain.nodes & problem.free.keys()
        }
        for other in needed:
            nodes = {node: left[node] for node in other.nodes & left.keys()}
            if (
                other is not first
                and nodes
                and sum(holds(free, other.requests) for free in nodes.values()) < other.need
            ):
                yield _told(gang, domain, first, other, nodes)


def _less(free: Resources, requests: Resources, pods: int) -> Resources:
    return {name: amount - pods * requests.get(name, 0) for name, amount in free.items()}


def _told(gang: Gang, domain: Domain, first: Shape, other: Shape, left: dict[str, Resources]) -> Leftover:
    """The fact, with the node that comes nearest to holding one pod more."""
    counts = {node: holds(free, other.requests) for node, free in left.items()}
    rest = {node: _less(left[node], other.requests, pods) for node, pods in counts.items()}
    (_, resource), node = max((_scarcest(free, other.requests), node) for node, free in rest.items())
    needed, available = (show(each.get(resource, 0), resource) for each in (other.requests, rest[node]))
    where = f"in {domain.name}" if gang.tier is not None else "in the cluster"
    room = sum(counts.values())
    rooms = f"only {room} of the {other.need} pods" if room else "no pod"
    message = (
        f"{where}, {counted(first.need, 'pod')} of {first.name} take{'s' * (first.need == 1)} every place for "
        f"{first.name}, and {rooms} of {other.name} {'have' if room > 1 else 'has'} room beside: one needs {needed} "
        f"{resource}, {node} has {available} left"
    )
    return Leftover(room, message, resource, needed, available)


def _scarcest(free: Resources, requests: Resources) -> tuple[float, str]:
    """The resource of which there is least, measured by the need, and its share."""
    return min((float(free.get(name, 0) / amount), name) for name, amount in requests.items() if amount)
