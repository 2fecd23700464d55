"""Whatever offers GPUs to pods: the device plugin of the GPU operator, of its own chart or as a plain DaemonSet, HAMi,
Volcano's vGPU plugin, and the DRA driver.

Source: the values.yaml of NVIDIA/gpu-operator v26.7.0, NVIDIA/k8s-device-plugin v0.20.0, Project-HAMi/HAMi v2.10.0 and
kubernetes-sigs/dra-driver-nvidia-gpu v0.4.0; docs/user-guide/how_to_use_vgpu.md of Volcano.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from basalt.findings import Place, Source
from basalt.gathering import places
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, existing, get
from basalt.views import device_plugin, gpu_operator, images, mig
from basalt.views.charts import Values
from basalt.views.descheduler_policy import is_partial
from basalt.views.device_plugin import GPU, LABEL, Config, Configs
from basalt.views.gpu_operator import Settings, deploys, is_gpu_node

ANYTHING = "*"
PLUGIN_CHART, HAMI_CHART = "nvidia-device-plugin", "hami"
DRA_CHARTS = ("dra-driver-nvidia-gpu", "nvidia-dra-driver-gpu")
_VGPU = frozenset(f"volcano.sh/vgpu-{each}" for each in ("number", "memory", "memory-percentage", "cores"))
_HAMI = {  # value -> what the chart gives
    "resourceName": GPU,
    "resourceMem": "nvidia.com/gpumem",
    "resourceMemPercentage": "nvidia.com/gpumem-percentage",
    "resourceCores": "nvidia.com/gpucores",
}
_PLUGIN_IMAGES = ("k8s-device-plugin", "nvidia-device-plugin")
_VGPU_IMAGE = "volcano-vgpu-device-plugin"
# Whose images are called k8s-device-plugin too, or are mirrored below their name.
_OTHER_VENDORS = frozenset("rocm amd intel xilinx cambricon ascend huawei iluvatar kunlun metax mthreads hygon".split())
_OTHER_PROGRAMS = ("gpu-feature-discovery", "mps-control-daemon", "config-manager")
_SPEC: Pointer = ("spec", "template", "spec")
_FALLBACKS = ("named", "single")  # config.fallbackStrategies of the plugin's chart


@dataclass(frozen=True, eq=False, kw_only=True)
class Provider:
    """One part that offers GPUs: where it is declared, and the nodes that it is meant for. names are what it offers;
    a `*` among them where that is not known."""

    title: str
    place: Place
    pointer: Pointer
    selector: Mapping[str, Any] = field(default_factory=dict)
    names: frozenset[str] = frozenset((ANYTHING,))

    def covers(self, node: Node | None) -> bool:
        return node is None or (is_gpu_node(node) and node.carries(self.selector))

    def resources(self, _node: Node | None) -> frozenset[str]:
        return self.names

    @property
    def order(self) -> Source:
        return self.place.position(self.pointer)

    def is_apart_from(self, other: "Provider") -> bool:
        """Whether no node can be for both, whatever its labels."""
        return any(other.selector.get(key, value) != value for key, value in self.selector.items())


@dataclass(frozen=True, eq=False, kw_only=True)
class Plugin(Provider):
    """NVIDIA's device plugin. strategy is the MIG strategy that it is started with, None where its configuration tells;
    policy is what configures the GPU operator, where that runs it."""

    strategy: str | None = None
    configs: Configs | None = None
    default: str = ""
    wants_configs: bool = False  # they are declared elsewhere where configs is None
    makes_configs: bool = False  # its chart makes them, or may
    fallbacks: tuple[str, ...] = ()
    policy: Settings | None = None
    mig_configs: mig.Configs | None = None

    def covers(self, node: Node | None) -> bool:
        return super().covers(node) and (node is None or self.policy is None or deploys(node, "device-plugin"))

    def resources(self, node: Node | None) -> frozenset[str]:
        if self.wants_configs and self.configs is None:
            return frozenset((ANYTHING,))
        keys = self.keys(node)
        if self.configs is not None and any(key and key not in self.configs.by_key for key in keys):
            return frozenset((ANYTHING,))
        return frozenset().union(*(self._offered(node, self.config(key)) for key in keys))

    def config(self, key: str) -> Config | None:
        return self.configs.by_key.get(key) if self.configs is not None else None

    def keys(self, node: Node | None) -> list[str]:
        """The configurations that the node may run with; an empty one for none."""
        if self.configs is None:
            return [""]
        if node is not None and node.labels.get(LABEL):
            return [node.labels[LABEL]]
        default = self.default or self._fallback(self.configs)
        others = [key for key in sorted(self.configs.by_key) if key != default] if node is None else []
        return [default, *others]

    def _fallback(self, configs: Configs) -> str:
        if "named" in self.fallbacks and "default" in configs.keys:
            return "default"
        return next(iter(configs.keys)) if "single" in self.fallbacks and len(configs.keys) == 1 else ""

    def strategy_with(self, config: Config | None) -> str:
        """What the plugin is started with goes before its configuration (updateFromCLIFlag in api/config/v1)."""
        return self.strategy or (config.strategy if config else None) or "none"

    def _offered(self, node: Node | None, config: Config | None) -> Iterable[str]:
        found = self._bare(self.strategy_with(config), node)
        return (config.offered(name) for name in found) if config is not None else found

    def _bare(self, strategy: str, node: Node | None) -> frozenset[str]:
        if strategy == "none":
            return frozenset((GPU,))
        name = mig.chosen(self.policy, node) if self.policy is not None else ""
        if name:
            partition = self.mig_configs.partition(name) if self.mig_configs is not None else None
            if partition is None:
                return frozenset((ANYTHING,))
        elif node is None:
            return frozenset((GPU, mig.ANY) if strategy == "mixed" else (GPU,))
        else:
            partition = mig.offered(node)
        return _partitioned(strategy, partition)


def _partitioned(strategy: str, partition: mig.Partition | None) -> frozenset[str]:
    if partition is None:
        return frozenset((GPU,))
    if strategy == "mixed":
        return partition.resources | (frozenset((GPU,)) if partition.has_whole else frozenset())
    is_uniform = len(partition.resources) == 1 and not partition.has_whole and mig.ANY not in partition.resources
    return frozenset((GPU,)) if is_uniform else frozenset()  # the plugin refuses mixtures with the strategy single


def providers(objects: Sequence[KubeObject], values: Sequence[Values]) -> Iterator[Provider]:
    """Every part that is declared and offers GPUs."""
    for policy in gpu_operator.policies(objects, values):
        if policy.is_enabled(("devicePlugin",)):
            yield _of_operator(policy, objects)
    for each in values:
        yield from _of_chart(each, objects)
    for declared in objects:
        if (declared.ref.group, declared.ref.kind) == ("apps", "DaemonSet"):
            yield from _of_daemon_set(declared, objects)
        elif (declared.ref.group, declared.ref.kind) == ("resource.k8s.io", "DeviceClass"):
            yield from _of_device_class(declared)
    for cluster in gpu_operator.of_kind(objects, "GPUCluster"):
        yield Provider(title=f"the GPUCluster {cluster.name}", place=cluster, pointer=("kind",))


def _of_device_class(declared: KubeObject) -> Iterator[Provider]:
    """One that answers requests for an extended resource (DRAExtendedResource in Kubernetes)."""
    name = declared.spec.get("extendedResourceName")
    if isinstance(name, str) and name.startswith("nvidia.com/"):
        pointer: Pointer = ("spec", "extendedResourceName")
        title = f"the DeviceClass {declared.name}"
        yield Provider(title=title, place=declared, pointer=pointer, names=frozenset((name,)))


def _of_operator(policy: Settings, objects: Sequence[KubeObject]) -> Plugin:
    place, pointer = policy.at(("devicePlugin",))
    strategy = policy.get(("mig", "strategy"))
    name, default = (policy.get(("devicePlugin", "config", key)) for key in ("name", "default"))
    configs = device_plugin.named(objects, name)
    if isinstance(policy.source, Values) and policy.get(("devicePlugin", "config", "create")) is True:
        configs = device_plugin.of_values(policy.source, ("devicePlugin", "config", "data"), str(name))
    return Plugin(
        title=f"the device plugin of {policy.title}",
        place=place,
        pointer=pointer,
        strategy=strategy if isinstance(strategy, str) and strategy else None,
        configs=configs,
        default=default if isinstance(default, str) else "",
        wants_configs=bool(name) or policy.is_partial,
        makes_configs=policy.is_partial or policy.get(("devicePlugin", "config", "create")) is True,
        policy=policy,
        mig_configs=mig.configs(policy, objects),
    )


def _of_chart(values: Values, objects: Sequence[KubeObject]) -> Iterator[Provider]:
    place, pointer = values.at(())
    pointer = existing(places.value(place), pointer)
    if values.chart == PLUGIN_CHART and values.get(("devicePlugin", "enabled")) is not False:
        name, strategy = values.get(("config", "name")), values.get(("migStrategy",))
        own = device_plugin.of_values(values, ("config", "map"), "") if values.get(("config", "map")) else None
        yield Plugin(
            title=f"the chart {values.chart}",
            place=place,
            pointer=pointer,
            selector=mapping(values.get(("nodeSelector",))),
            strategy=strategy if isinstance(strategy, str) and strategy else None,
            configs=own or device_plugin.named(objects, name),
            default=str(values.get(("config", "default")) or ""),
            wants_configs=bool(name) or is_partial(values),
            fallbacks=tuple(strings(values.get(("config", "fallbackStrategies")))) or _FALLBACKS,
        )
    elif values.chart == HAMI_CHART and values.get(("devicePlugin", "enabled")) is not False:
        selector = values.get(("devicePlugin", "nvidiaNodeSelector"))
        given = {key: values.get((key,)) for key in _HAMI}
        names = frozenset(str(given[key] or default) for key, default in _HAMI.items())
        chosen = mapping({"gpu": "on"} if selector is None else selector)
        yield Provider(title="the chart hami", place=place, pointer=pointer, selector=chosen, names=names)
    elif values.chart in DRA_CHARTS and _allocates_gpus(values):
        yield Provider(title=f"the chart {values.chart} with resources.gpus", place=place, pointer=pointer)


def _allocates_gpus(values: Values) -> bool:
    """The chart refuses to be installed so, unless it is told to all the same."""
    is_enabled = values.get(("resources", "gpus", "enabled"))
    return is_enabled is True or (is_enabled is None and values.get(("gpuResourcesEnabledOverride",)) is True)


def _of_daemon_set(declared: KubeObject, objects: Sequence[KubeObject]) -> Iterator[Provider]:
    pod = mapping(get(declared.value, _SPEC))
    for number, container in enumerate(map(mapping, sequence(pod.get("containers")))):
        image = images.program(container.get("image"))
        pointer: Pointer = (*_SPEC, "containers", number, "image")
        selector = mapping(pod.get("nodeSelector"))
        title = f"the DaemonSet {declared.name}"
        if image == _VGPU_IMAGE:
            yield Provider(title=title, place=declared, pointer=pointer, selector=selector, names=_VGPU)
            return
        if image in _PLUGIN_IMAGES and is_of_nvidia(container) and not _words(container) & set(_OTHER_PROGRAMS):
            configs, wants = _mounted(pod, objects)
            yield Plugin(
                title=title,
                place=declared,
                pointer=pointer,
                selector=selector,
                strategy=_strategy(container),
                configs=configs,
                wants_configs=wants,
                fallbacks=_FALLBACKS,
            )
            return


def is_of_nvidia(container: Mapping[str, Any]) -> bool:
    """Whether no other vendor's name stands before the image's; docker.io/rocm/k8s-device-plugin is AMD's."""
    above = str(container.get("image")).partition("@")[0].split("/")[:-1]
    return above[-1:] == ["nvidia"] or _OTHER_VENDORS.isdisjoint(word for part in above for word in part.split("-"))


def _words(container: Mapping[str, Any]) -> set[str]:
    words = [*strings(container.get("command")), *strings(container.get("args"))]
    return {word.rpartition("/")[2] for text in words for word in text.split()}


def _strategy(container: Mapping[str, Any]) -> str | None:
    flags = [word for word in _words(container) if word.startswith("--mig-strategy=")]
    given = [flag.partition("=")[2] for flag in flags]
    environment = map(mapping, sequence(container.get("env")))
    given += [str(each.get("value")) for each in environment if each.get("name") == "MIG_STRATEGY"]
    return given[0] if given else None


def _mounted(pod: Mapping[str, Any], objects: Sequence[KubeObject]) -> tuple[Configs | None, bool]:
    """The configurations in the ConfigMaps that the pod mounts, and whether it mounts any ConfigMap at all."""
    volumes = map(mapping, sequence(pod.get("volumes")))
    mounted = [mapping(volume.get("configMap")).get("name") for volume in volumes if "configMap" in volume]
    found = [configs for name in mounted if (configs := device_plugin.named(objects, name)) is not None]
    return (found[0] if found else None), bool(mounted)
