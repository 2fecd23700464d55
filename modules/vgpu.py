"""GPUs in shares that Volcano hands out: volcano-vgpu-device-plugin, where the part `gpu` names it as its provider. No
operator comes with it: drivers, and the runtime nvidia of containerd, are the nodes' own."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt.objects import MANAGED_BY, Manifest, pod_security
from basalt.platform import Platform
from basalt.pointers import Pointer, existing
from basalt.rendering import yaml_writer

AT: Pointer = ("spec", "gpu")
PROVIDER = "volcano-vgpu"
_NAMESPACE = "kube-system"  # where the plugin reads device-config.yaml, whatever its own: pkg/util/util.go
_NAME, _DEVICES, _NODES = "volcano-device-plugin", "volcano-vgpu-device-config", "volcano-vgpu-node-config"
_IMAGE, _VERSION = "docker.io/projecthami/volcano-vgpu-device-plugin", "v1.12.0"
_SHARES = 10
_TOLERATIONS = [
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": "volcano.sh/gpu-memory", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
]
# What the plugin v1.12.0 divides GPUs into where a pool's operatingMode is mig: profile, MiB, how many, by GPU.
# Source: its volcano-vgpu-device-plugin-cdi.yml.
_GEOMETRIES = {
    ("A30",): ("1g.6gb 6144 4", "2g.12gb 12288 2", "4g.24gb 24576 1"),
    ("A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"): (
        "1g.5gb 5120 7", "2g.10gb 10240 3 1g.5gb 5120 1", "3g.20gb 20480 2", "7g.40gb 40960 1",
    ),
    ("A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"): (
        "1g.10gb 9728 7", "2g.20gb 19968 3 1g.10gb 9728 1", "3g.40gb 40192 2", "7g.80gb 80896 1",
    ),
}  # fmt: skip
# Its ClusterRole, as upstream has it.
_RULES = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "update", "patch"]},
    {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "update", "patch", "watch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update"]},
]
_TMP = "/tmp"  # noqa: S108  of the host, where the plugin keeps what each container may use
# Host folders that the containers see: name, path, whether it must be there.
_HOST = {
    "device-plugin": ("/var/lib/kubelet/device-plugins", True), "lib": ("/usr/local/vgpu", False),
    "hosttmp": (_TMP, False), "cdi-root": ("/var/run/cdi", False), "driver-root": ("/", True),
    "usrbin": ("/usr/bin", True), "dockers": ("/run/docker", False), "containerds": ("/run/containerd", False),
    "sysinfo": ("/sys", True), "hostvar": ("/var", True),
}  # fmt: skip
_PLUGIN_MOUNTS = {
    "device-plugin": "/var/lib/kubelet/device-plugins", "lib": "/usr/local/vgpu", "hosttmp": _TMP,
    "cdi-root": "/var/run/cdi", "driver-root": "/driver-root", "usrbin": "/usrbin",
}  # fmt: skip
_MONITOR_MOUNTS = {
    "dockers": "/run/docker", "containerds": "/run/containerd", "sysinfo": "/sysinfo", "hostvar": "/hostvar",
    "hosttmp": _TMP,
}  # fmt: skip
_PRIVILEGED = {
    "privileged": True,
    "allowPrivilegeEscalation": True,
    "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
}


def vgpu(declared: Mapping[str, Any], platform: Platform) -> Iterator[Manifest]:
    """Its configurations, what its account may do, and a DaemonSet for each pool."""
    document = {"spec": platform.spec}
    for value, origins in _objects(declared, platform):
        yield Manifest(value, {at: existing(document, origin) for at, origin in origins.items()})


_Made = tuple[dict[str, Any], dict[Pointer, Pointer]]


def _objects(declared: Mapping[str, Any], platform: Platform) -> Iterator[_Made]:
    namespace = declared.get("namespace", _NAMESPACE)
    pools: Mapping[str, Mapping[str, Any]] = declared.get("pools", {})
    at: Pointer = (*AT, "namespace")
    if namespace not in (_NAMESPACE, "default"):
        yield (
            _object("v1", "Namespace", namespace, {}, None, pod_security("privileged")),
            {(): AT, ("metadata", "name"): at},
        )
    if declared.get("cdi", {}).get("enabled", True):
        yield _object("node.k8s.io/v1", "RuntimeClass", "nvidia", {"handler": "nvidia"}), {(): AT}
    text = yaml_writer.document({"nvidia": _devices()})
    yield _object("v1", "ConfigMap", _DEVICES, {"data": {"device-config.yaml": text}}, _NAMESPACE), {(): AT}
    yield _node_config(pools, platform, namespace)
    yield _object("v1", "ServiceAccount", _NAME, {}, namespace), {(): AT}
    yield _object("rbac.authorization.k8s.io/v1", "ClusterRole", _NAME, {"rules": _RULES}), {(): AT}
    subjects = [{"kind": "ServiceAccount", "name": _NAME, "namespace": namespace}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
    body = {"roleRef": role, "subjects": subjects}
    yield _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", _NAME, body), {(): AT}
    if not pools:
        yield _daemon_set(_NAME, {}, declared, namespace), {(): AT, _at_pod("tolerations"): (*AT, "tolerations")}
    for name, pool in pools.items():
        own: Pointer = (*AT, "pools", name)
        origins = {(): own, **{_at_pod(key): (*own, key) for key in ("nodeSelector", "tolerations")}}
        yield _daemon_set(f"{_NAME}-{name}", pool, declared, namespace), origins


def _at_pod(key: str) -> Pointer:
    return ("spec", "template", "spec", key)


def _object(
    api_version: str,
    kind: str,
    name: str,
    body: dict[str, Any],
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    where = {} if namespace is None else {"namespace": namespace}
    metadata = {"name": name, **where, "labels": {**MANAGED_BY, **(labels or {})}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def _devices() -> dict[str, Any]:
    """Read by the plugin and by Volcano's scheduler alike."""
    return {
        **{f"resource{name}Name": f"volcano.sh/vgpu-{resource}" for name, resource in (
            ("Count", "number"), ("Memory", "memory"), ("MemoryPercentage", "memory-percentage"), ("Core", "cores"),
        )},
        "overwriteEnv": False,
        "defaultMemory": 0,
        "defaultCores": 0,
        "defaultGPUNum": 1,
        "deviceSplitCount": _SHARES,
        "deviceMemoryScaling": 1,
        "deviceCoreScaling": 1,
        "gpuMemoryFactor": 1,
        "knownMigGeometries": [
            {"models": list(models), "allowedGeometries": [
                {"group": f"group{number}", "geometries": list(_geometry(text.split()))}
                for number, text in enumerate(geometries, 1)
            ]}
            for models, geometries in _GEOMETRIES.items()
        ],
    }  # fmt: skip


def _geometry(words: list[str]) -> Iterator[dict[str, Any]]:
    for name, memory, count in zip(words[::3], words[1::3], words[2::3], strict=True):
        yield {"name": name, "memory": int(memory), "count": int(count)}


def _node_config(pools: Mapping[str, Mapping[str, Any]], platform: Platform, namespace: str) -> _Made:
    """What differs between nodes: the plugin knows them by name only."""
    entries: list[dict[str, Any]] = []
    origins: dict[Pointer, Pointer] = {(): (*AT, "pools")}
    for name, pool in pools.items():
        if "vgpu" not in pool:
            continue
        selector: Mapping[str, str] = pool.get("nodeSelector", {})
        for node in platform.nodes:
            if node.carries(selector):
                origins["data", "config.json", "nodeconfig", len(entries)] = (*AT, "pools", name, "vgpu")
                entries.append(_of_node(node.name, pool["vgpu"]))
    text = json.dumps({"nodeconfig": entries}, indent=2) + "\n"
    return _object("v1", "ConfigMap", _NODES, {"data": {"config.json": text}}, namespace), origins


def _of_node(name: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "operatingmode": declared.get("operatingMode", "hami-core"),
        "devicememoryscaling": declared.get("deviceMemoryScaling", 1),
        "devicesplitcount": declared.get("deviceSplitCount", _SHARES),
        "migstrategy": "none",
        "filterdevices": {"uuid": [], "index": []},
    }


def _daemon_set(name: str, pool: Mapping[str, Any], declared: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    own = [
        each for each in (*declared.get("tolerations", ()), *pool.get("tolerations", ())) if each not in _TOLERATIONS
    ]
    with_cdi = declared.get("cdi", {}).get("enabled", True)
    shares = pool.get("vgpu", {}).get("deviceSplitCount", _SHARES)
    image = f"{_IMAGE}:{declared.get('version', _VERSION)}"
    pod: dict[str, Any] = {
        **({"runtimeClassName": "nvidia"} if with_cdi else {}),
        "serviceAccountName": _NAME,
        "priorityClassName": "system-node-critical",
        **({"nodeSelector": dict(pool["nodeSelector"])} if pool.get("nodeSelector") else {}),
        "tolerations": [*_TOLERATIONS, *own],
        "containers": [_plugin(image, shares, with_cdi=with_cdi), _monitor(image)],
        "volumes": [{"name": "deviceconfig", "configMap": {"name": _NODES}}, *_volumes()],
    }
    labels = {"name": name}
    body = {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": "RollingUpdate"},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return _object("apps/v1", "DaemonSet", name, {"spec": body}, namespace)


def _plugin(image: str, shares: int, *, with_cdi: bool) -> dict[str, Any]:
    """Without CDI devices come by an environment variable, which pods can set themselves where nvidia is the default
    runtime."""
    copy = ["/bin/sh", "-c", "cp -f /k8s-vgpu/lib/nvidia/* /usr/local/vgpu/"]
    variables = {
        "HOOK_PATH": "/usr/local/vgpu",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_MIG_MONITOR_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "utility",
        "DEVICE_LIST_STRATEGY": "cdi-annotations" if with_cdi else "envvar",
        "NVIDIA_DRIVER_ROOT": "/",
        "NVIDIA_CDI_HOOK_PATH": "/usrbin/nvidia-ctk",
    }
    return {
        "name": _NAME,
        "image": image,
        "args": [f"--device-split-count={shares}"],
        "lifecycle": {"postStart": {"exec": {"command": copy}}},
        "env": _environment(variables),
        "securityContext": _PRIVILEGED,
        "volumeMounts": [{"name": "deviceconfig", "mountPath": "/config"}, *_mounts(_PLUGIN_MOUNTS)],
    }


def _monitor(image: str) -> dict[str, Any]:
    variables = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_MIG_MONITOR_DEVICES": "all", "HOOK_PATH": f"{_TMP}/vgpu"}
    return {
        "name": "monitor",
        "image": image,
        "command": ["/bin/bash", "-c", "volcano-vgpu-monitor"],
        "env": _environment(variables),
        "securityContext": _PRIVILEGED,
        "volumeMounts": list(_mounts(_MONITOR_MOUNTS)),
    }


def _environment(variables: Mapping[str, str]) -> list[dict[str, Any]]:
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return [node, *({"name": name, "value": value} for name, value in variables.items())]


def _mounts(mounts: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for name, path in mounts.items():
        is_read = name in ("driver-root", "usrbin")
        yield {"name": name, "mountPath": path, **({"readOnly": True} if is_read else {})}


def _volumes() -> Iterable[dict[str, Any]]:
    for name, (path, is_there) in _HOST.items():
        yield {"name": name, "hostPath": {"path": path, "type": "Directory" if is_there else "DirectoryOrCreate"}}
