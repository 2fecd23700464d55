"""volcano-scheduler.conf as Volcano decodes it, as far as other rules ask: which actions and plugins are on."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.loading import yaml_text
from basalt.loading.limits import Fault
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer

_KEY_SUFFIX = ".conf"
_KEY_PREFIX = "volcano-scheduler"


class Plugin(NamedTuple):
    """One plugin entry: its tier and place in it, and all its settings."""

    tier: int
    place: int
    name: str
    settings: Mapping[str, Any]


class Configuration(NamedTuple):
    """One configuration text, where it stands, and what it decodes to (None where it is not YAML)."""

    object: KubeObject
    pointer: Pointer
    value: Any

    @property
    def actions(self) -> tuple[str, ...]:
        text = mapping(self.value).get("actions")
        names = text.split(",") if isinstance(text, str) else []
        return tuple(name.strip() for name in names if name.strip())

    def plugins(self) -> Iterator[Plugin]:
        for tier, entry in enumerate(sequence(mapping(self.value).get("tiers"))):
            for place, plugin in enumerate(sequence(mapping(entry).get("plugins"))):
                yield Plugin(tier, place, str(mapping(plugin).get("name")), mapping(plugin))

    def has_plugin(self, name: str) -> bool:
        return any(plugin.name == name for plugin in self.plugins())

    def plugin_has(self, name: str, flag: str) -> bool:
        """Whether some entry of the plugin switches the flag on."""
        return any(plugin.name == name and plugin.settings.get(flag) is True for plugin in self.plugins())

    def has_action(self, *names: str) -> bool:
        return any(name in self.actions for name in names)


def configurations(config_maps: Iterable[KubeObject]) -> Iterator[Configuration]:
    """Every scheduler configuration that the ConfigMaps hold."""
    for declared in config_maps:
        for key, text in mapping(declared.value.get("data")).items():
            if key.startswith(_KEY_PREFIX) and key.endswith(_KEY_SUFFIX) and isinstance(text, str):
                yield Configuration(declared, ("data", key), _decode(text))


def _decode(text: str) -> Any:
    """The value of the text's first document; None where it is not YAML."""
    try:
        return next((parsed.value for parsed in yaml_text.documents(text)), {})
    except Fault:
        return None
