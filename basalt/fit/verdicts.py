"""The verdicts on all jobs, in the order of their priority: each with its witness, or with what binds."""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from basalt import names
from basalt.fit import checking, packing, pod_by_pod, reading
from basalt.fit.packing import Answer, Outcome, Room, cheapest
from basalt.fit.pod_by_pod import Scoring
from basalt.fit.problem import Counts, Domain, Gang, Limit, Placement, Problem
from basalt.fit.reading import Job, Read
from basalt.index import Index
from basalt.names import counted
from basalt.quantities import Amount, show, show_rounded


class State(enum.StrEnum):
    FITS = "fits"
    CONTENDED = "contended"
    NEVER = "never"
    UNKNOWN = "unknown"


class Reason(NamedTuple):
    """The constraint that binds: the rule that speaks of it, the fact with its arithmetic, and the amounts."""

    rule: str
    message: str
    resource: str | None = None
    needed: str | None = None
    available: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What becomes of one job; placement and domain are those of its minimum gang."""

    job: Job
    state: State
    placement: Mapping[str, int] = field(default_factory=dict)
    domain: str | None = None
    reason: Reason | None = None
    change: str | None = None
    tight: bool = False  # the scheduler, which places pod after pod, does not find the placement by itself

    def as_json(self) -> dict[str, Any]:
        job = self.job
        return {
            "kind": job.key.kind,
            "namespace": job.key.namespace,
            "name": job.key.name,
            "queue": job.queue,
            "pods": job.pods,
            "minAvailable": job.gang.minimum,
            "highestTier": job.tier,
            "verdict": self.state.value,
            "tight": self.tight,
            "domain": self.domain,
            "placement": dict(self.placement),
            "reason": self.reason._asdict() if self.reason else None,
            "change": self.change,
        }


class Solved(NamedTuple):
    """The verdicts on what was read, and the placement of all jobs that fit together."""

    read: Read
    verdicts: tuple[Verdict, ...]
    placement: Placement


def of(index: Index) -> tuple[Verdict, ...]:
    """The verdicts on all that is declared."""
    return solved(index).verdicts


@lru_cache(maxsize=1)  # the rules and the command ask for the same
def solved(index: Index) -> Solved:
    return _solved(reading.read(index))


def verdicts(read: Read) -> list[Verdict]:
    """A verdict on every job, in their order. Raises where the proof of one does not hold: that is a bug."""
    return [*_solved(read).verdicts]


def _solved(read: Read) -> Solved:
    judge = _Judge(read.problem, read.scoring, read.tier_names)
    found = [judge.judged(job) for job in read.jobs]
    if (fault := checking.fault(read.problem, judge.placement)) is not None:
        raise AssertionError(f"the placement of the jobs that fit is none: {fault}")
    return Solved(read, tuple(judge.settled(each) for each in found), judge.placement)


class _Judge:
    """Takes the jobs one after the other; those that fit keep a place, though not always the same."""

    def __init__(self, problem: Problem, scoring: Scoring | None, tier_names: Mapping[int, str | None]) -> None:
        self._problem = problem
        self._tier_names = tier_names
        self._scoring = scoring
        self._time = packing.SOLVER_TIME
        self._room = Room(problem, {})
        self._fitting: list[Job] = []

    @property
    def placement(self) -> Placement:
        return self._room.placement

    def judged(self, job: Job) -> Verdict:
        if job.gap:
            return Verdict(job, State.UNKNOWN, reason=Reason("gang-fits-a-domain", f"Basalt cannot tell: {job.gap}"))
        if self._room.put(job.gang):
            self._fitting.append(job)
            return Verdict(job, State.FITS)
        alone = self.alone(job.gang)
        if alone.outcome is Outcome.IMPOSSIBLE:
            reason = why_never(self._problem, job.gang, alone.why)
            return Verdict(job, State.NEVER, reason=reason, change=self._change(job))
        if alone.outcome is Outcome.UNDECIDED:
            return Verdict(job, State.UNKNOWN, reason=Reason("gang-fits-a-domain", alone.why))
        together = self._decided([*(each.gang for each in self._fitting), job.gang])
        if together.outcome is Outcome.FOUND:
            self._fitting.append(job)
            self._room = Room(self._problem, together.placement)
            return Verdict(job, State.FITS)
        counts = alone.placement[job.gang.key]
        if (fault := checking.fault(self._problem, alone.placement)) is not None:
            raise AssertionError(f"the placement of {job.key} is none: {fault}")
        if together.outcome is Outcome.UNDECIDED:
            return Verdict(job, State.UNKNOWN, reason=Reason("gang-fits-beside-others", together.why))
        return Verdict(job, State.CONTENDED, *self._shown(counts), reason=self._rivals(job, together))

    def settled(self, verdict: Verdict) -> Verdict:
        """The verdict with the place that the job has in the end, and whether the scheduler would find one."""
        if verdict.state not in (State.FITS, State.CONTENDED):
            return verdict
        tight = self._scoring is not None and not pod_by_pod.finds(self._problem, verdict.job.gang, self._scoring)
        if verdict.state is State.CONTENDED:
            return replace(verdict, tight=tight)
        return Verdict(verdict.job, State.FITS, *self._shown(self.placement[verdict.job.key]), tight=tight)

    def alone(self, gang: Gang) -> Answer:
        room = Room(self._problem, {})
        if room.put(gang):
            return Answer(Outcome.FOUND, room.placement)
        if len(gang.shapes) == 1 and gang.shapes[0].tier is None:  # pods that are alike leave nothing to search
            return Answer(Outcome.IMPOSSIBLE, {}, "its pods are alike, and no domain holds as many")
        return self._decided([gang])

    def _decided(self, gangs: Sequence[Gang]) -> Answer:
        answer = packing.decide(self._problem, gangs, self._time)
        self._time -= answer.spent
        return answer

    def _shown(self, counts: Counts) -> tuple[dict[str, int], str | None]:
        """The pods on each node, and the lowest HyperNode that holds them."""
        found: dict[str, int] = {}
        for (_, node), count in sorted(counts.items(), key=lambda each: each[0][1]):
            if count:
                found[node] = found.get(node, 0) + count
        holding = [each for each in self._problem.domains if found.keys() <= each.nodes]
        lowest = min(holding, key=lambda each: (each.tier, len(each.nodes), each.name), default=None)
        return found, lowest.name if lowest else None

    def _rivals(self, job: Job, together: Answer) -> Reason:
        """The jobs that it waits for: those which share what there is too little of."""
        limit = together.limit
        if limit is not None:
            rivals = [each for each in self._fitting if each.gang.key in limit.costs]
            gangs = [*(each.gang for each in rivals), job.gang]
            total = sum(cheapest(gang, limit.costs[gang.key]) + limit.beside.get(gang.key, 0) for gang in gangs)
            need, has = show(total, limit.resource), show(limit.amount, limit.resource)
            what = f"together they need {need} {limit.resource} of {limit.owner}, which has {has}{limit.note}"
            message = f"waits for {_named(rivals)}: {what}"
            return Reason("gang-fits-beside-others", message, limit.resource, need, has)
        reach = frozenset().union(*(shape.nodes for shape in job.gang.shapes))
        rivals = [each for each in self._fitting if any(shape.nodes & reach for shape in each.gang.shapes)]
        pods = counted(job.gang.minimum, "pod")
        message = f"waits for {_named(rivals)}: no place is left for its {pods}, {together.why}"
        return Reason("gang-fits-beside-others", message)

    # the way out

    def _change(self, job: Job) -> str | None:
        """The smallest change after which the job could run, tried by running the search with it."""
        gang = job.gang
        for tier, domain in self._higher_tiers(gang):
            if self.alone(gang._replace(tier=tier)).outcome is Outcome.FOUND:
                return f"allow {domain}"
        ways = []
        if (fewer := self._largest(gang)) is not None:
            ways.append(f"lower minAvailable to {fewer}")
        if raised := self._raised(gang):
            ways.append(f"raise {raised}")
        return ", or ".join(ways) or None

    def _raised(self, gang: Gang) -> str:
        """The limits that would have to be higher, where that is all there is to it."""
        needs = {number: cheapest(gang, limit.costs[gang.key]) + limit.beside.get(gang.key, 0)
                 for number, limit in enumerate(self._problem.limits) if gang.key in limit.costs}  # fmt: skip
        over = {number: need for number, need in needs.items() if need > self._problem.limits[number].amount}
        if not over or any(self._problem.limits[number].rule == "gang-fits-a-domain" for number in over):
            return ""
        limits = [limit._replace(amount=over.get(number, limit.amount))
                  for number, limit in enumerate(self._problem.limits)]  # fmt: skip
        wider = replace(self._problem, limits=tuple(limits))
        if _Judge(wider, None, self._tier_names).alone(gang).outcome is not Outcome.FOUND:
            return ""
        amounts = ((self._problem.limits[number], need) for number, need in over.items())
        return names.listed(
            f"{limit.owner} to {show(need, limit.resource)} {limit.resource}" for limit, need in amounts
        )

    def _higher_tiers(self, gang: Gang) -> Iterable[tuple[int | None, str]]:
        if gang.tier is None:
            return
        above = sorted({each.tier for each in self._problem.domains if each.tier > gang.tier})
        yield from ((tier, f"tier {self._tier_names.get(tier) or tier}") for tier in above)
        yield None, "any tier: take the hard topology out"

    def _largest(self, gang: Gang) -> int | None:
        """The most pods that could start together; a task's own minimum gives way."""
        loose = gang._replace(shapes=tuple(shape._replace(need=0) for shape in gang.shapes))
        lowest, highest = 0, gang.minimum
        while highest - lowest > 1:
            middle = (lowest + highest) // 2
            if self.alone(loose._replace(minimum=middle)).outcome is Outcome.FOUND:
                lowest = middle
            else:
                highest = middle
        return lowest or None


def why_never(problem: Problem, gang: Gang, why: str) -> Reason:
    """The constraint that keeps the gang from running on an empty cluster, the plainest first."""
    return (
        _no_node(problem, gang)
        or _too_small(problem, gang)
        or _beyond_limit(problem.limits, gang)
        or Reason("gang-fits-a-domain", f"no packing of its {counted(gang.minimum, 'pod')} exists: {why}")
    )


def _no_node(problem: Problem, gang: Gang) -> Reason | None:
    """A shape of which no node holds a single pod."""
    for shape in gang.shapes:
        if not shape.need and len(gang.shapes) > 1:
            continue
        best: tuple[int, str] | None = None
        for node in sorted(shape.nodes):
            lacking = [name for name, amount in shape.requests.items() if amount > problem.free[node].get(name, 0)]
            if not lacking:
                best = None
                break
            if best is None or len(lacking) < best[0]:
                best = len(lacking), node
        else:
            if not shape.nodes:
                return Reason("pod-fits-a-node", f"no node takes a pod of {shape.name}: labels, taints or cordons")
        if best is not None:
            node = best[1]
            lacking = [name for name, amount in shape.requests.items() if amount > problem.free[node].get(name, 0)]
            need, has = (show(each.get(lacking[0], 0), lacking[0]) for each in (shape.requests, problem.free[node]))
            message = f"a pod of {shape.name} needs {need} {lacking[0]}, and the nearest node, {node}, has {has} for it"
            return Reason("pod-fits-a-node", message, lacking[0], need, has)
    return None


def _beyond_limit(limits: Sequence[Limit], gang: Gang) -> Reason | None:
    for limit in limits:
        if gang.key not in limit.costs:
            continue
        need = cheapest(gang, limit.costs[gang.key]) + limit.beside.get(gang.key, 0)
        if need > limit.amount:
            needed, available = show_rounded(need, limit.resource, up=True), show_rounded(limit.amount, limit.resource)
            pods = f"its {counted(gang.minimum, 'pod')} need{'s' * (gang.minimum == 1)}"
            message = f"{pods} {needed} {limit.resource}, and {limit.owner} has {available}{limit.note}"
            return Reason(limit.rule, message, limit.resource, needed, available)
    return None


def _too_small(problem: Problem, gang: Gang) -> Reason | None:
    """No domain holds as many pods as must start together, of the whole gang or of one of its partitions."""
    parts = [(gang.tier, gang.minimum, gang, "")]
    for shape in gang.shapes:
        if shape.tier is not None and shape.need:
            alone = gang._replace(shapes=(shape,), minimum=shape.need, tier=shape.tier)
            parts.append((shape.tier, shape.need, alone, f" of {shape.name}"))
    for tier, pods, part, whose in parts:
        domains = problem.allowed(tier)
        if not domains:
            return Reason("gang-fits-a-domain", f"no domain up to tier {tier} has a node that takes pods")
        best = max(domains, key=lambda each: (_capacity(problem, part, each), each.name))
        most = _capacity(problem, part, best)
        if most < pods:
            where = f"{best.name}, the largest domain up to tier {tier}," if tier is not None else "the whole cluster"
            together = f"{pods} pods{whose} must start together" if pods > 1 else f"1 pod{whose} must start"
            return _short(problem, part, best, f"{together} and {where} holds {most}")
    return None


def _short(problem: Problem, gang: Gang, domain: Domain, fact: str) -> Reason:
    """The fact with what is short: a resource in all, or room on each single node."""
    resource, need, has = _scarcest(problem, gang, domain)
    if need > has:
        needed, available = show_rounded(need, resource, up=True), show_rounded(has, resource)
        message = f"{fact}: they need {needed} {resource}, it has {available}"
    else:
        counts = Counter(_pods_on(problem, gang, node) for node in domain.nodes)
        each = [f"{counted(nodes, 'node')} of {pods}" for pods, nodes in sorted(counts.items(), reverse=True) if pods]
        message = f"{fact}: {names.listed(each) or 'no node has room for any'}"
    return Reason("gang-fits-a-domain", message, resource, show(need, resource), show(has, resource))


def _capacity(problem: Problem, gang: Gang, domain: Domain) -> int:
    """At most how many pods of the gang the domain's nodes hold."""
    return sum(_pods_on(problem, gang, node) for node in domain.nodes)


def _pods_on(problem: Problem, gang: Gang, node: str) -> int:
    """At most how many pods of the gang the node holds, as if it held one shape alone."""
    free = problem.free[node]
    return max((packing.holds(free, shape.requests) for shape in gang.shapes if node in shape.nodes), default=0)


def _scarcest(problem: Problem, gang: Gang, domain: Domain) -> tuple[str, Amount, Amount]:
    """The resource of which the domain has least, measured by the need."""
    resources = sorted({name for shape in gang.shapes for name in shape.requests})
    found = []
    for resource in resources:
        need = cheapest(gang, tuple(shape.requests.get(resource, 0) for shape in gang.shapes))
        has = sum(problem.free[node].get(resource, 0) for node in domain.nodes)
        if need:
            found.append((float(has / need), resource, need, has))
    _, resource, need, has = min(found)
    return resource, need, has


def _named(jobs: Sequence[Job]) -> str:
    return names.listed(str(job.key) for job in jobs) or "others"


def summary(found: Iterable[Verdict]) -> dict[str, int]:
    """How many there are of each."""
    states = [each.state for each in found]
    return {state.value: states.count(state) for state in State}
