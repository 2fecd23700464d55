"""What the two deschedulers know: their plugins, the extension points of these, and the arguments they take.

Source: pkg/framework/plugins/*/types.go and pkg/api/v1alpha2/types.go of kubernetes-sigs/descheduler v0.36.0, and the
same of v0.27.1, which volcano-sh/descheduler is a fork of, with its own pkg/framework/plugins/loadaware.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Any


class Engine(enum.StrEnum):
    """Which program reads a policy; the value is how a message names it."""

    SIGS = "the descheduler of kubernetes-sigs"
    VOLCANO = "Volcano's descheduler"


class Form(enum.StrEnum):
    """The form of a single value; the value says what it takes."""

    BOOL = "true or false"
    INT = "a whole number"
    COUNT = "a whole number from 0 up"
    NUMBER = "a number"
    TEXT = "text"
    DURATION = 'a duration, such as "30m"'


# A form, [what each item is], {field: what it is}, or {"*": what each value of a map with any keys is}.
Shape = Form | Sequence[Any] | Mapping[str, Any]

DEFAULT_EVICTOR = "DefaultEvictor"
LOW = "LowNodeUtilization"
HIGH = "HighNodeUtilization"
LOAD_AWARE = "LoadAware"
DUPLICATES = "RemoveDuplicates"
FAILED = "RemoveFailedPods"
RESTARTS = "RemovePodsHavingTooManyRestarts"
LIFE_TIME = "PodLifeTime"
ANTI_AFFINITY = "RemovePodsViolatingInterPodAntiAffinity"
NODE_AFFINITY = "RemovePodsViolatingNodeAffinity"
NODE_TAINTS = "RemovePodsViolatingNodeTaints"
SPREAD = "RemovePodsViolatingTopologySpreadConstraint"

METRIC_RESOURCE = "MetricResource"
KUBERNETES_METRICS = "KubernetesMetrics"
PROMETHEUS = "Prometheus"

_API_VERSIONS = {
    Engine.SIGS: ("descheduler/v1alpha2",),
    Engine.VOLCANO: ("descheduler/v1alpha2", "descheduler/v1alpha1"),
}

_TEXTS = [Form.TEXT]
_NAMESPACES = {"include": _TEXTS, "exclude": _TEXTS}
_SELECTOR = {
    "matchLabels": {"*": Form.TEXT},
    "matchExpressions": [{"key": Form.TEXT, "operator": Form.TEXT, "values": _TEXTS}],
}
_THRESHOLDS = {"*": Form.NUMBER}
_PRIORITY = {"value": Form.INT, "name": Form.TEXT}
_PODS: dict[str, Any] = {"namespaces": _NAMESPACES, "labelSelector": _SELECTOR}
_NODE_USE: dict[str, Any] = {
    "thresholds": _THRESHOLDS,
    "numberOfNodes": Form.INT,
    "evictableNamespaces": _NAMESPACES,
}
_LOW = {**_NODE_USE, "targetThresholds": _THRESHOLDS, "useDeviationThresholds": Form.BOOL}
_EVICTOR: dict[str, Any] = {
    "nodeSelector": Form.TEXT,
    "labelSelector": _SELECTOR,
    "priorityThreshold": _PRIORITY,
    "nodeFit": Form.BOOL,
    "evictLocalStoragePods": Form.BOOL,
    "evictSystemCriticalPods": Form.BOOL,
    "ignorePvcPods": Form.BOOL,
    "evictFailedBarePods": Form.BOOL,
}
_RESTARTS = {**_PODS, "podRestartThreshold": Form.INT, "includingInitContainers": Form.BOOL}
_FAILED = {
    **_PODS,
    "excludeOwnerKinds": _TEXTS,
    "minPodLifetimeSeconds": Form.COUNT,
    "reasons": _TEXTS,
    "includingInitContainers": Form.BOOL,
}

_SIGS: Mapping[str, Mapping[str, Any]] = {
    DEFAULT_EVICTOR: {
        **_EVICTOR,
        "namespaceLabelSelector": _SELECTOR,
        "minReplicas": Form.COUNT,
        "minPodAge": Form.DURATION,
        "noEvictionPolicy": Form.TEXT,
        "podProtections": {
            "extraEnabled": _TEXTS,
            "defaultDisabled": _TEXTS,
            "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": Form.TEXT}]}},
        },
        "evictDaemonSetPods": Form.BOOL,
        "ignorePodsWithoutPDB": Form.BOOL,
    },
    LOW: {
        **_LOW,
        "metricsUtilization": {
            "metricsServer": Form.BOOL,
            "source": Form.TEXT,
            "prometheus": {"query": Form.TEXT},
        },
        "evictionLimits": {"node": Form.COUNT},
    },
    HIGH: {**_NODE_USE, "evictionModes": _TEXTS},
    LIFE_TIME: {
        **_PODS,
        "ownerKinds": _NAMESPACES,
        "maxPodLifeTimeSeconds": Form.COUNT,
        "states": _TEXTS,
        "conditions": [
            {
                "type": Form.TEXT,
                "status": Form.TEXT,
                "reason": Form.TEXT,
                "minTimeSinceLastTransitionSeconds": Form.COUNT,
            }
        ],
        "exitCodes": [Form.INT],
        "includingInitContainers": Form.BOOL,
        "includingEphemeralContainers": Form.BOOL,
    },
    DUPLICATES: {"namespaces": _NAMESPACES, "excludeOwnerKinds": _TEXTS},
    FAILED: {**_FAILED, "exitCodes": [Form.INT]},
    RESTARTS: {**_RESTARTS, "states": _TEXTS},
    ANTI_AFFINITY: _PODS,
    NODE_AFFINITY: {**_PODS, "nodeAffinityType": _TEXTS},
    NODE_TAINTS: {
        **_PODS,
        "includePreferNoSchedule": Form.BOOL,
        "excludedTaints": _TEXTS,
        "includedTaints": _TEXTS,
    },
    SPREAD: {**_PODS, "constraints": _TEXTS, "topologyBalanceNodeFit": Form.BOOL},
}
_VOLCANO: Mapping[str, Mapping[str, Any]] = {
    DEFAULT_EVICTOR: _EVICTOR,
    LOW: _LOW,
    HIGH: _NODE_USE,
    LIFE_TIME: {**_PODS, "maxPodLifeTimeSeconds": Form.COUNT, "states": _TEXTS},
    DUPLICATES: {"namespaces": _NAMESPACES, "excludeOwnerKinds": _TEXTS},
    FAILED: _FAILED,
    RESTARTS: _RESTARTS,
    ANTI_AFFINITY: _PODS,
    NODE_AFFINITY: {**_PODS, "nodeAffinityType": _TEXTS},
    NODE_TAINTS: {**_PODS, "includePreferNoSchedule": Form.BOOL, "excludedTaints": _TEXTS},
    SPREAD: {**_PODS, "includeSoftConstraints": Form.BOOL},
    LOAD_AWARE: {
        **_LOW,
        **_EVICTOR,
        "metrics": {"type": Form.TEXT, "address": Form.TEXT},
        "duration": Form.TEXT,
    },
}

POINTS = ("presort", "sort", "deschedule", "balance", "filter", "preevictionfilter")
_POINTS_OF = {
    DEFAULT_EVICTOR: ("filter", "preevictionfilter"),
    **dict.fromkeys((LOW, HIGH, DUPLICATES, SPREAD), ("balance",)),
    **dict.fromkeys((FAILED, RESTARTS, LIFE_TIME, ANTI_AFFINITY, NODE_AFFINITY, NODE_TAINTS), ("deschedule",)),
    LOAD_AWARE: ("balance", "filter", "preevictionfilter"),
}

_PLUGIN_SET = {"enabled": _TEXTS, "disabled": _TEXTS}
_ANY: Mapping[str, Any] = {"*": None}
_POLICY_OF_BOTH: dict[str, Any] = {
    "apiVersion": Form.TEXT,
    "kind": Form.TEXT,
    "metadata": _ANY,  # no field of it; written where a policy stands as an object
    "profiles": [
        {
            "name": Form.TEXT,
            "pluginConfig": [{"name": Form.TEXT, "args": None}],
            "plugins": dict.fromkeys(POINTS, _PLUGIN_SET),
        }
    ],
    "nodeSelector": Form.TEXT,
    "maxNoOfPodsToEvictPerNode": Form.COUNT,
    "maxNoOfPodsToEvictPerNamespace": Form.COUNT,
}
_POLICIES: Mapping[Engine, Mapping[str, Any]] = {
    Engine.VOLCANO: _POLICY_OF_BOTH,
    Engine.SIGS: {
        **_POLICY_OF_BOTH,
        "maxNoOfPodsToEvictTotal": Form.COUNT,
        "evictionFailureEventNotification": Form.BOOL,
        "metricsCollector": {"enabled": Form.BOOL},
        "metricsProviders": [
            {
                "source": Form.TEXT,
                "prometheus": {
                    "url": Form.TEXT,
                    "authToken": {"secretReference": {"namespace": Form.TEXT, "name": Form.TEXT}},
                },
            }
        ],
        "gracePeriodSeconds": Form.INT,
    },
}
_PLUGINS = {Engine.SIGS: _SIGS, Engine.VOLCANO: _VOLCANO}


def engines(engine: Engine | None) -> tuple[Engine, ...]:
    """The one, or both where it is unknown."""
    return tuple(Engine) if engine is None else (engine,)


def api_versions(engine: Engine | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(version for each in engines(engine) for version in _API_VERSIONS[each]))


def policy_shape(engine: Engine | None) -> Mapping[str, Any]:
    return {field: shape for each in engines(engine) for field, shape in _POLICIES[each].items()}


def plugins(engine: Engine | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in engines(engine) for name in _PLUGINS[each]))


def arguments(engine: Engine | None, plugin: str) -> Mapping[str, Any]:
    """The arguments that the plugin takes, each with its shape."""
    known = [_PLUGINS[each].get(plugin, {}) for each in reversed(engines(engine))]
    return {field: shape for fields in known for field, shape in fields.items()}


def points_of(plugin: str) -> tuple[str, ...]:
    """The extension points that the plugin has."""
    return _POINTS_OF.get(plugin, ())


# What the chart configures where nobody says otherwise (charts/descheduler/values.yaml).
CHART_PROFILES: Sequence[Mapping[str, Any]] = [
    {
        "name": "default",
        "pluginConfig": [
            {
                "name": DEFAULT_EVICTOR,
                "args": {
                    "podProtections": {"defaultDisabled": ["PodsWithLocalStorage"], "extraEnabled": ["PodsWithPVC"]}
                },
            },
            {"name": DUPLICATES},
            {"name": RESTARTS, "args": {"podRestartThreshold": 100, "includingInitContainers": True}},
            {
                "name": NODE_AFFINITY,
                "args": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
            },
            {"name": NODE_TAINTS},
            {"name": ANTI_AFFINITY},
            {"name": SPREAD},
            {
                "name": LOW,
                "args": {
                    "thresholds": {"cpu": 20, "memory": 20, "pods": 20},
                    "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50},
                },
            },
        ],
        "plugins": {
            "balance": {"enabled": [DUPLICATES, SPREAD, LOW]},
            "deschedule": {"enabled": [RESTARTS, NODE_TAINTS, NODE_AFFINITY, ANTI_AFFINITY]},
        },
    }
]
