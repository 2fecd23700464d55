"""What ResourceQuotas count: which keys a pod, a job and what Volcano makes for it use up; and pods as they stand when
they are counted, with the defaults of LimitRanges and the containers that Volcano adds.

Source: pkg/quota/v1/evaluator/core/pods.go, plugin/pkg/admission/limitranger and pkg/apis/core/v1/defaults.go of
k8s.io/kubernetes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.api import booleans
from basalt.findings import Skipped, Source
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, get
from basalt.quantities import Amount, Resources, is_extended, parse_map
from basalt.views.job_plugins import read
from basalt.views.requests import pod_requests
from basalt.views.workloads import Task, Workload

CONTAINERS = ("containers", "initContainers")
# Where a quota has one of them, each container must say how much it takes (validationSet).
DEMANDING = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_WAITING = "wait-for-master"
# What the job controller and the job's plugins make beside the pods, and the keys that count it.
_OF_JOB = {"count/jobs.batch.volcano.sh": 1, "count/podgroups.scheduling.volcano.sh": 1}
_OF_PLUGIN: Mapping[str, tuple[str, ...]] = {
    "svc": ("services", "count/services", "configmaps", "count/configmaps"),
    "ssh": ("secrets", "count/secrets"),
    "ray": ("services", "count/services"),
}


class Limit(NamedTuple):
    """The tightest amount that the quotas of a namespace allow of a key, and who says so."""

    quota: KubeObject
    key: str
    amount: Amount

    @property
    def source(self) -> Source:
        return self.quota.position(("spec", "hard", self.key))


class Quotas:
    """The quotas of all namespaces, without those that have a scope and so count some of the pods only."""

    def __init__(self, quotas: Iterable[KubeObject]) -> None:
        self._by_namespace: dict[str, list[KubeObject]] = {}
        for quota in quotas:
            if not _is_scoped(quota):
                self._by_namespace.setdefault(namespace_of(quota), []).append(quota)

    def limits(self, namespace: str) -> dict[str, Limit]:
        """What the namespace's quotas allow, by key."""
        found: dict[str, Limit] = {}
        for quota in self._by_namespace.get(namespace, ()):
            for key, amount in parse_map(quota.spec.get("hard")).items():
                if key not in found or amount < found[key].amount:
                    found[key] = Limit(quota, key, amount)
        return found

    def demanding(self, namespace: str) -> dict[str, KubeObject]:
        """The keys for which every container must say how much it takes, each with a quota that has it."""
        found: dict[str, KubeObject] = {}
        for quota in self._by_namespace.get(namespace, ()):
            for key in DEMANDING:
                if key in mapping(quota.spec.get("hard")):
                    found.setdefault(key, quota)
        return found


def gaps(quotas: Iterable[KubeObject]) -> Iterator[Skipped]:
    """The quotas that the rules leave out, as Quotas does."""
    for quota in filter(_is_scoped, quotas):
        for rule in ("gang-fits-its-quota", "job-fits-its-quota", "quota-has-defaults"):
            yield Skipped(rule, f"ResourceQuota {namespace_of(quota)}/{quota.name} has a scope")


def _is_scoped(quota: KubeObject) -> bool:
    return bool(quota.spec.get("scopes") or quota.spec.get("scopeSelector"))


def namespace_of(declared: KubeObject) -> str:
    return declared.ref.namespace or "default"


class Defaults(NamedTuple):
    """What LimitRanges give a container that says nothing: raw quantities by resource."""

    requests: Mapping[str, Any]
    limits: Mapping[str, Any]


NO_DEFAULTS = Defaults({}, {})


def defaults(ranges: Iterable[KubeObject]) -> dict[str, Defaults]:
    """By namespace; where several give a default, the first one counts."""
    found: dict[str, Defaults] = {}
    for declared in ranges:
        before = found.get(namespace_of(declared), NO_DEFAULTS)
        own = _defaults_of(declared)
        found[namespace_of(declared)] = Defaults({**own.requests, **before.requests}, {**own.limits, **before.limits})
    return found


def _defaults_of(declared: KubeObject) -> Defaults:
    """A maximum is a default limit too, that a default request, and so is a minimum (SetDefaults_LimitRangeItem)."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in map(mapping, sequence(declared.spec.get("limits"))):
        if item.get("type") == "Container":
            limit = {**mapping(item.get("max")), **mapping(item.get("default"))}
            limits |= limit
            requests |= {**mapping(item.get("min")), **limit, **mapping(item.get("defaultRequest"))}
    return Defaults(requests, limits)


class Added(NamedTuple):
    """A container that Volcano adds to a task's pods, and the place in the job that asks for it."""

    container: Mapping[str, Any]
    pointer: Pointer


def added_container(job: Workload, task: Task) -> Added | None:
    """The container that waits for the master in every worker of a pytorch job, which has neither resources nor a
    securityContext (addWaitForMasterInitContainer in plugins/distributed-framework/pytorch)."""
    if "pytorch" not in job.plugins:
        return None
    flags = read("pytorch", job.plugins["pytorch"])
    if flags.text("wait-master-enabled") not in booleans.TRUE or task.name != flags.text("worker"):
        return None
    if flags.text("master") not in [each.name for each in job.tasks]:
        return None
    if any(mapping(each).get("name") == _WAITING for each in sequence(task.pod.get("initContainers"))):
        return None
    at = flags.position("wait-master-enabled") or 0
    container = {"name": _WAITING, "image": flags.text("wait-master-image"), "command": ["sh", "-c"]}
    return Added(container, (*job.pointer, "plugins", "pytorch", at))


def with_added(pod: Mapping[str, Any], added: Added | None) -> Mapping[str, Any]:
    """The pod's spec with the container that Volcano adds, behind its other init containers."""
    if added is None:
        return pod
    return {**pod, "initContainers": [*sequence(pod.get("initContainers")), added.container]}


def admitted(pod: Mapping[str, Any], given: Defaults) -> Mapping[str, Any]:
    """The pod's spec with the resources that its containers get by default."""
    filled = {
        field: [_filled(mapping(each), given) for each in sequence(pod[field])] for field in CONTAINERS if field in pod
    }
    return {**pod, **filled}


def _filled(container: Mapping[str, Any], given: Defaults) -> Mapping[str, Any]:
    resources = mapping(container.get("resources"))
    limits = mapping(resources.get("limits"))
    requests = {**limits, **mapping(resources.get("requests"))}  # setDefaultPodRequests, before any LimitRange
    found = {"requests": {**given.requests, **requests}, "limits": {**given.limits, **limits}}
    return {**container, "resources": {**resources, **found}}


def lacking(pod: Mapping[str, Any], keys: Iterable[str]) -> dict[str, list[str]]:
    """The keys that containers of an admitted pod say nothing about, with the containers' names. A pod with resources
    of its own needs none in its containers (Constraints)."""
    own = mapping(pod.get("resources"))
    if any(mapping(own.get(kind)) for kind in ("requests", "limits")):
        return {}
    found: dict[str, list[str]] = {}
    for key in keys:
        kind, _, resource = key.rpartition(".")
        for _, container in containers(pod):
            if resource not in mapping(get(container, ("resources", kind or "requests"), {})):
                found.setdefault(key, []).append(str(container.get("name")))
    return found


def containers(pod: Mapping[str, Any]) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
    """The containers that quotas look at, each with its place in the pod's spec."""
    for field in CONTAINERS:
        for index, container in enumerate(sequence(pod.get(field))):
            yield (field, index), mapping(container)


def usage(pod: Mapping[str, Any]) -> Resources:
    """What one admitted pod uses up, by the keys of quotas (podComputeUsageHelper)."""
    found: Resources = {"pods": 1, "count/pods": 1}
    for resource, amount in pod_requests(pod).items():
        if resource in _NATIVE or resource.startswith("hugepages-"):
            found |= {resource: amount, f"requests.{resource}": amount}
        elif is_extended(resource):
            found[f"requests.{resource}"] = amount
    limits = _limits(pod)
    return {**found, **{f"limits.{resource}": limits[resource] for resource in _NATIVE if resource in limits}}


def _limits(pod: Mapping[str, Any]) -> Resources:
    """The sum of a pod's limits, by the rules of requests (PodLimits in k8s.io/component-helpers)."""
    only: dict[str, Any] = {key: value for key, value in pod.items() if key not in ("overhead", "resources")}
    for field in CONTAINERS:
        only[field] = [_limits_as_requests(mapping(each)) for each in sequence(pod.get(field))]
    only["resources"] = {"requests": mapping(mapping(pod.get("resources")).get("limits"))}
    overhead = parse_map(pod.get("overhead"))
    return {name: amount + (overhead.get(name, 0) if amount else 0) for name, amount in pod_requests(only).items()}


def _limits_as_requests(container: Mapping[str, Any]) -> Mapping[str, Any]:
    limits = mapping(mapping(container.get("resources")).get("limits"))
    return {**container, "resources": {"requests": limits}}


def usage_beside(job: Workload) -> Resources:
    """What a job uses up beside its pods: itself, its PodGroup, and what its plugins make."""
    found: Resources = {**_OF_JOB}
    if job.object.ref.kind == "CronJob":
        found["count/cronjobs.batch.volcano.sh"] = 1
    for plugin, keys in _OF_PLUGIN.items():
        for key in keys if plugin in job.plugins else ():
            found[key] = found.get(key, 0) + 1
    return found


class Asked(NamedTuple):
    """An amount, and the place that asks for it."""

    value: Amount
    pointer: Pointer


def of_group(group: KubeObject) -> dict[str, Asked]:
    """What a PodGroup asks for, by the keys of quotas; nothing where the job controller made it for a job."""
    owners = sequence(mapping(group.value.get("metadata")).get("ownerReferences"))
    if any(mapping(owner).get("kind") == "Job" for owner in owners):
        return {}
    found: dict[str, Asked] = {}
    for key, amount in parse_map(group.spec.get("minResources")).items():
        asked = Asked(amount, ("spec", "minResources", key))
        found |= dict.fromkeys((f"requests.{key}",) if is_extended(key) else (key, f"requests.{key}"), asked)
    members = group.spec.get("minMember")
    if isinstance(members, int) and not isinstance(members, bool):
        found |= {key: Asked(members, ("spec", "minMember")) for key in ("pods", "count/pods") if key not in found}
    return found
