"""The alerts: on gangs that do not start, queues and quotas that do not give what they promise, GPUs that stand idle or
break, and a Volcano that is down or slow.

Metrics and labels: pkg/scheduler/metrics, pkg/controllers/metrics and pkg/controllers/job/state of Volcano 1.15 (scalar
resources are counted in thousandths, NewResource in pkg/scheduler/api/resource_info.go); etc/default-counters.csv of
dcgm-exporter; docs/metrics of kube-state-metrics.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import MANAGED_BY, Manifest, mapping
from basalt.pointers import Pointer
from basalt.quantities import is_extended

from .origins import written

DEFAULTS: Mapping[str, int | float] = {
    "gangPendingMinutes": 120,
    "gpuIdleMinutes": 30,
    "gpuIdlePercent": 5,
    "gpuTemperature": 85,
    "queueAboveDeservedMinutes": 360,
    "quotaBlockedMinutes": 30,
    "schedulingLatencySeconds": 2,
}
QUOTA_OF_QUEUE = "basalt:quota_of_queue:info"
_INFO, _WARNING, _CRITICAL = "info", "warning", "critical"
# XIDs of the program that ran on the GPU, not of the GPU (health.go of NVIDIA's device plugin ignores the same).
_XIDS_OF_PROGRAMS = "13|31|43|45|68|109"
_GPU = "Hostname, gpu, UUID"
_GPU_RESOURCES = "nvidia_com_(gpu|mig_.+)"


class Alert(NamedTuple):
    """One alert. settings are the fields of alerts that its expression and its time follow from, minutes how long the
    expression must hold."""

    name: str
    expression: str
    minutes: int | float
    severity: str
    summary: str
    description: str
    expression_from: str | None = None
    minutes_from: str | None = None


def rules(
    declared: Mapping[str, Any],
    namespace: str,
    teams: Mapping[str, Mapping[str, Any]],
    *,
    volcano: bool,
    gpus: str | None,
) -> Iterator[Manifest]:
    """A PrometheusRule for each group of alerts. gpus is what stands before labels of the pod that holds a GPU, None
    where no GPU gives metrics."""
    settings = {**DEFAULTS, **mapping(declared.get("alerts"))}
    quotas = list(_quotas(teams))
    groups: dict[str, Iterable[Alert]] = {}
    if volcano:
        groups["gangs"] = _gangs(settings)
        groups["queues"] = _queues(settings, has_quotas=bool(quotas))
        groups["volcano"] = _volcano(settings)
    if gpus is not None:
        groups["gpus"] = _gpus(settings, gpus)
    disabled = settings.get("disabled", ())
    for group, every in groups.items():
        chosen = [each for each in every if each.name not in disabled]
        recorded = quotas if any(QUOTA_OF_QUEUE in each.expression for each in chosen) else []
        if chosen:
            yield _rule(declared, namespace, group, [*recorded, *chosen])


class _Record(NamedTuple):
    """A namespace whose quota stands between a queue and its team, for one resource."""

    namespace: str
    queue: str
    resource: str


def _quotas(teams: Mapping[str, Mapping[str, Any]]) -> Iterator[_Record]:
    """One for each namespace of a team with a queue of its own, for the resources that every one of them limits."""
    for name, team in teams.items():
        namespaces: Mapping[str, Any] = team.get("namespaces", {})
        limited = [{key.removeprefix("requests.") for key in each.get("quota", {})} for each in namespaces.values()]
        if "queue" in team and limited:
            for resource in sorted(filter(is_extended, set.intersection(*limited))):
                yield from (_Record(namespace, name, resource) for namespace in namespaces)


def _rule(declared: Mapping[str, Any], namespace: str, group: str, made: Iterable[Alert | _Record]) -> Manifest:
    origins: dict[Pointer, Pointer] = {(): written(declared, "alerts")}
    written_out: list[dict[str, Any]] = []
    settings = mapping(declared.get("alerts"))
    for each in made:
        at: Pointer = ("spec", "groups", 0, "rules", len(written_out))
        if isinstance(each, _Record):
            labels = {"namespace": each.namespace, "queue_name": each.queue, "resource": each.resource}
            written_out.append({"record": QUOTA_OF_QUEUE, "expr": "vector(1)", "labels": labels})
            continue
        written_out.append(_written_out(each, settings))
        origins[at] = written(declared, "alerts")
        origins[(*at, "labels", "severity")] = written(declared, "alerts", "severities", each.name)
        for key in mapping(settings.get("labels")):
            origins[(*at, "labels", key)] = written(declared, "alerts", "labels", key)
        for field, source in (("expr", each.expression_from), ("for", each.minutes_from)):
            if source is not None:
                origins[(*at, field)] = written(declared, "alerts", source)
    metadata = {"name": f"basalt-{group}", "namespace": namespace, "labels": MANAGED_BY}
    spec = {"groups": [{"name": f"basalt-{group}", "rules": written_out}]}
    value = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata, "spec": spec}
    return Manifest(value, origins)


def _written_out(alert: Alert, settings: Mapping[str, Any]) -> dict[str, Any]:
    severity = mapping(settings.get("severities")).get(alert.name, alert.severity)
    found: dict[str, Any] = {"alert": alert.name, "expr": alert.expression}
    if alert.minutes:
        found["for"] = f"{alert.minutes}m"
    found["labels"] = {**mapping(settings.get("labels")), "severity": severity}
    found["annotations"] = {"summary": alert.summary, "description": alert.description}
    return found


def _gangs(settings: Mapping[str, Any]) -> Iterator[Alert]:
    minutes = settings["gangPendingMinutes"]
    yield Alert(
        "GangPending",
        "max by (queue_name) (volcano_queue_pod_group_pending_count) > 0",
        minutes,
        _WARNING,
        "Queue {{ $labels.queue_name }} lets no gang in",
        "{{ $value }} gangs of the queue are Pending, and there has been one for "
        f"{minutes} minutes: the queue's capability, a quota or the cluster is full.",
        minutes_from="gangPendingMinutes",
    )
    yield Alert(
        "GangUnschedulable",
        "max by (job_id) (volcano_unschedule_task_count) > 0",
        minutes,
        _WARNING,
        "Gang {{ $labels.job_id }} finds no place",
        f"{{{{ $value }}}} pods that its minimum needs have had no place for {minutes} minutes. "
        "`basalt fit` says what the gang lacks.",
        minutes_from="gangPendingMinutes",
    )
    yield Alert(
        "GangBroken",
        "max by (queue_name) (volcano_queue_pod_group_unknown_count) > 0",
        15,
        _WARNING,
        "A gang of queue {{ $labels.queue_name }} runs in part",
        "{{ $value }} gangs have running pods, and others below their minimum that find no place.",
    )
    failures, before = (
        f"max by (queue_name, job_name) (volcano_job_failed_phase_count{offset})" for offset in ("", " offset 30m")
    )
    yield Alert(
        "JobFailed",
        f"{failures} - ({before} or {failures} * 0) > 0",  # the first failure of a job makes the series
        0,
        _INFO,
        "Job {{ $labels.job_name }} failed",
        "The job of queue {{ $labels.queue_name }} failed in the last 30 minutes.",
    )


def _queues(settings: Mapping[str, Any], *, has_quotas: bool) -> Iterator[Alert]:
    minutes = settings["queueAboveDeservedMinutes"]
    allocated, deserved = (
        f'max by (queue_name, resource) (volcano_queue_{each}_scalar_resources{{queue_name!="root"}})'
        for each in ("allocated", "deserved")
    )
    yield Alert(
        "QueueAboveDeserved",
        f"({allocated} - {deserved}) / 1000 > 0 and {deserved} > 0",
        minutes,
        _INFO,
        "Queue {{ $labels.queue_name }} holds more than it deserves",
        f"{{{{ $value }}}} of {{{{ $labels.resource }}}} above what it deserves, for {minutes} minutes: others may "
        "take them back at any time.",
        minutes_from="queueAboveDeservedMinutes",
    )
    if not has_quotas:
        return
    minutes = settings["quotaBlockedMinutes"]
    hard, used = (f'kube_resourcequota{{type="{each}", resource=~"requests[.].+/.+"}}' for each in ("hard", "used"))
    room = (
        f"min by (namespace, resource) (label_replace({hard} - ignoring (type) {used}, "
        '"resource", "$1", "resource", "requests[.](.+)"))'
    )
    in_quota = (
        f"sum by (queue_name, resource) (max by (namespace, queue_name, resource) ({QUOTA_OF_QUEUE}) "
        f"* on (namespace, resource) group_left () {room})"
    )
    yield Alert(
        "QuotaBlocksTeam",
        f"({deserved} - {allocated}) / 1000 > {in_quota} "
        "and on (queue_name) max by (queue_name) (volcano_queue_pod_group_pending_count) > 0",
        minutes,
        _WARNING,
        "Quotas keep team {{ $labels.queue_name }} from what its queue deserves",
        "Its gangs wait, its queue would still give it {{ $value }} of {{ $labels.resource }}, and the quotas of its "
        "namespaces leave less than that.",
        minutes_from="quotaBlockedMinutes",
    )


def _gpus(settings: Mapping[str, Any], workload: str = "exported_") -> Iterator[Alert]:
    yield _idle(settings["gpuIdleMinutes"], settings["gpuIdlePercent"], workload)
    yield from _broken()
    yield Alert(
        "GpuHot",
        f"max by ({_GPU}) (DCGM_FI_DEV_GPU_TEMP) > {settings['gpuTemperature']}",
        10,
        _WARNING,
        "GPU {{ $labels.gpu }} of {{ $labels.Hostname }} is at {{ $value }} °C",
        "It slows down, and with it every other GPU of the gang.",
        expression_from="gpuTemperature",
    )
    yield Alert(
        "GpuMetricsAbsent",
        "absent(DCGM_FI_DEV_GPU_TEMP)",
        10,
        _CRITICAL,
        "No GPU gives metrics",
        "Prometheus has nothing from the DCGM exporter: no other alert on GPUs can fire.",
    )
    exporters = (
        '(up{container=~".*dcgm-exporter"} == 1) '
        "* on (namespace, pod) group_left (node) max by (namespace, pod, node) (kube_pod_info)"
    )
    yield Alert(
        "NodeWithoutGpuMetrics",
        f'max by (node) (kube_node_status_capacity{{resource=~"{_GPU_RESOURCES}"}}) > 0 '
        f"unless on (node) max by (node) ({exporters})",
        15,
        _WARNING,
        "The GPUs of node {{ $labels.node }} give no metrics",
        "The node has GPUs, and Prometheus reaches no DCGM exporter on it.",
    )
    capacity, allocatable = (
        f'max by (node, resource) (kube_node_status_{each}{{resource=~"{_GPU_RESOURCES}"}})'
        for each in ("capacity", "allocatable")
    )
    yield Alert(
        "GpuNotAllocatable",
        f"{capacity} - {allocatable} > 0",
        15,
        _WARNING,
        "Node {{ $labels.node }} lacks {{ $value }} of {{ $labels.resource }}",
        "The device plugin has taken GPUs of the node out of service: gangs that count on a whole node wait.",
    )


def _idle(minutes: int, percent: float, workload: str) -> Alert:
    """Idle now and at every look of the time, and held since before it: a pod that has just begun is not idle."""
    active, idle = f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{workload}pod!=""}}', f"{percent / 100:g}"
    held = f"{active} < {idle} and max_over_time({active}[{minutes}m]) < {idle} and {active} offset {minutes}m"
    for label in ("namespace", "pod") if workload else ():
        held = f'label_replace({held}, "{label}", "$1", "{workload}{label}", "(.+)")'
    job = "label_volcano_sh_job_name"
    gangs = f'max by (namespace, pod, {job}) (kube_pod_labels{{{job}!=""}})'
    return Alert(
        "GpuIdleInGang",
        f"count by (namespace, {job}) (({held}) * on (namespace, pod) group_left ({job}) {gangs})",
        0,
        _WARNING,
        f"{{{{ $value }}}} GPUs of gang {{{{ $labels.namespace }}}}/{{{{ $labels.{job} }}}} stand idle",
        f"The gang has held them for more than {minutes} minutes, and none was ever {percent} % busy in that time: it "
        "hangs, or waits for one of its pods.",
        expression_from="gpuIdleMinutes",
    )


def _broken() -> Iterator[Alert]:
    last = f"max by ({_GPU}) (DCGM_FI_DEV_XID_ERRORS)"
    of_gpu = f'max by ({_GPU}) (DCGM_FI_DEV_XID_ERRORS{{err_code!~"{_XIDS_OF_PROGRAMS}"}})'
    yield Alert(
        "GpuXidError",
        # The exporter gives the last XID, and writes it into a label as well: a new one is a new series.
        f"{of_gpu} > 0 and changes({last}[15m:1m]) > 0",
        0,
        _CRITICAL,
        "XID {{ $value }} on GPU {{ $labels.gpu }} of {{ $labels.Hostname }}",
        "The driver has reported an error of the GPU ({{ $labels.UUID }}), not of a program.",
    )
    yield Alert(
        "GpuRowRemapFailed",
        f"max by ({_GPU}) (DCGM_FI_DEV_ROW_REMAP_FAILURE) > 0",
        0,
        _CRITICAL,
        "GPU {{ $labels.gpu }} of {{ $labels.Hostname }} has memory that it cannot remap",
        "The GPU ({{ $labels.UUID }}) has run out of spare rows, and should be replaced.",
    )
    rows, before = (
        f"max by ({_GPU}) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{offset})" for offset in ("", " offset 1h")
    )
    yield Alert(
        "GpuRowsRemapped",
        f"{rows} - {before} > 0",
        0,
        _WARNING,
        "GPU {{ $labels.gpu }} of {{ $labels.Hostname }} has remapped {{ $value }} rows of its memory",
        "The GPU ({{ $labels.UUID }}) has had uncorrectable errors in the last hour. It takes a reset for the rows to "
        "be used.",
    )


def _volcano(settings: Mapping[str, Any]) -> Iterator[Alert]:
    for name, app in (("VolcanoSchedulerDown", "scheduler"), ("VolcanoControllersDown", "controller")):
        yield Alert(
            name,
            f'absent(up{{job="volcano-{app}"}} == 1)',
            5,
            _CRITICAL,
            f"Volcano's {app} gives no metrics",
            "No gang starts, or ends, while it is down.",
        )
    seconds = settings["schedulingLatencySeconds"]
    yield Alert(
        "SchedulingSlow",
        "histogram_quantile(0.99, sum by (le) (rate(volcano_e2e_scheduling_latency_milliseconds_bucket[10m]))) / 1000 "
        f"> {seconds}",
        15,
        _WARNING,
        "One scheduling cycle in a hundred takes {{ $value }} s",
        f"A cycle of Volcano's scheduler should end within {seconds} s: everything that waits, waits for it.",
        expression_from="schedulingLatencySeconds",
    )


def names() -> list[str]:
    """Of every alert that there can be."""
    every = (_gangs(DEFAULTS), _queues(DEFAULTS, has_quotas=True), _gpus(DEFAULTS), _volcano(DEFAULTS))
    return [each.name for group in every for each in group]
