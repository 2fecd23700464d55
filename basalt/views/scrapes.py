"""What the declared exporters give once Prometheus has scraped them: which exporters there are, and the labels that
their metrics have then. A label of the exporter's own that the target has too becomes exported_<label>, unless the
monitor says honorLabels.

Sources: scrape/scrape.go of Prometheus; pkg/prometheus/promcfg.go of prometheus-operator;
controllers/object_controls.go of the GPU Operator.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place
from basalt.gathering import places
from basalt.gathering.places import described
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, get, has
from basalt.views import images
from basalt.views.charts import Values
from basalt.views.exporters import Exporter, Labels
from basalt.views.pods import PodSpec, pods

_IMAGES = {
    "dcgm-exporter": Exporter.DCGM,
    "kube-state-metrics": Exporter.STATE,
    "node-exporter": Exporter.NODE,
    "prometheus-node-exporter": Exporter.NODE,
    "vc-controller-manager": Exporter.VOLCANO,
    "vc-scheduler": Exporter.VOLCANO,
}
# The charts that bring an exporter, and the value that leaves it out.
_CHARTS: Mapping[str, Mapping[Exporter, Pointer]] = {
    "dcgm-exporter": {Exporter.DCGM: ()},
    "gpu-operator": {Exporter.DCGM: ("dcgmExporter", "enabled")},
    "kube-prometheus-stack": {
        Exporter.NODE: ("nodeExporter", "enabled"),
        Exporter.STATE: ("kubeStateMetrics", "enabled"),
    },
    "kube-state-metrics": {Exporter.STATE: ()},
    "prometheus": {
        Exporter.NODE: ("prometheus-node-exporter", "enabled"),
        Exporter.STATE: ("kube-state-metrics", "enabled"),
    },
    "prometheus-node-exporter": {Exporter.NODE: ()},
    "volcano": {Exporter.VOLCANO: ()},
}
_MARKS = {
    "dcgm-exporter": Exporter.DCGM,
    "kube-state-metrics": Exporter.STATE,
    "kubelet": Exporter.KUBELET,
    "node-exporter": Exporter.NODE,
    "vc-controller": Exporter.VOLCANO,
    "vc-scheduler": Exporter.VOLCANO,
    "volcano": Exporter.VOLCANO,
}
_ENDPOINTS = {"PodMonitor": "podMetricsEndpoints", "ServiceMonitor": "endpoints"}
_TARGET = frozenset({"container", "endpoint", "instance", "job", "namespace", "pod", "service"})
_KUBELET_TARGET = frozenset({"endpoint", "instance", "job", "metrics_path", "namespace", "node", "service"})
_NO_LABEL = re.compile(r"[^a-zA-Z0-9_]")


class Declared(NamedTuple):
    """One exporter, and where it is declared; values are those of the chart that brings it."""

    exporter: Exporter
    place: Place
    pointer: Pointer
    values: Values | None = None

    def __str__(self) -> str:
        return described(self.place, self.pointer)


class Scrape(NamedTuple):
    """How one exporter is scraped. added are labels that the monitor adds; is_open says that it may add or take away
    any."""

    exporter: Exporter
    honors: bool
    added: frozenset[str] = frozenset()
    is_open: bool = False

    def labels(self, own: Labels) -> Labels:
        """The labels of a metric that has its own labels at the exporter; None where any may be there."""
        if own is None or self.is_open:
            return None
        target = _target(self.exporter)
        kept = own if self.honors else {f"exported_{each}" if each in target else each for each in own}
        return frozenset(kept) | target | self.added

    def hides(self, label: str, own: Labels) -> bool:
        """Whether the label is the target's, while the exporter's own of that name is renamed."""
        is_own = own is not None and label in own and label in _target(self.exporter)
        return is_own and not (self.honors or self.is_open or label in self.added)


def _target(exporter: Exporter) -> frozenset[str]:
    return _KUBELET_TARGET if exporter is Exporter.KUBELET else _TARGET


def declared(objects: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Declared]:
    """Every exporter that the objects and charts install, once each; one that only a monitor tells of is not."""
    every = tuple(objects)
    for pod in pods(every):
        yield from _of_pod(pod)
    for each in filter(_is_policy, every):
        settings = mapping(each.spec.get("dcgmExporter"))
        if settings.get("enabled") is not False:
            yield Declared(Exporter.DCGM, each, ("spec", "dcgmExporter") if settings else ("spec",))
    for chart in values:
        for exporter, switch in _CHARTS.get(chart.chart, {}).items():
            if not (switch and chart.get(switch) is False) and not _leaves_policy_out(chart):
                yield Declared(exporter, *_begin(chart), chart)
        if chart.chart == "volcano" and chart.get(("custom", "metrics_enable")) is True:
            yield Declared(Exporter.STATE, *chart.at(("custom", "metrics_enable")), chart)


def _begin(chart: Values) -> tuple[Place, Pointer]:
    """Where the values begin, or the object that gives none."""
    place, pointer = chart.at(())
    return place, pointer if has(places.value(place), pointer) else ()


def _leaves_policy_out(chart: Values) -> bool:
    """Whether the GPU Operator's chart brings no ClusterPolicy: somebody declares one."""
    return chart.chart == "gpu-operator" and chart.get(("clusterPolicy", "deployCR")) is False


def _of_pod(pod: PodSpec) -> Iterator[Declared]:
    found: set[Exporter] = set()
    for number, container in enumerate(map(mapping, sequence(pod.spec.get("containers")))):
        exporter = _IMAGES.get(images.program(container.get("image")))
        if exporter is not None and exporter not in found:
            found.add(exporter)
            yield Declared(exporter, pod.object, (*pod.pointer, "containers", number, "image"))


def _is_policy(declared: KubeObject) -> bool:
    """Whether it is what the GPU Operator reads."""
    return declared.ref.group == "nvidia.com" and declared.ref.kind in ("ClusterPolicy", "GPUCluster")


def exporter_of(monitor: KubeObject) -> Exporter | None:
    """The exporter that a ServiceMonitor or PodMonitor is for, by its name and the labels it selects."""
    selector = mapping(monitor.spec.get("selector"))
    texts = [monitor.name, *map(str, mapping(selector.get("matchLabels")).values())]
    for expression in map(mapping, sequence(selector.get("matchExpressions"))):
        texts += strings(expression.get("values"))
    return next((exporter for mark, exporter in _MARKS.items() if any(mark in text for text in texts)), None)


def scrapes(objects: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Scrape]:
    """How the exporters are scraped, as far as that is known."""
    for each in objects:
        if each.ref.group == "monitoring.coreos.com" and each.ref.kind in _ENDPOINTS:
            exporter = exporter_of(each)
            if exporter is not None:
                yield from _of_monitor(each, exporter)
        elif _is_policy(each):
            settings = mapping(get(each.value, ("spec", "dcgmExporter", "serviceMonitor")))
            if settings.get("enabled") is True:
                yield _scrape(Exporter.DCGM, settings)
    for chart in values:
        yield from _of_chart(chart)


def _of_monitor(monitor: KubeObject, exporter: Exporter) -> Iterator[Scrape]:
    copied = [*strings(monitor.spec.get("targetLabels")), *strings(monitor.spec.get("podTargetLabels"))]
    for endpoint in map(mapping, sequence(monitor.spec.get(_ENDPOINTS[monitor.ref.kind]))):
        found = _scrape(exporter, endpoint)
        yield found._replace(added=found.added | {_NO_LABEL.sub("_", label) for label in copied})


def _of_chart(chart: Values) -> Iterator[Scrape]:
    if chart.chart in ("dcgm-exporter", "gpu-operator") and not _leaves_policy_out(chart):
        settings = chart.get(
            ("serviceMonitor",) if chart.chart == "dcgm-exporter" else ("dcgmExporter", "serviceMonitor")
        )
        if mapping(settings).get("enabled") is not False:
            yield _scrape(Exporter.DCGM, mapping(settings))
    elif chart.chart == "kube-prometheus-stack":
        yield _scrape(Exporter.KUBELET, {"honorLabels": True, **mapping(chart.get(("kubelet", "serviceMonitor")))})
        state = mapping(chart.get(("kube-state-metrics", "prometheus", "monitor")))
        state = {**state, **mapping(state.get("http"))}
        yield _scrape(Exporter.STATE, {"honorLabels": True, **state})
        yield _scrape(Exporter.NODE, mapping(chart.get(("prometheus-node-exporter", "prometheus", "monitor"))))


def _scrape(exporter: Exporter, settings: Mapping[str, Any]) -> Scrape:
    """What an endpoint of a monitor, or the values of a chart that become one, make of the labels."""
    changes = [
        mapping(change)
        for field, values in settings.items()
        if field.casefold().endswith("relabelings")
        for change in sequence(values)
    ]
    actions = {str(change.get("action", "replace")).casefold() for change in changes}
    added = {target for change in changes if isinstance(target := change.get("targetLabel"), str)}
    is_open = not actions.isdisjoint({"labelmap", "labeldrop", "labelkeep"})
    return Scrape(exporter, settings.get("honorLabels") is True, frozenset(added), is_open)


# Charts that bring nothing that Prometheus scrapes, or nothing but what is known here.
_QUIET = frozenset({*_CHARTS, "dex", "descheduler", "metrics-server", "network-operator", "prometheus-adapter"})
_PROMETHEUS_IMAGES = ("prometheus", "vmagent", "alloy", "otel-collector", "opentelemetry-collector-contrib")


def has_unknown_sources(objects: Iterable[KubeObject], values: Iterable[Values], *, of_parts: bool) -> bool:
    """Whether something may give metrics that Basalt does not see: of_parts asks for what may install exporters whose
    metrics are known by name, else also for monitors of other programs and for scraping that is configured as text."""
    charts, every = tuple(values), tuple(objects)
    if any(each.chart not in _QUIET for each in charts) or any(_installs_unseen(each) for each in every):
        return True
    if of_parts:
        return False
    if any(_scrapes_by_text(each) for each in charts) or any(_is_other(each) for each in every):
        return True
    containers = (each for pod in pods(every) for each in sequence(pod.spec.get("containers")))
    return any(images.program(mapping(each).get("image")) in _PROMETHEUS_IMAGES for each in containers)


def _installs_unseen(declared: KubeObject) -> bool:
    """Whether it installs what lies elsewhere: a folder of a repository."""
    ref = declared.ref
    if ref.kind == "Kustomization":
        return ref.group == "kustomize.toolkit.fluxcd.io"
    if ref.group == "argoproj.io" and ref.kind in ("Application", "ApplicationSet"):
        sources = [declared.spec.get("source"), *sequence(declared.spec.get("sources"))]
        return ref.kind != "Application" or any(each and not mapping(each).get("chart") for each in sources)
    return False


def _scrapes_by_text(chart: Values) -> bool:
    spec = mapping(chart.get(("prometheus", "prometheusSpec")))
    has_more = any(spec.get(field) for field in ("additionalScrapeConfigs", "additionalScrapeConfigsSecret"))
    lists = (("prometheus", "additionalServiceMonitors"), ("prometheus", "additionalPodMonitors"))
    return chart.chart == "prometheus" or has_more or any(chart.get(pointer) for pointer in lists)


def _is_other(declared: KubeObject) -> bool:
    """Whether it has something scraped that is not known by name."""
    if declared.ref.group != "monitoring.coreos.com":
        return False
    if declared.ref.kind in ("Prometheus", "PrometheusAgent"):
        spec = declared.spec
        return any(spec.get(field) for field in ("additionalScrapeConfigs", "enableRemoteWriteReceiver"))
    is_monitor = declared.ref.kind in _ENDPOINTS
    return declared.ref.kind in ("Probe", "ScrapeConfig") or (is_monitor and exporter_of(declared) is None)
