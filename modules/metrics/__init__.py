"""Metrics: Prometheus with Grafana, metrics-server and prometheus-adapter by their charts, what Prometheus scrapes of
Volcano and of the GPUs, the alerts on both, and a dashboard."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.api.charts import Chart, locked
from basalt.api.versions import Version
from basalt.objects import MANAGED_BY, POD_SECURITY, Manifest, mapping, release
from basalt.platform import Platform
from basalt.pointers import Pointer
from basalt.quantities import parse

from . import alerts, dashboard
from .origins import AT, written

_NAMESPACE = "monitoring"
_GIVEN = ("default", "kube-system")  # namespaces of every cluster
STACK, SERVER, ADAPTER = "kube-prometheus-stack", "metrics-server", "prometheus-adapter"
# metrics-server 0.8, of the locked chart, is for Kubernetes 1.31 and newer (its README, Compatibility Matrix).
_SERVER_SINCE, _SERVER_BEFORE = Version(1, 31), "3.12.2"
# Left to true, each of them has Prometheus select only what is labelled with the release's name.
_SELECTED = ("podMonitor", "probe", "rule", "scrapeConfig", "serviceMonitor")
CONTROL_PLANE = ("kubeControllerManager", "kubeEtcd", "kubeProxy", "kubeScheduler")
_RETENTION, _SIZE, _INTERVAL = "15d", "100Gi", "30s"
_FOR_VOLCANOS_DESCHEDULER = "15s"  # its queries look back 30 seconds, and need two samples in them
_FULL = 0.85  # of a volume: the write-ahead log and compaction need the rest
_ADMIN = {"existingSecret": "grafana-admin", "userKey": "admin-user", "passwordKey": "admin-password"}
# The labels of pods that name the gang and its queue, which kube-state-metrics leaves out unless it is asked.
_GANG_LABELS = "pods=[volcano.sh/job-name,volcano.sh/queue-name]"
_VOLCANO = {"volcano-scheduler": "volcano-scheduler", "volcano-controllers": "volcano-controller"}
_VOLCANO_NAMESPACE = "volcano-system"
_GPU_NAMESPACE = "gpu-operator"
_OPERATOR = "operator"  # the default provider of the part gpu


def metrics(declared: Mapping[str, Any], platform: Platform) -> Iterator[Manifest]:
    """The namespace, a release of each chart, and all that Prometheus reads."""
    namespace = declared.get("namespace", _NAMESPACE)
    has_prometheus = _enabled(declared, "prometheus")
    has_gpus = has_prometheus and _enabled(declared, "dcgm", default=_has_exporter(platform))
    if namespace not in _GIVEN:
        yield _namespace(declared, namespace)
    if has_prometheus:
        yield _stack(declared, namespace, platform)
    if _enabled(declared, "metricsServer"):
        yield _server(declared, platform)
    if _enabled(declared, "adapter", default=False):
        yield _adapter(declared, namespace, [_gpu_rule(_workload(platform))] if has_gpus else [])
    if has_prometheus:
        has_volcano = _enabled(declared, "volcano")
        yield from _read(declared, namespace, platform, volcano=has_volcano, gpus=has_gpus)


def _read(
    declared: Mapping[str, Any], namespace: str, platform: Platform, *, volcano: bool, gpus: bool
) -> Iterator[Manifest]:
    """What Prometheus and Grafana read. Without Prometheus there is nothing to scrape, alert or show with."""
    if volcano:
        yield from _volcano_monitors(declared, namespace)
    if gpus and _enabled(mapping(declared.get("dcgm")), "serviceMonitor", default=not _has_monitor(platform)):
        yield _dcgm_monitor(declared, namespace, platform)
    workload = _workload(platform)
    if _enabled(declared, "alerts"):
        yield from alerts.rules(declared, namespace, platform.teams, volcano=volcano, gpus=workload if gpus else None)
    has_grafana = _enabled(declared, "grafana")
    if (volcano or gpus) and _enabled(declared, "dashboard", default=has_grafana):
        yield dashboard.dashboard(declared, namespace, volcano=volcano, gpus=workload if gpus else None)


def _enabled(declared: Mapping[str, Any], part: str, *, default: bool = True) -> bool:
    return bool(mapping(declared.get(part)).get("enabled", default))


def _has_exporter(platform: Platform) -> bool:
    """Whether the part gpu brings the DCGM exporter: the operator does, the device plugin alone does not."""
    gpu = mapping(platform.spec.get("gpu"))
    has_operator = "gpu" in platform.spec and gpu.get("provider", _OPERATOR) == _OPERATOR
    return has_operator and _enabled(gpu, "dcgmExporter")


def _has_monitor(platform: Platform) -> bool:
    """Whether the GPU Operator makes the exporter's ServiceMonitor: a second one would double every metric."""
    exporter = mapping(mapping(platform.spec.get("gpu")).get("dcgmExporter"))
    return _has_exporter(platform) and _enabled(exporter, "serviceMonitor")


def _workload(platform: Platform) -> str:
    """What stands before namespace and pod where they are those of the pod that holds a GPU: honorLabels leaves them as
    the exporter gives them."""
    exporter = mapping(mapping(platform.spec.get("gpu")).get("dcgmExporter"))
    honors = mapping(exporter.get("serviceMonitor")).get("honorLabels", False)
    return "" if _has_monitor(platform) and honors else "exported_"


def _gpu_rule(workload: str) -> dict[str, Any]:
    """The use of a pod's GPUs, for the adapter."""
    overrides = {f"{workload}{resource}": {"resource": resource} for resource in ("namespace", "pod")}
    return {
        "seriesQuery": f'DCGM_FI_DEV_GPU_UTIL{{{workload}namespace!="",{workload}pod!=""}}',
        "resources": {"overrides": overrides},
        "name": {"as": "gpu_utilization"},
        "metricsQuery": "avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
    }


def _namespace(declared: Mapping[str, Any], name: str) -> Manifest:
    """Privileged: the node exporter reads the host's /proc and listens on its network."""
    metadata = {"name": name, "labels": {**MANAGED_BY, POD_SECURITY: "privileged"}}
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    return Manifest(value, {(): AT, ("metadata", "name"): written(declared, "namespace")})


def _released(
    chart: Chart, declared: Mapping[str, Any], part: str, values: Mapping[str, Any], origins: dict[Pointer, Pointer]
) -> Manifest:
    namespace = declared.get("namespace", _NAMESPACE)
    made = release(chart, chart.name, namespace, values, written(declared, part), origins)
    return Manifest(made.value, {**made.origins, ("metadata", "namespace"): written(declared, "namespace")})


def _chart(name: str, declared: Mapping[str, Any], part: str, default: str | None = None) -> Chart:
    return locked(name, mapping(declared.get(part)).get("version", default))


def _stack(declared: Mapping[str, Any], namespace: str, platform: Platform) -> Manifest:
    prometheus = mapping(declared.get("prometheus"))
    planes = prometheus.get("controlPlane", ())
    values: dict[str, Any] = {
        "prometheus": {"prometheusSpec": _prometheus(prometheus, platform)},
        # On a managed cluster nobody may reach them, and each would be an alert that never ends.
        **{plane: {"enabled": plane in planes} for plane in CONTROL_PLANE},
        "kube-state-metrics": {"metricLabelsAllowlist": [_GANG_LABELS]},
        "alertmanager": _alertmanager(mapping(declared.get("alertmanager"))),
        "grafana": _grafana(mapping(declared.get("grafana")), namespace),
    }
    spec: Pointer = ("prometheus", "prometheusSpec")
    origins: dict[Pointer, Pointer] = {
        (*spec, "retention"): written(declared, "prometheus", "retention"),
        (*spec, "retentionSize"): written(declared, "prometheus", "storage", "size"),
        (*spec, "scrapeInterval"): written(declared, "prometheus", "scrapeInterval"),
        (*spec, "storageSpec"): written(declared, "prometheus", "storage"),
        **{(plane,): written(declared, "prometheus", "controlPlane") for plane in CONTROL_PLANE},
        ("alertmanager",): written(declared, "alertmanager"),
        ("grafana",): written(declared, "grafana"),
        ("grafana", "admin"): written(declared, "grafana", "admin"),
    }
    return _released(_chart(STACK, declared, "prometheus"), declared, "prometheus", values, origins)


def _prometheus(declared: Mapping[str, Any], platform: Platform) -> dict[str, Any]:
    storage = mapping(declared.get("storage"))
    size = storage.get("size", _SIZE)
    claim: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if "storageClassName" in storage:
        claim["storageClassName"] = storage["storageClassName"]
    found: dict[str, Any] = {
        "retention": declared.get("retention", _RETENTION),
        "scrapeInterval": declared.get("scrapeInterval", _interval(platform)),
        "storageSpec": {"volumeClaimTemplate": {"spec": claim}},
        **{f"{kind}SelectorNilUsesHelmValues": False for kind in _SELECTED},
    }
    amount = parse(size)
    if amount is not None:
        found["retentionSize"] = f"{int(amount * _FULL) // 2**20}MiB"
    return found


def _interval(platform: Platform) -> str:
    is_volcanos = mapping(platform.spec.get("descheduler")).get("engine") == "volcano"
    return _FOR_VOLCANOS_DESCHEDULER if is_volcanos else _INTERVAL


def _alertmanager(declared: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"enabled": declared.get("enabled", True)}
    if "configSecret" in declared:
        found["alertmanagerSpec"] = {"useExistingSecret": True, "configSecret": declared["configSecret"]}
    return found


def _grafana(declared: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """With dashboards of this namespace only: the chart's default makes one of any tenant's ConfigMap."""
    if not declared.get("enabled", True):
        return {"enabled": False}
    admin = {**_ADMIN, **mapping(declared.get("admin"))}
    return {"enabled": True, "admin": admin, "sidecar": {"dashboards": {"searchNamespace": namespace}}}


def _server(declared: Mapping[str, Any], platform: Platform) -> Manifest:
    server = mapping(declared.get("metricsServer"))
    chart = _chart(SERVER, declared, "metricsServer", None if platform.kubernetes >= _SERVER_SINCE else _SERVER_BEFORE)
    values = {"args": list(server["args"])} if server.get("args") else {}
    origins: dict[Pointer, Pointer] = {("args",): written(declared, "metricsServer", "args")}
    return _released(chart, declared, "metricsServer", values, origins)


def _adapter(declared: Mapping[str, Any], namespace: str, custom: list[dict[str, Any]]) -> Manifest:
    adapter = mapping(declared.get("adapter"))
    own = {"url": f"http://{STACK}-prometheus.{namespace}.svc", "port": 9090}
    rules = adapter.get("rules") or ({"custom": custom} if custom else {})
    values = {"prometheus": {**own, **mapping(adapter.get("prometheus"))}, "rules": {"default": False, **rules}}
    origins: dict[Pointer, Pointer] = {
        (field,): written(declared, "adapter", field) for field in ("prometheus", "rules")
    }
    return _released(_chart(ADAPTER, declared, "adapter"), declared, "adapter", values, origins)


def _volcano_monitors(declared: Mapping[str, Any], namespace: str) -> Iterator[Manifest]:
    """Of the chart's Services, which it has no monitors for."""
    for name, app in _VOLCANO.items():
        spec = {
            "jobLabel": "app",
            "namespaceSelector": {"matchNames": [_VOLCANO_NAMESPACE]},
            "selector": {"matchLabels": {"app": app}},
            "endpoints": [{"port": "metrics"}],
        }
        yield _monitor(name, namespace, spec, {(): written(declared, "volcano")})


def _dcgm_monitor(declared: Mapping[str, Any], namespace: str, platform: Platform) -> Manifest:
    """Without honorLabels the workload's pod arrives as exported_pod, which a GPU that nobody holds does not have; with
    it, the pod of such a GPU would be the exporter's own."""
    dcgm = mapping(declared.get("dcgm"))
    settings = mapping(dcgm.get("serviceMonitor"))
    exporters = dcgm.get("namespace") or mapping(platform.spec.get("gpu")).get("namespace", _GPU_NAMESPACE)
    endpoint: dict[str, Any] = {"port": settings.get("port", "gpu-metrics"), "honorLabels": False}
    if "interval" in settings:
        endpoint["interval"] = settings["interval"]
    spec = {
        "namespaceSelector": {"matchNames": [exporters]},
        "selector": {"matchLabels": dict(settings.get("matchLabels", {"app": "nvidia-dcgm-exporter"}))},
        "endpoints": [endpoint],
    }
    at: Pointer = ("spec", "endpoints", 0)
    fields = ("dcgm", "serviceMonitor")
    origins: dict[Pointer, Pointer] = {
        (): written(declared, *fields),
        ("spec", "namespaceSelector"): written(declared, "dcgm", "namespace"),
        ("spec", "selector"): written(declared, *fields, "matchLabels"),
        **{(*at, field): written(declared, *fields, field) for field in ("port", "interval")},
    }
    return _monitor("dcgm-exporter", namespace, spec, origins)


def _monitor(name: str, namespace: str, spec: dict[str, Any], origins: dict[Pointer, Pointer]) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": MANAGED_BY}
    value = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": metadata, "spec": spec}
    return Manifest(value, origins)
