"""volcano-scheduler.conf, wherever it is given: in a ConfigMap, in the values of Volcano's chart, or made from the
Environment; and what the scheduler reads there."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place, Problem
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.views import charts, embedding
from basalt.views.charts import Values
from basalt.views.embedding import Embedded, Text, Unreadable

_KEY_SUFFIX = ".conf"
_KEY_PREFIX = "volcano-scheduler"
OVERRIDE = ("custom", "scheduler_config_override")
# What the chart mounts where nobody overrides it (installer/helm/chart/volcano/config/volcano-scheduler.conf).
CHART_DEFAULT: Mapping[str, Any] = {
    "actions": "enqueue, allocate, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]},
        {
            "plugins": [
                {"name": "overcommit"},
                {"name": "drf", "enablePreemptable": False},
                *({"name": name} for name in ("predicates", "proportion", "nodeorder", "binpack")),
            ]
        },
    ],
}


class Plugin(NamedTuple):
    """One plugin entry: its tier and place in it, and all its settings."""

    tier: int
    place: int
    name: str
    settings: Mapping[str, Any]

    @property
    def pointer(self) -> Pointer:
        return ("tiers", self.tier, "plugins", self.place)


class Configuration(NamedTuple):
    """One scheduler configuration: what it decodes to, None where its text is not YAML, and where it stands.

    written is the text's document, the fault of a text that has none, or, where the chart's own default counts, the
    chart's values.
    """

    written: Embedded | Unreadable | Values
    value: Any

    @property
    def is_chart_default(self) -> bool:
        return isinstance(self.written, Values)

    @property
    def actions(self) -> tuple[str, ...]:
        """The names in `actions`, in order; without the empty ones."""
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

    def at(self, pointer: Pointer) -> tuple[Place, Pointer]:
        """The place and the pointer of a finding about the value at the pointer in the configuration; () is the whole
        text."""
        if isinstance(self.written, Embedded):
            text = self.written.text
            return self.written.place(pointer) if pointer else text.spot_of_all, text.pointer
        if isinstance(self.written, Unreadable):
            return self.written.spot, self.written.spot.pointer
        return self.written.at(OVERRIDE)

    def problem(self, pointer: Pointer, message: str, hint: str = "") -> Problem:
        """A problem with the value at the pointer in the configuration."""
        return Problem(*self.at(pointer), message, hint)

    def __str__(self) -> str:
        """How a message about something else names it: the object, or the file."""
        place, _ = self.at(())
        return str(place.ref) if place.ref else place.position(()).file


def configurations(config_maps: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Configuration]:
    """Every scheduler configuration in the ConfigMaps, then those in charts' values."""
    for declared in config_maps:
        for key, text in mapping(declared.value.get("data")).items():
            if key.startswith(_KEY_PREFIX) and key.endswith(_KEY_SUFFIX) and isinstance(text, str):
                yield _read(embedding.text_at(declared, ("data", key)))
    for each in values:
        if each.chart == charts.VOLCANO:
            text = each.text(OVERRIDE)
            has_text = text is not None and text.value
            yield _read(text) if has_text else Configuration(each, CHART_DEFAULT)


def _read(text: Text | None) -> Configuration:
    assert text is not None
    written = embedding.read(text)
    value = None if isinstance(written, Unreadable) else {} if written.value is None else written.value
    return Configuration(written, value)
