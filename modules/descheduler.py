"""The descheduler: that of kubernetes-sigs by its chart, or Volcano's, which has none, as objects of its own. Left to
itself it evicts only what is broken, and never a pod of a gang."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.api.charts import locked
from basalt.objects import MANAGED_BY, Manifest, release
from basalt.platform import Platform
from basalt.pointers import Pointer
from basalt.rendering import yaml_writer

AT: Pointer = ("spec", "descheduler")
_API_VERSION = "descheduler/v1alpha2"
_SIGS, _VOLCANO = "kubernetes-sigs", "volcano"
_NAMESPACES = {_SIGS: "kube-system", _VOLCANO: "volcano-system"}
_NAME = "volcano-descheduler"
# volcano-sh/descheduler has no releases; this is the image of its installer, by a tag that a site replaces by a digest.
_IMAGE = "docker.io/volcanosh/vc-descheduler"
_SCHEDULE = "*/30 * * * *"
_TRAINING = {"key": "volcano.sh/job-name", "operator": "DoesNotExist"}
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_PROTECTIONS = ["PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"]


def descheduler(declared: Mapping[str, Any], platform: Platform) -> Iterator[Manifest]:
    """A release of the chart; for Volcano's own the ConfigMap, Deployment and what its account may do."""
    engine = declared.get("engine", _SIGS)
    namespace = declared.get("namespace", _NAMESPACES[engine])
    policy = {"apiVersion": _API_VERSION, "kind": "DeschedulerPolicy", **_policy(declared, platform, engine)}
    if engine == _VOLCANO:
        yield from _of_volcano(declared, namespace, policy)
        return
    values = {**_when(declared), "deschedulerPolicyAPIVersion": _API_VERSION, "deschedulerPolicy": {
        key: value for key, value in policy.items() if key not in ("apiVersion", "kind")
    }}  # fmt: skip
    if declared.get("dryRun"):
        values["cmdOptions"] = {"v": 3, "dry-run": True}
    chart = locked("descheduler", declared.get("version"))
    yield release(chart, "descheduler", namespace, values, AT, _origins(declared, ("deschedulerPolicy",)))


def _origins(declared: Mapping[str, Any], policy: Pointer) -> dict[Pointer, Pointer]:
    found: dict[Pointer, Pointer] = {policy: (*AT, "policy") if "policy" in declared else AT}
    return {**found, **{(key,): (*AT, key) for key in ("schedule",) if key in declared}}


def _when(declared: Mapping[str, Any]) -> dict[str, Any]:
    if "interval" in declared:
        return {"kind": "Deployment", "deschedulingInterval": declared["interval"], "replicas": 1}
    return {"kind": "CronJob", "schedule": declared.get("schedule", _SCHEDULE)}


def _policy(declared: Mapping[str, Any], platform: Platform, engine: str) -> Mapping[str, Any]:
    """The declared policy, else one that evicts only failed pods and those that a taint no longer lets stay."""
    if "policy" in declared:
        own: Mapping[str, Any] = declared["policy"]
        return own
    limits = {"maxNoOfPodsToEvictPerNode": 2}
    if engine == _SIGS:  # the fork, of 0.27, knows no limit in total
        limits["maxNoOfPodsToEvictTotal"] = 10
    return {**limits, "profiles": [_careful_profile(platform, engine)]}


def _careful_profile(platform: Platform, engine: str) -> dict[str, Any]:
    evictor: dict[str, Any] = {
        "nodeFit": True,
        "priorityThreshold": {"value": 10000},
        "labelSelector": {"matchExpressions": [_TRAINING]},
    }
    if engine == _SIGS:
        evictor |= {
            "minReplicas": 2,
            "minPodAge": "30m",
            "noEvictionPolicy": "Mandatory",
            "podProtections": {"extraEnabled": _PROTECTIONS},
        }
        if tenants := sorted(platform.tenant_namespaces):
            selector = {"key": _NAMESPACE_NAME, "operator": "NotIn", "values": tenants}
            evictor["namespaceLabelSelector"] = {"matchExpressions": [selector]}
    failed = {"excludeOwnerKinds": ["Job"], "minPodLifetimeSeconds": 3600, "includingInitContainers": True}
    return {
        "name": "careful",
        "pluginConfig": [
            {"name": "DefaultEvictor", "args": evictor},
            {"name": "RemoveFailedPods", "args": failed},
            {"name": "RemovePodsViolatingNodeTaints", "args": {}},
        ],
        "plugins": {
            "filter": {"enabled": ["DefaultEvictor"]},
            "preevictionfilter": {"enabled": ["DefaultEvictor"]},
            "deschedule": {"enabled": ["RemoveFailedPods", "RemovePodsViolatingNodeTaints"]},
        },
    }


# Volcano's own: what installer/volcano-descheduler.yaml of volcano-sh/descheduler holds, without the log directory on
# the host, and with an account that may not do more than it needs.


def _of_volcano(declared: Mapping[str, Any], namespace: str, policy: Mapping[str, Any]) -> Iterator[Manifest]:
    def made(api_version: str, kind: str, body: dict[str, Any], *, is_global: bool = False) -> Manifest:
        metadata = {"name": _NAME, **({} if is_global else {"namespace": namespace}), "labels": MANAGED_BY}
        return Manifest({"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}, {(): AT})

    rbac = "rbac.authorization.k8s.io/v1"
    yield made("v1", "ServiceAccount", {})
    yield made(rbac, "ClusterRole", {"rules": _RULES}, is_global=True)
    subjects = [{"kind": "ServiceAccount", "name": _NAME, "namespace": namespace}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
    yield made(rbac, "ClusterRoleBinding", {"roleRef": role, "subjects": subjects}, is_global=True)
    config = made("v1", "ConfigMap", {"data": {"policy.yaml": yaml_writer.document(policy)}})
    origin = (*AT, "policy") if "policy" in declared else AT
    yield Manifest(config.value, {(): AT, ("data", "policy.yaml"): origin})
    yield made("apps/v1", "Deployment", {"spec": _deployment(declared)})


_RULES = [
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "update"]},
    {"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["metrics.k8s.io"], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
]


def _deployment(declared: Mapping[str, Any]) -> dict[str, Any]:
    when = f"--descheduling-interval={declared['interval']}" if "interval" in declared else _cron(declared)
    arguments = ["--policy-config-file=/policy-dir/policy.yaml", when, "--leader-elect=false", "--v=3"]
    arguments += ["--dry-run"] if declared.get("dryRun") else []
    container = {
        "name": "descheduler",
        "image": f"{_IMAGE}:{declared.get('version', 'latest')}",
        "command": ["/vc-descheduler", *arguments],
        "resources": {kind: {"cpu": "500m", "memory": "256Mi"} for kind in ("requests", "limits")},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 1000,
        },
        "volumeMounts": [{"name": "policy", "mountPath": "/policy-dir", "readOnly": True}],
    }
    pod = {
        "serviceAccountName": _NAME,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "policy", "configMap": {"name": _NAME}}],
    }
    labels = {"app": _NAME}
    return {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }


def _cron(declared: Mapping[str, Any]) -> str:
    return f"--descheduling-interval-cron-expression={declared.get('schedule', _SCHEDULE)}"
