"""What Volcano reads in volcano-scheduler.conf: the keys, actions, plugins and arguments of each version, and what it
does with values that it cannot use.

Source: pkg/scheduler/conf, and each plugin and action in pkg/scheduler, at v1.13.3, v1.14.4 and v1.15.1. Patch releases
of one minor do not differ.
"""

from collections.abc import Mapping
from typing import Any

from basalt.api.versions import Version
from basalt.views.scheduler_readings import Argument, Kind, Reading

_1_13, _1_14, _1_15 = Version(1, 13), Version(1, 14), Version(1, 15)
CRASHES = "crashes at each start"


def _integer(default: int, *, least: float | None = None) -> Reading:
    return Reading(Kind.INTEGER, f"uses {default}", least=least, beyond=f"uses {default}")


def _number(default: float, least: float) -> Reading:
    return Reading(Kind.NUMBER, f"uses {default}", least=least, beyond=f"uses {default}")


def _switch(*, default: bool) -> Reading:
    return Reading(Kind.SWITCH, f"uses {str(default).lower()}")


def _decoded(kind: Kind, **more: Any) -> Reading:
    """What mapstructure decodes: null is zero, and klog.Fatalf where the type is another (arguments.go, Get)."""
    return Reading(kind, CRASHES, empty="", **more)


def _text(otherwise: str) -> Reading:
    return Reading(Kind.TEXT, otherwise)


_SPREAD = Reading(  # what vgpu and the Ascend devices know; anything else gives every device the score 0
    Kind.TEXT, 'uses ""', words=("binpack", "spread", ""), beyond="gives every device the same score"
)
_THRESHOLD = Reading(
    Kind.INTEGER,
    "takes 0, and no node that does anything gets a pod",
    least=0,
    most=100,
    beyond="compares it with percentages",
)
_PERCENT = Reading(Kind.INTEGER, "crashes when it compares the nodes")
_UTILIZATION = Reading(
    Kind.MAP, "uses its defaults", fields={"cpu": _PERCENT, "memory": _PERCENT}, each=_PERCENT
)  # only these two are compared, whatever the documentation says (node_utilization_util.go)
_STRATEGY = Reading(
    Kind.MAP,
    "leaves the strategy out",
    folds=True,
    fields={
        "name": Reading(
            Kind.TEXT, "leaves the strategy out", words=("lowNodeUtilization",), beyond="leaves the strategy out"
        ),
        "params": Reading(
            Kind.MAP,
            "leaves the strategy out",
            fields={"thresholds": _UTILIZATION, "targetThresholds": _UTILIZATION},
            empty="",
        ),
    },
)
_STRATEGIES = Reading(Kind.LIST, "uses its default strategy", each=_STRATEGY)
_GATED = "crashes, where the feature gate StorageCapacityScoring is on"
_POINT = Reading(Kind.COUNT, _GATED, empty="")
_SHAPE = Reading(
    Kind.LIST,
    _GATED,
    empty="",
    each=Reading(Kind.MAP, _GATED, empty="", folds=True, fields={"utilization": _POINT, "score": _POINT}),
)
_FILTER_TIMEOUT = Reading(
    Kind.COUNT, "crashes, where dynamic resource allocation is on", least=0, beyond="uses 10", empty=""
)
_WEIGHT = _decoded(Kind.COUNT, least=0, beyond="uses 1")
_FIT = _decoded(
    Kind.MAP,
    each=_decoded(
        Kind.MAP,
        folds=True,
        fields={
            "type": _decoded(Kind.TEXT, words=("LeastAllocated", "MostAllocated"), beyond="uses LeastAllocated"),
            "weight": _decoded(Kind.COUNT, least=1, beyond="uses 1"),
        },
    ),
)
_SRA = _decoded(
    Kind.MAP,
    folds=True,
    fields={
        "enable": _decoded(Kind.BOOLEAN),
        "resources": _decoded(Kind.TEXT),
        "weight": _decoded(Kind.COUNT),
        "resourceWeight": _decoded(Kind.MAP, each=_WEIGHT),
    },
)
_PROPORTIONAL = _decoded(
    Kind.MAP,
    folds=True,
    fields={
        "enable": _decoded(Kind.BOOLEAN),
        "resources": _decoded(Kind.TEXT),
        "resourceProportion": _decoded(Kind.MAP, each=_decoded(Kind.NUMBER, least=0, beyond="uses 1")),
    },
)
_RULES = Reading(
    Kind.LIST,
    "has no rules",
    each=Reading(Kind.MAP, "leaves the rule out", each=Reading(Kind.TEXT, "leaves the label out of the rule")),
)
_VERBS = (
    "onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused",
    "jobEnqueueable", "jobReady", "allocateFunc", "deallocateFunc",
)  # fmt: skip
_PREDICATES = (
    "NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "NodeVolumeLimits", "VolumeZone",
    "PodTopologySpread", "VolumeBinding",
)  # fmt: skip
_SCORES = {
    "leastrequested": 1, "mostrequested": 0, "nodeaffinity": 2, "podaffinity": 2, "balancedresource": 1,
    "tainttoleration": 3, "imagelocality": 1, "podtopologyspread": 2,
}  # fmt: skip
_NO_RESOURCES = _text("weighs cpu and memory only")


def _binpack(prefix: str, since: Version, *more: Argument) -> tuple[Argument, ...]:
    return (
        *more,
        Argument(f"{prefix}.cpu", _integer(1, least=0), since),
        Argument(f"{prefix}.memory", _integer(1, least=0), since),
        Argument(f"{prefix}.resources", _NO_RESOURCES, since),
        Argument(f"{prefix}.resources.*", _integer(1, least=0), since, among=f"{prefix}.resources"),
    )


# What each plugin reads: pkg/scheduler/plugins/factory.go, and the plugin's own file.
PLUGINS: Mapping[str, tuple[Argument, ...]] = {
    **dict.fromkeys(("cdp", "conformance", "drf", "gang", "pdb", "priority", "proportion", "resourcequota"), ()),
    "binpack": _binpack("binpack", _1_13, Argument("binpack.weight", _integer(1))),
    "capacity": (
        Argument("ancestorReclaimLevel", _integer(0, least=0), _1_15),
        Argument("capacity.DynamicResourceAllocationEnable", Reading(Kind.SWITCH, "asks its feature gate"), _1_15),
        Argument("capacity.DRAConsumableCapacityEnable", Reading(Kind.SWITCH, "asks its feature gate"), _1_15),
    ),
    "deviceshare": (
        *(
            Argument(f"deviceshare.{mode}Enable", _switch(default=False))
            for mode in ("GPUSharing", "GPUNumber", "NodeLock", "VGPU")
        ),
        Argument("deviceshare.AscendMindClusterVNPUEnable", _switch(default=False), _1_14),
        Argument("deviceshare.AscendHAMiVNPUEnable", _switch(default=False), _1_14),
        Argument("deviceshare.SchedulePolicy", _SPREAD),
        Argument("deviceshare.ScheduleWeight", _integer(0)),
        Argument("deviceshare.KnownGeometriesCMName", _text("uses volcano-vgpu-device-config")),
        Argument("deviceshare.KnownGeometriesCMNamespace", _text("uses kube-system")),
        Argument("deviceshare.GPUExclusiveRules", _RULES, _1_15),
    ),
    "extender": (
        Argument("extender.urlPrefix", _text("calls no address")),
        Argument("extender.httpTimeout", Reading(Kind.DURATION, "uses 1s", beyond="uses 1s")),
        *(Argument(f"extender.{verb}Verb", _text("does not call it")) for verb in _VERBS),
        Argument("extender.ignorable", _switch(default=False)),
        Argument("extender.managedResources", _decoded(Kind.LIST, each=_decoded(Kind.TEXT))),
    ),
    "network-topology-aware": (
        Argument("weight", _integer(1, least=0)),
        *_binpack("hypernode.binpack", _1_14),
        Argument("hypernode.binpack.normal-pod.enable", _switch(default=True), _1_14),
        Argument("hypernode.binpack.normal-pod.fading", _number(0.8, 0), _1_14),
        Argument("hypernode.gradient.evict.max-hypernodes", _integer(8, least=1), _1_15),
    ),
    "nodegroup": (
        Argument("strict", _switch(default=True)),
        Argument("enablePreferredOrder", _switch(default=False), _1_15),
    ),
    "nodeorder": tuple(Argument(f"{score}.weight", _integer(default)) for score, default in _SCORES.items()),
    "numa-aware": (Argument("weight", _integer(1)),),
    "overcommit": (Argument("overcommit-factor", _number(1.2, 1)),),
    "predicates": (
        *(Argument(f"predicate.{name}Enable", _switch(default=True)) for name in _PREDICATES),
        Argument("predicate.CacheEnable", _switch(default=False)),
        Argument("predicate.DynamicResourceAllocationEnable", _switch(default=False), until=_1_15),
        Argument("volumebinding.weight", _decoded(Kind.COUNT)),
        Argument("volumebinding.bindTimeoutSeconds", _decoded(Kind.COUNT, least=0, beyond=CRASHES)),
        Argument("volumebinding.shape", _SHAPE),
        Argument("dynamicresources.filterTimeoutSeconds", _FILTER_TIMEOUT, _1_14),
    ),
    "rescheduling": (
        Argument("interval", Reading(Kind.DURATION, CRASHES, beyond="uses 5m")),
        Argument(
            "metricsPeriod",  # cache.go, setMetricsData: only NODE_METRICS_PERIOD is kept; 5m is the default
            Reading(
                Kind.TEXT,
                CRASHES,
                words=("10m", "5m"),
                beyond="has no such averages, and reads each node's use as 0",
            ),
        ),
        Argument("strategies", _STRATEGIES),
    ),
    "resource-strategy-fit": (
        Argument("resourceStrategyFitWeight", _decoded(Kind.COUNT, least=0, beyond="uses 10")),
        Argument("resources", _FIT),
        Argument("sra", _SRA),
        Argument("proportional", _PROPORTIONAL),
    ),
    "sla": (
        Argument(
            "sla-waiting-time", Reading(Kind.DURATION, "sets no limit", least=0, beyond="sets no limit")
        ),
    ),
    "task-topology": (Argument("task-topology.weight", _integer(1)),),
    "tdm": (
        Argument("tdm.revocable-zone.*", Reading(Kind.HOURS, CRASHES, beyond="never opens the zone, and evicts there")),
        Argument("tdm.evict.period", Reading(Kind.DURATION, CRASHES, beyond="uses 1m")),
    ),
    "usage": (
        Argument("usage.weight", _integer(5)),
        Argument("cpu.weight", _integer(1)),
        Argument("memory.weight", _integer(1)),
        Argument(
            "thresholds", Reading(Kind.MAP, "uses 80 for both", fields={"cpu": _THRESHOLD, "mem": _THRESHOLD})
        ),
    ),
}  # fmt: skip

_CACHES_ERRORS = Argument("predicateErrorCacheEnable", _switch(default=True))
_OF_GANG_EVICTION = (
    Argument("maxDomains", _integer(8, least=1), _1_15),
    Argument("allowWholeBundle", _switch(default=True), _1_15),
)
# What each action reads: pkg/scheduler/actions/factory.go, and the action's own file.
ACTIONS: Mapping[str, tuple[Argument, ...]] = {
    "enqueue": (),
    "allocate": (_CACHES_ERRORS,),
    "backfill": (_CACHES_ERRORS,),
    "preempt": (
        _CACHES_ERRORS,
        Argument("enableTopologyAwarePreemption", _switch(default=False)),
        Argument(
            "topologyAwarePreemptWorkerNum", _integer(16)._replace(least=1, beyond="looks at no node, or crashes")
        ),
        Argument("minCandidateNodesPercentage", _integer(10)),
        Argument("minCandidateNodesAbsolute", _integer(1)),
        Argument("maxCandidateNodesAbsolute", _integer(100)._replace(least=1, beyond="takes no node, or crashes")),
    ),
    "reclaim": (_CACHES_ERRORS._replace(since=_1_14),),
    "shuffle": (),
    "gangpreempt": _OF_GANG_EVICTION,
    "gangreclaim": _OF_GANG_EVICTION,
}
ACTIONS_SINCE = {"gangpreempt": _1_15, "gangreclaim": _1_15}
# Not an action: what the Ascend devices read (api/devices/ascend/mindcluster/ascend310p/vnpu/type.go, CMInitParamKey).
INIT_PARAMETERS = "init-params"
REFUSES_UNKNOWN_ACTIONS = _1_14  # util.go; before, the scheduler leaves them out

# The structure: pkg/scheduler/conf/scheduler_conf.go.
FLAGS: Mapping[str, Version] = {
    **dict.fromkeys(
        (
            "enableJobOrder", "enableHierarchy", "enableJobReady", "enableJobPipelined", "enableTaskOrder",
            "enablePreemptable", "enableReclaimable", "enablePreemptive", "enableQueueOrder", "EnabledClusterOrder",
            "enablePredicate", "enableBestNode", "enableNodeOrder", "enableTargetJob", "enableReservedNodes",
            "enableJobEnqueued", "enabledVictim", "enableJobStarving", "enabledOverused", "enabledAllocatable",
            "enabledHyperNodeOrder",
        ),
        _1_13,
    ),
    **dict.fromkeys(
        ("enabledSubJobReady", "enabledSubJobPipelined", "enabledSubJobOrder", "enabledHyperNodeGradient"), _1_14
    ),
}  # fmt: skip
TOP = ("actions", "tiers", "configurations", "metrics")
TIER = ("plugins",)
PLUGIN = ("name", "arguments")
CONFIGURATION = ("name", "arguments")
# pkg/scheduler/metrics/source and cache.go; every value is a text by the time it is read.
METRICS: Mapping[str, Reading] = {
    "type": Reading(
        Kind.TEXT, words=("prometheus", "prometheus_adaptor", "elasticsearch"), beyond="collects no usage of nodes"
    ),
    "address": Reading(Kind.TEXT),
    "interval": Reading(Kind.DURATION, least=0, beyond="uses 30s"),
    "tls.insecureSkipVerify": Reading(Kind.TEXT, words=("true", "false"), beyond="verifies the certificate"),
    "elasticsearch.index": Reading(Kind.TEXT),
    "elasticsearch.hostnameFieldName": Reading(Kind.TEXT),
    "elasticsearch.username": Reading(Kind.TEXT),
    "elasticsearch.password": Reading(Kind.TEXT),
}
NEED_ADDRESS = ("prometheus", "elasticsearch")
# Where names went that older versions and their guides have.
_FIT_HAS_IT = "say it in proportional of the plugin resource-strategy-fit"
MOVED: Mapping[str, str] = {
    "predicate.GPUSharingEnable": "say it as deviceshare.GPUSharingEnable of the plugin deviceshare",
    "predicate.GPUNumberEnable": "say it as deviceshare.GPUNumberEnable of the plugin deviceshare",
    "predicate.ProportionalEnable": _FIT_HAS_IT,
    "predicate.resources": _FIT_HAS_IT,
    "predicate.DynamicResourceAllocationEnable": (
        "the scheduler's feature gate DynamicResourceAllocation decides: --feature-gates, scheduler_feature_gates"
    ),
}
