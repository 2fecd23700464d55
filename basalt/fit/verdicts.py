"""The verdicts on all jobs, in the order of their priority: each with its witness, or with what binds."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from basalt import names
from basalt.fit import changes, checking, packing, pod_by_pod, reading, search
from basalt.fit.job import Job
from basalt.fit.packing import Room, cheapest
from basalt.fit.pod_by_pod import Scoring
from basalt.fit.problem import Counts, Gang, Placement, Problem
from basalt.fit.reading import Read
from basalt.fit.reasons import Reason, why_never
from basalt.fit.solver import Answer, Outcome
from basalt.index import Index
from basalt.names import counted
from basalt.quantities import show


class State(enum.StrEnum):
    FITS = "fits"
    CONTENDED = "contended"
    NEVER = "never"
    UNKNOWN = "unknown"


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
    counts: Counts = field(default_factory=dict)  # the placement of a job that fits, by shape

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
    return solved(index).verdicts if reading.asks(index) else ()


@lru_cache(maxsize=2)  # the rules and the command ask for the same, and a plan has two sides
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
        if job.bar is not None:
            return Verdict(job, State.NEVER, reason=Reason(*job.bar))
        if job.gap:
            return Verdict(job, State.UNKNOWN, reason=Reason("gang-fits-a-domain", f"Basalt cannot tell: {job.gap}"))
        return self._searched(job)

    def _searched(self, job: Job) -> Verdict:
        if self._room.put(job.gang):
            self._fitting.append(job)
            return Verdict(job, State.FITS)
        alone = self.alone(job.gang)
        if alone.outcome is Outcome.IMPOSSIBLE:
            reason = why_never(self._problem, job.gang, alone.why)
            change = changes.of_never(self._problem, job.gang, self._tier_names, self._runs)
            return Verdict(job, State.NEVER, reason=reason, change=change)
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
        gang, weights = verdict.job.gang, self._scoring
        tight = weights is not None and not pod_by_pod.finds(self._problem, gang, weights)
        if weights is not None and tight:
            verdict = replace(verdict, tight=True, change=changes.of_tight(self._problem, gang, weights, self._runs))
        if verdict.state is State.CONTENDED:
            return verdict
        counts = self.placement[verdict.job.key]
        placement, domain = self._shown(counts)
        return replace(verdict, placement=placement, domain=domain, counts=counts)

    def alone(self, gang: Gang, problem: Problem | None = None) -> Answer:
        answer = search.alone(problem or self._problem, gang, self._time)
        self._time -= answer.spent
        return answer

    def _runs(self, problem: Problem, gang: Gang) -> bool:
        return self.alone(gang, problem).outcome is Outcome.FOUND

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


def _named(jobs: Sequence[Job]) -> str:
    return names.listed(str(job.key) for job in jobs) or "others"


def summary(found: Iterable[Verdict]) -> dict[str, int]:
    """How many there are of each."""
    states = [each.state for each in found]
    return {state.value: states.count(state) for state in State}
