"""The part `metrics`: charts, monitors, alerts and the dashboard. promtool, of Debian's package prometheus, checks the
rules and runs them over series; without it on the PATH those tests are skipped."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.api.schemas import document_schema
from basalt.api.versions import Version, known
from basalt.compiling import Compilation, compile_folder
from basalt.objects import Manifest
from basalt.platform import Platform
from basalt.views import promql
from modules import metrics
from modules.metrics import alerts, dashboard
from tests.test_modules import leads_somewhere

Spec = dict[str, Any]
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="no promtool on the PATH: apt-get install prometheus")
TEAMS: dict[str, Spec] = {
    "vision": {
        "queue": {},
        "namespaces": {
            "train": {"quota": {"cpu": 8, "nvidia.com/gpu": 16}},
            "eval": {"quota": {"requests.nvidia.com/gpu": 2}},
        },
    },
    "speech": {"queue": {}, "namespaces": {"talk": {"quota": {"nvidia.com/gpu": 1}}, "free": {}}},
    "guests": {"namespaces": {"guests": {"quota": {"nvidia.com/gpu": 1}}}},
}
GPUS: Spec = {"dcgm": {"enabled": True}}


def made(declared: Spec, teams: dict[str, Spec] | None = None, **spec: Any) -> list[Manifest]:
    whole = {**spec, "metrics": declared}
    platform = Platform("case", whole, teams or {}, tuple, Version(1, 34), Version(1, 15), is_development=False)
    return list(metrics.metrics(declared, platform))


def shown(each: Manifest) -> str:
    metadata = each.value["metadata"]
    return "/".join(filter(None, (each.value["kind"], metadata.get("namespace"), metadata["name"])))


def listed(declared: Spec, **spec: Any) -> list[str]:
    return [shown(each) for each in made(declared, **spec)]


def only(declared: Spec, name: str, **spec: Any) -> Spec:
    """The one object of that kind and name."""
    [found] = [each.value for each in made(declared, **spec) if shown(each) == name]
    return found


def values(declared: Spec, chart: str, **spec: Any) -> Spec:
    found: Spec = only(declared, f"Release/monitoring/{chart}", **spec)["spec"]["values"]
    return found


def rules_of(declared: Spec, teams: dict[str, Spec] | None = None) -> list[Spec]:
    every = (each.value for each in made(declared, teams) if each.value["kind"] == "PrometheusRule")
    return [rule for each in every for group in each["spec"]["groups"] for rule in group["rules"]]


def alerts_of(declared: Spec, teams: dict[str, Spec] | None = None) -> dict[str, Spec]:
    return {rule["alert"]: rule for rule in rules_of(declared, teams) if "alert" in rule}


# what is installed

ALL = [
    "Namespace/monitoring",
    "Release/monitoring/kube-prometheus-stack",
    "Release/monitoring/metrics-server",
    "ServiceMonitor/monitoring/volcano-scheduler",
    "ServiceMonitor/monitoring/volcano-controllers",
    "PrometheusRule/monitoring/basalt-gangs",
    "PrometheusRule/monitoring/basalt-queues",
    "PrometheusRule/monitoring/basalt-volcano",
    "ConfigMap/monitoring/basalt-queues-and-gangs",
]
DCGM, OF_GPUS = "ServiceMonitor/monitoring/dcgm-exporter", "PrometheusRule/monitoring/basalt-gpus"


def test_nothing_said_installs_all_but_the_adapter_and_what_speaks_of_gpus() -> None:
    assert listed({}) == ALL


@pytest.mark.parametrize(
    ("declared", "missing"),
    [
        ({"metricsServer": {"enabled": False}}, {"metrics-server"}),
        ({"alerts": {"enabled": False}}, {"basalt-gangs", "basalt-queues", "basalt-volcano"}),
        (
            {"alerts": {"disabled": ["SchedulingSlow", "VolcanoSchedulerDown", "VolcanoControllersDown"]}},
            {"basalt-volcano"},
        ),
        ({"dashboard": {"enabled": False}}, {"basalt-queues-and-gangs"}),
        ({"grafana": {"enabled": False}}, {"basalt-queues-and-gangs"}),
        ({"grafana": {"enabled": False}, "dashboard": {"enabled": True}}, set()),
        ({"volcano": {"enabled": False}}, {each.rpartition("/")[2] for each in ALL[3:]}),
        ({"prometheus": {"enabled": False}}, {"kube-prometheus-stack", *(each.rpartition("/")[2] for each in ALL[3:])}),
    ],
)
def test_switch_leaves_its_part_out(declared: Spec, missing: set[str]) -> None:
    assert listed(declared) == [each for each in ALL if each.rpartition("/")[2] not in missing]


def test_namespace_of_every_cluster_is_not_made() -> None:
    found = listed({"namespace": "kube-system"})

    assert found[0] == "Release/kube-system/kube-prometheus-stack"
    assert all("/kube-system/" in each for each in found)


@pytest.mark.parametrize(
    ("gpu", "declared", "more"),
    [
        (None, {}, set()),
        ({}, {}, {OF_GPUS}),
        ({"dcgmExporter": {"serviceMonitor": {"enabled": False}}}, {}, {OF_GPUS, DCGM}),
        ({"dcgmExporter": {"enabled": False}}, {}, set()),
        ({"provider": "device-plugin"}, {}, set()),
        ({"provider": "device-plugin"}, GPUS, {OF_GPUS, DCGM}),
        (None, GPUS, {OF_GPUS, DCGM}),
        (None, {"dcgm": {"enabled": True, "serviceMonitor": {"enabled": False}}}, {OF_GPUS}),
        ({}, {"dcgm": {"serviceMonitor": {"enabled": True}}}, {OF_GPUS, DCGM}),
        ({}, {"dcgm": {"enabled": False}}, set()),
        ({}, {"prometheus": {"enabled": False}, **GPUS}, set()),
    ],
)
def test_gpus_are_scraped_once_where_something_exports_them(gpu: Spec | None, declared: Spec, more: set[str]) -> None:
    found = listed(declared, **({} if gpu is None else {"gpu": gpu}))

    assert {each for each in found if each in (DCGM, OF_GPUS)} == more


def test_prometheus_selects_every_monitor_and_keeps_its_volume_from_filling() -> None:
    declared = {"prometheus": {"retention": "30d", "storage": {"size": "500Gi", "storageClassName": "fast"}}}

    spec = values(declared, "kube-prometheus-stack")["prometheus"]["prometheusSpec"]

    kinds = ("podMonitor", "probe", "rule", "scrapeConfig", "serviceMonitor")
    assert [spec[f"{kind}SelectorNilUsesHelmValues"] for kind in kinds] == [False] * 5
    assert (spec["retention"], spec["retentionSize"], spec["scrapeInterval"]) == ("30d", "435200MiB", "30s")
    assert spec["storageSpec"]["volumeClaimTemplate"]["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "500Gi"}},
        "storageClassName": "fast",
    }


def test_scrapes_are_frequent_enough_for_volcanos_descheduler() -> None:
    spec = values({}, "kube-prometheus-stack", descheduler={"engine": "volcano"})["prometheus"]["prometheusSpec"]

    assert spec["scrapeInterval"] == "15s"


def test_control_plane_is_scraped_only_where_it_is_asked_for() -> None:
    asked = values({"prometheus": {"controlPlane": ["kubeEtcd"]}}, "kube-prometheus-stack")

    assert {part: asked[part]["enabled"] for part in metrics.CONTROL_PLANE} == {
        "kubeControllerManager": False, "kubeEtcd": True, "kubeProxy": False, "kubeScheduler": False,
    }  # fmt: skip


def test_secrets_are_references() -> None:
    declared = {"grafana": {"admin": {"existingSecret": "boss"}}, "alertmanager": {"configSecret": "routes"}}

    found = values(declared, "kube-prometheus-stack")

    assert found["grafana"] == {
        "enabled": True,
        "admin": {"existingSecret": "boss", "userKey": "admin-user", "passwordKey": "admin-password"},
        "sidecar": {"dashboards": {"searchNamespace": "monitoring"}},
    }
    assert found["alertmanager"]["alertmanagerSpec"] == {"useExistingSecret": True, "configSecret": "routes"}


def test_adapter_asks_the_prometheus_that_is_installed() -> None:
    assert values({"adapter": {"enabled": True}}, "prometheus-adapter") == {
        "prometheus": {"url": "http://kube-prometheus-stack-prometheus.monitoring.svc", "port": 9090},
        "rules": {"default": False},
    }
    external = [{"seriesQuery": "a", "metricsQuery": "b"}]
    own = {"adapter": {"enabled": True, "prometheus": {"url": "http://p"}, "rules": {"external": external}}}
    assert values(own, "prometheus-adapter") == {
        "prometheus": {"url": "http://p", "port": 9090},
        "rules": {"default": False, "external": external},
    }


# pulled from installer/helm/chart/volcano/templates/{scheduler,controllers}.yaml of Volcano 1.14 and 1.15
@pytest.mark.parametrize(("name", "app"), [("scheduler", "volcano-scheduler"), ("controllers", "volcano-controller")])
def test_monitor_selects_the_service_of_volcanos_chart(name: str, app: str) -> None:
    assert only({}, f"ServiceMonitor/monitoring/volcano-{name}")["spec"] == {
        "jobLabel": "app",
        "namespaceSelector": {"matchNames": ["volcano-system"]},
        "selector": {"matchLabels": {"app": app}},
        "endpoints": [{"port": "metrics"}],
    }


@pytest.mark.parametrize(
    ("dcgm", "gpu", "spec"),
    [
        ({}, {}, ("gpu-operator", {"app": "nvidia-dcgm-exporter"}, {"port": "gpu-metrics", "honorLabels": False})),
        (
            {},
            {"namespace": "gpus"},
            ("gpus", {"app": "nvidia-dcgm-exporter"}, {"port": "gpu-metrics", "honorLabels": False}),
        ),
        (
            {"namespace": "d", "serviceMonitor": {"port": "p", "matchLabels": {"a": "b"}, "interval": "15s"}},
            {},
            ("d", {"a": "b"}, {"port": "p", "honorLabels": False, "interval": "15s"}),
        ),
    ],
)
def test_monitor_of_gpus_selects_what_is_declared(dcgm: Spec, gpu: Spec, spec: tuple[str, Spec, Spec]) -> None:
    monitor = {"enabled": True, **dcgm.get("serviceMonitor", {})}

    found = only({"dcgm": {"enabled": True, **dcgm, "serviceMonitor": monitor}}, DCGM, gpu=gpu)["spec"]

    namespace, labels, endpoint = spec
    assert found["namespaceSelector"] == {"matchNames": [namespace]}
    assert found["selector"] == {"matchLabels": labels}
    assert found["endpoints"] == [endpoint]


# alerts: their form


def test_schema_lists_every_alert_and_its_defaults() -> None:
    declared = document_schema("Environment")["properties"]["spec"]["properties"]["metrics"]["properties"]["alerts"]
    fields = declared["properties"]

    assert (
        fields["disabled"]["items"]["enum"] == fields["severities"]["propertyNames"]["enum"] == sorted(alerts.names())
    )
    assert {name: fields[name]["default"] for name in alerts.DEFAULTS} == alerts.DEFAULTS
    assert sorted(alerts_of(GPUS, TEAMS)) == sorted(alerts.names())


def test_settings_change_their_alerts() -> None:
    changed = {
        "gangPendingMinutes": 7, "gpuIdleMinutes": 8, "gpuIdlePercent": 9, "gpuTemperature": 77,
        "queueAboveDeservedMinutes": 11, "quotaBlockedMinutes": 12, "schedulingLatencySeconds": 0.5,
        "labels": {"team": "platform"}, "severities": {"GpuHot": "critical"}, "disabled": ["JobFailed"],
    }  # fmt: skip

    found = alerts_of({**GPUS, "alerts": changed}, TEAMS)

    assert [found[name]["for"] for name in ("GangPending", "GangUnschedulable")] == ["7m", "7m"]
    assert [found[name]["for"] for name in ("QueueAboveDeserved", "QuotaBlocksTeam")] == ["11m", "12m"]
    assert "[8m]" in found["GpuIdleInGang"]["expr"]
    assert "offset 8m" in found["GpuIdleInGang"]["expr"]
    assert "< 0.09 " in found["GpuIdleInGang"]["expr"]
    assert found["GpuHot"]["expr"].endswith("> 77")
    assert found["GpuHot"]["labels"] == {"team": "platform", "severity": "critical"}
    assert found["SchedulingSlow"]["expr"].endswith("> 0.5")
    assert "JobFailed" not in found


def test_quotas_count_only_where_they_bound_the_whole_team() -> None:
    """speech has a namespace without a quota, guests no queue."""
    records = [rule["labels"] for rule in rules_of({}, TEAMS) if "record" in rule]

    assert records == [
        {"namespace": namespace, "queue_name": "vision", "resource": "nvidia.com/gpu"}
        for namespace in ("train", "eval")
    ]
    assert [rule for rule in rules_of({"alerts": {"disabled": ["QuotaBlocksTeam"]}}, TEAMS) if "record" in rule] == []
    assert "QuotaBlocksTeam" not in alerts_of({}, {"speech": TEAMS["speech"]})


# alerts: what they do


class Case(NamedTuple):
    """Series, by the minute, and the labels of what fires at the end of them; nothing where there are none."""

    alert: str
    what: str
    series: dict[str, str]
    minutes: int
    fires: tuple[Spec, ...] = ()


PENDING = 'volcano_queue_pod_group_pending_count{queue_name="vision"}'
UNKNOWN = 'volcano_queue_pod_group_unknown_count{queue_name="vision"}'
UNPLACED = 'volcano_unschedule_task_count{job_id="resnet-1"}'
FAILED = 'volcano_job_failed_phase_count{job_name="train/resnet", queue_name="vision"}'
SCHEDULERS = {f'up{{job="volcano-scheduler", pod="{each}"}}': f"{each}x20" for each in (0, 1)}
VISION, RESNET = {"queue_name": "vision"}, {"job_id": "resnet-1"}
ON_QUEUE = {"queue_name": "vision", "resource": "nvidia.com/gpu"}
EXPORTER = 'namespace="gpu-operator", pod="dcgm-1", container="nvidia-dcgm-exporter"'
ZERO = f'Hostname="node-1", gpu="0", UUID="GPU-0", {EXPORTER}'
OF_ZERO = {"Hostname": "node-1", "gpu": "0", "UUID": "GPU-0"}


def held(what: str, queue: str = "vision") -> str:
    return f'volcano_queue_{what}_scalar_resources{{queue_name="{queue}", resource="nvidia.com/gpu"}}'


def borrowed(allocated: int, queue: str = "vision", *, deserved: int = 8) -> dict[str, str]:
    return {held("allocated", queue): f"{allocated}000x400", held("deserved", queue): f"{deserved}000x400"}


def quota(namespace: str, kind: str, resource: str = "requests.nvidia.com/gpu") -> str:
    return f'kube_resourcequota{{namespace="{namespace}", resourcequota="quota", resource="{resource}", type="{kind}"}}'


def active(gpu: int, pod: str | None = "resnet-worker-0") -> str:
    workload = f', exported_namespace="train", exported_pod="{pod}"' if pod else ""
    return f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{Hostname="node-1", gpu="{gpu}", {EXPORTER}{workload}}}'


def pod(name: str = "resnet-worker-0", job: str = "resnet") -> str:
    label = f', label_volcano_sh_job_name="{job}"' if job else ""
    return f'kube_pod_labels{{namespace="train", pod="{name}"{label}}}'


def dcgm(name: str) -> str:
    return f"DCGM_FI_DEV_{name}{{{ZERO}}}"


def xid(code: int) -> str:
    return f'DCGM_FI_DEV_XID_ERRORS{{{ZERO}, err_code="{code}"}}'


def node(kind: str, resource: str = "nvidia_com_gpu") -> str:
    return f'kube_node_status_{kind}{{node="node-1", resource="{resource}", unit="integer"}}'


def cycles(**bounds: str) -> dict[str, str]:
    """The buckets of half a second, 5 s and all, of Volcano 1.15: whatever is slower than 5 s counts as 5 s."""
    ends = {"half": "518.7", "five": "5000", "all": "+Inf"}
    name = "volcano_e2e_scheduling_latency_milliseconds_bucket"
    return {f'{name}{{le="{ends[bound]}"}}': series for bound, series in bounds.items()}


def blocked(**changes: str) -> dict[str, str]:
    """Of 20 GPUs that vision deserves it holds 14; its two quotas leave 2 and 1, and a gang waits."""
    series = {
        held("deserved"): "20000x40", held("allocated"): "14000x40", PENDING: "1x40",
        quota("train", "hard"): "16x40", quota("train", "used"): "14x40",
        quota("eval", "hard"): "2x40", quota("eval", "used"): "1x40",
        quota("train", "hard", "cpu"): "8x40", quota("train", "used", "cpu"): "8x40",
    }  # fmt: skip
    keys = {"pending": PENDING, "allocated": held("allocated"), "hard": quota("train", "hard")}
    return {**series, **{keys[name]: change for name, change in changes.items()}}


GANG = {"namespace": "train", "label_volcano_sh_job_name": "resnet"}
MORE = "0+60x40"
ON_NODE = {"node": "node-1"}
BUSY, IDLE = "0.9x90", "0.9x29 0.01x60"
INFO = 'kube_pod_info{namespace="gpu-operator", pod="dcgm-1", node="node-1", uid="1"}'
UP = f'up{{{EXPORTER}, job="nvidia-dcgm-exporter"}}'
CASES = (
    Case("GangPending", "a gang waits for long", {PENDING: "2x130"}, 125, (VISION,)),
    Case("GangPending", "not long enough", {PENDING: "2x130"}, 115),
    Case("GangPending", "let in, between two that wait", {PENDING: "2x60 0 2x100"}, 125),
    Case("GangUnschedulable", "pods find no place", {UNPLACED: "4x130"}, 125, (RESNET,)),
    Case("GangUnschedulable", "placed at last", {UNPLACED: "4x110 0x20"}, 125),
    Case("GangUnschedulable", "gone", {UNPLACED: "4x100 stale"}, 125),
    Case("GangBroken", "in part", {UNKNOWN: "1x30"}, 20, (VISION,)),
    Case("GangBroken", "whole", {UNKNOWN: "0x30"}, 20),
    Case("JobFailed", "the first time", {FAILED: "_x50 1x20"}, 60, ({"job_name": "train/resnet", **VISION},)),
    Case("JobFailed", "once more", {FAILED: "1x50 2x20"}, 60, ({"job_name": "train/resnet", **VISION},)),
    Case("JobFailed", "long ago", {FAILED: "1x90"}, 80),
    Case("JobFailed", "another controller counts anew", {FAILED: "5x50 _x5 1x20"}, 65),
    Case("QueueAboveDeserved", "borrowed", borrowed(9), 365, (ON_QUEUE,)),
    Case("QueueAboveDeserved", "just all", borrowed(8), 365),
    Case("QueueAboveDeserved", "deserves none", borrowed(8, deserved=0), 365),
    Case("QueueAboveDeserved", "the root", borrowed(9, "root"), 365),
    Case("QuotaBlocksTeam", "6 deserved, 3 left", blocked(), 35, (ON_QUEUE,)),
    Case("QuotaBlocksTeam", "not for long", blocked(), 25),
    Case("QuotaBlocksTeam", "nothing waits", blocked(pending="0x40"), 35),
    Case("QuotaBlocksTeam", "the queue gives no more", blocked(allocated="20000x40"), 35),
    Case("QuotaBlocksTeam", "3 deserved, 3 left", blocked(allocated="17000x40"), 35),
    Case("QuotaBlocksTeam", "the quota leaves enough", blocked(hard="24x40"), 35),
    Case("GpuIdleInGang", "one of two", {active(0): IDLE, active(1): BUSY, pod(): "1x90"}, 65, (GANG,)),
    Case("GpuIdleInGang", "not for long", {active(0): IDLE, pod(): "1x90"}, 55),
    Case("GpuIdleInGang", "has just begun", {active(0): "_x50 0x40", pod(): "1x90"}, 65),
    Case("GpuIdleInGang", "busy now and then", {active(0): "0x20 1 0x20 1 0x20 1 0x30", pod(): "1x90"}, 65),
    Case("GpuIdleInGang", "ended", {active(0): "0x50 stale", pod(): "1x90"}, 55),
    Case("GpuIdleInGang", "no gang's pod", {active(0, "web"): "0x90", pod("web", ""): "1x90"}, 65),
    Case("GpuIdleInGang", "nobody's", {active(0, None): "0x90", pod(): "1x90"}, 65),
    Case("GpuXidError", "fallen off the bus", {xid(0): "0x20 stale", xid(79): "_x20 79x20"}, 25, (OF_ZERO,)),
    Case("GpuXidError", "a program's own", {xid(0): "0x20 stale", xid(31): "_x20 31x20"}, 25),
    Case("GpuXidError", "another after it", {xid(31): "31x20 stale", xid(79): "_x20 79x20"}, 25, (OF_ZERO,)),
    Case("GpuXidError", "an old one, that stays", {xid(79): "79x60"}, 50),
    Case("GpuXidError", "reset", {xid(79): "79x20 stale", xid(0): "_x20 0x20"}, 25),
    Case("GpuRowRemapFailed", "no rows left", {dcgm("ROW_REMAP_FAILURE"): "1x5"}, 3, (OF_ZERO,)),
    Case("GpuRowRemapFailed", "sound", {dcgm("ROW_REMAP_FAILURE"): "0x5"}, 3),
    Case("GpuRowsRemapped", "two more", {dcgm("UNCORRECTABLE_REMAPPED_ROWS"): "1x70 3x20"}, 80, (OF_ZERO,)),
    Case("GpuRowsRemapped", "as before", {dcgm("UNCORRECTABLE_REMAPPED_ROWS"): "3x90"}, 80),
    Case("GpuHot", "above", {dcgm("GPU_TEMP"): "86x20"}, 15, (OF_ZERO,)),
    Case("GpuHot", "at the limit", {dcgm("GPU_TEMP"): "85x20"}, 15),
    Case("GpuMetricsAbsent", "silence", {UP: "0x30"}, 15, ({},)),
    Case("GpuMetricsAbsent", "one GPU", {dcgm("GPU_TEMP"): "40x30"}, 15),
    Case("NodeWithoutGpuMetrics", "down", {node("capacity"): "8x30", UP: "0x30", INFO: "1x30"}, 20, (ON_NODE,)),
    Case("NodeWithoutGpuMetrics", "no exporter", {node("capacity", "nvidia_com_mig_1g_10gb"): "7x30"}, 20, (ON_NODE,)),
    Case("NodeWithoutGpuMetrics", "up", {node("capacity"): "8x30", UP: "1x30", INFO: "1x30"}, 20),
    Case("NodeWithoutGpuMetrics", "no GPUs", {node("capacity", "cpu"): "64x30"}, 20),
    Case(
        "GpuNotAllocatable", "one of eight", {node("capacity"): "8x30", node("allocatable"): "7x30"}, 20,
        ({"node": "node-1", "resource": "nvidia_com_gpu"},),
    ),
    Case("GpuNotAllocatable", "all", {node("capacity"): "8x30", node("allocatable"): "8x30"}, 20),
    Case("VolcanoSchedulerDown", "not answering", {'up{job="volcano-scheduler"}': "0x20"}, 10, ({},)),
    Case("VolcanoSchedulerDown", "not there", {}, 10, ({},)),
    Case("VolcanoSchedulerDown", "one of two", SCHEDULERS, 10),
    Case("VolcanoControllersDown", "not there", {}, 10, ({},)),
    Case("VolcanoControllersDown", "up", {'up{job="volcano-controller"}': "1x20"}, 10),
    Case("SchedulingSlow", "off the scale", cycles(half="0x40", five="0x40", all=MORE), 35, ({},)),
    Case("SchedulingSlow", "half a second", cycles(half=MORE, five=MORE, all=MORE), 35),
    Case("SchedulingSlow", "nothing to do", cycles(half="0x40", five="9x40", all="9x40"), 35),
)  # fmt: skip


def groups(declared: Spec, teams: dict[str, Spec] | None = None) -> list[Spec]:
    return [
        group
        for each in made(declared, teams)
        if each.value["kind"] == "PrometheusRule"
        for group in each.value["spec"]["groups"]
    ]


def tool(*arguments: str, folder: Path) -> str:
    run = subprocess.run([str(PROMTOOL), *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the rules as Prometheus reads them."""
    folder = tmp_path_factory.mktemp("rules")
    text = yaml.safe_dump({"groups": groups(GPUS, TEAMS)}, sort_keys=False)
    (folder / "rules.yaml").write_text(text, encoding="utf-8")
    return folder


@needs_promtool
def test_rules_are_such_as_prometheus_takes(written: Path) -> None:
    assert f"{len(rules_of(GPUS, TEAMS))} rules found" in tool("check", "rules", "rules.yaml", folder=written)


def test_every_alert_is_seen_to_fire_and_not_to_fire() -> None:
    fires, quiet = ({case.alert for case in CASES if bool(case.fires) == wanted} for wanted in (True, False))

    assert fires == quiet == set(alerts.names())


def matched(labels: Spec) -> str:
    return ", ".join(f'{name}="{value}"' for name, value in labels.items())


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.what}")
def test_alert_fires_for_what_it_is_for(case: Case, written: Path, tmp_path: Path) -> None:
    firing = {"alertname": case.alert, "alertstate": "firing"}
    severity = alerts_of(GPUS, TEAMS)[case.alert]["labels"]
    samples = [
        {"labels": f"ALERTS{{{matched({**firing, **severity, **labels})}}}", "value": 1} for labels in case.fires
    ]
    question = {
        "expr": f"ALERTS{{{matched(firing)}}}", "eval_time": f"{case.minutes}m", "exp_samples": samples,
    }  # fmt: skip
    series = [{"series": name, "values": text} for name, text in case.series.items()]
    test = {
        "rule_files": [str(written / "rules.yaml")],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [question]}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test), encoding="utf-8")

    assert "SUCCESS" in tool("test", "rules", "test.yaml", folder=tmp_path)


@pytest.mark.parametrize("case", [case for case in CASES if case.fires], ids=lambda case: f"{case.alert}: {case.what}")
def test_what_an_alert_says_names_only_labels_that_it_has(case: Case) -> None:
    said = json.dumps(alerts_of(GPUS, TEAMS)[case.alert]["annotations"])

    assert set(re.findall(r"\$labels\.(\w+)", said)) <= {*case.fires[0]}


# the dashboard


def board(declared: Spec) -> Spec:
    [found] = [each.value for each in made(declared) if each.value["kind"] == "ConfigMap"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    value: Spec = json.loads(found["data"][dashboard.KEY])
    return value


def graphs(value: Spec) -> Iterator[Spec]:
    return (panel for panel in value["panels"] if panel["type"] != "row")


DECLARED: tuple[Spec, ...] = ({}, GPUS, {**GPUS, "volcano": {"enabled": False}})


@pytest.mark.parametrize("declared", DECLARED, ids=["volcano", "both", "gpus"])
def test_dashboard_has_the_form_that_grafana_reads(declared: Spec) -> None:
    """What Grafana's dashboard model needs of a dashboard, its panels, targets and variables. Its own reader, in the
    package grafana-foundation-sdk 10.1.0, gives the whole of it back unchanged."""
    value = board(declared)

    assert value["schemaVersion"] == 39
    assert 0 < len(value["uid"]) <= 40
    numbers = [panel["id"] for panel in value["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in graphs(value):
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["title"]
        assert panel["targets"]
        assert all(
            target["datasource"] == panel["datasource"] and target["legendFormat"] for target in panel["targets"]
        )
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
    variables = {variable["name"]: variable["type"] for variable in value["templating"]["list"]}
    assert variables["datasource"] == "datasource"
    used = {
        name
        for panel in graphs(value)
        for target in panel["targets"]
        for name in re.findall(r'"\$(\w+)"', target["expr"])
    }
    assert used == {name for name, kind in variables.items() if kind == "query"}


@pytest.mark.parametrize("declared", DECLARED, ids=["volcano", "both", "gpus"])
def test_panels_fill_the_grid_without_covering_each_other(declared: Spec) -> None:
    cells: set[tuple[int, int]] = set()
    for panel in board(declared)["panels"]:
        grid = panel["gridPos"]
        own = {(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])}
        assert grid["x"] >= 0
        assert grid["x"] + grid["w"] <= 24
        assert cells.isdisjoint(own)
        cells |= own


def queries() -> list[str]:
    return [target["expr"] for panel in graphs(board(GPUS)) for target in panel["targets"]]


def test_basalt_reads_every_expression() -> None:
    unread = [text for text in [*queries(), *(rule["expr"] for rule in rules_of(GPUS, TEAMS))]
              if not promql.uses(text).selectors and text != "vector(1)"]  # fmt: skip

    assert unread == []


@needs_promtool
def test_every_query_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    plain = [text.replace("$__rate_interval", "5m") for text in queries()]
    group = {"name": "a", "rules": [{"record": f"a:{place}", "expr": text} for place, text in enumerate(plain)]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [group]}), encoding="utf-8")

    assert f"{len(plain)} rules found" in tool("check", "rules", "rules.yaml", folder=tmp_path)


# whole environments

ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: case}
spec:
  kubernetes: {version: "%s"}
  volcano: {version: 1.15.1}
  delivery: {engine: %s}
%s
---
apiVersion: basalt.dev/v1alpha1
kind: Team
metadata: {name: vision}
spec:
  access: {edit: [vision]}
  namespaces:
    train: {quota: {cpu: 8, nvidia.com/gpu: 16}, defaults: {cpu: 1}}
  queue: {deserved: {nvidia.com/gpu: 16}}
"""
WHOLE = """\
  metrics:
    namespace: observe
    prometheus:
      retention: 30d
      scrapeInterval: 15s
      controlPlane: [kubeScheduler]
      storage: {size: 500Gi, storageClassName: fast}
    alertmanager: {configSecret: routes}
    grafana: {admin: {existingSecret: boss}}
    metricsServer: {args: [--metric-resolution=30s]}
    adapter: {enabled: true}
    dcgm: {enabled: true, serviceMonitor: {interval: 15s}}
    alerts: {gangPendingMinutes: 60, severities: {GpuHot: critical}, labels: {team: platform}}
"""


def compiled(
    folder: Path, part: str, monkeypatch: pytest.MonkeyPatch, engine: str = "pulumi", version: str = "1.34"
) -> Compilation:
    monkeypatch.chdir(folder)
    (folder / "environment.yaml").write_text(ENVIRONMENT % (version, engine, part.rstrip()), encoding="utf-8")
    return compile_folder(Path())


HONORED = "  gpu:\n    dcgmExporter:\n      serviceMonitor: {honorLabels: true}\n  metrics: {adapter: {enabled: true}}"
PARTS = {"nothing": "  metrics: {}", "gpus": "  gpu: {}\n  metrics: {}", "all": WHOLE, "honored": HONORED}
RUNS = [("1.34", engine) for engine in ("pulumi", "argocd", "flux")]
RUNS += [(str(version), "pulumi") for version in known("kubernetes") if str(version) != "1.34"]


@pytest.mark.parametrize(("version", "engine"), RUNS)
@pytest.mark.parametrize("part", PARTS)
def test_what_is_generated_breaks_no_rule(
    part: str, version: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Volcano itself has no release for Kubernetes 1.36 yet."""
    found = compiled(tmp_path, PARTS[part], monkeypatch, engine, version).findings

    assert [each for each in found if not each.message.startswith("volcano 1.15.1 supports")] == []


ADAPTER = "  metrics:\n    adapter:\n      enabled: true\n      rules:\n        external:\n"
PLANTED = [
    ("kubelet-is-verified", "  metrics:\n    metricsServer:\n      args:\n      - --kubelet-insecure-tls", 11),
    ("chart-is-pinned", '  metrics:\n    prometheus:\n      version: "88"', 10),
    ("chart-is-pinned", '  metrics:\n    metricsServer:\n      version: "~3.13"', 10),
    ("chart-is-pinned", "  metrics:\n    adapter:\n      enabled: true\n      version: latest", 11),
    (
        "one-metrics-provider",
        "  metrics:\n    adapter:\n      enabled: true\n      rules:\n        resource: {cpu: {}}",
        12,
    ),
    (
        "adapter-rule-is-valid",
        f"{ADAPTER}        - seriesQuery: volcano_unschedule_job_count\n          metricsQuery: max(<<.Series)",
        14,
    ),
    (
        "metric-is-produced",
        f"{ADAPTER}        - seriesQuery: volcano_unscheduled_job_count\n          metricsQuery: max(<<.Series>>)",
        13,
    ),
]


@pytest.mark.parametrize(("rule", "part", "line"), PLANTED)
def test_mistake_is_found_on_its_line(
    rule: str, part: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compiled(tmp_path, part, monkeypatch).findings

    assert [(each.rule, each.source.line) for each in found] == [(rule, line)]


# properties

FIELDS = document_schema("Environment")["properties"]["spec"]["properties"]["metrics"]


def some(schema: Spec) -> st.SearchStrategy[Any]:
    """Values of a field: its examples, its default, or, of a map with fields, any of them."""
    if schema.get("properties"):
        return st.fixed_dictionaries({}, optional={name: some(each) for name, each in schema["properties"].items()})
    either = [*schema["examples"], *([schema["default"]] if "default" in schema else [])]
    return st.sampled_from(either + [False, True] * (schema.get("type") == "boolean"))


@given(some(FIELDS), st.sampled_from([{}, {"gpu": {}}, {"descheduler": {"engine": "volcano"}}]))
@settings(deadline=None, derandomize=True)
def test_everything_comes_from_the_environment_and_twice_the_same(declared: Spec, others: Spec) -> None:
    jsonschema_rs.Draft202012Validator(FIELDS).validate(declared)
    before = deepcopy(declared)

    first, second = made(declared, TEAMS, **others), made(declared, TEAMS, **others)

    assert declared == before
    assert first == second
    assert len({shown(each) for each in first}) == len(first)
    for each in first:
        leads_somewhere(each, {"metadata": {"name": "case"}, "spec": {**others, "metrics": declared}})
