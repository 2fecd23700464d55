"""Jobs against the quotas of their namespaces: what their minimum gangs, and all of their pods, use up of each key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from basalt.objects import KubeObject
from basalt.quantities import Amount, Resources, show
from basalt.views import quotas
from basalt.views.minimum_gang import MinimumGang, Part, arithmetic, cost, minimum_gang
from basalt.views.quotas import NO_DEFAULTS, Limit, Quotas, namespace_of
from basalt.views.workloads import Workload

_STEPS = 2_000  # mixes that are tried before one is taken to exist
Mix = Sequence[tuple[Part, int]]


@dataclass(frozen=True, eq=False)
class Demand:
    """A job, its gang, whose parts request by the keys of quotas, what it uses beside its pods, and what it may."""

    job: Workload
    gang: MinimumGang
    beside: Resources
    limits: Mapping[str, Limit]

    @property
    def all_pods(self) -> Mix:
        return [(part, part.replicas) for part in self.gang.parts]

    @cached_property
    def over_at_least(self) -> dict[str, Mix]:
        """The keys of which even the cheapest gang takes more than the quotas allow, each with that gang."""
        mixes = {key: self.gang.cheapest(key) for key in self.limits}
        return {key: mix for key, mix in mixes.items() if self.needs(key, mix) > self.limits[key].amount}

    @property
    def over_at_most(self) -> dict[str, Mix]:
        """The keys of which all pods together take more than the quotas allow."""
        mix = self.all_pods
        return {key: mix for key, limit in self.limits.items() if self.needs(key, mix) > limit.amount}

    @cached_property
    def has_mix(self) -> bool:
        """Whether some gang keeps within all of the quotas at once."""
        if not self.over_at_most:
            return True
        left = {key: limit.amount - self.beside.get(key, 0) for key, limit in self.limits.items()}
        return not self.over_at_least and _Search(self.gang, left).finds(0, self.gang.pods, dict.fromkeys(left, 0))

    def needs(self, key: str, mix: Mix) -> Amount:
        return cost(mix, key) + self.beside.get(key, 0)

    def arithmetic(self, key: str, mix: Mix) -> str:
        """How the need comes about: 1 x 8 (master) + 3 x 8 (worker) = 32."""
        if key in self.beside or key in ("pods", "count/pods"):
            return show(self.needs(key, mix), key)
        counted = [(part, count) for part, count in mix if part.requests.get(key)]
        return arithmetic(counted, key)


def demands(jobs: Iterable[Workload], every: Quotas, ranges: Iterable[KubeObject]) -> Iterator[Demand]:
    """The jobs in namespaces with quotas, as far as these count what the jobs use; patches only change other jobs."""
    given = quotas.defaults(ranges)
    for job in jobs:
        namespace = namespace_of(job.object)
        limits = {} if job.is_patch else every.limits(namespace)
        gang = minimum_gang(job) if limits else None
        if gang is None:
            continue
        ranged = given.get(namespace, NO_DEFAULTS)
        specs = [quotas.with_added(task.pod, quotas.added_container(job, task)) for task in job.tasks]
        parts = tuple(
            part._replace(requests=quotas.usage(quotas.admitted(spec, ranged)))
            for part, spec in zip(gang.parts, specs, strict=True)
        )
        beside = quotas.usage_beside(job)
        used = {*beside, *(key for part in parts for key in part.requests)}
        known = {key: limit for key, limit in limits.items() if key in used}
        yield Demand(job, gang._replace(parts=parts), beside, known)


class _Search:
    """Goes through the parts, from the fewest pods of each to the most, and leaves out what cannot fit any more."""

    def __init__(self, gang: MinimumGang, limits: Resources) -> None:
        self._gang, self._limits = gang, limits
        self._steps = 0

    def finds(self, at: int, left: int, used: Resources) -> bool:
        self._steps += 1
        if self._steps > _STEPS:
            return True
        parts = self._gang.parts[at:]
        rest = MinimumGang(left, parts)
        if any(used[key] + rest.needs(key) > limit for key, limit in self._limits.items()):
            return False
        if len(parts) < 2:
            return True
        fewest = max(parts[0].need, left - sum(part.replicas for part in parts[1:]))
        most = min(parts[0].replicas, left - sum(part.need for part in parts[1:]))
        return any(
            self.finds(at + 1, left - count, {key: used[key] + cost([(parts[0], count)], key) for key in used})
            for count in range(fewest, most + 1)
        )
