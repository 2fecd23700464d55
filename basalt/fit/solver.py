"""The packing of gangs as CP-SAT takes it."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from types import MappingProxyType
from typing import Any, NamedTuple

from basalt.fit.problem import PLENTY, Apart, Domain, Gang, Key, Limit, Placement, Problem, Slot, Spread, holds
from basalt.quantities import Amount, Resources


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


def _nodes_of(domains: Iterable[Domain]) -> frozenset[str]:
    return frozenset[str]().union(*(domain.nodes for domain in domains))


def _of_shapes(counts: Mapping[tuple[int, str], Any], shapes: Sequence[int]) -> dict[tuple[int, str], Any]:
    return {where: count for where, count in counts.items() if where[0] in shapes}


class Model:
    """The packing of the gangs as CP-SAT takes it: how many pods of each shape stand on each node."""

    def __init__(self, problem: Problem, gangs: Sequence[Gang]) -> None:
        from ortools.sat.python import cp_model  # half a second, for hard cases alone

        self._solver_module = cp_model
        self._model = cp_model.CpModel()
        self._problem = problem
        self._counts: dict[tuple[Key, int, str], Any] = {}
        self._of_shape: dict[Slot, Any] = {}
        self._of_slot: dict[Slot, dict[str, Any]] = {}  # by node
        for gang in gangs:
            self._add_gang(gang)
        self._add_nodes(gangs)
        self._add_limits(gangs)
        self._add_aparts()

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
            self._of_slot[gang.key, index] = {node: count for (_, node), count in own.items()}
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
        for bond in gang.bonds:
            self._add_domains(bond.domains, _of_shapes(every, bond.shapes))
        for spread in gang.spreads:
            self._add_spread(spread, _of_shapes(every, spread.shapes))

    def _add_spread(self, spread: Spread, counts: Mapping[tuple[int, str], Any]) -> None:
        inside = _nodes_of(spread.domains)
        for (_, node), count in counts.items():
            if node not in inside:
                self._model.add(count == 0)
        by_node: dict[str, list[Any]] = {}
        for (_, node), count in counts.items():
            by_node.setdefault(node, []).append(count)
        sums = [sum(count for node in each.nodes for count in by_node.get(node, ())) for each in spread.domains]
        floor = self._model.new_int_var(0, PLENTY if spread.is_lifted else 0, "")
        for total in sums:
            if spread.is_lifted:
                self._model.add(floor <= total)
            self._model.add(total <= floor + spread.skew)

    def _add_aparts(self) -> None:
        """No pod of a slot where one of the others stands; of the slot itself one at most, where it is among them."""
        for apart in self._problem.aparts:
            own = self._by_place(apart, [apart.slot])
            theirs = self._by_place(apart, sorted(apart.others - {apart.slot}))
            for place, counts in own.items():
                if apart.slot in apart.others:
                    self._model.add(sum(counts) <= 1)
                if place in theirs:
                    is_own = self._model.new_bool_var("")
                    self._model.add(sum(counts) == 0).only_enforce_if(~is_own)
                    self._model.add(sum(theirs[place]) == 0).only_enforce_if(is_own)

    def _by_place(self, apart: Apart, slots: Iterable[Slot]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for slot in slots:
            for node, count in self._of_slot.get(slot, {}).items():
                if (place := apart.places.get(node)) is not None:
                    found.setdefault(place, []).append(count)
        return found

    def _add_domains(self, domains: Sequence[Domain], counts: Mapping[tuple[int, str], Any]) -> None:
        """Exactly one of the domains holds these pods; elsewhere there are none of them."""
        chosen = {domain.name: self._model.new_bool_var("") for domain in domains}
        self._model.add_exactly_one(chosen.values())
        elsewhere: dict[str, list[Any]] = {}
        for domain in domains:
            for node in domain.nodes:
                elsewhere.setdefault(node, []).append(~chosen[domain.name])
        for (_, node), count in counts.items():
            self._model.add(count == 0).only_enforce_if(elsewhere.get(node, []))

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
            found: dict[Key, dict[tuple[int, str], int]] = {}
            for (key, index, node), count in self._counts.items():
                if value := solver.value(count):
                    found.setdefault(key, {})[index, node] = value
            return Answer(Outcome.FOUND, found, spent=spent)
        if status == module.INFEASIBLE:
            return Answer(Outcome.IMPOSSIBLE, {}, "the solver has proved it", spent=spent)
        why = f"the solver found neither a placement nor a proof in {time:g} units of its time"
        return Answer(Outcome.UNDECIDED, {}, why, spent=spent)
