"""Whether what fits still fits after a loss, found without judging everything anew: only the jobs that had pods on the
nodes that are gone are placed again, beside the others where they stand.

Yes is a proof: the placement that was found holds on what is left. No only means that it has to be searched for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from basalt.fit import queues
from basalt.fit.limits import is_hierarchical, owner_of
from basalt.fit.packing import Room
from basalt.fit.problem import Gang, Limit, Placement, Problem
from basalt.index import Index
from basalt.quantities import Amount, Resources, add


class Loss(NamedTuple):
    """A domain that has failed: the nodes that are gone, and by how much each limit of the problem is lower then."""

    domain: str
    nodes: frozenset[str]
    less: tuple[Amount, ...]


def losses(index: Index, problem: Problem, domains: Iterable[str]) -> Iterator[Loss]:
    """The loss of each of the HyperNodes by itself."""
    offers = index.offers
    total = add(*offers.values())
    known: dict[tuple[tuple[str, Amount], ...], tuple[Amount, ...]] = {}  # racks are mostly alike
    for domain in domains:
        nodes = index.hyper_nodes.nodes_below[domain]
        lost = add(*(offers[name] for name in sorted(nodes) if name in offers))
        asked = tuple(sorted(lost.items()))
        if asked not in known:
            left = {name: amount - lost.get(name, 0) for name, amount in total.items()}
            known[asked] = tuple(_less(index, problem.limits, left))
        yield Loss(domain, nodes, known[asked])


def _less(index: Index, limits: Iterable[Limit], total: Resources) -> Iterator[Amount]:
    """By how much each limit is lower where all nodes offer this in total: those of queues, not of quotas."""
    every = queues.ceilings(index.queues, total, is_hierarchical=is_hierarchical(index)).values()
    amounts = {owner_of(each.queue): each.amounts for ceilings in every for each in ceilings}
    for limit in limits:
        ceiling = amounts.get(limit.owner)
        yield limit.amount - ceiling.get(limit.resource, 0) if ceiling is not None else 0


class Together:
    """Gangs that run at once, the most important first, each in its place."""

    def __init__(self, problem: Problem, gangs: Sequence[Gang], placement: Placement) -> None:
        self._gangs = gangs
        self._room = Room(problem, {gang.key: placement[gang.key] for gang in gangs})
        self._on: dict[str, set[int]] = {}
        for number, gang in enumerate(gangs):
            for node in _nodes(placement[gang.key]):
                self._on.setdefault(node, set()).add(number)

    def withstand(self, loss: Loss) -> bool:
        """Whether a place was found for those that had pods on the lost nodes, so that all run at once again."""
        if any(gang.spreads for gang in self._gangs):  # the domains that they count are others then
            return False
        hit = sorted({number for node in loss.nodes for number in self._on.get(node, ())})
        before = [(self._gangs[number], self._room.remove(self._gangs[number])) for number in hit]
        stand = all(self._room.put(_beside(gang, loss)) for gang, _ in before) and self._room.keeps_less(loss.less)
        for gang, _ in before:
            if gang.key in self._room.placement:
                self._room.remove(gang)
        for gang, counts in before:
            self._room.place(gang, counts)
        return stand


class Alone:
    """Gangs that would run on an empty cluster, each by itself."""

    def __init__(self, problem: Problem, gangs: Sequence[Gang]) -> None:
        self._room = Room(problem, {})
        self._placement = {gang.key: self._room.remove(gang) for gang in gangs if self._room.put(gang)}
        self._gangs = [gang for gang in gangs if gang.key in self._placement]
        self._nodes = {key: _nodes(counts) for key, counts in self._placement.items()}
        self._is_whole = len(self._gangs) == len(gangs)
        self._within: dict[tuple[Amount, ...], bool] = {}

    def withstand(self, loss: Loss) -> bool:
        """Whether a place was found for each of them on what is left."""
        if not self._is_whole or any(gang.spreads for gang in self._gangs) or not self._are_within(loss.less):
            return False
        hit = [gang for gang in self._gangs if not loss.nodes.isdisjoint(self._nodes[gang.key])]
        return all(self._stands(gang, loss) for gang in hit)

    def _stands(self, gang: Gang, loss: Loss) -> bool:
        if not self._room.put(_beside(gang, loss)):
            return False
        keeps = self._room.keeps_less(loss.less)
        self._room.remove(gang)
        return keeps

    def _are_within(self, less: tuple[Amount, ...]) -> bool:
        """Whether they would keep the limits where they stand."""
        if less not in self._within:
            self._within[less] = all(self._keeps(gang, less) for gang in self._gangs)
        return self._within[less]

    def _keeps(self, gang: Gang, less: tuple[Amount, ...]) -> bool:
        self._room.place(gang, self._placement[gang.key])
        keeps = self._room.keeps_less(less)
        self._room.remove(gang)
        return keeps


def _beside(gang: Gang, loss: Loss) -> Gang:
    """The gang, which may not stand on the lost nodes."""
    left: dict[int, frozenset[str]] = {}  # most shapes share their nodes
    for shape in gang.shapes:
        if id(shape.nodes) not in left:
            left[id(shape.nodes)] = shape.nodes - loss.nodes
    return gang._replace(shapes=tuple(shape._replace(nodes=left[id(shape.nodes)]) for shape in gang.shapes))


def _nodes(counts: Mapping[tuple[int, str], int]) -> set[str]:
    return {node for (_, node), count in counts.items() if count}
