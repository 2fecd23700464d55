"""Who takes what of which node: the gangs that fit, as a picture of the topology shows them, node by node or, in a
cluster too large for that, domain by domain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.fit import reading
from basalt.fit.verdicts import State, Verdict
from basalt.index import Index
from basalt.quantities import Resources, add, show
from basalt.rules.placement import is_accelerator
from basalt.tree import Branch, Drawn

NODES_DRAWN = 300  # above that, domains are drawn in their place
_DOMAINS_DRAWN = 1500  # above that, those of the next tier
_PLAIN = "cpu"  # what is shown of nodes without accelerators


class Share(NamedTuple):
    """What one gang takes: the job as Kind/namespace/name, its pods, and the amounts of what is shown."""

    job: str
    pods: int
    takes: Resources


class Unit(NamedTuple):
    """One node, or one domain, as drawn. domain is the HyperNode that it is drawn in, or is; None outside all."""

    name: str
    domain: str | None
    nodes: int
    closed: int
    offers: Resources
    free: Resources
    gangs: tuple[Share, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "domain": self.domain,
            "nodes": self.nodes,
            "closedNodes": self.closed,
            "offers": _shown(self.offers),
            "free": _shown(self.free),
            "gangs": [{"job": each.job, "pods": each.pods, "takes": _shown(each.takes)} for each in self.gangs],
        }


class Occupancy(NamedTuple):
    """All units; are_nodes is False where each stands for a domain."""

    are_nodes: bool
    units: tuple[Unit, ...]

    def as_json(self) -> dict[str, Any]:
        return {"drawn": "nodes" if self.are_nodes else "domains", "units": [unit.as_json() for unit in self.units]}


def _shown(amounts: Resources) -> dict[str, str]:
    return {resource: show(amount, resource) for resource, amount in sorted(amounts.items())}


def occupancy(index: Index, drawn: Drawn, verdicts: Sequence[Verdict]) -> Occupancy:
    """What the gangs that fit leave of every node; nothing without an inventory."""
    if not index.nodes:
        return Occupancy(are_nodes=True, units=())
    if len(index.nodes) <= NODES_DRAWN:
        parents = dict(_nodes_in(drawn.roots))
        names = sorted((node.name for node in index.nodes), key=lambda name: (parents.get(name) is None, name))
        places = [(name, parents.get(name), [name]) for name in names]
    else:
        places = _domains(index, drawn)
    return Occupancy(len(index.nodes) <= NODES_DRAWN, tuple(_units(index, places, verdicts)))


def _nodes_in(branches: Iterable[Branch]) -> Iterator[tuple[str, str]]:
    for branch in branches:
        yield from ((node, branch.name) for node in branch.nodes)
        yield from _nodes_in(branch.children)


def _domains(index: Index, drawn: Drawn) -> list[tuple[str, str | None, list[str]]]:
    """The lowest domains of which there are few enough to draw, and what is in none."""
    height = 0
    while len(chosen := [*_of_height(drawn.roots, height)]) > _DOMAINS_DRAWN and height < _height(drawn.roots):
        height += 1
    below = index.hyper_nodes.nodes_below
    every = {node.name for node in index.nodes}
    places: list[tuple[str, str | None, list[str]]] = [
        (branch.name, branch.name, sorted(below[branch.name] & every))
        if is_whole
        else (f"directly in {branch.name}", branch.name, sorted(set(branch.nodes) & every))
        for branch, is_whole in chosen
    ]
    outside = sorted(every.difference(*(names for _, _, names in places)))
    return [*places, ("in no HyperNode", None, outside)] if outside else places


def _of_height(branches: Iterable[Branch], height: int) -> Iterator[tuple[Branch, bool]]:
    """The branches with at most so many levels below them, whole; of higher ones, what is directly in them."""
    for branch in branches:
        if _height((branch,)) <= height + 1:
            yield branch, True
        else:
            yield from _of_height(branch.children, height)
            if branch.nodes:
                yield branch, False


def _height(branches: Sequence[Branch]) -> int:
    return max((1 + _height(branch.children) for branch in branches), default=0)


def _units(
    index: Index, places: Iterable[tuple[str, str | None, list[str]]], verdicts: Sequence[Verdict]
) -> Iterator[Unit]:
    free = reading.read(index).problem.free
    taken = _taken(verdicts)
    for name, domain, nodes in places:
        offers = {key: amount for key, amount in add(*(free.get(node, {}) for node in nodes)).items() if amount > 0}
        chosen = {key for key in offers if is_accelerator(key)} or {_PLAIN}
        shares = tuple(_shares(nodes, taken, chosen))
        left = {
            key: offers.get(key, 0) - sum(share.takes.get(key, 0) for share in shares) for key in chosen & offers.keys()
        }
        closed = sum(node not in free for node in nodes)
        yield Unit(name, domain, len(nodes), closed, {key: offers[key] for key in left}, left, shares)


def _taken(verdicts: Iterable[Verdict]) -> Mapping[str, list[tuple[str, int, Resources]]]:
    """For each node the pods of each shape that stand there, jobs in the order of their verdicts."""
    found: dict[str, list[tuple[str, int, Resources]]] = {}
    for verdict in verdicts:
        if verdict.state is State.FITS:
            key = verdict.job.key
            for (index, node), count in sorted(verdict.counts.items()):
                if count:
                    requests = verdict.job.gang.shapes[index].requests
                    found.setdefault(node, []).append((f"{key.kind}/{key}", count, requests))
    return found


def _shares(
    nodes: Iterable[str], taken: Mapping[str, list[tuple[str, int, Resources]]], chosen: set[str]
) -> Iterator[Share]:
    pods: dict[str, int] = {}
    takes: dict[str, Resources] = {}
    for node in nodes:
        for job, count, requests in taken.get(node, ()):
            pods[job] = pods.get(job, 0) + count
            amounts = {key: amount * count for key, amount in requests.items() if key in chosen}
            takes[job] = add(takes.get(job, {}), amounts)
    return (Share(job, pods[job], takes[job]) for job in pods)
