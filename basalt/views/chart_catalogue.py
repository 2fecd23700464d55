"""The charts whose contents Basalt knows, each at the versions that schemas/charts has: the values that it takes, the
CustomResourceDefinitions that it brings. `make charts` writes them from the charts themselves."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from basalt.api.schemas import ROOT

# The names that may stand in a map; None where anything may.
Tree = Mapping[str, Any] | None

_FOLDER = ROOT / "charts"
# CRDs of charts whose files Basalt does not have. Source: shared reference/components.md section 1.
_OTHER_GROUPS = {
    "cert-manager": ("cert-manager.io", "acme.cert-manager.io"),
    "dex": ("dex.coreos.com",),
    "gpu-operator": ("nvidia.com", "resource.nvidia.com", "nfd.k8s-sigs.io"),
    "gpu-operator-charts": ("amd.com", "nfd.k8s-sigs.io", "kmm.sigs.x-k8s.io"),
    "kubeflow-trainer": ("jobset.x-k8s.io",),
    "network-operator": (
        "mellanox.com",
        "k8s.cni.cncf.io",
        "nv-ipam.nvidia.com",
        "sriovnetwork.openshift.io",
        "nfd.k8s-sigs.io",
        "configuration.net.nvidia.com",
        "maintenance.nvidia.com",
    ),
    "nvidia-device-plugin": ("nfd.k8s-sigs.io",),
    "dra-driver-nvidia-gpu": ("resource.nvidia.com",),
    "nvidia-dra-driver-gpu": ("resource.nvidia.com",),
    "prometheus-operator-crds": ("monitoring.coreos.com",),
}


class Known(NamedTuple):
    """One chart at one version. kubernetes is the range that its Chart.yaml asks for, as Helm spells it."""

    chart: str
    version: str
    kubernetes: str | None
    crds: frozenset[str]  # group/Kind
    values: Tree


@cache
def _files() -> Mapping[str, Mapping[str, str]]:
    """Chart to version to the name of the file."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(_FOLDER.glob("*.json")):
        chart, _, version = path.stem.rpartition("-")
        found.setdefault(chart, {})[version] = path.name
    return found


@cache
def _read(name: str) -> Known:
    content = json.loads((_FOLDER / name).read_bytes())
    crds = frozenset(content["crds"])
    return Known(content["chart"], content["version"], content["kubeVersion"], crds, content["values"])


def find(chart: str, version: str) -> Known | None:
    """The chart at exactly that version; None where its contents are not known."""
    name = _files().get(chart, {}).get(version.removeprefix("v"))
    return _read(name) if name else None


def is_known(chart: str) -> bool:
    return chart in _files() or chart in _OTHER_GROUPS


def brings(chart: str, group: str, kind: str) -> bool:
    """Whether some version of the chart brings the CRD: which one is installed matters little to that."""
    if group in _OTHER_GROUPS.get(chart, ()):
        return True
    return any(f"{group}/{kind}" in _read(name).crds for name in _files().get(chart, {}).values())


def has_definitions(chart: str) -> bool:
    """Whether some version of the chart brings CRDs."""
    return chart in _OTHER_GROUPS or any(_read(name).crds for name in _files().get(chart, {}).values())


def bringing(group: str, kind: str) -> list[str]:
    """The charts that bring the CRD."""
    return sorted(chart for chart in {*_files(), *_OTHER_GROUPS} if brings(chart, group, kind))
