"""The family Plan: what a step from one environment to another does to what runs, and to what is kept."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.fit.job import Job
from basalt.fit.losing import is_worse
from basalt.fit.verdicts import State, Verdict
from basalt.index import Index
from basalt.objects import KubeObject, mapping, sequence
from basalt.plan.pair import Pair
from basalt.pointers import Pointer, existing, get
from basalt.rules.rule import of_plans
from basalt.views import claims
from basalt.views.gangs import Priorities
from basalt.views.pod_templates import TEMPLATES
from basalt.views.queue_tree import BUILT_IN, OPEN
from basalt.views.quotas import namespace_of
from basalt.views.workloads import destinations

_CLASS = "priorityClassName"
_VOLCANO_JOB = ("batch.volcano.sh", "Job")
_RUNNING = frozenset((_VOLCANO_JOB, *TEMPLATES)) - {("", "PodTemplate"), ("batch", "CronJob")}
_MAY_CHANGE = "minAvailable, priorityClassName and the tasks' replicas and minAvailable"


class _Danger(NamedTuple):
    """What happens to a job that may run now: the pointer into the head's object, the fact, and the way out."""

    pointer: Pointer
    message: str
    hint: str


def plan_keeps_jobs_running(pair: Pair) -> Iterator[Problem]:
    exposing = _exposing(pair)
    for turn in pair.jobs:
        if turn.before is None or turn.after is None or turn.before.state is State.NEVER:
            continue
        dangers = [*_falls(pair, turn.before, turn.after), *_loses(pair, turn.before, turn.after)]
        dangers += _is_exposed(pair, turn.after.job, exposing)
        if dangers:
            at = existing(turn.after.job.object.value, dangers[0].pointer)
            message = "; ".join(each.message for each in dangers)
            yield Problem(turn.after.job.object, at, message, dangers[0].hint)


def _falls(pair: Pair, before: Verdict, after: Verdict) -> Iterator[_Danger]:
    is_known = pair.base.knows(Fact.NODES) and pair.head.knows(Fact.NODES)
    if is_known and is_worse(after.state, before.state):
        why = f": {after.reason.message}" if after.reason else ""
        hint = after.change or "leave it the room that it has, or wait until it has ended"
        yield _Danger(after.job.size, f"its verdict falls from {before.state} to {after.state}{why}", hint)


def _loses(pair: Pair, before: Verdict, after: Verdict) -> Iterator[_Danger]:
    """Where it runs, and the queue that it runs in."""
    at, job = after.job.pointer, before.job
    is_there = before.domain is None or before.domain in pair.head.hyper_nodes.by_name
    if not is_there and job.tier is not None and before.state is State.FITS:
        message = f"its domain {before.domain} disappears"
        yield _Danger((*at, "networkTopology"), message, "keep the HyperNode until the job has ended")
    queue = job.queue
    if queue in pair.base.queues.queues and queue not in pair.head.queues.names():
        yield _Danger((*at, "queue"), f"its queue {queue} disappears", "keep the queue until the job has ended")


def _exposing(pair: Pair) -> dict[str, list[str]]:
    """For each PriorityClass those that may evict it from now on."""
    found: dict[str, list[str]] = {}
    for evicting, evicted in pair.preemption.new:
        found.setdefault(evicted, []).append(evicting)
    return found


def _is_exposed(pair: Pair, job: Job, exposing: dict[str, list[str]]) -> Iterator[_Danger]:
    values = Priorities(pair.head.of_kind("PriorityClass")).values if exposing else {}
    for name in _classes(pair.head, job) if exposing else ():
        if name in exposing:
            by = names.listed(f"{each} ({values[each]})" for each in exposing[name])
            message = f"pods of {by} may evict its own, of {name} ({values[name]}), from now on"
            hint = "give the job the higher class, or the new one preemptionPolicy: Never"
            yield _Danger((*job.pointer, _CLASS), message, hint)


def _classes(index: Index, job: Job) -> Iterable[str]:
    """The PriorityClasses of its pods."""
    spec = mapping(get(job.object.value, job.pointer))
    tasks = (get(task, ("template", "spec", _CLASS)) for task in sequence(spec.get("tasks")))
    named = {each for each in (spec.get(_CLASS), *tasks) if isinstance(each, str) and each}
    return sorted(named) or [each.name for each in index.of_kind("PriorityClass") if _is_default(each)]


def _is_default(declared: KubeObject) -> bool:
    return declared.value.get("globalDefault") is True


def plan_replaces_nothing_running(pair: Pair) -> Iterator[Problem]:
    for each in pair.objects.replaced:
        own = (each.head.ref.group, each.head.ref.kind)
        if own in _RUNNING:
            first = each.refused[0].pointer
            others = f", nor can {names.counted(len(each.refused) - 1, 'other field')}" if len(each.refused) > 1 else ""
            message = f"cannot change in place{others}: the {each.head.ref.kind} is deleted and made anew"
            may = f"; in place, only {_MAY_CHANGE} may change" if own == _VOLCANO_JOB else ""
            hint = f"let it end first, or give the new one another name{may}"
            yield Problem(each.head, existing(each.head.value, first), message, hint)


def plan_keeps_data(pair: Pair) -> Iterator[Problem]:
    yield from _namespaces(pair)
    users = claims.users(pair.base.objects)
    gone: list[tuple[KubeObject, Pointer, str]] = [(each, (), "removed") for each in pair.objects.removed]
    gone += [(each.head, each.refused[0].pointer, "replaced") for each in pair.objects.replaced]
    for claim, pointer, what in gone:
        using = users.get((namespace_of(claim), claim.name))
        if (claim.ref.group, claim.ref.kind) == ("", "PersistentVolumeClaim") and using:
            message = f"is {what}, with the data in it, and {_named(using)} of the base {_verb(using, 'mount')} it"
            hint = "keep the claim until no job mounts it, and its data is copied"
            yield Problem(claim, existing(claim.value, pointer), message, hint)


def _namespaces(pair: Pair) -> Iterator[Problem]:
    used: dict[str, dict[str, KubeObject]] = {}
    for each in (*(pod.object for pod in pair.base.pods), *pair.base.of_kind("PodGroup")):
        used.setdefault(namespace_of(each), {})[str(each.ref)] = each
    for removed in pair.objects.removed:
        using = [*used.get(removed.name, {}).values()]
        if (removed.ref.group, removed.ref.kind) == ("", "Namespace") and using:
            message = f"is removed, with all that is in it, and {_named(using)} of the base {_verb(using, 'run')} there"
            yield Problem(removed, (), message, "keep the namespace until nothing of it is needed any more")


def _named(objects: Iterable[KubeObject]) -> str:
    return names.listed((f"{each.ref.kind}/{each.name}" for each in objects), most=3)


def _verb(subjects: list[Any], verb: str) -> str:
    return f"{verb}s" if len(subjects) == 1 else verb


def plan_keeps_queues_usable(pair: Pair) -> Iterator[Problem]:
    before, after = pair.base.queues.queues, pair.head.queues.queues
    for each in destinations(pair.head.objects):
        if each.queue not in before:
            continue
        if each.queue not in after and each.queue not in BUILT_IN:
            hint = f"keep {each.queue} until nothing names it, or name another queue"
            yield Problem(each.object, each.pointer, f"names the queue {each.queue}, which is removed", hint)
        elif each.queue in after and before[each.queue].state == OPEN != after[each.queue].state:
            state = after[each.queue].state
            message = f"names the queue {each.queue}, which goes from {OPEN} to {state} and takes no jobs then"
            yield Problem(each.object, each.pointer, message, f"keep {each.queue} open, or name another queue")


def plan_changes_one_priority_at_a_time(pair: Pair) -> Iterator[Problem]:
    for each in pair.objects.replaced:
        if (each.head.ref.group, each.head.ref.kind) != ("scheduling.k8s.io", "PriorityClass"):
            continue
        for change in each.refused:
            if change.pointer == ("value",):
                message = (
                    f"its value changes from {change.before} to {change.after}, which the API refuses in place:"
                    " the class is deleted and made anew, and pods keep the value that they have"
                )
                hint = "add a class of another name with the new value, move the jobs to it, and then remove this one"
                yield Problem(each.head, ("value",), message, hint)


RULES = (
    of_plans("plan-keeps-jobs-running", Severity.WARNING, plan_keeps_jobs_running),
    of_plans("plan-replaces-nothing-running", Severity.WARNING, plan_replaces_nothing_running),
    of_plans("plan-keeps-data", Severity.ERROR, plan_keeps_data),
    of_plans("plan-keeps-queues-usable", Severity.ERROR, plan_keeps_queues_usable),
    of_plans("plan-changes-one-priority-at-a-time", Severity.WARNING, plan_changes_one_priority_at_a_time),
)
