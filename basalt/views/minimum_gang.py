"""The minimum gang of a job: the fewest pods that start together, and the cheapest mix of its tasks that they can be.

Source: calcPGMinResources in pkg/controllers/job/job_controller_actions.go; which pods they are, the scheduler leaves
open where the job's minAvailable is below the sum of its tasks' own (CheckTaskValid in pkg/scheduler/api/job_info.go).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from basalt.quantities import Amount, Resources, show
from basalt.views.workloads import Workload


class Part(NamedTuple):
    """Pods that are alike: how many there are, and how many of them the gang needs in any case."""

    name: str
    replicas: int
    need: int
    requests: Resources


class MinimumGang(NamedTuple):
    """At least so many pods, out of these."""

    pods: int
    parts: tuple[Part, ...]

    @property
    def total(self) -> int:
        return sum(part.replicas for part in self.parts)

    @property
    def resources(self) -> list[str]:
        return sorted({resource for part in self.parts for resource in part.requests})

    def cheapest(self, resource: str) -> list[tuple[Part, int]]:
        """How many pods of each part there are in a mix that requests least of the resource."""
        taken = [part.need for part in self.parts]
        left = self.pods - sum(taken)
        for index in sorted(range(len(self.parts)), key=lambda each: self.parts[each].requests.get(resource, 0)):
            more = min(left, self.parts[index].replicas - taken[index])
            taken[index] += more
            left -= more
        return list(zip(self.parts, taken, strict=True))

    def needs(self, resource: str) -> Amount:
        return cost(self.cheapest(resource), resource)


def cost(mix: Iterable[tuple[Part, int]], resource: str) -> Amount:
    return sum((part.requests.get(resource, 0) * count for part, count in mix), start=0)


def arithmetic(mix: Sequence[tuple[Part, int]], resource: str) -> str:
    """How the sum comes about: 1 x 0 (master) + 3 x 8 (worker) = 24."""
    some = [(part, count) for part, count in mix if count]
    terms = [f"{count} x {show(part.requests.get(resource, 0), resource)}" for part, count in some]
    if len(terms) > 1:
        terms = [f"{term} ({part.name})" if part.name else term for term, (part, _) in zip(terms, some, strict=True)]
    return f"{' + '.join(terms)} = {show(cost(some, resource), resource)}"


def minimum_gang(job: Workload) -> MinimumGang | None:
    """None where one of its numbers is none, where nothing has to start, or where it asks for more pods than there
    are, of which other rules speak."""
    if job.is_patch and not job.spec.get("minAvailable"):
        return None  # the JobTemplate may say it
    pods, needs = job.minimum, [task.minimum for task in job.tasks]
    counts = [task.replicas for task in job.tasks]
    if pods is None or None in needs or None in counts or not pods > 0:
        return None
    known, have = [need or 0 for need in needs], [count or 0 for count in counts]
    if pods > sum(have) or any(need > count for need, count in zip(known, have, strict=True)):
        return None
    is_strict = pods >= sum(known)
    parts = (
        Part(task.name, count, need if is_strict else 0, task.requests)
        for task, count, need in zip(job.tasks, have, known, strict=True)
    )
    return MinimumGang(pods, tuple(parts))
