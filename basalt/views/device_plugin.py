"""The configurations of NVIDIA's device plugin: under which names it offers GPUs, and what it would refuse.

Source: api/config/v1 and cmd/nvidia-device-plugin/main.go of NVIDIA/k8s-device-plugin v0.20.0.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt import names
from basalt.findings import Place
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, get
from basalt.views import embedding
from basalt.views.charts import Values
from basalt.views.embedding import Embedded, Text, Unreadable

GPU = "nvidia.com/gpu"
LABEL = "nvidia.com/device-plugin.config"
_PREFIX, _SHARED = "nvidia.com/", ".shared"
_TIME_SLICING, _MPS = "timeSlicing", "mps"
_MODES = (_TIME_SLICING, _MPS)
_MOST_CLIENTS = 48  # of an MPS server, on Turing and later: maxClients in cmd/mps-control-daemon/mps/device.go
_NAME_LENGTH = 63


class Fault(NamedTuple):
    """What the plugin refuses, or drops in silence: where in the configuration, the fact, the way out."""

    pointer: Pointer
    message: str
    hint: str


class Config(NamedTuple):
    """One named configuration."""

    name: str
    embedded: Embedded

    @property
    def value(self) -> Mapping[str, Any]:
        return mapping(self.embedded.value)

    def at(self, pointer: Pointer) -> tuple[Place, Pointer]:
        return self.embedded.place(pointer), self.embedded.pointer

    @property
    def strategy(self) -> str | None:
        """flags.migStrategy, where it is given."""
        given = get(self.value, ("flags", "migStrategy"))
        return given if isinstance(given, str) and given else None

    @property
    def sharing(self) -> str | None:
        """The mode that takes effect (SharingStrategy in api/config/v1/sharing.go)."""
        sharing = mapping(self.value.get("sharing"))
        return next((mode for mode in (_MPS, _TIME_SLICING) if isinstance(sharing.get(mode), Mapping)), None)

    @property
    def shares_by_mps(self) -> bool:
        return self.sharing == _MPS

    def offered(self, resource: str) -> str:
        """The name that the resource goes by: sharing may rename it."""
        block = mapping(get(self.value, ("sharing", self.sharing))) if self.sharing else {}
        if block.get("renameByDefault") is not True:
            return resource
        shared = [mapping(each).get("name") for each in sequence(block.get("resources"))]
        return resource + _SHARED if resource in map(_full, shared) else resource


class Configs(NamedTuple):
    """The configurations that one ConfigMap (or one chart's values) has, by key. keys are all of them, the unreadable
    ones too."""

    name: str
    by_key: Mapping[str, Config]
    keys: frozenset[str]
    place: Place
    namespace: str | None = None


def _full(name: Any) -> str:
    return name if isinstance(name, str) and name.startswith(_PREFIX) else f"{_PREFIX}{name}"


def of_config_map(declared: KubeObject) -> Configs:
    data = mapping(declared.value.get("data"))
    texts = {str(key): embedding.text_at(declared, ("data", key)) for key in data}
    return Configs(declared.name, _read(texts), frozenset(texts), declared, declared.ref.namespace)


def of_values(values: Values, pointer: Pointer, name: str) -> Configs:
    """Those that a chart makes a ConfigMap of."""
    texts = {str(key): values.text((*pointer, key)) for key in mapping(values.get(pointer))}
    return Configs(name, _read(texts), frozenset(texts), values.place)


def _read(texts: Mapping[str, Text | None]) -> dict[str, Config]:
    found = {}
    for key, text in texts.items():
        read = embedding.read(text) if text is not None else None
        if isinstance(read, Embedded) and isinstance(read.value, Mapping) and not isinstance(read, Unreadable):
            found[key] = Config(key, read)
    return found


def is_config(value: Any) -> bool:
    """Whether a text is a configuration of the plugin, known by what is in it."""
    sharing, flags = mapping(mapping(value).get("sharing")), mapping(mapping(value).get("flags"))
    return any(mode in sharing for mode in _MODES) or any(key in flags for key in ("migStrategy", "plugin", "gfd"))


def config_maps(objects: Iterable[KubeObject]) -> Iterator[Configs]:
    """The ConfigMaps that hold configurations of the plugin."""
    for declared in objects:
        if (declared.ref.group, declared.ref.kind) == ("", "ConfigMap") and _may_hold(declared):
            found = of_config_map(declared)
            if any(is_config(config.value) for config in found.by_key.values()):
                yield found


def named(objects: Iterable[KubeObject], name: Any) -> Configs | None:
    """The ConfigMap that somebody names as the plugin's, whatever is in it."""
    if not isinstance(name, str) or not name:
        return None
    maps = (each for each in objects if (each.ref.group, each.ref.kind, each.name) == ("", "ConfigMap", name))
    return next(map(of_config_map, maps), None)


def _may_hold(declared: KubeObject) -> bool:
    """Most ConfigMaps are something else: their texts need no parsing."""
    texts = mapping(declared.value.get("data")).values()
    words = (*_MODES, "migStrategy", "plugin:", "gfd:")
    return any(isinstance(text, str) and any(word in text for word in words) for text in texts)


def faults(config: Config, strategy: str | None = None) -> Iterator[Fault]:
    """What is wrong with how the configuration shares GPUs; strategy is the MIG strategy that the plugin runs with."""
    sharing = mapping(config.value.get("sharing"))
    given = [mode for mode in _MODES if isinstance(sharing.get(mode), Mapping)]
    if len(given) == 2:
        message = "both timeSlicing and mps share the GPUs; the plugin takes mps and drops timeSlicing in silence"
        yield Fault(("sharing", _TIME_SLICING), message, "keep one of the two")
    for mode in given:
        yield from _of_mode(mode, mapping(sharing[mode]))
    strategy = strategy or config.strategy
    if _MPS in given and strategy == "mixed":
        at: Pointer = ("flags", "migStrategy") if config.strategy else ("sharing", _MPS)
        message = "mps with the MIG strategy mixed: the plugin does not start"
        yield Fault(at, message, "share by timeSlicing, or set the strategy to none")
    for kind, given_names in mapping(config.value.get("resources")).items():
        if sequence(given_names):
            message = f"resources.{kind} is ignored: the plugin does not rename what it offers"
            yield Fault(("resources", kind), message, "take it out; only sharing.renameByDefault renames")


def _of_mode(mode: str, block: Mapping[str, Any]) -> Iterator[Fault]:
    at: Pointer = ("sharing", mode)
    resources = block.get("resources")
    if resources is None or resources == []:
        hint = f"add resources, such as {{name: {GPU}, replicas: 4}}"
        yield Fault((*at, "resources"), f"{mode} names no resources: the plugin refuses the configuration", hint)
    for number, resource in enumerate(map(mapping, sequence(resources))):
        yield from _of_resource(mode, resource, (*at, "resources", number))


def _of_resource(mode: str, resource: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    name, replicas = resource.get("name"), resource.get("replicas")
    if not resource:
        return
    if "replicas" not in resource or (isinstance(replicas, int) and not isinstance(replicas, bool) and replicas < 2):
        has = f"replicas {replicas}" if "replicas" in resource else "no replicas"
        message = f"{name} has {has}; at least 2 are needed, the plugin refuses the configuration"
        yield Fault((*at, "replicas"), message, "set replicas to 2 or more, or leave the resource out")
    elif mode == _MPS and isinstance(replicas, int) and replicas > _MOST_CLIENTS:
        message = f"{name} has replicas {replicas}; an MPS server takes {_MOST_CLIENTS} clients at most"
        yield Fault((*at, "replicas"), message, f"lower replicas to {_MOST_CLIENTS}")
    yield from _of_name(mode, name, at)
    for field in ("rename", "devices"):
        if field in resource and resource[field] not in ("all", ""):
            message = f"{field} of {name} is ignored: the plugin shares every GPU of the node, under its own name"
            hint = "take it out; renameByDefault: true adds .shared to the name" if field == "rename" else "take it out"
            yield Fault((*at, field), message, hint)


def _of_name(mode: str, name: Any, at: Pointer) -> Iterator[Fault]:
    if not isinstance(name, str):
        return
    full = _full(name)
    if len(full) > _NAME_LENGTH:
        yield Fault((*at, "name"), f"{full} has {len(full)} characters, {_NAME_LENGTH} are allowed", "shorten it")
    elif full != GPU and not full.startswith(f"{GPU.rpartition('/')[0]}/mig-"):
        message = f"{name} is nothing that the plugin offers: it has {GPU} and {_PREFIX}mig-<profile>"
        yield Fault((*at, "name"), message, names.did_you_mean(full, (GPU,), otherwise=f"name {GPU}"))
    elif mode == _MPS and full != GPU:
        message = f"mps shares {GPU} only, not {name}: it does not work on MIG devices"
        yield Fault((*at, "name"), message, f"name {GPU}, or share {name} by timeSlicing")
