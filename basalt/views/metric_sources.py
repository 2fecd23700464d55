"""What gives metrics to whoever acts on them: metrics-server, Prometheus, its adapter; and how often Prometheus
scrapes the node exporter."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from basalt.findings import Place
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, existing, get, has
from basalt.views import images
from basalt.views.charts import Values
from basalt.views.descheduler_policy import is_partial

RESOURCE_METRICS = "metrics.k8s.io"
CUSTOM_METRICS = "custom.metrics.k8s.io"
_MONITORING = "monitoring.coreos.com"
_STACK = "kube-prometheus-stack"
_CHARTS = {
    "metrics-server": ("metrics-server",),
    "prometheus": ("prometheus", _STACK),
    "adapter": ("prometheus-adapter",),
}
_IMAGES = {
    "metrics-server": ("metrics-server",),
    "prometheus": ("prometheus",),
    "adapter": ("prometheus-adapter", "k8s-prometheus-adapter"),
}
_DURATION = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?")
_SECONDS = (7 * 86400, 86400, 3600, 60, 1, 0.001)
_EXPORTER = "node-exporter"
OPERATOR_DEFAULT = "30s"  # scrapeInterval of the Prometheus resource in prometheus-operator
CHART_DEFAULT = "1m"  # scrape_interval of Prometheus itself, and of its chart


class Scrape(NamedTuple):
    """How often Prometheus scrapes the node exporter, and where that is said."""

    place: Place
    pointer: Pointer
    interval: str
    is_default: bool


def seconds(text: str) -> float | None:
    """A duration as Prometheus writes it; None where it is none."""
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        return None
    return sum(int(amount) * unit for amount, unit in zip(found.groups(), _SECONDS, strict=True) if amount)


class Sources:
    """What is installed of the sources of metrics."""

    def __init__(self, objects: Iterable[KubeObject], values: Iterable[Values]) -> None:
        self._objects = tuple(objects)
        self._values = tuple(values)
        self._images = {name for each in self._objects for name in _image_names(each)}

    def _installed(self, part: str) -> bool:
        has_chart = any(each.chart in _CHARTS[part] for each in self._values)
        return has_chart or not self._images.isdisjoint(_IMAGES[part])

    @property
    def has_resource_metrics(self) -> bool:
        """Whether something serves metrics.k8s.io."""
        if self._installed("metrics-server") or self._serves(RESOURCE_METRICS):
            return True
        return any(each.chart in _CHARTS["adapter"] and each.get(("rules", "resource")) for each in self._values)

    @property
    def has_custom_metrics(self) -> bool:
        return self._installed("adapter") or self._serves(CUSTOM_METRICS)

    @property
    def has_prometheus(self) -> bool:
        return self._installed("prometheus") or any(self._monitoring("Prometheus"))

    def _serves(self, group: str) -> bool:
        return any(each.ref.kind == "APIService" and each.spec.get("group") == group for each in self._objects)

    def _monitoring(self, kind: str) -> Iterator[KubeObject]:
        return (each for each in self._objects if (each.ref.group, each.ref.kind) == (_MONITORING, kind))

    def scrapes(self) -> Iterator[Scrape]:
        """How often the node exporter is scraped, by every Prometheus that is declared."""
        for values in self._values:
            if values.chart in _CHARTS["prometheus"]:
                yield from _of_chart(values)
        owns = [*self._of_monitors()]
        yield from (each for each in owns if each.interval)
        if not owns or any(not each.interval for each in owns):
            for prometheus in self._monitoring("Prometheus"):
                yield _written(prometheus, ("spec", "scrapeInterval"), OPERATOR_DEFAULT)

    def _of_monitors(self) -> Iterator[Scrape]:
        """What monitors of the node exporter say; an empty interval where they leave it to Prometheus."""
        for kind, field in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
            for monitor in filter(_is_of_exporter, self._monitoring(kind)):
                for place in range(len(sequence(monitor.spec.get(field)))):
                    yield _written(monitor, ("spec", field, place, "interval"), "")
        for config in filter(_is_of_exporter, self._monitoring("ScrapeConfig")):
            yield _written(config, ("spec", "scrapeInterval"), "")


def _is_of_exporter(monitor: KubeObject) -> bool:
    labels = mapping(get(monitor.spec, ("selector", "matchLabels")))
    return any(_EXPORTER in str(text) for text in (monitor.name, *labels.values()))


def _written(declared: KubeObject, pointer: Pointer, default: str) -> Scrape:
    value = get(declared.value, pointer)
    if isinstance(value, str) and value:
        return Scrape(declared, pointer, value, is_default=False)
    at = pointer if has(declared.value, pointer) else pointer[:-1]
    return Scrape(declared, at, default, is_default=True)


def _of_chart(values: Values) -> Iterator[Scrape]:
    is_stack = values.chart == _STACK
    if values.get((("nodeExporter" if is_stack else "prometheus-node-exporter"), "enabled")) is False:
        return
    pointers: list[Pointer] = [("prometheus-node-exporter", "prometheus", "monitor", "interval")] if is_stack else []
    pointers.append(
        ("prometheus", "prometheusSpec", "scrapeInterval") if is_stack else ("server", "global", "scrape_interval")
    )
    for pointer in pointers:
        value = values.get(pointer)
        if isinstance(value, str) and value:
            yield Scrape(*values.at(pointer), value, is_default=False)
            return
    if not is_partial(values):
        place, pointer = values.at(existing(values.value, pointers[-1]))
        pointer = existing(place.value, pointer) if isinstance(place, KubeObject) else pointer
        yield Scrape(place, pointer, OPERATOR_DEFAULT if is_stack else CHART_DEFAULT, is_default=True)


def _image_names(declared: KubeObject) -> Iterator[str]:
    if declared.ref.kind not in ("Deployment", "StatefulSet", "DaemonSet"):
        return
    for container in sequence(get(declared.value, ("spec", "template", "spec", "containers"))):
        yield images.program(mapping(container).get("image"))
