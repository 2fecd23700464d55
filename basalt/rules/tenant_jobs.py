"""Whether a team's jobs get through what guards its namespaces: quotas, queues, priorities, policies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.gathering.documents import Declaration
from basalt.index import Index
from basalt.objects import KubeObject, mapping, strings
from basalt.pointers import Pointer, existing, get
from basalt.quantities import show
from basalt.rules.bounds import bounded
from basalt.rules.rule import Rule
from basalt.views import gang_network, pod_security, quotas
from basalt.views.gang_network import Closed
from basalt.views.pods import pods
from basalt.views.quota_demands import Demand, Mix
from basalt.views.quotas import NO_DEFAULTS, Added, Limit, namespace_of
from basalt.views.workloads import Workload, destinations

_VOLCANO = ("batch.volcano.sh", "flow.volcano.sh")
_SHOWN = 3  # keys of a quota in one message


class _Pod(NamedTuple):
    """A pod wherever it stands: its spec, its metadata's annotations, and the container that Volcano adds to it."""

    object: KubeObject
    pointer: Pointer
    spec: Mapping[str, Any]
    added: Added | None = None
    is_patch: bool = False

    @property
    def annotations(self) -> Mapping[str, Any]:
        return mapping(get(self.object.value, (*self.pointer[:-1], "metadata", "annotations")))


def _pods(index: Index) -> Iterator[_Pod]:
    """Every pod that somebody declares; a PodTemplate makes none."""
    for declared in index.others:
        if declared.ref.group not in _VOLCANO and declared.ref.kind != "PodTemplate":
            yield from (_Pod(*pod) for pod in pods((declared,)))
    for job in index.workloads:
        for task in job.tasks:
            yield _Pod(job.object, task.pod_pointer, task.pod, quotas.added_container(job, task), job.is_patch)


def quota_has_defaults(index: Index) -> Iterator[Problem]:
    yield from bounded(_undefaulted(index))


def _undefaulted(index: Index) -> Iterator[Problem]:
    every, given = index.quotas, quotas.defaults(index.of_kind("LimitRange"))
    for pod in _pods(index):
        namespace = namespace_of(pod.object)
        keys = {} if pod.is_patch else every.demanding(namespace)
        if not keys:
            continue
        ranged = given.get(namespace, NO_DEFAULTS)
        missing = quotas.lacking(quotas.admitted(quotas.with_added(pod.spec, pod.added), ranged), keys)
        if missing:
            yield _undefaulted_pod(pod, missing, keys)


def _undefaulted_pod(pod: _Pod, missing: Mapping[str, list[str]], keys: Mapping[str, KubeObject]) -> Problem:
    without = list(dict.fromkeys(name for named in missing.values() for name in named))
    at = next((each for each, container in quotas.containers(pod.spec) if container.get("name") in without), None)
    is_added = pod.added is not None and pod.added.container["name"] in without
    named = names.listed(f"{each} (added by Volcano)" if is_added and each == without[-1] else each for each in without)
    nouns, do = ("container", "does") if len(without) == 1 else ("containers", "do")
    source = keys[next(iter(missing))].position(("spec", "hard", next(iter(missing))))
    message = (
        f"the {nouns} {named} {do} not set {names.listed(map(_setting, missing))}, which the quota counts ({source})"
    )
    pointer: Pointer = (*pod.pointer, *at, "resources") if at is not None else pod.added.pointer if pod.added else ()
    own = "set them" if at is not None else "take the flag out"
    hint = f"{own}, or give {namespace_of(pod.object)} a LimitRange with defaults: the API server refuses such pods"
    return Problem(pod.object, existing(pod.object.value, pointer), message, hint)


def _setting(key: str) -> str:
    """Where a container sets what the quota's key counts."""
    return key if "." in key else f"requests.{key}"


def gang_fits_its_quota(index: Index) -> Iterator[Problem]:
    for demand in index.quota_demands:
        if over := demand.over_at_least:
            pods = f" of {demand.gang.pods} pods" if demand.gang.pods > 1 else ""
            what = f"the minimum gang{pods} needs {_excess(demand, over)}"
            hint = _way_out(demand, over, "lower minAvailable or the requests")
            yield Problem(demand.job.object, _minimum_at(demand), what, hint)
        elif not demand.has_mix:
            held = names.listed((f"{show(each.amount, key)} {key}" for key, each in demand.limits.items()), _SHOWN)
            what = f"no mix of {demand.gang.pods} pods, the minimum gang, keeps within {held}, which the quota allows"
            yield Problem(demand.job.object, _minimum_at(demand), what, "lower the requests, or raise the quota")
    yield from _groups_over(index)


def _excess(demand: Demand, over: Mapping[str, Mix]) -> str:
    """Per key: what is needed, with its arithmetic, and what the quota allows."""
    shown = list(over)[:_SHOWN]
    said = "; ".join(f"{demand.arithmetic(key, over[key])} {key}, {_allowed(demand.limits[key])}" for key in shown)
    rest = len(over) - _SHOWN
    return said + (f"; and {rest} more {'key' if rest == 1 else 'keys'}" if rest > 0 else "")


def _allowed(limit: Limit) -> str:
    source = limit.source
    return f"the quota allows {show(limit.amount, limit.key)} ({source})"


def _way_out(demand: Demand, over: Mapping[str, Mix], lower: str) -> str:
    key = next(iter(over))
    to = f" to {show(demand.needs(key, over[key]), key)}" if len(over) == 1 else ""
    return f"raise the quota{to}" if over.keys() <= demand.beside.keys() else f"{lower}, or raise the quota{to}"


def _minimum_at(demand: Demand) -> Pointer:
    """The job's minAvailable where it is given, else that of the task that most of the gang's pods come from."""
    job = demand.job
    if job.spec.get("minAvailable"):
        return (*job.pointer, "minAvailable")
    most = max(range(len(job.tasks)), key=lambda each: demand.gang.parts[each].need)
    field = "minAvailable" if job.tasks[most].value.get("minAvailable") is not None else "replicas"
    return existing(job.object.value, (*job.tasks[most].pointer, field))


def _groups_over(index: Index) -> Iterator[Problem]:
    """PodGroups that ask for more than a quota allows: the scheduler's plugin resourcequota lets them wait for ever."""
    every = index.quotas
    for group in index.of_kind("PodGroup"):
        limits = every.limits(namespace_of(group))
        for key, asked in quotas.of_group(group).items() if limits else ():
            if key in limits and asked.value > limits[key].amount:
                needed = show(asked.value, key)
                message = f"the group needs {needed} {key}, {_allowed(limits[key])}"
                yield Problem(group, asked.pointer, message, f"lower it, or raise the quota to {needed}")
                break


def job_fits_its_quota(index: Index) -> Iterator[Problem]:
    for demand in index.quota_demands:
        over = demand.over_at_most
        if over and demand.has_mix:
            gang, key = demand.gang, next(iter(over))
            growth = [(part.replicas - part.need) * part.requests.get(key, 0) for part in gang.parts]
            task = demand.job.tasks[max(range(len(growth)), key=lambda each: growth[each])]
            message = f"all {gang.total} pods need {_excess(demand, over)}; the minimum gang of {gang.pods} fits"
            pointer = existing(demand.job.object.value, (*task.pointer, "replicas"))
            yield Problem(demand.job.object, pointer, message, _way_out(demand, over, "lower the replicas"))


class _Teams:
    """The teams by their namespaces, and whose a queue is."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._owners = {team.name for team in index.teams if "queue" in team.spec}
        self._by_namespace: dict[str, list[Declaration]] = {}
        for team in index.teams:
            for namespace in mapping(team.spec.get("namespaces")):
                self._by_namespace.setdefault(namespace, []).append(team)

    def of(self, declared: KubeObject) -> list[Declaration]:
        """The teams of the object's namespace: one, unless namespace-has-one-team speaks."""
        name = declared.name if declared.ref.kind == "Namespace" else namespace_of(declared)
        return self._by_namespace.get(name, [])

    def owner(self, queue: str) -> str | None:
        """The team whose queue it is, or the nearest queue above it; None where the platform's are all there are."""
        declared = self._index.queues.queues.get(queue)
        above = [each.name for each in self._index.queues.ancestors(declared)] if declared else []
        return next((name for name in (queue, *above) if name in self._owners), None)


def team_may_use_queue(index: Index) -> Iterator[Problem]:
    teams = _Teams(index)
    for each in destinations(index.others):
        own = [team.name for team in teams.of(each.object)]
        owner = teams.owner(each.queue) if own else None
        if owner is not None and owner not in own:
            whose = "is the queue" if owner == each.queue else "belongs to the queue"
            namespace = each.object.name if each.object.ref.kind == "Namespace" else namespace_of(each.object)
            message = f"{each.queue} {whose} of the team {owner}, and {namespace} is a namespace of {own[0]}"
            takers = [name for name in sorted(index.queues.takers()) if teams.owner(name) in (None, *own)]
            mine = [name for name in takers if teams.owner(name) in own] or takers
            yield Problem(each.object, each.pointer, message, f"name {_one_of(mine)}")


def _one_of(every: Sequence[str]) -> str:
    return every[0] if len(every) == 1 else f"one of {names.listed(every)}"


def team_may_use_priority(index: Index) -> Iterator[Problem]:
    teams = _Teams(index)
    declared = {each.name for each in index.of_kind("PriorityClass")}
    reported: set[tuple[int, str]] = set()
    for place, pointer, name in _priorities(index):
        own = teams.of(place)
        listed = list(dict.fromkeys(each for team in own for each in strings(team.spec.get("priorities"))))
        is_unknown = index.knows(Fact.PRIORITIES) and name not in declared and not name.startswith("system-")
        if not own or name in listed or is_unknown or (id(place), name) in reported:
            continue  # priority-exists speaks of a class that nobody declares
        reported.add((id(place), name))
        mine = f"lists {names.listed(listed)}, not {name}" if listed else f"lists no class, and this is {name}"
        hint = f"add {name} to the team's priorities"
        if listed:
            hint = f"name {_one_of(listed)}, or {hint}"
        yield Problem(place, pointer, f"the team {own[0].name} {mine}", hint)


def _priorities(index: Index) -> Iterator[tuple[KubeObject, Pointer, str]]:
    """Every place in a job, a PodGroup or a pod that names a PriorityClass."""
    field = "priorityClassName"
    named = [
        *((job.object, (*job.pointer, field), job.spec.get(field)) for job in index.workloads),
        *((group, ("spec", field), group.spec.get(field)) for group in index.of_kind("PodGroup")),
        *((pod.object, (*pod.pointer, field), pod.spec.get(field)) for pod in _pods(index)),
    ]
    yield from ((place, pointer, name) for place, pointer, name in named if isinstance(name, str) and name)


def security_admits_jobs(index: Index) -> Iterator[Problem]:
    newest = index.catalog.versions["kubernetes"].minor
    enforced = {each.name: pod_security.policy(each.labels, newest) for each in index.of_kind("Namespace")}
    for pod in _pods(index):
        policy = enforced.get(namespace_of(pod.object))
        if policy is not None and policy.level != pod_security.PRIVILEGED:
            yield from _refused(pod, policy)


def _refused(pod: _Pod, policy: pod_security.Policy) -> Iterator[Problem]:
    """A patch leaves most of the pod to its JobTemplate, so only what it sets itself is judged."""
    judged = policy._replace(level=pod_security.BASELINE) if pod.is_patch else policy
    own = pod_security.violations(judged, pod.spec, pod.annotations)
    spec = quotas.with_added(pod.spec, pod.added)
    found = pod_security.violations(judged, spec, pod.annotations) if pod.added else own
    if not found:
        return
    namespace, reasons = namespace_of(pod.object), ", ".join(each.text for each in found)
    message = f'{namespace} refuses the pods: violates PodSecurity "{policy}": {reasons}'
    lower = judged._replace(level=pod_security.BASELINE)
    enough = pod_security.PRIVILEGED if pod_security.violations(lower, spec, pod.annotations) else lower.level
    mend = "change that" if own else "take the flag out"
    hint = f"{mend}, or let {namespace} enforce {enough}"
    places = [pointer for violation in own for pointer in violation.pointers]
    if not own and pod.added:
        yield Problem(pod.object, pod.added.pointer, message, hint)
    else:
        yield Problem(pod.object, existing(pod.object.value, (*pod.pointer, *_common(places))), message, hint)


def _common(places: Iterable[Pointer]) -> Pointer:
    """What all the pointers begin with."""
    parts = zip(*places, strict=False)
    return tuple(each[0] for each in takewhile(lambda each: len(set(each)) == 1, parts))


def network_allows_the_gang(index: Index) -> Iterator[Problem]:
    policies: dict[str, list[KubeObject]] = {}
    for policy in index.of_kind("NetworkPolicy"):
        policies.setdefault(namespace_of(policy), []).append(policy)
    declared = {each.name: each for each in index.of_kind("Namespace")}
    spaces = {name: gang_network.namespace(name, own, declared.get(name)) for name, own in policies.items()}
    apart: dict[tuple[int, str], list[tuple[Workload, Closed]]] = {}
    for job in index.workloads:
        around = spaces.get(namespace_of(job.object))
        if around is not None and not job.is_patch and gang_network.talks(job):
            for closed in gang_network.closed(job, around):
                apart.setdefault((id(closed.policy), closed.direction.rules), []).append((job, closed))
    for jobs in apart.values():
        yield _apart(jobs)


def _apart(jobs: Sequence[tuple[Workload, Closed]]) -> Problem:
    (job, (policy, direction, port)), count = jobs[0], len(jobs)
    others = f" and {count - 1} more {'job' if count == 2 else 'jobs'}" if count > 1 else ""
    on = f" on port {port}" if port else ""
    message = (
        f"{policy.name} closes {direction.rules}, and no policy lets the pods of {job.object.ref}{others} reach each "
        f"other{on}"
    )
    hint = f"allow {direction.rules} {direction.peers} the pods of the same namespace, on all ports: NCCL takes any"
    pointer: Pointer = ("spec", direction.rules) if direction.rules in policy.spec else ("spec",)
    return Problem(policy, pointer, message, hint)


RULES: tuple[Rule, ...] = (
    Rule("quota-has-defaults", Severity.ERROR, quota_has_defaults, needs=(Fact.QUOTAS,)),
    Rule("gang-fits-its-quota", Severity.ERROR, gang_fits_its_quota, needs=(Fact.QUOTAS,)),
    Rule("job-fits-its-quota", Severity.WARNING, job_fits_its_quota, needs=(Fact.QUOTAS,)),
    Rule("team-may-use-queue", Severity.ERROR, team_may_use_queue, needs=(Fact.TEAMS,)),
    Rule("team-may-use-priority", Severity.ERROR, team_may_use_priority, needs=(Fact.TEAMS,)),
    Rule("security-admits-jobs", Severity.ERROR, security_admits_jobs, needs=(Fact.NAMESPACES,)),
    Rule("network-allows-the-gang", Severity.ERROR, network_allows_the_gang),
)
