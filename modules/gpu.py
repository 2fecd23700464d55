"""GPUs: NVIDIA's operator with a driver for each pool of nodes, or its device plugin alone. Left to itself, a driver is
upgraded node by node, and only where no training job runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.api.charts import locked
from basalt.loading.nodes import Node
from basalt.objects import MANAGED_BY, Manifest, Origins, below, pod_security, release
from basalt.platform import Platform
from basalt.pointers import Pointer, existing
from basalt.rendering import yaml_writer

AT: Pointer = ("spec", "gpu")
_OPERATOR, _DEVICE_PLUGIN = "operator", "device-plugin"
_NAMESPACES = {_OPERATOR: "gpu-operator", _DEVICE_PLUGIN: "nvidia-device-plugin"}
_THERE = ("kube-system", "default")
_GPU = "nvidia.com/gpu"
_TAINT = {"key": _GPU, "operator": "Exists", "effect": "NoSchedule"}
_CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
_CRITICAL = {"key": "CriticalAddonsOnly", "operator": "Exists"}
_SIGNS = ("nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present")
_PRODUCT = "nvidia.com/gpu.product"
_PLUGIN_CONFIG, _MIG_CONFIG, _DRIVER = (
    f"nvidia.com/{name}" for name in ("device-plugin.config", "mig.config", "gpu.deploy.driver")
)
_PLUGIN_MAP, _MIG_MAP, _COUNTER_MAP = "basalt-device-plugin", "basalt-mig-parted", "basalt-dcgm-metrics"
_ONE_BY_ONE = {"updateStrategy": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "1"}}
_REST = "default"  # the device plugin's configuration of nodes in no pool
_MIG_OFF = "all-disabled"
_TRAINING = "volcano.sh/job-name"  # on every pod of a Volcano Job: JobNameKey in pkg/apis/batch/v1alpha1/labels.go
_WHEN_DONE = {"podSelector": _TRAINING, "timeoutSeconds": 0}
_GENTLY = {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False}
# The images of values.yaml in the chart gpu-operator v26.7.0: repository, name, tag. The operator finds those of its
# validator and its driver manager by itself (templates/operator.yaml).
_OPERANDS = {
    "toolkit": ("nvcr.io/nvidia/k8s", "container-toolkit", "v1.20.0"),
    "devicePlugin": ("nvcr.io/nvidia", "k8s-device-plugin", "v0.20.0"),
    "dcgmExporter": ("nvcr.io/nvidia/k8s", "dcgm-exporter", "4.6.0-4.8.3-distroless"),
    "migManager": ("nvcr.io/nvidia/cloud-native", "k8s-mig-manager", "v0.15.0"),
    "driver": ("nvcr.io/nvidia", "driver", "595.91.07"),
}
# What the DCGM exporter collects by itself, by type: etc/dcp-metrics-included.csv of 4.8.2. A list of one's own takes
# its place.
_COUNTERS = {
    "gauge": (
        "DEV_SM_CLOCK DEV_MEM_CLOCK DEV_MEMORY_TEMP DEV_GPU_TEMP DEV_POWER_USAGE DEV_GPU_UTIL DEV_MEM_COPY_UTIL "
        "DEV_ENC_UTIL DEV_DEC_UTIL DEV_XID_ERRORS DEV_FB_FREE DEV_FB_USED DEV_FB_RESERVED DEV_VGPU_LICENSE_STATUS "
        "DEV_ROW_REMAP_FAILURE PROF_GR_ENGINE_ACTIVE PROF_PIPE_TENSOR_ACTIVE PROF_DRAM_ACTIVE PROF_PCIE_TX_BYTES "
        "PROF_PCIE_RX_BYTES"
    ),
    "counter": (
        "DEV_TOTAL_ENERGY_CONSUMPTION DEV_PCIE_REPLAY_COUNTER DEV_NVLINK_BANDWIDTH_TOTAL "
        "DEV_UNCORRECTABLE_REMAPPED_ROWS DEV_CORRECTABLE_REMAPPED_ROWS"
    ),
    "label": "DRIVER_VERSION",
}


class _Pool(NamedTuple):
    """Nodes with one kind of GPU; at is what declares them, here the part itself where there are no pools."""

    name: str
    declared: Mapping[str, Any]
    at: Pointer

    def part(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.declared.get(name, {})
        return found

    @property
    def selector(self) -> Mapping[str, str]:
        return self.part("nodeSelector")

    @property
    def mig(self) -> Mapping[str, Any]:
        return self.part("mig")

    @property
    def has_own_driver(self) -> bool:
        return self.part("driver").get("preinstalled", False) is True

    @property
    def mig_config(self) -> str | None:
        """The configuration of mig-parted that the pool's nodes get."""
        if "devices" in self.mig:
            return self.name
        return f"all-{self.mig['profile']}" if "profile" in self.mig else None

    @property
    def strategy(self) -> str:
        return str(self.mig.get("strategy", "mixed" if self.mig_config else "single"))

    @property
    def needs_config(self) -> bool:
        return bool(self.part("sharing")) or self.strategy != "single"


def gpu(declared: Mapping[str, Any], platform: Platform) -> Iterator[Manifest]:
    """What the declared provider needs; its objects lead back to the part, and to each pool's own lines."""
    provider = declared.get("provider", _OPERATOR)
    namespace = declared.get("namespace", _NAMESPACES[provider])
    pools = [_Pool(name, pool, (*AT, "pools", name)) for name, pool in declared.get("pools", {}).items()]
    pools = pools or [_Pool(_REST, {}, AT)]
    made = _of_operator if provider == _OPERATOR else _of_device_plugin
    document = {"spec": platform.spec}
    for each in (*_namespace(namespace), *made(declared, platform, namespace, pools)):
        yield Manifest(each.value, {at: existing(document, origin) for at, origin in each.origins.items()})


def _namespace(name: str) -> Iterator[Manifest]:
    if name not in _THERE:
        metadata = {"name": name, "labels": {**MANAGED_BY, **pod_security("privileged")}}
        origins: Origins = {(): AT, ("metadata", "name"): (*AT, "namespace")}
        yield Manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, origins)


def _object(
    api_version: str, kind: str, name: str, body: dict[str, Any], namespace: str | None = None
) -> dict[str, Any]:
    where = {} if namespace is None else {"namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **where, "labels": MANAGED_BY}, **body}


# tolerations


def _tolerations(declared: Mapping[str, Any], pools: Sequence[_Pool]) -> tuple[list[dict[str, Any]], Origins]:
    """NVIDIA's own taint and every other that is declared, each once; the origins are those of a list of them."""
    lists = [((*AT, "tolerations"), declared), *(((*pool.at, "tolerations"), pool.declared) for pool in pools)]
    found: list[dict[str, Any]] = [_TAINT]
    origins: Origins = {(): (*AT, "tolerations") if len(pools) != 1 else lists[1][0]}
    for at, owner in lists:
        for number, toleration in enumerate(owner.get("tolerations", ())):
            if toleration not in found:
                origins[(len(found),)] = (*at, number)
                found.append(toleration)
    return found, origins


# the operator


def _of_operator(
    declared: Mapping[str, Any], platform: Platform, namespace: str, pools: Sequence[_Pool]
) -> Iterator[Manifest]:
    """A thin release, whose own ClusterPolicy is switched off, and everything that it would make as objects."""
    has_nfd = declared.get("featureDiscovery", True)
    values: dict[str, Any] = {"clusterPolicy": {"deployCR": False}, "nfd": {"enabled": has_nfd}}
    origins: Origins = {("nfd", "enabled"): (*AT, "featureDiscovery")}
    tolerations, written = _tolerations(declared, pools)
    if has_nfd and len(tolerations) > 1:
        values["node-feature-discovery"] = {"worker": {"tolerations": [*tolerations, _CONTROL_PLANE]}}
        origins |= below(("node-feature-discovery", "worker", "tolerations"), written)
    yield release(locked("gpu-operator", declared.get("version")), "gpu-operator", namespace, values, AT, origins)
    if any(pool.needs_config for pool in pools):
        yield _config_map(namespace, pools)
    if any("devices" in pool.mig for pool in pools):
        yield _mig_map(namespace, pools)
    if declared.get("dcgmExporter", {}).get("counters"):
        yield _counter_map(namespace, declared["dcgmExporter"]["counters"])
    yield _cluster_policy(declared, platform, pools)
    yield from (_driver(pool, declared, platform) for pool in pools if not pool.has_own_driver)
    yield from _labels(platform.nodes, pools, with_operator=True)


def _image(operand: str, settings: Mapping[str, Any]) -> dict[str, str]:
    repository, image, version = _OPERANDS[operand]
    return {"repository": repository, "image": image, "version": settings.get("version", version)}


def _cluster_policy(declared: Mapping[str, Any], platform: Platform, pools: Sequence[_Pool]) -> Manifest:
    toolkit, plugin, manager = (declared.get(part, {}) for part in ("toolkit", "devicePlugin", "migManager"))
    has_config = any(pool.needs_config for pool in pools)
    tolerations, written = _tolerations(declared, pools)
    config = {"config": {"name": _PLUGIN_MAP, "default": _default_key(pools)}} if has_config else {}
    mig_map = {"name": _MIG_MAP} if any("devices" in pool.mig for pool in pools) else {}
    spec: dict[str, Any] = {
        "operator": {"runtimeClass": "nvidia"},
        "hostPaths": {"rootFS": "/", "driverInstallDir": "/run/nvidia/driver"},
        "daemonsets": {**_ONE_BY_ONE, "priorityClassName": "system-node-critical", "tolerations": tolerations},
        "cdi": {"enabled": True, **declared.get("cdi", {})},
        "driver": {"enabled": not all(pool.has_own_driver for pool in pools), "useNvidiaDriverCRD": True},
        "toolkit": {"enabled": True, **_image("toolkit", {}), "installDir": "/usr/local/nvidia", **toolkit},
        "devicePlugin": {"enabled": True, **_image("devicePlugin", plugin), **config},
        "gfd": {"enabled": True, **_image("devicePlugin", plugin)},
        "dcgmExporter": _exporter(declared.get("dcgmExporter", {}), platform),
        "migManager": {"enabled": True, **_image("migManager", manager), "config": {**mig_map, "default": _MIG_OFF}},
        **{part: {"enabled": False} for part in ("dcgm", "nodeStatusExporter", "sandboxWorkloads")},
    }
    if not has_config:  # else each pool's configuration says it, and the operator lets the plugin read it there
        spec["mig"] = {"strategy": "single"}
    origins: Origins = {(): AT, **below(("spec", "daemonsets", "tolerations"), written)}
    origins |= {("spec", part): (*AT, part) for part in spec if part in declared}
    origins |= {("spec", "gfd"): (*AT, "devicePlugin"), ("spec", "driver"): (*pools[0].at, "driver", "preinstalled")}
    return Manifest(_object("nvidia.com/v1", "ClusterPolicy", "cluster-policy", {"spec": spec}), origins)


def _exporter(declared: Mapping[str, Any], platform: Platform) -> dict[str, Any]:
    """With its ServiceMonitor where there are metrics: without the CRD the operator leaves it out, and says nothing."""
    monitor = {"enabled": "metrics" in platform.spec, "interval": "15s", "honorLabels": False}
    own = {key: declared[key] for key in ("enablePodLabels", "podLabelAllowlistRegex") if key in declared}
    return {
        "enabled": declared.get("enabled", True),
        **_image("dcgmExporter", declared),
        **own,
        "serviceMonitor": {**monitor, **declared.get("serviceMonitor", {})},
        **({"config": {"name": _COUNTER_MAP}} if declared.get("counters") else {}),
    }


def _driver(pool: _Pool, declared: Mapping[str, Any], platform: Platform) -> Manifest:
    driver = pool.part("driver")
    upgrade = driver.get("upgrade", {})
    is_precompiled = driver.get("usePrecompiled", False)
    tolerations, written = _tolerations(declared, [pool])
    spec: dict[str, Any] = {
        "default": not pool.selector,
        "driverType": "gpu",
        **_image("driver", driver),
        "kernelModuleType": driver.get("kernelModuleType", "auto"),
        "usePrecompiled": is_precompiled,
        **({"nodeSelector": dict(pool.selector)} if pool.selector else {}),
        "tolerations": tolerations,
        "rdma": _rdma(platform.spec.get("network")),
        "upgradePolicy": {
            "autoUpgrade": upgrade.get("autoUpgrade", True),
            "maxParallelUpgrades": upgrade.get("maxParallelUpgrades", 1),
            "maxUnavailable": upgrade.get("maxUnavailable", "25%"),
            "waitForCompletion": {**_WHEN_DONE, **upgrade.get("waitForCompletion", {})},
            "podDeletion": _GENTLY,
            "drain": {"enable": False, **_GENTLY},
        },
    }
    own: Pointer = (*pool.at, "driver")
    network: Pointer = ("spec", "network") if "network" in platform.spec else pool.at
    origins: Origins = {
        (): pool.at,
        **{("spec", key): (*own, key) for key in ("version", "kernelModuleType", "usePrecompiled")},
        **{("spec", key): (*pool.at, "nodeSelector") for key in ("default", "nodeSelector")},
        **below(("spec", "tolerations"), written),
        ("spec", "upgradePolicy"): (*own, "upgrade"),
        ("spec", "rdma"): network,
        ("spec", "rdma", "useHostMofed"): (*network, "ofed", "preinstalled"),
    }
    # usePrecompiled cannot change in place, so it is part of the name.
    name = f"{pool.name}-precompiled" if is_precompiled else pool.name
    return Manifest(_object("nvidia.com/v1alpha1", "NVIDIADriver", name, {"spec": spec}), origins)


def _rdma(network: Mapping[str, Any] | None) -> dict[str, bool]:
    """Without useHostMofed the GPU's driver waits for that of the NICs, which the part network then installs."""
    if network is None:
        return {"enabled": False}
    return {"enabled": True, "useHostMofed": network.get("ofed", {}).get("preinstalled", False)}


def _counter_map(namespace: str, counters: Iterable[str]) -> Manifest:
    own = [f"DCGM_FI_{name}, {kind}, DCGM_FI_{name}" for kind, names in _COUNTERS.items() for name in names.split()]
    text = "".join(f"{line}\n" for line in (*own, *counters))
    value = _object("v1", "ConfigMap", _COUNTER_MAP, {"data": {"dcgm-metrics.csv": text}}, namespace)
    at: Pointer = (*AT, "dcgmExporter", "counters")
    return Manifest(value, {(): at, ("data", "dcgm-metrics.csv"): at})


# the device plugin alone


def _of_device_plugin(
    declared: Mapping[str, Any], platform: Platform, namespace: str, pools: Sequence[_Pool]
) -> Iterator[Manifest]:
    has_nfd = declared.get("featureDiscovery", True)
    values: dict[str, Any] = {"gfd": {"enabled": True}, "nfd": {"enabled": has_nfd}}
    origins: Origins = {("nfd", "enabled"): (*AT, "featureDiscovery")}
    tolerations, written = _tolerations(declared, pools)
    if len(tolerations) > 1:
        values["tolerations"] = [*tolerations, _CRITICAL]
        values["nfd"]["worker"] = {"tolerations": [*tolerations, _CONTROL_PLANE]}
        origins |= below(("tolerations",), written) | below(("nfd", "worker", "tolerations"), written)
    if any(pool.needs_config for pool in pools):
        values["config"] = {"map": {}, "default": _default_key(pools)}
        for key, text, config in _configurations(pools):
            values["config"]["map"][key] = text
            origins |= below(("config", "map", key), config)
    else:
        values["migStrategy"] = "single"
    chart = locked("nvidia-device-plugin", declared.get("version"))
    yield release(chart, "nvidia-device-plugin", namespace, values, AT, origins)
    yield from _labels(platform.nodes, pools, with_operator=False)


# configurations of the device plugin and of mig-parted, and which node gets which


def _default_key(pools: Sequence[_Pool]) -> str:
    return next((pool.name for pool in pools if not pool.selector), _REST)


def _configurations(pools: Sequence[_Pool]) -> Iterator[tuple[str, str, Origins]]:
    """The configurations of the device plugin: key, text, and where the values in the text come from."""
    if all(pool.selector and pool.name != _REST for pool in pools):
        yield _REST, yaml_writer.document({"version": "v1", "flags": {"migStrategy": "single"}}), {(): AT}
    for pool in pools:
        value: dict[str, Any] = {"version": "v1", "flags": {"migStrategy": pool.strategy}}
        origins: Origins = {(): pool.at, ("flags", "migStrategy"): (*pool.at, "mig", "strategy")}
        shared = _shared(pool)
        for mode, declared in pool.part("sharing").items():
            own = {key: given for key, given in declared.items() if key != "replicas"}
            resources = [{"name": name, "replicas": declared["replicas"]} for name in shared]
            value.setdefault("sharing", {})[mode] = {**own, "resources": resources}
            at: Pointer = ("sharing", mode)
            origins |= {at: (*pool.at, *at), (*at, "resources"): (*pool.at, *at)}
            for number in range(len(shared)):
                origins[(*at, "resources", number, "replicas")] = (*pool.at, *at, "replicas")
                origins[(*at, "resources", number, "name")] = (*pool.at, *at)
        yield pool.name, yaml_writer.document(value), origins


def _shared(pool: _Pool) -> list[str]:
    """The resources that sharing applies to, under the names that they have without it."""
    if pool.strategy != "mixed" or pool.mig_config is None:
        return [_GPU]
    profiles = {pool.mig["profile"]: None} if "profile" in pool.mig else {}
    for entry in pool.mig.get("devices", ()):
        profiles |= dict.fromkeys(entry.get("mig-devices", {}))
        if entry.get("mig-enabled") is False:
            profiles |= {"": None}  # a GPU that stays whole
    return [f"nvidia.com/mig-{name.replace('+', '.')}" if name else _GPU for name in sorted(profiles)]


def _config_map(namespace: str, pools: Sequence[_Pool]) -> Manifest:
    data: dict[str, str] = {}
    origins: Origins = {(): AT}
    for key, text, written in _configurations(pools):
        data[key] = text
        origins |= below(("data", key), written)
    return Manifest(_object("v1", "ConfigMap", _PLUGIN_MAP, {"data": data}, namespace), origins)


def _mig_map(namespace: str, pools: Sequence[_Pool]) -> Manifest:
    """Takes the place of the operator's own table."""
    own = {pool.name: pool for pool in pools if "devices" in pool.mig}
    configs = {_MIG_OFF: [{"devices": "all", "mig-enabled": False}]}
    configs |= {name: pool.mig["devices"] for name, pool in own.items()}
    text = yaml_writer.document({"version": "v1", "mig-configs": configs})
    origins: Origins = {(): AT}
    for name, pool in own.items():
        origins[("data", "config.yaml", "mig-configs", name)] = (*pool.at, "mig", "devices")
    return Manifest(_object("v1", "ConfigMap", _MIG_MAP, {"data": {"config.yaml": text}}, namespace), origins)


def _labels(nodes: Sequence[Node], pools: Sequence[_Pool], *, with_operator: bool) -> Iterator[Manifest]:
    """The labels by which a pool's nodes get its configurations, written by node-feature-discovery. Nodes that have
    them already are named too: it takes off what its rules no longer say."""
    rules: list[dict[str, Any]] = []
    origins: Origins = {(): (*AT, "pools")}
    for pool in pools:
        labels = {_PLUGIN_CONFIG: pool.name} if any(each.needs_config for each in pools) and pool.selector else {}
        if with_operator and pool.mig_config:
            labels[_MIG_CONFIG] = pool.mig_config
        if with_operator and pool.has_own_driver and not all(each.has_own_driver for each in pools):
            labels[_DRIVER] = "false"
        names = [node.name for node in _of_pool(nodes, pool, pools)]
        if labels and names:
            match = {"feature": "system.name", "matchExpressions": {"nodename": {"op": "In", "value": sorted(names)}}}
            origins[("spec", "rules", len(rules))] = pool.at
            rules.append({"name": pool.name, "labels": labels, "matchFeatures": [match]})
    if rules:
        body = {"spec": {"rules": rules}}
        yield Manifest(_object("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", "basalt-gpu-pools", body), origins)


def _of_pool(nodes: Iterable[Node], pool: _Pool, pools: Sequence[_Pool]) -> Iterator[Node]:
    """The nodes that the pool selects; without a selector, those with GPUs that no other pool selects."""
    others = [each for each in pools if each.selector]
    for node in nodes:
        is_left = not any(node.carries(each.selector) for each in others)
        if node.carries(pool.selector) if pool.selector else is_left and _has_gpus(node):
            yield node


def _has_gpus(node: Node) -> bool:
    is_marked = _PRODUCT in node.labels or any(node.labels.get(sign) == "true" for sign in _SIGNS)
    return is_marked or any(name.startswith(("nvidia.com/gpu", "nvidia.com/mig-")) for name in node.allocatable)
