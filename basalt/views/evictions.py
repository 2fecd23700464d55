"""Which pods of declared gangs a descheduler's profile may evict: what its plugins pick, and what its evictor spares.

Source: pkg/framework/plugins of kubernetes-sigs/descheduler, defaultevictor/defaultevictor.go above all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, get
from basalt.quantities import Resources, parse_map
from basalt.views import descheduler_catalogue as catalogue
from basalt.views.descheduler_arguments import DEFAULT_PROTECTIONS, PREFERRED, REQUIRED
from basalt.views.descheduler_policy import Enabled, Policy, Profile
from basalt.views.gangs import Gang, Pods, Priorities
from basalt.views.node_selection import matches_labels

_CRITICAL = 2_000_000_000  # SystemCriticalPriority in pkg/utils/priority.go: the threshold where none is given
EVICT = "descheduler.alpha.kubernetes.io/evict"
_PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
_LIMITS = ("maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace", "maxNoOfPodsToEvictTotal")
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
# What PodLifeTime calls pods that have come to their end: these run no more.
_ENDED = frozenset(
    ("Succeeded", "Failed", "NodeAffinity", "Shutdown", "UnexpectedAdmissionError", "OOMKilled", "Error", "Completed",
     "DeadlineExceeded", "Evicted", "ContainerCannotRun", "StartError")
)  # fmt: skip
_OLD_PROTECTIONS = {  # argument -> protection, and whether the argument takes it away
    "evictLocalStoragePods": ("PodsWithLocalStorage", True),
    "evictSystemCriticalPods": ("SystemCriticalPods", True),
    "ignorePvcPods": ("PodsWithPVC", False),
    "ignorePodsWithoutPDB": ("PodsWithoutPDB", False),
}


class Cluster:
    """What the pods' fate depends on beside the policy."""

    def __init__(
        self,
        gangs: Sequence[Gang],
        priorities: Priorities,
        namespaces: Iterable[KubeObject],
        budgets: Iterable[KubeObject],
        nodes: Sequence[Node],
    ) -> None:
        self.gangs = gangs
        self.priorities = priorities
        self.namespaces = {each.name: {**each.labels, _NAMESPACE_NAME: each.name} for each in namespaces}
        self.nodes = nodes
        self._budgets = list(budgets)

    @cached_property
    def largest(self) -> Resources:
        """The most that one node has of each resource."""
        largest: Resources = {}
        for node in self.nodes:
            for resource, amount in parse_map(node.allocatable).items():
                largest[resource] = max(largest.get(resource, 0), amount)
        return largest

    def two_fit(self, pods: Pods) -> bool:
        """Whether some node may hold two of the pods."""
        return not self.nodes or all(
            2 * amount <= self.largest.get(resource, 0) for resource, amount in pods.requests.items()
        )

    @cached_property
    def _covering(self) -> dict[str, list[tuple[Mapping[str, Any], int]]]:
        """By namespace the selectors of PodDisruptionBudgets, with how many evictions each allows."""
        found: dict[str, list[tuple[Mapping[str, Any], int]]] = {}
        for budget in self._budgets:
            namespace, selector = budget.ref.namespace or "default", mapping(budget.spec.get("selector"))
            pods = [each for gang in self.gangs for each in gang.pods if each.namespace == namespace]
            total = sum(each.count for each in pods if _selects(selector, each.labels))
            found.setdefault(namespace, []).append((selector, _allowed(budget.spec, total)))
        return found

    def allowed(self, pods: Pods) -> int | None:
        """How many of the pods PodDisruptionBudgets let go at once; None where none covers them. Where two do, the
        API server refuses every eviction."""
        covering = self._covering.get(pods.namespace, ())
        found = [allowed for selector, allowed in covering if _selects(selector, pods.labels)]
        return (found[0] if len(found) == 1 else 0) if found else None


def _allowed(spec: Mapping[str, Any], total: int) -> int:
    """Where the number cannot be read: all."""
    if (minimum := _part(spec.get("minAvailable"), total)) is not None:
        return max(0, total - minimum)
    maximum = _part(spec.get("maxUnavailable"), total)
    return total if maximum is None else maximum


def _part(value: Any, total: int) -> int | None:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        return -(-total * int(value[:-1]) // 100)  # rounded up, as GetScaledValueFromIntOrPercent
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _selects(selector: Mapping[str, Any], labels: Mapping[str, Any] | None) -> bool:
    """A selector without requirements selects everything; of unknown labels, only that one does."""
    if not any(selector.values()):
        return True
    return labels is not None and matches_labels(selector, dict(labels))


class Evictor:
    """What the profile's DefaultEvictor lets through."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self.args = profile.args(catalogue.DEFAULT_EVICTOR)
        self._cluster = cluster
        self._protections = protections(self.args)
        self._threshold = self._read_threshold()

    def _read_threshold(self) -> int | None:
        """None where the class that gives it is not declared."""
        threshold = mapping(self.args.get("priorityThreshold"))
        value = threshold.get("value")
        if isinstance(value, int):
            return value
        name = threshold.get("name")
        return self._cluster.priorities.of(name) if isinstance(name, str) and name else _CRITICAL

    def lets(self, pods: Pods, gang: Gang) -> bool:
        if not self._lets_namespace(pods.namespace):
            return False
        if EVICT in pods.annotations:
            return True
        is_marked = _PREFER_NO_EVICTION in pods.annotations
        is_bare = not pods.owner and pods.spec is not None  # without a controller only a failed pod is evicted
        if is_bare or (is_marked and self.args.get("noEvictionPolicy") == "Mandatory"):
            return False
        minimum = self.args.get("minReplicas")
        if isinstance(minimum, int) and minimum > 1 and pods.owner and gang.size < minimum:
            return False
        return (
            _selects(mapping(self.args.get("labelSelector")), pods.labels)
            and self._lets_priority(pods.priority)
            and not any(_PROTECTED[name](self, pods) for name in self._protections if name in _PROTECTED)
        )

    def _lets_priority(self, priority: int | None) -> bool:
        if "SystemCriticalPods" not in self._protections:
            return True  # the threshold is part of that protection
        if priority is None:  # of a class that nobody declares: below the system's, whatever it is
            return self._threshold == _CRITICAL
        return self._threshold is not None and priority < self._threshold

    def _lets_namespace(self, namespace: str) -> bool:
        selector = mapping(self.args.get("namespaceLabelSelector"))
        if namespace in self._cluster.namespaces:
            return _selects(selector, self._cluster.namespaces[namespace])
        keys = {*mapping(selector.get("matchLabels"))}
        keys |= {str(mapping(each).get("key")) for each in sequence(selector.get("matchExpressions"))}
        return keys <= {_NAMESPACE_NAME} and _selects(selector, {_NAMESPACE_NAME: namespace})

    def has_local_storage(self, pods: Pods) -> bool:
        return pods.has_volume("emptyDir", "hostPath")

    def has_protected_claim(self, pods: Pods) -> bool:
        """Where only some storage classes are protected, a claim's class is not known: it is taken for one."""
        return pods.has_claims or pods.has_volume("persistentVolumeClaim")

    def lacks_budget(self, pods: Pods) -> bool:
        return self._cluster.allowed(pods) is None

    def claims_devices(self, pods: Pods) -> bool:
        return bool(sequence(mapping(pods.spec).get("resourceClaims")))


_PROTECTED = {
    "PodsWithLocalStorage": Evictor.has_local_storage,
    "PodsWithPVC": Evictor.has_protected_claim,
    "PodsWithoutPDB": Evictor.lacks_budget,
    "PodsWithResourceClaims": Evictor.claims_devices,
}


def protections(args: Mapping[str, Any]) -> set[str]:
    """The protections of pods that DefaultEvictor's arguments leave on (getEffectivePodProtections)."""
    new = mapping(args.get("podProtections"))
    extra, disabled = strings(new.get("extraEnabled")), strings(new.get("defaultDisabled"))
    found = set(DEFAULT_PROTECTIONS)
    if extra or disabled:
        return (found - {*disabled}) | {*extra}
    for field, (protection, takes_away) in _OLD_PROTECTIONS.items():
        if args.get(field) is True:
            found = found - {protection} if takes_away else found | {protection}
    return found


class Danger(NamedTuple):
    """A gang that a profile may take apart, and the plugins that do."""

    gang: Gang
    plugins: tuple[Enabled, ...]


def dangers(policy: Policy, profile: Profile, cluster: Cluster) -> Iterator[Danger]:
    """The gangs that fall below their minimum when every pod is gone that may be evicted: nothing bounds that over
    time, since evictions go on as long as the cause lasts, and an evicted pod comes back only where there is room."""
    evictor = Evictor(profile, cluster)
    plugins = [each for each in profile.enabled() if each.point in catalogue.points_of(each.plugin)]
    plugins = [each for each in plugins if each.plugin in _PICKS]
    if not plugins or any(mapping(policy.value).get(limit) == 0 for limit in _LIMITS):
        return
    nodes = _Nodes(mapping(policy.value).get("nodeSelector"), cluster.nodes)
    for gang in cluster.gangs:
        lost, used = 0, []
        is_short = False
        for pods in gang.pods:
            if not pods.count or not nodes.may_hold(pods) or not evictor.lets(pods, gang):
                continue
            picks = [(each, _pick(profile, each.plugin, pods, gang, cluster)) for each in plugins]
            most = max(count for _, count in picks)
            allowed = cluster.allowed(pods)
            gone = most if allowed is None else min(most, allowed)
            used += [each for each, count in picks if count and gone]
            lost += gone
            is_short |= pods.count - gone < pods.need
        if used and (is_short or gang.size - lost < gang.minimum):
            yield Danger(gang, tuple(dict.fromkeys(used)))


class _Nodes:
    """The nodes that the policy looks at: those of its nodeSelector."""

    def __init__(self, selector: Any, nodes: Sequence[Node]) -> None:
        self._wanted = _equalities(selector)
        self._is_known = bool(nodes)
        chosen = [node for node in nodes if node.carries(self._wanted)]
        self._labels = [(node.labels, parse_map(node.allocatable)) for node in chosen] if self._wanted else []

    def may_hold(self, pods: Pods) -> bool:
        if not self._wanted or pods.spec is None:
            return True
        selector = mapping(pods.spec.get("nodeSelector"))
        if any(selector.get(key, value) != value for key, value in self._wanted.items()):
            return False
        if not self._is_known:
            return True
        return any(
            all(labels.get(key) == value for key, value in selector.items())
            and all(amount <= has.get(resource, 0) for resource, amount in pods.requests.items())
            for labels, has in self._labels
        )


def _equalities(selector: Any) -> dict[str, str]:
    """The parts `key=value` of a selector in one line; what else stands there widens nothing."""
    parts = [part.strip() for part in selector.split(",")] if isinstance(selector, str) else []
    pairs = [part.replace("==", "=").partition("=") for part in parts if "!=" not in part]
    return {key.strip(): value.strip() for key, equals, value in pairs if equals and " " not in key.strip()}


def _pick(profile: Profile, plugin: str, pods: Pods, gang: Gang, cluster: Cluster) -> int:
    """How many of the pods the plugin may pick."""
    args = profile.args(plugin)
    for field in ("namespaces", "evictableNamespaces"):
        chosen = mapping(args.get(field))
        include, exclude = strings(chosen.get("include")), strings(chosen.get("exclude"))
        if (include and pods.namespace not in include) or pods.namespace in exclude:
            return 0
    if not _selects(mapping(args.get("labelSelector")), pods.labels):
        return 0
    if plugin == catalogue.DUPLICATES:
        return _duplicates(args, pods, gang, cluster)
    return pods.count if _PICKS[plugin](args, pods) else 0


def _duplicates(args: Mapping[str, Any], pods: Pods, gang: Gang, cluster: Cluster) -> int:
    """All but one on each node of the pods with one owner and the same images."""
    if not pods.owner or pods.spec is None or pods.owner in strings(args.get("excludeOwnerKinds")):
        return 0
    if not cluster.two_fit(pods):
        return 0
    alike = sum(each.count for each in gang.pods if each.images == pods.images)
    return min(pods.count, alike - 1)


def _by_use(args: Mapping[str, Any], _: Pods) -> bool:
    return mapping(args.get("evictionLimits")).get("node") != 0


def _by_load(args: Mapping[str, Any], _: Pods) -> bool:
    metrics = mapping(args.get("metrics"))
    has_source = metrics.get("type") == "prometheus_adaptor" or metrics.get("address")
    return bool(metrics.get("type") and has_source)  # else it knows of no node's use


def _by_low_use(args: Mapping[str, Any], pods: Pods) -> bool:
    if "OnlyThresholdingResources" not in strings(args.get("evictionModes")) or pods.spec is None:
        return True
    return any(pods.requests.get(resource) for resource in mapping(args.get("thresholds")))


def _by_age(args: Mapping[str, Any], pods: Pods) -> bool:
    kinds = mapping(args.get("ownerKinds"))
    include, exclude = strings(kinds.get("include")), strings(kinds.get("exclude"))
    if (include and pods.owner not in include) or pods.owner in exclude:
        return False
    if sequence(args.get("exitCodes")):
        return False  # of containers that have ended
    states = strings(args.get("states"))
    return not states or not _ENDED.issuperset(states)


def _by_restarts(_: Mapping[str, Any], pods: Pods) -> bool:
    return mapping(pods.spec).get("restartPolicy") != "Never"


def _by_taints(_: Mapping[str, Any], pods: Pods) -> bool:
    tolerations = map(mapping, sequence(mapping(pods.spec).get("tolerations")))
    return not any(
        each.get("operator") == "Exists" and not each.get("key") and each.get("effect") in (None, "", "NoSchedule")
        for each in tolerations
    )


def _by_affinity(args: Mapping[str, Any], pods: Pods) -> bool:
    affinity = mapping(get(pods.spec, ("affinity", "nodeAffinity")))
    types = strings(args.get("nodeAffinityType"))
    return any(each in types and affinity.get(each) for each in (REQUIRED, PREFERRED))


_REQUIRED_ANTI: Pointer = ("affinity", "podAntiAffinity", REQUIRED)


def _by_anti_affinity(_: Mapping[str, Any], pods: Pods) -> bool:
    return bool(sequence(get(pods.spec, _REQUIRED_ANTI)))


def _by_spread(args: Mapping[str, Any], pods: Pods) -> bool:
    takes = strings(args.get("constraints")) or ["DoNotSchedule"]
    takes += ["ScheduleAnyway"] if args.get("includeSoftConstraints") is True else []
    constraints = map(mapping, sequence(mapping(pods.spec).get("topologySpreadConstraints")))
    return any(each.get("whenUnsatisfiable") in takes for each in constraints)


# RemoveFailedPods is not among them: a pod that has failed runs no more.
_PICKS = {
    catalogue.DUPLICATES: _by_use,
    catalogue.LOW: _by_use,
    catalogue.LOAD_AWARE: _by_load,
    catalogue.HIGH: _by_low_use,
    catalogue.LIFE_TIME: _by_age,
    catalogue.RESTARTS: _by_restarts,
    catalogue.NODE_TAINTS: _by_taints,
    catalogue.NODE_AFFINITY: _by_affinity,
    catalogue.ANTI_AFFINITY: _by_anti_affinity,
    catalogue.SPREAD: _by_spread,
}
