"""The pods that operators put on GPU nodes: what they tolerate, and the namespaces that they run in.

Source: the values.yaml of NVIDIA/gpu-operator v26.7.0, NVIDIA/k8s-device-plugin v0.20.0, Mellanox/network-operator
v26.4.1 and Project-HAMi/HAMi v2.10.0; manifests/state-driver of the first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse
from typing import Any, NamedTuple

from basalt.findings import Place
from basalt.gathering import places
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, existing, get
from basalt.views import gpu_operator, images, network_operator
from basalt.views.charts import Values
from basalt.views.descheduler_policy import is_partial
from basalt.views.gpu_operator import Settings, deploys, selects
from basalt.views.gpu_providers import HAMI_CHART, PLUGIN_CHART, is_of_nvidia

GPU_OPERATOR = "the GPU operator"
_GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
_CRITICAL = {"key": "CriticalAddonsOnly", "operator": "Exists"}
_OWN = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")  # DaemonSets tolerate them, or they pass
_EFFECTS = ("NoSchedule", "NoExecute")
_IMAGES = ("k8s-device-plugin", "nvidia-device-plugin", "volcano-vgpu-device-plugin", "gpu-feature-discovery")
_TEMPLATE: Pointer = ("spec", "template", "spec")
_HOMES = {
    "gpu-operator": GPU_OPERATOR,
    "nvidia-gpu-operator": GPU_OPERATOR,
    "gpu-operator-resources": GPU_OPERATOR,
    "nvidia-network-operator": "the network operator",
    "network-operator": "the network operator",
    "nvidia-device-plugin": "the device plugin",
    "kube-amd-gpu": "AMD's GPU operator",
}
_CHARTS = {
    gpu_operator.CHART: GPU_OPERATOR,
    network_operator.CHART: "the network operator",
    PLUGIN_CHART: "the device plugin",
    HAMI_CHART: "HAMi",
    "gpu-operator-charts": "AMD's GPU operator",
}


class Part(NamedTuple):
    """Pods on GPU nodes, with their tolerations and where these are declared. driver is the NVIDIADriver that it is."""

    title: str
    place: Place
    pointer: Pointer
    tolerations: list[Any]
    selector: Mapping[str, Any]
    driver: Settings | None = None

    def covers(self, node: Node) -> bool:
        """Whether it is meant for the node."""
        if self.driver is not None and not (selects(self.driver, node) and deploys(node, "driver")):
            return False
        return node.carries(self.selector)


def taints(node: Node) -> Iterator[tuple[str, str, str]]:
    """The node's taints, key, value and effect, that pods of DaemonSets do not tolerate by themselves."""
    for taint in node.spec.taints or ():
        if taint.effect in _EFFECTS and not taint.key.startswith(_OWN):
            yield taint.key, taint.value, taint.effect


def parts(objects: Sequence[KubeObject], values: Iterable[Values]) -> Iterator[Part]:
    """What runs on GPU nodes; the operators' own Deployments run elsewhere."""
    values = list(values)
    for policy in gpu_operator.policies(objects, values):
        given = policy.get(("daemonsets", "tolerations"))
        if given is None and policy.is_partial:
            continue
        place, pointer = policy.at(("daemonsets", "tolerations"))
        title = f"daemonsets of {policy.title}"
        yield Part(f"the {title}", place, pointer, sequence(given) or [_GPU], {})
    for driver in gpu_operator.drivers(objects):
        place, pointer = driver.at(("tolerations",))
        yield Part(driver.title, place, pointer, [_GPU, *sequence(driver.get(("tolerations",)))], {}, driver)
    for policy in (*network_operator.policies(objects), *network_operator.node_policies(objects)):
        place, pointer = policy.at(("tolerations",))
        selector = mapping(policy.get(("nodeSelector",)))
        yield Part(policy.title, place, pointer, [_GPU, *sequence(policy.get(("tolerations",)))], selector)
    for each in filterfalse(is_partial, values):
        yield from _of_chart(each)
    for declared in objects:
        if (declared.ref.group, declared.ref.kind) == ("apps", "DaemonSet"):
            yield from _of_daemon_set(declared)


def _of_chart(values: Values) -> Iterator[Part]:
    worker: Pointer = ("node-feature-discovery", "worker", "tolerations")
    title = f"the chart {values.chart}"
    has_nfd = values.get(("nfd", "enabled")) is not False
    if values.chart in (gpu_operator.CHART, network_operator.CHART) and has_nfd:
        yield _part(f"the worker of node-feature-discovery of {title}", values, worker, [_CONTROL_PLANE, _GPU])
    elif values.chart == PLUGIN_CHART:
        selector = mapping(values.get(("nodeSelector",)))
        yield _part(title, values, ("tolerations",), [_CRITICAL, _GPU], selector)
    elif values.chart == HAMI_CHART:
        given = values.get(("devicePlugin", "nvidiaNodeSelector"))
        selector = mapping({"gpu": "on"} if given is None else given)
        yield _part(f"the device plugin of {title}", values, ("devicePlugin", "tolerations"), [], selector)


def _part(
    title: str, values: Values, pointer: Pointer, default: list[Any], selector: Mapping[str, Any] | None = None
) -> Part:
    given = values.get(pointer)
    place, at = values.at(pointer)
    at = existing(places.value(place), at)
    return Part(title, place, at, default if given is None else sequence(given), selector or {})


def _of_daemon_set(declared: KubeObject) -> Iterator[Part]:
    pod = mapping(get(declared.value, _TEMPLATE))
    containers = map(mapping, sequence(pod.get("containers")))
    if any(images.program(container.get("image")) in _IMAGES and is_of_nvidia(container) for container in containers):
        pointer = existing(declared.value, (*_TEMPLATE, "tolerations"))
        selector = mapping(pod.get("nodeSelector"))
        yield Part(f"the DaemonSet {declared.name}", declared, pointer, sequence(pod.get("tolerations")), selector)


def namespaces(objects: Iterable[KubeObject], values: Iterable[Values]) -> dict[str, str]:
    """The namespaces that privileged parts run in, each with the part: those of their releases, and the usual ones."""
    found = dict(_HOMES)
    for each in values:
        name = _home(places.value(each.place)) if each.chart in _CHARTS else None
        if isinstance(name, str) and name:
            found[name] = _CHARTS[each.chart]
    for declared in objects:
        is_set = (declared.ref.group, declared.ref.kind) == ("apps", "DaemonSet")
        if is_set and declared.ref.namespace and any(_of_daemon_set(declared)):
            found[declared.ref.namespace] = f"the DaemonSet {declared.name}"
    return found


def _home(value: Any) -> Any:
    """Where Flux or Argo CD installs the chart."""
    if mapping(value).get("kind") == "Application":
        return get(value, ("spec", "destination", "namespace"))
    own = get(value, ("metadata", "namespace")) if mapping(value).get("kind") == "HelmRelease" else None
    return get(value, ("spec", "targetNamespace")) or own
