"""The dashboard of queues, gangs and GPUs, as a ConfigMap that Grafana's sidecar takes. Its form is that of Grafana's
dashboard model, schema version 39."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import MANAGED_BY, Manifest

from .origins import written

KEY = "basalt-queues-and-gangs.json"
_NAME = "basalt-queues-and-gangs"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT = 12, 8  # of a panel, in Grafana's grid of 24 columns
_QUEUE, _OF_RESOURCE = 'queue_name=~"$queue"', 'queue_name=~"$queue", resource=~"$resource"'


class _Panel(NamedTuple):
    """A graph: its queries by the legend of each."""

    title: str
    description: str
    unit: str
    queries: Mapping[str, str]


def dashboard(declared: Mapping[str, Any], namespace: str, *, volcano: bool, gpus: str | None) -> Manifest:
    """The panels of what gives metrics. gpus is what stands before the labels of the pod that holds a GPU, None where
    no GPU gives metrics."""
    rows: dict[str, tuple[_Panel, ...]] = {}
    if volcano:
        rows |= {"Queues": _QUEUES, "Gangs": _GANGS, "Quotas": _QUOTAS, "Scheduler": _SCHEDULER}
    if gpus is not None:
        rows["GPUs"] = _of_gpus(f"{gpus}namespace", f"{gpus}pod")
    value: dict[str, Any] = {
        "uid": _NAME,
        "title": "Queues and gangs",
        "tags": ["basalt", "volcano"],
        "schemaVersion": 39,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": list(_variables(volcano=volcano))},
        "panels": list(_panels(rows)),
    }
    metadata = {"name": _NAME, "namespace": namespace, "labels": {**MANAGED_BY, "grafana_dashboard": "1"}}
    text = json.dumps(value, indent=2, ensure_ascii=True) + "\n"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}
    return Manifest(config_map, {(): written(declared, "dashboard")})


def _variables(*, volcano: bool) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0}
    if volcano:
        yield _variable("queue", "Queue", "label_values(volcano_queue_share, queue_name)")
        yield _variable("resource", "Resource", "label_values(volcano_queue_allocated_scalar_resources, resource)")


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,  # whenever the time range changes
        "includeAll": True,
        "multi": True,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "sort": 1,
        "hide": 0,
    }


def _panels(rows: Mapping[str, tuple[_Panel, ...]]) -> Iterator[dict[str, Any]]:
    """Each row's title, and below it its panels, two beside each other."""
    number, top = 0, 0
    for title, panels in rows.items():
        number += 1
        grid = {"x": 0, "y": top, "w": 2 * _WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": grid, "panels": []}
        top += 1
        for place, panel in enumerate(panels):
            number += 1
            x, y = place % 2 * _WIDTH, top + place // 2 * _HEIGHT
            yield _graph(panel, number, {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT})
        top += (len(panels) + 1) // 2 * _HEIGHT


def _graph(panel: _Panel, number: int, grid: Mapping[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": query, "legendFormat": legend, "range": True}
        for place, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": dict(grid),
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": targets,
    }


def _of_queue(what: str) -> str:
    return f"max by (queue_name, resource) (volcano_queue_{what}_scalar_resources{{{_OF_RESOURCE}}}) / 1000"


def _groups(phase: str) -> str:
    return f"max by (queue_name) (volcano_queue_pod_group_{phase}_count{{{_QUEUE}}})"


def _quantile(share: str, metric: str) -> str:
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket[$__rate_interval])))"


_LEGEND = "{{queue_name}} {{resource}}"
_QUEUES = (
    _Panel(
        "Held and deserved",
        "What the pods of a queue hold, and what it deserves.",
        "short",
        {f"{_LEGEND} held": _of_queue("allocated"), f"{_LEGEND} deserved": _of_queue("deserved")},
    ),
    _Panel(
        "Asked for",
        "What the pods of a queue ask for, those that wait included. A gang that was not let in yet has no pods.",
        "short",
        {_LEGEND: _of_queue("request")},
    ),
    _Panel(
        "Held of what the queue can have",
        "Its capability, or what the cluster and the guarantees of others leave it.",
        "percentunit",
        {_LEGEND: f"{_of_queue('allocated')} / ({_of_queue('real_capacity')} > 0)"},
    ),
    _Panel(
        "Share",
        "Above 1 the queue holds more than it deserves, of the resource that it has most of.",
        "short",
        {"{{queue_name}}": f"max by (queue_name) (volcano_queue_share{{{_QUEUE}}})"},
    ),
)
_GANGS = (
    _Panel(
        "Gangs that wait",
        "Pending: not let in by the queue. Let in: waiting for nodes.",
        "short",
        {"{{queue_name}} pending": _groups("pending"), "{{queue_name}} let in": _groups("inqueue")},
    ),
    _Panel(
        "Gangs that run",
        "Unknown: some pods run, and others find no place.",
        "short",
        {"{{queue_name}} running": _groups("running"), "{{queue_name}} unknown": _groups("unknown")},
    ),
    _Panel(
        "Pods that gangs lack",
        "Pods of a gang's minimum that found no place in the last cycle.",
        "short",
        {"{{job_id}}": "max by (job_id) (volcano_unschedule_task_count) > 0"},
    ),
    _Panel(
        "Gangs that find no place",
        "Of those that were let in.",
        "short",
        {"gangs": "max(volcano_unschedule_job_count)"},
    ),
)
_QUOTAS = (
    _Panel(
        "Used of quotas",
        "Extended resources only.",
        "percentunit",
        {
            "{{namespace}} {{resource}}": 'max by (namespace, resource) (kube_resourcequota{type="used", '
            'resource=~"requests[.].+/.+"} / ignoring (type) (kube_resourcequota{type="hard", '
            'resource=~"requests[.].+/.+"} > 0))'
        },
    ),
)
_SCHEDULER = (
    _Panel(
        "Scheduling cycles",
        "How long one takes. The buckets of Volcano 1.15 end at 5 s.",
        "ms",
        {
            "half": _quantile("0.5", "volcano_e2e_scheduling_latency_milliseconds"),
            "99 of 100": _quantile("0.99", "volcano_e2e_scheduling_latency_milliseconds"),
        },
    ),
    _Panel(
        "Actions",
        "The mean time of each action of a cycle.",
        "ms",
        {
            "{{action}}": "sum by (action) "
            "(rate(volcano_action_scheduling_latency_milliseconds_sum[$__rate_interval])) / sum by (action) "
            "(rate(volcano_action_scheduling_latency_milliseconds_count[$__rate_interval]))"
        },
    ),
    _Panel(
        "Attempts",
        "Pods that were placed, and that were not.",
        "ops",
        {"{{result}}": "sum by (result) (rate(volcano_schedule_attempts_total[$__rate_interval]))"},
    ),
    _Panel(
        "Preemption",
        "Attempts to make room for a gang.",
        "ops",
        {"attempts": "sum(rate(volcano_total_preemption_attempts[$__rate_interval]))"},
    ),
)


def _of_gpus(namespace: str, pod: str) -> tuple[_Panel, ...]:
    """By the labels of the pod that holds a GPU."""
    held, by_namespace = f'{{{pod}!=""}}', f"{{{{{namespace}}}}}"
    return (
        _Panel(
            "Busy GPUs",
            "Share of the time in which the GPUs of a namespace's pods computed.",
            "percentunit",
            {by_namespace: f"avg by ({namespace}) (DCGM_FI_PROF_GR_ENGINE_ACTIVE{held})"},
        ),
        _Panel(
            "Busy tensor cores",
            "Share of the time in which they computed.",
            "percentunit",
            {by_namespace: f"avg by ({namespace}) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{held})"},
        ),
        _Panel(
            "The least busy GPU of a pod",
            "In a gang that computes together all are alike; one that is not holds up the rest.",
            "percentunit",
            {
                f"{by_namespace}/{{{{{pod}}}}}": f"bottomk(20, min by ({namespace}, {pod}) "
                f"(DCGM_FI_PROF_GR_ENGINE_ACTIVE{held}))"
            },
        ),
        _Panel(
            "Memory",
            "Used by the pods of a namespace, in MiB.",
            "mbytes",
            {by_namespace: f"sum by ({namespace}) (DCGM_FI_DEV_FB_USED{held})"},
        ),
        *_GPU_HEALTH,
    )


_GPU_HEALTH = (
    _Panel(
        "Temperature",
        "The hottest GPU of each node.",
        "celsius",
        {"{{Hostname}}": "max by (Hostname) (DCGM_FI_DEV_GPU_TEMP)"},
    ),
    _Panel(
        "Last XID",
        "The last error that the driver reported of a GPU. It stays until the driver is loaded again.",
        "short",
        {"{{Hostname}} {{gpu}}": "max by (Hostname, gpu) (DCGM_FI_DEV_XID_ERRORS) > 0"},
    ),
)
