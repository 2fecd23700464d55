"""The RDMA network: NVIDIA's network operator with the NICs' driver, the device plugin that offers them to pods, and
networks beside the cluster's own. Left to itself, a driver is never upgraded under a running job."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from basalt.api.charts import locked
from basalt.objects import MANAGED_BY, Manifest, Origins, below, pod_security, release
from basalt.platform import Platform
from basalt.pointers import Pointer, existing

AT: Pointer = ("spec", "network")
SHARED, SRIOV = "shared", "sriov"
_NAMESPACE = "nvidia-network-operator"
_THERE = ("kube-system", "default")
_API = "mellanox.com/v1alpha1"
_REPOSITORY = "nvcr.io/nvidia/mellanox"
# NicClusterPolicies of the network operator v26.4.1: example/crs/mellanox.com_v1alpha1_nicclusterpolicy_cr-full.yaml.
_DRIVER = "doca3.4.1-26.04-1.1.0.0-1"
_PROBES = {
    "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 10},
    "livenessProbe": {"initialDelaySeconds": 30, "periodSeconds": 30},
    "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 30},
}
_TRAINING = "volcano.sh/job-name"  # on every pod of a Volcano Job
_MELLANOX = "15b3"
_DEVICES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    SHARED: [{"resourceName": "hca_shared"}],
    SRIOV: [{"resourceName": "hca"}],
}
_SHARERS = 63
# The names of selectors, in the document and for either plugin.
_SELECTORS = {
    "vendors": ("vendors", "vendors"),
    "deviceIDs": ("deviceIDs", "devices"),
    "drivers": ("drivers", "drivers"),
    "ifNames": ("ifNames", "pfNames"),
    "linkTypes": ("linkTypes", "linkTypes"),
}
_KINDS = {"macvlan": "MacvlanNetwork", "hostdevice": "HostDeviceNetwork", "ipoib": "IPoIBNetwork"}
_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
# The PCI classes of NICs and GPUs: node-feature-discovery has to see both, whoever installs it.
_CLASSES = ["02", "0200", "0207", "0300", "0302"]


def network(declared: Mapping[str, Any], platform: Platform) -> Iterator[Manifest]:
    """The release, the NicClusterPolicy that it acts on, and the declared networks."""
    document = {"spec": platform.spec}
    for each in _objects(declared, platform):
        yield Manifest(each.value, {at: existing(document, origin) for at, origin in each.origins.items()})


def _objects(declared: Mapping[str, Any], platform: Platform) -> Iterator[Manifest]:
    namespace = declared.get("namespace", _NAMESPACE)
    if namespace not in (*_THERE, _home_of_gpus(platform.spec)):
        metadata = {"name": namespace, "labels": {**MANAGED_BY, **pod_security("privileged")}}
        origins: Origins = {(): AT, ("metadata", "name"): (*AT, "namespace")}
        yield Manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, origins)
    tolerations, written = _tolerations(declared, platform.spec)
    chart = locked("network-operator", declared.get("version"))
    values, origins = _values(declared, platform, tolerations, written)
    yield release(chart, "network-operator", namespace, values, AT, origins)
    yield _policy(declared, chart.version, tolerations, written)
    for name, each in _networks(declared).items():
        yield _network(name, each)


def _home_of_gpus(spec: Mapping[str, Any]) -> str | None:
    """The namespace that the part `gpu` declares already, where it has been given one."""
    home: str | None = spec.get("gpu", {}).get("namespace")
    return home


def _installs_nfd(declared: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Exactly one part installs node-feature-discovery: the GPUs' one, unless it says otherwise or cannot."""
    gpu = spec.get("gpu")
    by_gpus = gpu is not None and gpu.get("provider") != "volcano-vgpu" and gpu.get("featureDiscovery", True)
    found: bool = declared.get("featureDiscovery", not by_gpus)
    return found


def _values(
    declared: Mapping[str, Any], platform: Platform, tolerations: list[Any], written: Origins
) -> tuple[dict[str, Any], Origins]:
    has_nfd = _installs_nfd(declared, platform.spec)
    values: dict[str, Any] = {"nfd": {"enabled": has_nfd}}
    origins: Origins = {("nfd", "enabled"): (*AT, "featureDiscovery")}
    worker: dict[str, Any] = {}
    if has_nfd and "gpu" in platform.spec:
        pci = {"deviceClassWhitelist": _CLASSES, "deviceLabelFields": ["vendor"]}
        worker["config"] = {"sources": {"pci": pci}}
    if has_nfd and len(tolerations) > 1:
        worker["tolerations"] = [*tolerations, _CONTROL_PLANE]
        origins |= below(("node-feature-discovery", "worker", "tolerations"), written)
    if worker:
        values["node-feature-discovery"] = {"worker": worker}
    return values, origins


def _tolerations(declared: Mapping[str, Any], spec: Mapping[str, Any]) -> tuple[list[dict[str, Any]], Origins]:
    """Those of the part, and of the GPUs' nodes: NICs for RDMA are in the same nodes. Each stands once."""
    gpu: Mapping[str, Any] = spec.get("gpu", {})
    at: Pointer = ("spec", "gpu")
    pools = [((*at, "pools", name), pool) for name, pool in gpu.get("pools", {}).items()]
    found: list[dict[str, Any]] = [_TAINT]
    origins: Origins = {(): (*AT, "tolerations")}
    for where, owner in ((AT, declared), (at, gpu), *pools):
        for number, toleration in enumerate(owner.get("tolerations", ())):
            if toleration not in found:
                origins[(len(found),)] = (*where, "tolerations", number)
                found.append(toleration)
    return found, origins


# the NicClusterPolicy


def _policy(declared: Mapping[str, Any], version: str, tolerations: list[Any], written: Origins) -> Manifest:
    def image(name: str) -> dict[str, Any]:
        return {"image": name, "repository": _REPOSITORY, "version": f"network-operator-v{version.removeprefix('v')}"}

    spec: dict[str, Any] = {"tolerations": tolerations}
    origins: Origins = {(): AT, **below(("spec", "tolerations"), written)}
    ofed = declared.get("ofed", {})
    if not ofed.get("preinstalled", False):
        spec["ofedDriver"] = _ofed(ofed)
        origins |= {
            ("spec", "ofedDriver"): (*AT, "ofed"),
            ("spec", "ofedDriver", "upgradePolicy"): (*AT, "ofed", "upgrade"),
        }
    kind = declared.get("type", SHARED)
    if kind in (SHARED, SRIOV):
        name = "k8s-rdma-shared-dev-plugin" if kind == SHARED else "sriov-network-device-plugin"
        plugin = "rdmaSharedDevicePlugin" if kind == SHARED else "sriovDevicePlugin"
        text, config = _config(kind, declared)
        spec[plugin] = {**image(name), "config": text}
        origins |= {("spec", plugin): (*AT, "type"), **below(("spec", plugin, "config"), config)}
    networks = _networks(declared)
    secondary: dict[str, Any] = {}
    if networks or declared.get("secondaryNetwork", {}).get("multus", False):
        secondary = {"cniPlugins": image("plugins"), "multus": image("multus-cni")}
    if any(each["type"] == "ipoib" for each in networks.values()):
        secondary["ipoib"] = image("ipoib-cni")
    if secondary:
        spec["secondaryNetwork"] = secondary
        origins[("spec", "secondaryNetwork")] = (*AT, "secondaryNetwork")
    if any(each.get("ipam", {}).get("type") == "nv-ipam" for each in networks.values()):
        spec["nvIpam"] = {**image("nvidia-k8s-ipam"), "enableWebhook": False}
        origins[("spec", "nvIpam")] = (*AT, "secondaryNetwork", "networks")
    return Manifest(_object("NicClusterPolicy", "nic-cluster-policy", spec), origins)


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name, "labels": MANAGED_BY}, "spec": spec}


def _ofed(declared: Mapping[str, Any]) -> dict[str, Any]:
    upgrade = declared.get("upgrade", {})
    wait = {"podSelector": _TRAINING, "timeoutSeconds": 0, **upgrade.get("waitForCompletion", {})}
    return {
        "image": "doca-driver",
        "repository": _REPOSITORY,
        "version": declared.get("version", _DRIVER),
        **_PROBES,
        "upgradePolicy": {
            "autoUpgrade": upgrade.get("autoUpgrade", False),
            "maxParallelUpgrades": upgrade.get("maxParallelUpgrades", 1),
            "safeLoad": False,
            "waitForCompletion": wait,
            "drain": {"enable": True, "force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
        },
    }


def _config(kind: str, declared: Mapping[str, Any]) -> tuple[str, Origins]:
    """The device plugin's configuration, which is JSON in a text."""
    field = "configList" if kind == SHARED else "resourceList"
    devices = declared.get("devices") or _DEVICES[kind]
    entries = []
    origins: Origins = {(): (*AT, "devices")}
    for number, device in enumerate(devices):
        at: Pointer = (*AT, "devices", number)
        entries.append(_shared(device) if kind == SHARED else _sriov(device))
        entry: Pointer = (field, number)
        origins |= {entry: at, (*entry, "selectors"): at}
        for name, names in _SELECTORS.items():
            origins[(*entry, "selectors", names[kind == SRIOV])] = (*at, name)
    periodic = {"periodicUpdateInterval": 300} if kind == SHARED else {}
    return json.dumps({**periodic, field: entries}, indent=2) + "\n", origins


def _selectors(device: Mapping[str, Any], plugin: int) -> dict[str, Any]:
    """What is declared, else every NIC of NVIDIA's; both plugins ask for one selector at least."""
    found = {names[plugin]: device[name] for name, names in _SELECTORS.items() if device.get(name)}
    return found or {"vendors": [_MELLANOX]}


def _shared(device: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "resourceName": device["resourceName"],
        "rdmaHcaMax": device.get("rdmaHcaMax", _SHARERS),
        "selectors": _selectors(device, 0),
    }


def _sriov(device: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "resourcePrefix": "nvidia.com",
        "resourceName": device["resourceName"],
        "selectors": {**_selectors(device, 1), "isRdma": True},
    }


# networks beside the cluster's own


def _networks(declared: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = declared.get("secondaryNetwork", {}).get("networks", {})
    return found


def _network(name: str, declared: Mapping[str, Any]) -> Manifest:
    """An object that the operator makes a NetworkAttachmentDefinition of, in the namespace of the pods that name it."""
    at: Pointer = (*AT, "secondaryNetwork", "networks", name)
    spec: dict[str, Any] = {"networkNamespace": declared.get("networkNamespace", "default")}
    spec |= {key: declared[key] for key in ("master", "mode", "mtu", "resourceName") if key in declared}
    if "ipam" in declared:
        spec["ipam"] = json.dumps(declared["ipam"])
    origins: Origins = {(): at, ("spec",): at}
    return Manifest(_object(_KINDS[declared["type"]], name, spec), origins)
