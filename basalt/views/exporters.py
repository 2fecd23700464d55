"""Who gives which metric: the exporters that Basalt knows, and the labels that each metric has at its source."""

import csv
import enum
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from basalt.views.kubernetes_metrics import KUBE_STATE_METRICS
from basalt.views.node_metrics import CADVISOR, NODE_EXPORTER
from basalt.views.platform_metrics import DCGM, DCGM_OFF, VOLCANO

Labels = frozenset[str] | None  # None: any


class Exporter(enum.Enum):
    """The exporters whose metrics are known by name. The value is what people call them."""

    DCGM = "the DCGM exporter"
    KUBELET = "the kubelet"
    NODE = "the node exporter"
    STATE = "kube-state-metrics"
    VOLCANO = "Volcano"


# Prometheus' own, of targets and alerts.
SYNTHETIC = frozenset({
    "ALERTS", "ALERTS_FOR_STATE", "scrape_body_size_bytes", "scrape_duration_seconds",
    "scrape_samples_post_metric_relabeling", "scrape_samples_scraped", "scrape_series_added", "scrape_sample_limit",
    "scrape_timeout_seconds", "up",
})  # fmt: skip
# internal/pkg/rendermetrics and internal/pkg/transformation of the DCGM exporter, older spellings included.
_DCGM_LABELS = frozenset({
    "GPU_I_ID", "GPU_I_PROFILE", "Hostname", "UUID", "container", "cpu", "cpucore", "device", "dra_claim_name",
    "dra_claim_namespace", "dra_device_name", "dra_driver_name", "dra_mig_device_uuid", "dra_mig_profile",
    "dra_pool_name", "err_code", "err_msg", "gpu", "gpu_uuid", "hostname", "hpc_job", "modelName", "model_name",
    "namespace", "nvlink", "nvswitch", "pci_bus_id", "pod", "pod_uid", "uuid", "vgpu",
})  # fmt: skip
_DCGM_STATIC = "DCGM_FI_DRIVER_VERSION"  # a counter of the type label stands as a label on the others
_HISTOGRAM = ("_bucket", "_sum", "_count")
_PREFIXES = {"DCGM_": Exporter.DCGM, "volcano_": Exporter.VOLCANO, "kube_": Exporter.STATE}
_OF_KUBELET = ("container_", "machine_")
# The API server's, the scheduler's, those of custom resources, kube-state-metrics' about itself, those that Volcano's
# fork of it adds, and recorded ones of Windows nodes.
_OF_OTHERS = (
    "kube_apiserver_", "kube_customresource_", "kube_pod_resource_", "kube_pod_volcano_", "kube_pod_windows_",
    "kube_state_metrics_",
)  # fmt: skip
# The subsystems of the node exporter that every Linux node has. Others depend on what the machine and its kernel are.
_SUBSYSTEMS = frozenset({
    "arp", "boot", "context", "cpu", "disk", "filefd", "filesystem", "forks", "intr", "load1", "load15", "load5",
    "memory", "network", "pressure", "procs", "uname",
})  # fmt: skip


def _table(text: str) -> Iterator[tuple[str, Labels]]:
    labels: Labels = frozenset()
    for line in text.split("\n"):
        if line.startswith("["):
            found = frozenset(line.strip("[]").split())
            labels = None if any("*" in each for each in found) else found
            continue
        for name in line.split():
            if name.endswith("*"):
                bucket = None if labels is None else labels | {"le"}
                yield from ((name[:-1] + part, bucket if part == "_bucket" else labels) for part in _HISTOGRAM)
            else:
                yield name, labels


@cache
def _tables() -> Mapping[Exporter, Mapping[str, Labels]]:
    return {
        Exporter.DCGM: dcgm(DCGM.split(), (_DCGM_STATIC,)),
        Exporter.KUBELET: dict(_table(CADVISOR)),
        Exporter.NODE: dict(_table(NODE_EXPORTER)),
        Exporter.STATE: dict(_table(KUBE_STATE_METRICS)),
        Exporter.VOLCANO: dict(_table(VOLCANO)),
    }


def metrics(exporter: Exporter) -> Mapping[str, Labels]:
    """The metrics that the exporter gives where nobody configures it, each with its labels."""
    return _tables()[exporter]


def dcgm(counters: Iterable[str], labels: Iterable[str]) -> dict[str, Labels]:
    """The metrics that the DCGM exporter makes of the counters; labels are counters of the type label."""
    own = _DCGM_LABELS | {*labels}
    return {name: None if name.startswith("DCGM_EXP_") else own for name in counters}


def dcgm_list(text: str) -> dict[str, Labels]:
    """The metrics of a list of counters, dcgm-metrics.csv: DCGM field, type, help. A line that starts with # says
    nothing. Source: internal/pkg/counters of the DCGM exporter."""
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines) if len(row) > 1]
    except csv.Error:
        rows = []
    static = [row[0] for row in rows if row[1] == "label"]
    return dcgm((row[0] for row in rows if row[1] != "label"), static)


def is_off(counter: str) -> bool:
    """Whether the DCGM exporter has the counter and leaves it out of its own list."""
    return counter in DCGM_OFF.split()


def source_of(metric: str) -> Exporter | None:
    """Who would give the metric, by its name; None where that is not known."""
    if ":" in metric or metric.startswith(_OF_OTHERS):
        return None
    if metric in metrics(Exporter.KUBELET) or metric.startswith(_OF_KUBELET):
        return Exporter.KUBELET
    if metric.startswith("node_"):
        is_node = metric in metrics(Exporter.NODE) or metric.split("_")[1] in _SUBSYSTEMS
        return Exporter.NODE if is_node else None
    return next((each for prefix, each in _PREFIXES.items() if metric.startswith(prefix)), None)


def may_be(metric: str, exporter: Exporter) -> bool:
    """Whether the exporter gives metrics of that name that depend on the machine: fields of /proc/meminfo."""
    return exporter is Exporter.NODE and metric.startswith("node_memory_") and metric.endswith("_bytes")
