"""What installs node-feature-discovery, whose labels the GPU and network operators read.

Source: the Chart.yaml and values.yaml of NVIDIA/gpu-operator v26.7.0, Mellanox/network-operator v26.4.1,
NVIDIA/k8s-device-plugin v0.20.0 and ROCm/gpu-operator v1.5.1.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place
from basalt.gathering import places
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, existing, get
from basalt.views.charts import Values
from basalt.views.descheduler_policy import is_partial

_CHART = "node-feature-discovery"
_SWITCHES: Mapping[str, Pointer] = {  # on, unless switched off
    "gpu-operator": ("nfd", "enabled"),
    "network-operator": ("nfd", "enabled"),
    "gpu-operator-charts": ("node-feature-discovery", "enabled"),
}
_PLUGIN_CHART = "nvidia-device-plugin"
_GROUPS = ("nfd.openshift.io", "nfd.kubernetes.io")
_TEMPLATE: Pointer = ("spec", "template", "spec", "containers")
_LABELS = "feature.node.kubernetes.io/"


class Source(NamedTuple):
    """One part that installs it, or could; switch is what turns that off."""

    title: str
    place: Place
    pointer: Pointer
    switch: str


def installed(objects: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Source]:
    """Every part that installs it."""
    for each in values:
        switch = _switch(each)
        if each.chart == _CHART:
            yield _source(each, ())
        elif switch is not None and _is_on(each, switch):
            yield _source(each, switch)
    for declared in objects:
        pointer = _worker(declared)
        if pointer is not None:
            yield Source(f"the {declared.ref.kind} {declared.name}", declared, pointer, "its own manifest")


def switched_off(values: Iterable[Values]) -> Iterator[Source]:
    """The operators that need it and do not install it."""
    for each in values:
        switch = _SWITCHES.get(each.chart)
        if switch is not None and each.get(switch) is False:
            yield _source(each, switch)


def is_labelled(node: Node) -> bool:
    """Whether it has been at work on the node."""
    return any(key.startswith(_LABELS) for key in node.labels)


def _switch(values: Values) -> Pointer | None:
    if values.chart != _PLUGIN_CHART:
        return _SWITCHES.get(values.chart)
    for pointer in (("nfd", "enabled"), ("gfd", "enabled")):  # the dependency's condition: the first that is given
        if values.get(pointer) is not None:
            return pointer if values.get(pointer) is True else None
    return None


def _is_on(values: Values, switch: Pointer) -> bool:
    """Left out, it is on; unless values from elsewhere may say otherwise."""
    given = values.get(switch)
    return given is not False and not (given is None and is_partial(values))


def _source(values: Values, pointer: Pointer) -> Source:
    place, at = values.at(pointer)
    switch = ".".join(map(str, pointer)) + ": false" if pointer else "its own release"
    return Source(f"the chart {values.chart}", place, existing(places.value(place), at), switch)


def _worker(declared: KubeObject) -> Pointer | None:
    if declared.ref.group in _GROUPS and declared.ref.kind == "NodeFeatureDiscovery":
        return ("kind",)
    if (declared.ref.group, declared.ref.kind) == ("apps", "DaemonSet"):
        for number, container in enumerate(map(mapping, sequence(get(declared.value, _TEMPLATE)))):
            if _runs_worker(container):
                return (*_TEMPLATE, number, "image")
    return None


def _runs_worker(container: Mapping[str, Any]) -> bool:
    image = container.get("image")
    words = [*strings(container.get("command")), *strings(container.get("args"))]
    is_nfd = isinstance(image, str) and f"/{_CHART}" in f"/{image}"
    return is_nfd and (not words or any("nfd-worker" in word for word in words))
