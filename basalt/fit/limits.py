"""What jobs may take together: the limits of queues and of quotas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from basalt.facts import Fact
from basalt.fit import queues
from basalt.fit.job import Job
from basalt.fit.problem import ENDLESS, PODS, Gang, Key, Limit
from basalt.index import Index
from basalt.quantities import Amount, Resources
from basalt.views.queue_tree import ROOT
from basalt.views.quotas import namespace_of

_ENFORCING = {"capacity", "proportion"}


def limits(index: Index, jobs: Sequence[Job], total: Resources, plugins: Iterable[str]) -> Iterator[Limit]:
    """Those of the queues, where one of the scheduler's plugins enforces them, and those of the quotas; total is what
    all nodes offer."""
    if _ENFORCING.intersection(plugins):
        yield from _queue_limits(index, jobs, total)
    yield from _quota_limits(index, {id(job.object): job for job in jobs})


def bar(index: Index, queue: str | None) -> tuple[str, str] | None:
    """The rule, and the fact, for which the queue takes no job; None where it does, or where nothing is known of it."""
    if queue is None or not index.knows(Fact.QUEUES):
        return None
    if queue not in index.queues.names():
        return "queue-exists", f"the queue {queue} is not declared"
    refusal = index.queues.refusal(queue)
    return None if refusal is None else ("queue-takes-jobs", refusal)


def is_hierarchical(index: Index) -> bool:
    """Whether the queues above one count."""
    return index.scheduler is None or index.scheduler.plugin_has("capacity", "enableHierarchy")


def owner_of(queue: str) -> str:
    """What the limits of a queue have for their owner."""
    return "the cluster" if queue == ROOT else f"queue {queue}"


def _queue_limits(index: Index, jobs: Iterable[Job], total: Resources) -> Iterator[Limit]:
    every = queues.ceilings(index.queues, total, is_hierarchical=is_hierarchical(index))
    endless: Resources = dict.fromkeys(total, ENDLESS)
    most = {
        each.queue: each.amounts
        for way in queues.ceilings(index.queues, endless, is_hierarchical=is_hierarchical(index)).values()
        for each in way
    }
    below: dict[str, list[Job]] = {}
    amounts: dict[str, Resources] = {}
    for job in jobs:
        for ceiling in every.get(job.queue, ()) if job.queue else ():
            below.setdefault(ceiling.queue, []).append(job)
            amounts[ceiling.queue] = ceiling.amounts
    for name, inside in below.items():
        for resource in sorted({each for job in inside for shape in job.gang.shapes for each in shape.requests}):
            if resource in amounts[name] and resource != PODS:
                costs = {job.gang.key: _costs(job.gang, resource) for job in inside}
                amount, highest = amounts[name][resource], most[name][resource]
                rule, note = _whose(index, name, resource, amount, total)
                of = Key("Queue", "", name)
                yield Limit(rule, owner_of(name), resource, amount, costs, note=note, of=of, most=highest)


def _whose(index: Index, name: str, resource: str, amount: Amount, total: Resources) -> tuple[str, str]:
    """The rule that speaks of the limit, and what makes it less than all. A queue's capability is the business of a
    rule of its own; what others are guaranteed is not."""
    queue = index.queues.queues.get(name)
    if queue is not None and queue.capability.get(resource) == amount:
        return "gang-fits-its-queue", ""
    return "gang-fits-a-domain", " beside what others are guaranteed" if amount < total.get(resource, 0) else ""


def _quota_limits(index: Index, jobs: Mapping[int, Job]) -> Iterator[Limit]:
    amounts: dict[tuple[Key, str], Amount] = {}
    costs: dict[tuple[Key, str], dict[Key, tuple[Amount, ...]]] = {}
    beside: dict[tuple[Key, str], dict[Key, Amount]] = {}
    for demand in index.quota_demands:
        if (job := jobs.get(id(demand.job.object))) is None:
            continue
        for key, limit in demand.limits.items():
            shared = Key("ResourceQuota", namespace_of(limit.quota), limit.quota.name), key
            amounts.setdefault(shared, limit.amount)
            own = tuple(demand.gang.parts[task].requests.get(key, 0) for task in job.tasks)
            costs.setdefault(shared, {})[job.gang.key] = own
            beside.setdefault(shared, {})[job.gang.key] = demand.beside.get(key, 0)
    for shared, amount in amounts.items():
        of, key = shared
        owner = f"ResourceQuota {of}"
        yield Limit("gang-fits-its-quota", owner, key, amount, costs[shared], beside[shared], of=of)


def _costs(gang: Gang, resource: str) -> tuple[Amount, ...]:
    return tuple(shape.requests.get(resource, 0) for shape in gang.shapes)
