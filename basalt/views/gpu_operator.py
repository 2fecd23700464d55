"""What configures NVIDIA's GPU operator: ClusterPolicies and NVIDIADrivers, or the chart's values that make them, and
the nodes' labels that switch its parts.

Source: api/nvidia, controllers/state_manager.go and the chart's values.yaml of NVIDIA/gpu-operator v26.7.0.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from basalt.findings import Place
from basalt.gathering import places
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping
from basalt.pointers import Pointer, existing, get, has
from basalt.quantities import parse
from basalt.views.charts import Values
from basalt.views.descheduler_policy import is_partial

CHART = "gpu-operator"
PRESENT = "nvidia.com/gpu.present"
MIG_CONFIG = "nvidia.com/mig.config"
MIG_OFF = ("", "all-disabled")
_GROUP = "nvidia.com"
_DEPLOY = "nvidia.com/gpu.deploy."
_SIGNS = (PRESENT, "feature.node.kubernetes.io/pci-10de.present", "feature.node.kubernetes.io/pci-0302_10de.present",
          "feature.node.kubernetes.io/pci-0300_10de.present")  # fmt: skip
_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-", "volcano.sh/vgpu-number")
# What the chart gives where its values say nothing.
_OF_CHART: Mapping[Pointer, Any] = {
    ("mig", "strategy"): "single",
    ("migManager", "config", "default"): "all-disabled",
    ("driver", "upgradePolicy", "autoUpgrade"): True,
    ("driver", "rdma", "enabled"): False,
    ("gds", "enabled"): False,
    ("gdrcopy", "enabled"): False,
    ("nfd", "enabled"): True,
    ("clusterPolicy", "deployCR"): True,
    ("driver", "nvidiaDriverCRD", "deployDefaultCR"): True,
}
# Where the chart's values have another name than the ClusterPolicy.
_IN_CHART: Mapping[Pointer, Pointer] = {
    ("driver", "useNvidiaDriverCRD"): ("driver", "nvidiaDriverCRD", "enabled"),
    ("driver", "upgradePolicy", "podDeletion"): ("driver", "upgradePolicy", "gpuPodDeletion"),
}


@dataclass(frozen=True, eq=False)
class Settings:
    """One ClusterPolicy, NVIDIADriver or NicClusterPolicy: the object itself, or the values of the chart that makes
    one."""

    source: KubeObject | Values

    @property
    def place(self) -> Place:
        return self.source if isinstance(self.source, KubeObject) else self.source.place

    @property
    def is_chart(self) -> bool:
        return isinstance(self.source, Values)

    @cached_property
    def is_partial(self) -> bool:
        """Whether the chart gets values from elsewhere too: what is left out here is then unknown."""
        return isinstance(self.source, Values) and is_partial(self.source)

    @property
    def title(self) -> str:
        if isinstance(self.source, KubeObject):
            return f"the {self.source.ref.kind} {self.source.name}"
        return f"the chart {self.source.chart}"

    def get(self, pointer: Pointer) -> Any:
        """What is given, else what the chart gives; None where nothing is said."""
        if isinstance(self.source, KubeObject):
            return get(self.source.spec, pointer)
        pointer = _in_chart(pointer)
        given = self.source.get(pointer)
        return _OF_CHART.get(pointer) if given is None and not self.is_partial else given

    def has(self, pointer: Pointer) -> bool:
        """Whether the value is given here."""
        if isinstance(self.source, KubeObject):
            return has(self.source.spec, pointer)
        return has(self.source.value, _in_chart(pointer))

    def is_enabled(self, pointer: Pointer) -> bool:
        """Whether a part runs that is on unless it is switched off."""
        return self.get((*pointer, "enabled")) is not False

    def at(self, pointer: Pointer) -> tuple[Place, Pointer]:
        """Where the value stands, or the nearest thing above that does."""
        if isinstance(self.source, KubeObject):
            return self.source, existing(self.source.value, ("spec", *pointer))
        place, found = self.source.at(_in_chart(pointer))
        return place, existing(places.value(place), found)


def _in_chart(pointer: Pointer) -> Pointer:
    for mine, theirs in _IN_CHART.items():
        if pointer[: len(mine)] == mine:
            return (*theirs, *pointer[len(mine) :])
    return pointer


def of_kind(objects: Iterable[KubeObject], kind: str) -> Iterator[KubeObject]:
    return (each for each in objects if (each.ref.group, each.ref.kind) == (_GROUP, kind))


def charts(values: Iterable[Values]) -> Iterator[Settings]:
    """The operator's charts, also those that make no ClusterPolicy."""
    return (Settings(each) for each in values if each.chart == CHART)


def policies(objects: Iterable[KubeObject], values: Iterable[Values]) -> list[Settings]:
    """The ClusterPolicies, those first that are declared as objects."""
    made = (each for each in charts(values) if each.get(("clusterPolicy", "deployCR")) is not False)
    return [*map(Settings, of_kind(objects, "ClusterPolicy")), *made]


def drivers(objects: Iterable[KubeObject]) -> list[Settings]:
    """The NVIDIADrivers that are declared as objects."""
    return [*map(Settings, of_kind(objects, "NVIDIADriver"))]


def manages_drivers(policy: Settings) -> bool:
    """Whether the ClusterPolicy installs the driver itself, not through NVIDIADrivers."""
    return policy.is_enabled(("driver",)) and policy.get(("driver", "useNvidiaDriverCRD")) is not True


def is_gpu_node(node: Node) -> bool:
    """Whether the node has NVIDIA's GPUs, by its labels or by what it offers."""
    if any(node.labels.get(sign) == "true" for sign in _SIGNS) or "nvidia.com/gpu.product" in node.labels:
        return True
    return any(name.startswith(_RESOURCES) and (parse(amount) or 0) > 0 for name, amount in node.allocatable.items())


def deploys(node: Node, operand: str) -> bool:
    """Whether the operator puts its operand on the node: device-plugin, driver, mig-manager."""
    labels = node.labels
    if labels.get(f"{_DEPLOY}operands") == "false":
        return False
    return labels.get(f"{_DEPLOY}{operand}") in (None, "", "true")


def has_own_driver(node: Node) -> bool:
    """Whether k8s-driver-manager found a driver on the host, and marked the node so."""
    return node.labels.get(f"{_DEPLOY}driver") == "pre-installed"


def awaits_driver(node: Node) -> bool:
    """Whether the node is marked for the operator's driver, and no driver has been seen on it."""
    seen = any(key.startswith("nvidia.com/cuda.driver") for key in node.labels)
    return node.labels.get(f"{_DEPLOY}driver") == "true" and not seen


def selects(driver: Settings, node: Node) -> bool:
    """Whether an NVIDIADriver's nodeSelector selects the node; without one, every GPU node."""
    return node.carries(mapping(driver.get(("nodeSelector",))))


def tolerates(tolerations: Iterable[Any], key: str, value: str, effect: str) -> bool:
    """Whether one of the tolerations tolerates the taint (ToleratesTaint in k8s.io/component-helpers)."""
    return any(_tolerates(mapping(each), key, value, effect) for each in tolerations)


def _tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("key") not in (None, "", key):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == value
