"""The search for a placement: a quick one that finds most, and a solver that settles the rest.

A gang that fits the room that others left is placed there at once. Where it does not, the others may have to move: that
is a bin packing problem, which CP-SAT decides, for all of them together.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from basalt.fit.company import Neighbours
from basalt.fit.problem import PLENTY, Domain, Gang, Key, Limit, Placement, Problem, Shape, holds
from basalt.fit.solver import Answer, Model, Outcome
from basalt.quantities import Amount, Resources

# Of CP-SAT's deterministic time, a second or so each: the same answer on every machine.
SOLVER_TIME = 2.0  # for all searches of a run together
_MOST_TIME = 0.5  # for one of them
_MOST_VARIABLES = 400_000  # beyond it the solver needs more memory than a laptop has

Counts = dict[tuple[int, str], int]


class _Trial(NamedTuple):
    """A gang in the middle of being placed: the pods so far, what they leave of their nodes, and the domains that its
    bonds have chosen."""

    counts: Counts
    used: dict[str, Resources]
    neighbours: Neighbours
    chosen: dict[int, Domain]

    def copy(self) -> "_Trial":
        return _Trial(dict(self.counts), dict(self.used), self.neighbours.copy(), dict(self.chosen))


class Room:
    """What is left of the nodes and the limits under the gangs that are placed already."""

    def __init__(self, problem: Problem, placement: Placement) -> None:
        self.problem = problem
        self.placement = dict(placement)
        self._free = dict(problem.free)
        self._left = [limit.amount for limit in problem.limits]
        self._full: dict[Hashable, set[str]] = {}  # for pods alike, the nodes that hold none and never will again
        self._neighbours = Neighbours(problem)
        gangs = {gang.key: gang for gang in problem.gangs}
        for key, counts in placement.items():
            self._take(gangs[key], counts)

    def put(self, gang: Gang) -> bool:
        """Places the gang beside the others where that is found quickly; whether it was."""
        mixes = list(_mixes(gang))
        for domain in _smallest_first(self.problem.allowed(gang.tier)):
            for mix in mixes:
                counts = self._packed(gang, domain, mix)
                if counts is not None and self._keeps_limits(gang, mix):
                    self.placement[gang.key] = counts
                    self._take(gang, counts)
                    return True
        return False

    def place(self, gang: Gang, counts: Mapping[tuple[int, str], int]) -> None:
        """Puts the gang where it has been before."""
        self.placement[gang.key] = counts
        self._take(gang, counts)

    def remove(self, gang: Gang) -> Mapping[tuple[int, str], int]:
        """Takes a gang out again; returns where it stood."""
        counts = self.placement.pop(gang.key)
        self._take(gang, counts, sign=-1)
        for full in self._full.values():
            full.difference_update(node for _, node in counts)
        if self.problem.aparts:
            self._neighbours = Neighbours(self.problem)
            for key, others in self.placement.items():
                for (index, node), count in others.items():
                    if count:
                        self._neighbours.add((key, index), node)
        return counts

    def keeps_less(self, less: Sequence[Amount]) -> bool:
        """Whether the limits would hold if each were lower by so much."""
        return all(left >= each for left, each in zip(self._left, less, strict=True))

    def _packed(self, gang: Gang, domain: Domain, mix: Sequence[int]) -> Counts | None:
        """The pods of the mix on the domain's nodes, the largest first, each node filled before the next."""
        trial = _Trial({}, {}, self._neighbours.branch(), {})
        order = sorted(range(len(mix)), key=lambda index: _weight(gang.shapes[index].requests), reverse=True)
        for index in order:
            if mix[index]:
                places = self._places(gang, index, domain, trial)
                tries = (self._placed(gang, index, mix[index], nodes, each) for nodes, each in places)
                found = next((each for each in tries if each is not None), None)
                if found is None:
                    return None
                trial = found
        return trial.counts

    def _places(self, gang: Gang, index: int, domain: Domain, trial: _Trial) -> Iterator[tuple[frozenset[str], _Trial]]:
        """The sets of nodes that may hold all pods of a shape, each with what choosing it makes of the trial."""
        every = [each.nodes & domain.nodes for each in _smallest_first(self.problem.allowed(gang.shapes[index].tier))]
        bonds = [number for number, bond in enumerate(gang.bonds) if index in bond.shapes]
        options = [[trial.chosen[number]] if number in trial.chosen else _smallest_first(gang.bonds[number].domains)
                   for number in bonds]  # fmt: skip
        for nodes in every:
            for choice in product(*options):
                own = trial.copy()
                own.chosen.update(zip(bonds, choice, strict=True))
                yield nodes.intersection(*(each.nodes for each in choice)), own

    def _placed(self, gang: Gang, index: int, pods: int, nodes: frozenset[str], trial: _Trial) -> _Trial | None:
        """So many pods of a shape on the nodes, added to the trial; None where they do not fit."""
        spreads = [each for each in gang.spreads if index in each.shapes]
        if not spreads:
            return trial if self._fill(gang, index, pods, nodes, trial) else None
        if len(spreads) > 1 or len(spreads[0].shapes) > 1:
            return None  # the solver's business
        sums = dict.fromkeys(spreads[0].domains, 0)
        for _ in range(pods):
            floor = min(sums.values(), default=0) if spreads[0].is_lifted else 0
            open_ones = [each for each in sums if sums[each] < floor + spreads[0].skew]
            evenly = sorted(open_ones, key=lambda each: (sums[each], each.name))
            filled = next((each for each in evenly if self._fill(gang, index, 1, nodes & each.nodes, trial)), None)
            if filled is None:
                return None
            sums[filled] += 1
        return trial

    def _fill(self, gang: Gang, index: int, pods: int, nodes: frozenset[str], trial: _Trial) -> bool:
        """Adds so many pods of a shape to the trial, on those nodes first that it uses already; whether they fit.
        A trial in which they do not is of no use any more, but where a single pod was asked for."""
        shape, slot = gang.shapes[index], (gang.key, index)
        is_free = slot not in self.problem.aparts_of
        for node in self._open(shape, nodes, trial.used):
            free = trial.used.get(node) or self._free[node]
            count = min(pods, holds(free, shape.requests), PLENTY if is_free else trial.neighbours.suffer(slot, node))
            if not count:
                continue
            trial.counts[index, node] = trial.counts.get((index, node), 0) + count
            trial.used[node] = {key: each - shape.requests.get(key, 0) * count for key, each in free.items()}
            if not is_free:
                trial.neighbours.add(slot, node)
            pods -= count
            if not pods:
                return True
        return not pods

    def _open(self, shape: Shape, nodes: frozenset[str], used: Mapping[str, Resources]) -> Iterator[str]:
        """The nodes that may hold a pod of the shape, by name: those that are used already, then those with room."""
        full = self._full.setdefault(tuple(sorted(shape.requests.items())), set())
        yield from sorted(node for node in used if node in shape.nodes and node in nodes)
        before = frozenset(used)
        for node in self.problem.in_order(nodes):
            if node in full or node in before or node not in shape.nodes:
                continue
            if holds(self._free[node], shape.requests):
                yield node
            else:
                full.add(node)

    def _keeps_limits(self, gang: Gang, mix: Sequence[int]) -> bool:
        return all(
            _cost(limit, gang.key, mix) <= left
            for limit, left in zip(self.problem.limits, self._left, strict=True)
            if gang.key in limit.costs
        )

    def _take(self, gang: Gang, counts: Mapping[tuple[int, str], int], *, sign: int = 1) -> None:
        mix = [0] * len(gang.shapes)
        for (index, node), count in counts.items():
            mix[index] += count
            free, requests = self._free[node], gang.shapes[index].requests
            left = {name: free.get(name, 0) - sign * amount * count for name, amount in requests.items()}
            self._free[node] = {**free, **left}
            if count and sign > 0:
                self._neighbours.add((gang.key, index), node)
        for number, limit in enumerate(self.problem.limits):
            if gang.key in limit.costs:
                self._left[number] -= sign * _cost(limit, gang.key, mix)


def _smallest_first(domains: Iterable[Domain]) -> list[Domain]:
    return sorted(domains, key=lambda each: (len(each.nodes), each.name))


def _mixes(gang: Gang) -> Iterable[tuple[int, ...]]:
    """Some mixes of the gang's shapes that are large enough: what is needed in any case, and the rest from one shape
    after the other, the first ones first or the last ones first."""
    indices = range(len(gang.shapes))
    seen = set()
    by_weight = sorted(indices, key=lambda index: _weight(gang.shapes[index].requests))
    for order in (by_weight, indices, list(reversed(indices))):
        mix = [shape.need for shape in gang.shapes]
        left = gang.minimum - sum(mix)
        for index in order:
            more = max(0, min(left, gang.shapes[index].replicas - mix[index]))
            mix[index] += more
            left -= more
        if left <= 0 and tuple(mix) not in seen:
            seen.add(tuple(mix))
            yield tuple(mix)


def _weight(requests: Resources) -> tuple[Amount, ...]:
    """Devices first: they are what there is least of."""
    devices = sum(amount for name, amount in requests.items() if "/" in name)
    return devices, requests.get("cpu", 0), requests.get("memory", 0)


def _cost(limit: Limit, key: Key, mix: Sequence[int]) -> Amount:
    return limit.beside.get(key, 0) + sum(cost * count for cost, count in zip(limit.costs[key], mix, strict=True))


def decide(problem: Problem, gangs: Sequence[Gang], time: float = SOLVER_TIME) -> Answer:
    """Whether all of the gangs can be placed at once, by the solver, which has so much of its time left."""
    if (limit := _exceeded(problem.limits, gangs)) is not None:
        return Answer(Outcome.IMPOSSIBLE, {}, f"{limit.owner} has too little {limit.resource}", limit)
    if (resource := _scarce(problem, gangs)) is not None:
        return Answer(Outcome.IMPOSSIBLE, {}, f"all nodes together have too little {resource}")
    size = sum(len(shape.nodes) for gang in gangs for shape in gang.shapes)
    if size > _MOST_VARIABLES:
        return Answer(Outcome.UNDECIDED, {}, f"{size} ways to place single pods are too many to search")
    if time <= 0:
        return Answer(Outcome.UNDECIDED, {}, "the time for hard packings was used up by the jobs before it")
    return Model(problem, gangs).solved(min(time, _MOST_TIME))


def _exceeded(limits: Iterable[Limit], gangs: Sequence[Gang]) -> Limit | None:
    """A limit that even the cheapest mixes of the gangs exceed together."""
    for limit in limits:
        costs = (_cheapest(limit, gang) for gang in gangs if gang.key in limit.costs)
        if sum(costs, start=Fraction(0)) > limit.amount:
            return limit
    return None


def _scarce(problem: Problem, gangs: Sequence[Gang]) -> str | None:
    """A resource of which they need more than all nodes have."""
    needed = {resource for gang in gangs for shape in gang.shapes for resource in shape.requests}
    for resource in sorted(needed):
        has = sum(amounts.get(resource, 0) for amounts in problem.free.values())
        costs = ((gang, tuple(shape.requests.get(resource, 0) for shape in gang.shapes)) for gang in gangs)
        if sum((cheapest(gang, cost) for gang, cost in costs), start=Fraction(0)) > has:
            return resource
    return None


def _cheapest(limit: Limit, gang: Gang) -> Amount:
    return limit.beside.get(gang.key, 0) + cheapest(gang, limit.costs[gang.key])


def cheapest(gang: Gang, costs: Sequence[Amount]) -> Amount:
    """The least that a mix of the gang's shapes costs."""
    total = sum((shape.need * cost for shape, cost in zip(gang.shapes, costs, strict=True)), start=Fraction(0))
    left = gang.minimum - sum(shape.need for shape in gang.shapes)
    for cost, spare in sorted(
        (cost, shape.replicas - shape.need) for shape, cost in zip(gang.shapes, costs, strict=True)
    ):
        more = max(0, min(left, spare))
        total += more * cost
        left -= more
    return total
