"""Which versions of Kubernetes the parts of the platform support."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from basalt.api.versions import Version, parse
from basalt.views import chart_catalogue

_ATLEAST = re.compile(r">=\s*v?(\d+)\.(\d+)")


class Span(NamedTuple):
    """The Kubernetes versions from the first to the last; None where there is no bound."""

    first: Version
    last: Version | None = None

    def __contains__(self, version: object) -> bool:
        return isinstance(version, Version) and self.first <= version and (self.last is None or version <= self.last)

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first} and newer"
        return f"{self.first} to {self.last}" if self.first != self.last else str(self.first)


def _span(first: int, last: int | None = None) -> Span:
    return Span(Version(1, first), Version(1, last) if last is not None else None)


# Source: README.md of volcano-sh/volcano v1.15.1, "Kubernetes compatibility".
_VOLCANO = {
    Version(1, 15): _span(23, 35),
    Version(1, 14): _span(23, 34),
    Version(1, 13): _span(23, 33),
    Version(1, 12): _span(21, 32),
    Version(1, 11): _span(21, 31),
    Version(1, 10): _span(21, 30),
}
# Source: README.md of kubernetes-sigs/metrics-server v0.9.0, "Compatibility Matrix".
_METRICS_SERVER = {
    Version(0, 9): _span(34),
    Version(0, 8): _span(31),
    Version(0, 7): _span(27),
    Version(0, 6): _span(25),
}
# The program in the chart. Source: CHANGELOG.md of the chart metrics-server 3.13.1.
_METRICS_SERVER_CHARTS = {
    Version(3, 13): Version(0, 8),
    Version(3, 12): Version(0, 7),
    Version(3, 11): Version(0, 6),
    Version(3, 10): Version(0, 6),
    Version(3, 9): Version(0, 6),
    Version(3, 8): Version(0, 6),
}
# kubeVersion in the Chart.yaml of the version named: older charts may ask for less, newer ones for no less.
# Source: reference/components.md section 1.
_AT_LEAST = {
    "dra-driver-nvidia-gpu": (Version(0, 4), _span(32)),
    "gpu-operator": (Version(26, 7), _span(16)),
    "gpu-operator-charts": (Version(1, 5), _span(29)),
    "kube-prometheus-stack": (Version(88, 5), _span(25)),
    "network-operator": (Version(26, 4), _span(21)),
}
GPU_CLUSTER = _span(32)  # with DRA of resource.k8s.io/v1beta1; source: reference/gpu.md, GPU-01
_TESTED = 3  # releases of Kubernetes; source: README.md of kubernetes-sigs/descheduler v0.36.0


def _of_descheduler(version: Version) -> Span | None:
    """A descheduler's minor is that of the newest Kubernetes it is tested against, and it is with the two before."""
    if version.major != 0 or version.minor < 18:  # before, the numbers had nothing to do with each other
        return None
    return _span(version.minor - _TESTED + 1, version.minor)


def _of_metrics_server_chart(version: Version) -> Span | None:
    program = _METRICS_SERVER_CHARTS.get(version)
    return _METRICS_SERVER[program] if program else None


_CHARTS: Mapping[str, Callable[[Version], Span | None]] = {
    "descheduler": _of_descheduler,
    "metrics-server": _of_metrics_server_chart,
    "volcano": _VOLCANO.get,
}
# The last part of an image's name, below the folder that tells it from others of that name.
_IMAGES: Mapping[str, tuple[str, Callable[[Version], Span | None]]] = {
    "descheduler/descheduler": ("descheduler", _of_descheduler),
    "metrics-server/metrics-server": ("metrics-server", _METRICS_SERVER.get),
    "volcanosh/vc-controller-manager": ("volcano", _VOLCANO.get),
    "volcanosh/vc-scheduler": ("volcano", _VOLCANO.get),
    "volcanosh/vc-webhook-manager": ("volcano", _VOLCANO.get),
}


def of_chart(chart: str, version: str) -> Span | None:
    """The Kubernetes that the chart's version supports; None where that is not known."""
    number = parse(version)
    if number is None:
        return None
    if chart in _CHARTS:
        return _CHARTS[chart](number)
    known = chart_catalogue.find(chart, version)
    if known is not None and known.kubernetes and (found := _ATLEAST.search(known.kubernetes)):
        return Span(Version(int(found[1]), int(found[2])))
    since, span = _AT_LEAST.get(chart, (None, None))
    return span if since is not None and number >= since else None


def of_image(image: str) -> tuple[str, str, Span] | None:
    """The part that an image is, its version, and the Kubernetes that this supports; None where that is not known."""
    name, _, tag = image.partition("@")[0].rpartition(":")
    part, spans = _IMAGES.get("/".join(name.split("/")[-2:]), (None, None))
    number = parse(tag)
    span = spans(number) if spans is not None and number is not None else None
    if part is None or span is None:
        return None
    return part, tag.removeprefix("v"), span


def supporting(chart: str, kubernetes: Version) -> str | None:
    """The newest minor of the chart, or of the program where it has versions of its own, that supports Kubernetes."""
    if chart == "descheduler":
        return f"0.{kubernetes.minor}"
    table = {"volcano": _VOLCANO}.get(chart, {})
    return next((str(version) for version, span in table.items() if kubernetes in span), None)
