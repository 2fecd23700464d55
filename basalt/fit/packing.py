"""The search for a placement: a quick one that finds most, and a solver that settles the rest.

A gang that fits the room that others left is placed there at once. Where it does not, the others may have to move: that
is a bin packing problem, which CP-SAT decides, for all of them together.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from types import MappingProxyType
from typing import Any, NamedTuple

from basalt.fit.problem import Domain, Gang, Key, Limit, Placement, Problem, Shape
from basalt.quantities import Amount, Resources

# Of CP-SAT's deterministic time, a second or so each: the same answer on every machine.
SOLVER_TIME = 2.0  # for all searches of a run together
_MOST_TIME = 0.5  # for one of them
_MOST_VARIABLES = 400_000  # beyond it the solver needs more memory than a laptop has

_PLENTY = 2**31  # pods that request nothing

Counts = dict[tuple[int, str], int]


class Outcome(enum.Enum):
    """What a search came to."""

    FOUND = enum.auto()
    IMPOSSIBLE = enum.auto()
    UNDECIDED = enum.auto()


class Answer(NamedTuple):
    """A placement of all the gangs where one was found; else whether there is none, or nobody knows, and why; limit is
    what binds where that is one."""

    outcome: Outcome
    placement: Placement = MappingProxyType({})
    why: str = ""
    limit: Limit | None = None
    spent: float = 0  # of the solver's time


class Room:
    """What is left of the nodes and the limits under the gangs that are placed already."""

    def __init__(self, problem: Problem, placement: Placement) -> None:
        self.problem = problem
        self.placement = dict(placement)
        self._free = {node: dict(amounts) for node, amounts in problem.free.items()}
        self._left = [limit.amount for limit in problem.limits]
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
        return counts

    def keeps_less(self, less: Sequence[Amount]) -> bool:
        """Whether the limits would hold if each were lower by so much."""
        return all(left >= each for left, each in zip(self._left, less, strict=True))

    def _packed(self, gang: Gang, domain: Domain, mix: Sequence[int]) -> Counts | None:
        """The pods of the mix on the domain's nodes, the largest first, each node filled before the next."""
        found: Counts = {}
        used: dict[str, Resources] = {}
        order = sorted(range(len(mix)), key=lambda index: _weight(gang.shapes[index].requests), reverse=True)
        for index in order:
            shape = gang.shapes[index]
            inside = [each.nodes & domain.nodes for each in _smallest_first(self.problem.allowed(shape.tier))]
            placed = next(filter(None, (self._filled(shape, mix[index], each, used) for each in inside)), None)
            if placed is None and mix[index]:
                return None
            for node, count in (placed or {}).items():
                found[index, node] = count
                free = used.get(node) or self._free[node]
                used[node] = {key: each - shape.requests.get(key, 0) * count for key, each in free.items()}
        return found

    def _filled(self, shape: Shape, pods: int, nodes: frozenset[str], used: Mapping[str, Resources]) -> dict[str, int]:
        """So many pods of the shape on the nodes, those first that the gang uses already; {} where they do not fit."""
        found: dict[str, int] = {}
        for node in sorted(shape.nodes & nodes, key=lambda node: (node not in used, node)):
            if not pods:
                break
            if count := min(pods, holds(used.get(node) or self._free[node], shape.requests)):
                found[node] = count
                pods -= count
        return {} if pods else found

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
            free = self._free[node]
            for resource, amount in gang.shapes[index].requests.items():
                free[resource] = free.get(resource, 0) - sign * amount * count
        for number, limit in enumerate(self.problem.limits):
            if gang.key in limit.costs:
                self._left[number] -= sign * _cost(limit, gang.key, mix)


def _smallest_first(domains: Iterable[Domain]) -> list[Domain]:
    return sorted(domains, key=lambda each: (len(each.nodes), each.name))


def _nodes_of(domains: Iterable[Domain]) -> frozenset[str]:
    return frozenset[str]().union(*(domain.nodes for domain in domains))


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


def holds(free: Resources, requests: Resources) -> int:
    """How many pods with these requests what is free holds."""
    counts = [free.get(name, 0) // amount for name, amount in requests.items() if amount > 0]
    return max(0, int(min(counts, default=_PLENTY)))


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
    return _Model(problem, gangs).solved(min(time, _MOST_TIME))


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


class _Model:
    """The packing of the gangs as CP-SAT takes it: how many pods of each shape stand on each node."""

    def __init__(self, problem: Problem, gangs: Sequence[Gang]) -> None:
        from ortools.sat.python import cp_model  # half a second, for hard cases alone

        self._solver_module = cp_model
        self._model = cp_model.CpModel()
        self._problem = problem
        self._counts: dict[tuple[Key, int, str], Any] = {}
        self._of_shape: dict[tuple[Key, int], Any] = {}
        for gang in gangs:
            self._add_gang(gang)
        self._add_nodes(gangs)
        self._add_limits(gangs)

    def _add_gang(self, gang: Gang) -> None:
        model, domains = self._model, self._problem.allowed(gang.tier)
        reachable = _nodes_of(domains)
        totals = []
        every: dict[tuple[int, str], Any] = {}
        for index, shape in enumerate(gang.shapes):
            own: dict[tuple[int, str], Any] = {}
            for node in sorted(shape.nodes & reachable & _nodes_of(self._problem.allowed(shape.tier))):
                most = min(shape.replicas, holds(self._problem.free[node], shape.requests))
                if most:
                    own[index, node] = self._counts[gang.key, index, node] = model.new_int_var(0, most, "")
            every |= own
            total = model.new_int_var(shape.need, shape.replicas, "")
            model.add(total == sum(own.values()))
            self._of_shape[gang.key, index] = total
            totals.append(total)
            if shape.tier is not None:
                self._add_domains(self._problem.allowed(shape.tier), own)
        model.add(sum(totals) == max(gang.minimum, sum(shape.need for shape in gang.shapes)))
        if gang.tier is not None:
            self._add_domains(domains, every)

    def _add_domains(self, domains: Sequence[Domain], counts: Mapping[tuple[int, str], Any]) -> None:
        """Exactly one of the domains holds these pods; elsewhere there are none of them."""
        chosen = {domain.name: self._model.new_bool_var("") for domain in domains}
        self._model.add_exactly_one(chosen.values())
        for (_, node), count in counts.items():
            holding = [chosen[domain.name] for domain in domains if node in domain.nodes]
            self._model.add(count == 0).only_enforce_if([~each for each in holding])

    def _add_nodes(self, gangs: Sequence[Gang]) -> None:
        shapes = {(gang.key, index): shape for gang in gangs for index, shape in enumerate(gang.shapes)}
        by_node: dict[str, list[tuple[Any, Resources]]] = {}
        for (key, index, node), count in self._counts.items():
            by_node.setdefault(node, []).append((count, shapes[key, index].requests))
        for node, here in by_node.items():
            for resource in sorted({name for _, requests in here for name in requests}):
                terms = [(count, requests.get(resource, 0)) for count, requests in here]
                self._at_most(terms, self._problem.free[node].get(resource, 0))

    def _add_limits(self, gangs: Sequence[Gang]) -> None:
        for limit in self._problem.limits:
            concerned = [gang for gang in gangs if gang.key in limit.costs]
            terms = [(self._of_shape[gang.key, index], cost)
                     for gang in concerned for index, cost in enumerate(limit.costs[gang.key])]  # fmt: skip
            self._at_most(terms, limit.amount - sum(limit.beside.get(gang.key, 0) for gang in concerned))

    def _at_most(self, terms: Sequence[tuple[Any, Amount]], amount: Amount) -> None:
        """The sum of the terms is at most the amount: in whole numbers, as small ones as there are."""
        scale = lcm(*(Fraction(cost).denominator for _, cost in terms), 1)
        whole = [(count, int(cost * scale)) for count, cost in terms if cost]
        unit = gcd(*(cost for _, cost in whole)) or 1
        self._model.add(sum(count * (cost // unit) for count, cost in whole) <= int(amount * scale // unit))

    def solved(self, time: float) -> Answer:
        module = self._solver_module
        solver = module.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = time
        status = solver.solve(self._model)
        spent = float(solver.response_proto.deterministic_time)
        if status in (module.OPTIMAL, module.FEASIBLE):
            found: dict[Key, Counts] = {}
            for (key, index, node), count in self._counts.items():
                if value := solver.value(count):
                    found.setdefault(key, {})[index, node] = value
            return Answer(Outcome.FOUND, found, spent=spent)
        if status == module.INFEASIBLE:
            return Answer(Outcome.IMPOSSIBLE, {}, "the solver has proved it", spent=spent)
        why = f"the solver found neither a placement nor a proof in {time:g} units of its time"
        return Answer(Outcome.UNDECIDED, {}, why, spent=spent)
