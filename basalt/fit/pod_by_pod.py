"""Whether Volcano's scheduler finds a placement by itself: it takes one pod after the other, puts each on the node with
the best score, and never goes back.

Source: allocateResourcesForTasks in pkg/scheduler/actions/allocate/allocate.go, CompareTask in
pkg/controllers/job/helpers, and the scores of the plugins binpack, nodeorder and network-topology-aware, of Volcano
v1.14; those of nodeorder are NodeResourcesFit and NodeResourcesBalancedAllocation of Kubernetes 1.34.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import sqrt
from typing import Any, NamedTuple

from basalt.fit.company import Company
from basalt.fit.problem import Domain, Gang, Problem, Shape, holds
from basalt.fit.queue_room import QueueRoom
from basalt.objects import mapping, sequence
from basalt.quantities import Resources, add
from basalt.views.scheduler_configuration import Configuration

_ORDERS = 8  # of pods with the same number in their tasks: their UIDs decide, once for all
_DRAWS = 12  # among equal nodes: the scheduler tries again every second, and draws anew
_HIGHEST = 100  # MaxNodeScore
_WITH_TASKS = ("Job", "CronJob")  # of other pods no errors are kept (PredicateNodes in predicate_helper.go)
_DIGITS = 9  # scores that differ by less are equal: Go and Python add in different orders


class Scoring(NamedTuple):
    """The weights of the declared plugins; 0 where one is not there. binpack and topology are by resource. keeps_errors
    is whether a node that once refused a pod of a task is not asked again for the next one."""

    least: float = 0
    most: float = 0
    balanced: float = 0
    binpack: float = 0
    binpack_of: Mapping[str, float] = {}
    topology: float = 0
    topology_of: Mapping[str, float] = {}
    fading: float = 0  # of the tiers, for pods without a topology; below 0 where these are not packed at all
    keeps_errors: bool = True


def scoring(configuration: Configuration) -> Scoring:
    """The weights, as the configuration and the plugins' own defaults have them."""
    arguments = {each.name: mapping(each.settings.get("arguments")) for each in configuration.plugins()}
    actions = map(mapping, sequence(mapping(configuration.value).get("configurations")))
    allocate = next((mapping(each.get("arguments")) for each in actions if each.get("name") == "allocate"), {})
    found = Scoring(keeps_errors=allocate.get("predicateErrorCacheEnable") is not False)
    if (order := arguments.get("nodeorder")) is not None:
        least, balanced = (_number(order, f"{name}.weight", 1) for name in ("leastrequested", "balancedresource"))
        found = found._replace(least=least, most=_number(order, "mostrequested.weight", 0), balanced=balanced)
    if (packed := arguments.get("binpack")) is not None:
        found = found._replace(binpack=_number(packed, "binpack.weight", 1), binpack_of=_weights(packed, "binpack"))
    if (near := arguments.get("network-topology-aware")) is not None:
        prefix = "hypernode.binpack"
        is_packed = near.get(f"{prefix}.normal-pod.enable", True) is not False
        fading = _number(near, f"{prefix}.normal-pod.fading", 0.8) if is_packed else -1
        found = found._replace(topology=_number(near, "weight", 1), topology_of=_weights(near, prefix), fading=fading)
    return found


def _number(arguments: Mapping[str, Any], name: str, default: float) -> float:
    value = arguments.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default


def _weights(arguments: Mapping[str, Any], prefix: str) -> dict[str, float]:
    """CPUs and memory, and what else is named."""
    named = [each.strip() for each in str(arguments.get(f"{prefix}.resources") or "").split(",")]
    return {
        "cpu": _number(arguments, f"{prefix}.cpu", 1),
        "memory": _number(arguments, f"{prefix}.memory", 1),
        **{each: _number(arguments, f"{prefix}.resources.{each}", 1) for each in named if each},
    }


def finds(problem: Problem, gang: Gang, weights: Scoring) -> bool:
    """Whether the scheduler places the gang on the empty cluster, whichever of equal pods comes first."""
    has_parts = any(shape.tier is not None for shape in gang.shapes) or any(bond.is_by_tier for bond in gang.bonds)
    room = QueueRoom(problem, gang)
    is_free = problem.is_free(gang)
    if has_parts or (is_free and len(gang.shapes) < 2):
        return True
    if not room.enqueues():
        return False
    is_roomy = room.is_ample and (is_free or problem.is_roomy_company(gang))
    if is_roomy and any(_is_roomy(problem, gang, domain) for domain in problem.allowed(gang.tier)):
        return True
    return all(_finds_in(problem, gang, weights, order) for order in range(_ORDERS))


def _finds_in(problem: Problem, gang: Gang, weights: Scoring, order: int) -> bool:
    """Whether some draws lead to a placement, with the pods in that order."""
    pods = _pods(gang, random.Random(order))
    return any(_Trial(problem, gang, weights, pods, random.Random(seed)).succeeds() for seed in range(_DRAWS))


def _pods(gang: Gang, draws: random.Random) -> list[int]:
    """The shapes of the pods in their order: by their number in the task; of equal ones, any may come first."""
    found = [(number, draws.random(), index)
             for index, shape in enumerate(gang.shapes) for number in range(shape.replicas)]  # fmt: skip
    return [index for _, _, index in sorted(found)]


def _is_roomy(problem: Problem, gang: Gang, domain: Domain) -> bool:
    """Whether each pod could have a node of its own, whichever nodes the others take: then nothing goes wrong."""
    nodes = domain.nodes.intersection(*(shape.nodes for shape in gang.shapes))
    shapes = [shape.requests for shape in gang.shapes]
    free = (problem.free[node] for node in nodes)
    pods = sum(shape.replicas for shape in gang.shapes)
    roomy = (each for each in free if all(holds(each, requests) for requests in shapes))
    return sum(1 for _ in islice(roomy, pods)) == pods  # no more than is needed: there may be thousands


class _Trial:
    """One run of the scheduler, with its own draws."""

    def __init__(
        self, problem: Problem, gang: Gang, weights: Scoring, pods: Sequence[int], draws: random.Random
    ) -> None:
        self._problem = problem
        self._gang = gang
        self._weights = weights
        self._pods = pods
        self._draws = draws
        self._room = QueueRoom(problem, gang)
        self._of_tier = problem.of_tier
        self._keeps_errors = weights.keeps_errors and gang.key.kind in _WITH_TASKS

    def succeeds(self) -> bool:
        """Domain after domain, the lowest tier first, as long as one is allowed."""
        tier = self._gang.tier
        if tier is None:
            return self._fills(self._problem.everywhere)
        allowed = (domains for number, domains in self._of_tier.items() if number <= tier)
        return any(self._fills(domain) for domains in allowed for domain in domains)

    def _fills(self, domain: Domain) -> bool:
        self._nodes = self._problem.in_order(domain.nodes)
        self._free = {node: dict(self._problem.free[node]) for node in domain.nodes}
        self._on: dict[str, int] = {}  # how many pods of the gang each node has got
        self._company = Company(self._problem, self._gang)
        self._in_domain: dict[str, Resources] = {}  # what the gang has taken of each
        self._refusing: dict[int, set[str]] = {}
        placed = [0] * len(self._gang.shapes)
        failed: set[int] = set()
        must_all = self._gang.minimum == sum(shape.replicas for shape in self._gang.shapes)
        for index in self._pods:
            shape = self._gang.shapes[index]
            if not self._room.takes(placed, index):
                continue
            node = None if index in failed else self._best(shape, index)
            if node is None:
                if must_all:
                    return False
                failed.add(index)
                continue
            for name, amount in shape.requests.items():
                self._free[node][name] = self._free[node].get(name, 0) - amount
            self._on[node] = self._on.get(node, 0) + 1
            for holder in self._problem.domains_of.get(node, ()):
                self._in_domain[holder.name] = add(self._in_domain.get(holder.name, {}), shape.requests)
            self._company.add(index, node)
            placed[index] += 1
            if self._is_ready(placed):
                return True
        return False

    def _is_ready(self, placed: Sequence[int]) -> bool:
        needs = (shape.need <= count for shape, count in zip(self._gang.shapes, placed, strict=True))
        return sum(placed) >= self._gang.minimum and all(needs)

    def _best(self, shape: Shape, index: int) -> str | None:
        refusing = self._refusing.setdefault(index, set())
        asked = [node for node in self._nodes if node in shape.nodes and node not in refusing]
        room = (node for node in asked if holds(self._free[node], shape.requests))
        nodes = [node for node in room if self._company.takes(index, node)]
        if self._keeps_errors:
            refusing.update(set(asked).difference(nodes))
        if len(nodes) < 2:
            return nodes[0] if nodes else None
        near = self._nearness(nodes, shape)
        scores = {node: round(self._score(node, shape.requests) + near.get(node, 0), _DIGITS) for node in nodes}
        highest = max(scores.values())
        return self._draws.choice([node for node in nodes if scores[node] == highest])

    def _score(self, node: str, requests: Resources) -> float:
        weights, offers, free = self._weights, self._problem.offers[node], self._free[node]
        taken = {name: offers[name] - free.get(name, 0) + requests.get(name, 0) for name in offers}
        score = 0.0
        if weights.least or weights.most:
            known = [name for name in ("cpu", "memory") if offers.get(name)]
            free_of = [(offers[name] - taken[name]) * _HIGHEST // offers[name] for name in known]
            used_of = [taken[name] * _HIGHEST // offers[name] for name in known]
            if known:
                score += weights.least * (sum(free_of) // len(known)) + weights.most * (sum(used_of) // len(known))
        if weights.balanced:
            score += weights.balanced * _balance(offers, taken, requests)
        if weights.binpack:
            score += _HIGHEST * weights.binpack * _fullness(offers, taken, requests, weights.binpack_of)
        return score

    def _nearness(self, nodes: Sequence[str], shape: Shape) -> dict[str, float]:
        """What network-topology-aware adds: for a topology the nodes near those that are taken, else full ones."""
        weights = self._weights
        if not weights.topology or not self._of_tier:
            return {}
        has_topology = self._gang.tier is not None or self._gang.is_soft
        own = self._near_own(nodes) if has_topology else self._near_full(nodes, shape)
        return {node: _HIGHEST * weights.topology * score for node, score in own.items()}

    def _near_own(self, nodes: Sequence[str]) -> dict[str, float]:
        taken = frozenset(node for node, count in self._on.items() if count)
        if not taken:
            return {}
        tiers = list(self._of_tier)
        above = {node: self._problem.domains_of.get(node, []) for node in nodes}
        holders = {node: each[0] if each and each[0].tier == tiers[0] else None for node, each in above.items()}
        found = {}
        for node, holder in holders.items():
            joint = next((each.tier for each in above[node] if taken <= each.nodes), None)
            score = 0.0
            if holder is not None and joint is not None:
                span = tiers[-1] + 1 - tiers[0]  # the whole cluster is one tier above
                score = 1.0 if taken <= holder.nodes else (tiers[-1] + 1 - joint) / span
            found[node] = score
        best = max(found.values())
        pods = sum(shape.replicas for shape in self._gang.shapes)
        for node in [node for node in nodes if found[node] == best]:
            inside = holders[node]
            found[node] += sum(count for other, count in self._on.items() if inside and other in inside.nodes) / pods
        return found

    def _near_full(self, nodes: Sequence[str], shape: Shape) -> dict[str, float]:
        if self._weights.fading < 0:
            return {}
        weights = {tier: self._weights.fading ** (tier - 1) for tier in self._of_tier}
        total = sum(weights.values())
        full: dict[str, float] = {}
        found = {}
        for node in nodes:
            score, outside = 0.0, total
            for domain in self._problem.domains_of.get(node, ()):
                if domain.name not in full:
                    full[domain.name] = self._full(domain, shape.requests)
                score += weights[domain.tier] * full[domain.name]
                outside -= weights[domain.tier]
            found[node] = (score + outside) / total
        return found

    def _full(self, domain: Domain, requests: Resources) -> float:
        offers, before = self._problem.sums[domain.name]
        taken = add(before, requests, self._in_domain.get(domain.name, {}))
        return _fullness(offers, taken, requests, self._weights.topology_of)


def _balance(offers: Resources, taken: Resources, requests: Resources) -> int:
    """How evenly CPUs, memory and GPUs are used, of 100."""
    shares = list(_shares(offers, taken, requests))
    if len(shares) == 2:
        spread = abs(shares[0] - shares[1]) / 2
    else:
        mean = sum(shares) / len(shares) if shares else 0.0
        spread = sqrt(sum((share - mean) ** 2 for share in shares) / len(shares)) if shares else 0.0
    return int((1 - spread) * _HIGHEST)


def _shares(offers: Resources, taken: Resources, requests: Resources) -> Iterator[float]:
    for name in ("cpu", "memory", "nvidia.com/gpu"):
        if offers.get(name) and (name != "nvidia.com/gpu" or requests.get(name)):
            yield min(1.0, float(taken[name]) / float(offers[name]))


def _fullness(offers: Resources, taken: Resources, requests: Resources, weights: Mapping[str, float]) -> float:
    """How much of what is requested is then used, of 1."""
    asked: Iterable[str] = [name for name in requests if requests[name] and name in weights]
    total = sum(weights[name] for name in asked)
    used = sum(weights[name] * float(taken[name]) / float(offers[name]) for name in asked if offers.get(name))
    return used / total if total else 0.0
