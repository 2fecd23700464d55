"""What configures NVIDIA's network operator: NicClusterPolicies, and what they offer for RDMA.

Source: api/v1alpha1 and deployment/network-operator/values.yaml of Mellanox/network-operator v26.4.1.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.views import embedding
from basalt.views.charts import Values
from basalt.views.gpu_operator import Settings

CHART = "network-operator"
DRIVER: Pointer = ("ofedDriver",)
_GROUP = "mellanox.com"
_PLUGINS = (("rdmaSharedDevicePlugin", "configList", "rdma"), ("sriovDevicePlugin", "resourceList", "nvidia.com"))


def policies(objects: Iterable[KubeObject]) -> list[Settings]:
    """The NicClusterPolicies; the chart makes none unless it is told to, which these values are not read for."""
    kind = (_GROUP, "NicClusterPolicy")
    return [Settings(each) for each in objects if (each.ref.group, each.ref.kind) == kind]


def node_policies(objects: Iterable[KubeObject]) -> list[Settings]:
    """The NicNodePolicies, which say the same for some nodes."""
    kind = (_GROUP, "NicNodePolicy")
    return [Settings(each) for each in objects if (each.ref.group, each.ref.kind) == kind]


def is_declared(objects: Sequence[KubeObject], values: Iterable[Values]) -> bool:
    """Whether anything tells of the operator; a folder without may be one of several."""
    return bool(policies(objects) or node_policies(objects)) or any(each.chart == CHART for each in values)


def is_made(values: Iterable[Values]) -> bool:
    """Whether a chart is told to make a NicClusterPolicy, of which nothing is known here."""
    return any(each.chart == CHART and each.get(("deployCR",)) is True for each in values)


def has_driver(policy: Settings) -> bool:
    """Whether it puts the NICs' driver on the nodes."""
    return isinstance(policy.get(DRIVER), Mapping)


def resources(policy: Settings) -> Iterator[str]:
    """The names that its device plugins offer."""
    for plugin, field, prefix in _PLUGINS:
        text = embedding.text_at(policy.place, ("spec", plugin, "config"))
        for document in embedding.documents(text):
            for each in map(mapping, sequence(mapping(document.value).get(field))):
                yield _named(each, prefix)


def _named(resource: Mapping[str, Any], prefix: str) -> str:
    return f"{resource.get('resourcePrefix') or prefix}/{resource.get('resourceName')}"
