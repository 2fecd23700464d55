"""How the GPUs of a node are partitioned: by the label that chooses a configuration of mig-parted, else by what the
node offers already.

Source: assets/state-mig-manager of NVIDIA/gpu-operator v26.7.0, api/spec/v1 of NVIDIA/mig-parted.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.quantities import parse
from basalt.views import embedding
from basalt.views.embedding import Embedded, Text, Unreadable
from basalt.views.gpu_operator import MIG_CONFIG, MIG_OFF, Settings, deploys
from basalt.views.gpu_products import is_profile

ANY = "nvidia.com/mig-*"
_RESOURCE = "nvidia.com/mig-"
_GPU = "nvidia.com/gpu"
_KEY = "config.yaml"
_DEFAULT_MAP = "default-mig-parted-config"
_ALL = "all-"
_BUILT_IN = ("all-disabled", "all-enabled", "all-balanced")


class Partition(NamedTuple):
    """The MIG devices of a node, as the device plugin names them; has_whole: some GPUs are not partitioned."""

    resources: frozenset[str]
    has_whole: bool = False


class Configs(NamedTuple):
    """The configurations that mig-parted has, by name. None for by_name: the operator's own, about 70 of them."""

    by_name: Mapping[str, Any] | None
    embedded: Embedded | None = None

    def knows(self, name: str) -> bool:
        if self.by_name is not None:
            return name in self.by_name
        return name in _BUILT_IN or is_profile(name.removeprefix(_ALL))

    def partition(self, name: str) -> Partition | None:
        """What the configuration makes of a node's GPUs; None where that cannot be told."""
        if self.by_name is not None:
            return _custom(self.by_name.get(name))
        if name == "all-enabled":
            return Partition(frozenset())
        if name == "all-balanced":
            return Partition(frozenset((ANY,)))
        profile = name.removeprefix(_ALL)
        return Partition(frozenset((_resource(profile),))) if is_profile(profile) else None


def _resource(profile: str) -> str:
    """The plus of 1g.10gb+me becomes a dot (internal/rm/device_map.go of the device plugin)."""
    return _RESOURCE + profile.replace("+", ".")


def _custom(entries: Any) -> Partition | None:
    found: set[str] = set()
    has_whole = False
    for entry in map(mapping, sequence(entries)):
        if "device-filter" in entry:
            return None  # by PCI id, which nodes do not tell
        if entry.get("mig-enabled") is True:
            found.update(_resource(str(profile)) for profile in mapping(entry.get("mig-devices")))
        else:
            has_whole = True
    return Partition(frozenset(found), has_whole) if sequence(entries) else None


def profiles_of(partition: Partition) -> Iterator[str]:
    """The MIG profiles whose names are known."""
    return (name.removeprefix(_RESOURCE) for name in sorted(partition.resources) if name != ANY)


def configs(policy: Settings, objects: Iterable[KubeObject]) -> Configs | None:
    """The configurations that the policy's MIG manager has; None where they are not declared here."""
    name = policy.get(("migManager", "config", "name"))
    if not isinstance(name, str) or name in ("", _DEFAULT_MAP):
        return Configs(None)
    pointer: Pointer = ("migManager", "config", "data", _KEY)
    texts = [policy.source.text(pointer)] if not isinstance(policy.source, KubeObject) else []
    texts += [embedding.text_at(each, ("data", _KEY)) for each in objects if _is_map(each, name)]
    return next((found for text in texts if (found := _read(text)) is not None), None)


def _is_map(declared: KubeObject, name: str) -> bool:
    return (declared.ref.group, declared.ref.kind, declared.name) == ("", "ConfigMap", name)


def _read(text: Text | None) -> Configs | None:
    found = embedding.read(text) if text is not None else None
    if found is None or isinstance(found, Unreadable):
        return None
    by_name = mapping(found.value).get("mig-configs")
    return Configs(by_name, found) if isinstance(by_name, Mapping) else None


def chosen(policy: Settings, node: Node | None) -> str:
    """The configuration that the node's label chooses, else the policy's default; empty where MIG is off."""
    if not policy.is_enabled(("migManager",)):
        return ""
    default = policy.get(("migManager", "config", "default"))
    name = node.labels.get(MIG_CONFIG, default) if node is not None else default
    if node is not None and not deploys(node, "mig-manager"):
        return ""
    return name if isinstance(name, str) and name not in MIG_OFF else ""


def offered(node: Node | None) -> Partition | None:
    """The MIG devices that the node offers already; None where it offers none."""
    amounts = node.allocatable if node is not None else {}
    found = {name for name, amount in amounts.items() if (parse(amount) or 0) > 0 and name.startswith(_RESOURCE)}
    shared = ".shared"
    bare = frozenset(name.removesuffix(shared) for name in found)
    return Partition(bare, (parse(amounts.get(_GPU)) or 0) > 0) if found else None
