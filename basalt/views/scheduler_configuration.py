"""volcano-scheduler.conf, wherever it is given: in a ConfigMap, in the values of Volcano's chart, or made from the
Environment; and what the scheduler reads there."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place, Problem
from basalt.loading import scalars, yaml_text
from basalt.loading.limits import Fault
from basalt.loading.yaml_text import Parsed
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, get
from basalt.views import charts, embedding
from basalt.views.charts import Values
from basalt.views.embedding import Embedded, Text, Unreadable

_KEY_SUFFIX = ".conf"
_KEY_PREFIX = "volcano-scheduler"
OVERRIDE = ("custom", "scheduler_config_override")
PREEMPTING = ("preempt", "gangpreempt")  # the actions that evict a pod for one of a higher class
_PLUGINS_DIR = ("custom", "scheduler_plugins_dir")
_A_NAME = ("tiers", 0, "plugins", 0, "name")
_INTEGER = re.compile(r"[-+]?(0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_OCTAL = re.compile(r"^([-+]?0)(?=[0-7])")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_FINITE = {
    **dict.fromkeys((".inf", ".Inf", ".INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_PLUGINS_FLAG = re.compile(r"--?plugins-dir(=(?P<folder>.*))?")
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


class NoText(NamedTuple):
    """What stands in a chart's values where the chart takes a text."""

    values: Values
    value: Any


class Configuration(NamedTuple):
    """One scheduler configuration: what it decodes to, None where it is no YAML text, and where it stands.

    written is the text's document, the fault of a text that has none, what stands in place of a text, or, where the
    chart's own default counts, the chart's values. repeated are the keys that stand again in their map, of which the
    last counts.
    """

    written: Embedded | Unreadable | NoText | Values
    value: Any
    repeated: tuple[Fault, ...] = ()

    @property
    def is_chart_default(self) -> bool:
        return isinstance(self.written, Values)

    @property
    def is_generated(self) -> bool:
        """Whether Basalt made it, of a document whose schema has all its keys."""
        place = self.written.text.place if isinstance(self.written, Embedded) else None
        return isinstance(place, KubeObject) and place.module is not None

    @property
    def actions(self) -> tuple[str, ...]:
        """The names in `actions`, in order; without the empty ones."""
        return tuple(name for name in self.written_actions if name)

    @property
    def written_actions(self) -> tuple[str, ...]:
        """The names in `actions`, in order and with the empty ones, as Volcano takes the text apart."""
        given = mapping(self.value).get("actions")
        text = "" if given is None or isinstance(given, Mapping | list) else str(given)
        return tuple(name.strip() for name in text.split(","))

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
        values = self.written.values if isinstance(self.written, NoText) else self.written
        return values.at(OVERRIDE)

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
            yield _of_chart(each)


def has_own_plugins(values: Iterable[Values], deployments: Iterable[KubeObject]) -> bool:
    """Whether some scheduler loads plugins of somebody's own (.so files in --plugins-dir)."""
    given = (each.get(_PLUGINS_DIR) for each in values if each.chart == charts.VOLCANO)
    return any(given) or any(map(_has_plugins_flag, deployments))


def _has_plugins_flag(deployment: KubeObject) -> bool:
    pod = mapping(get(deployment.value, ("spec", "template", "spec")))
    for container in map(mapping, sequence(pod.get("containers"))):
        words = " ".join((*strings(container.get("command")), *strings(container.get("args")))).split()
        flags = filter(None, map(_PLUGINS_FLAG.fullmatch, words))
        if any(flag["folder"] != "" for flag in flags):
            return True
    return False


def _of_chart(values: Values) -> Configuration:
    """The chart takes its default where the value is false to a template: null, "", 0, an empty map or list."""
    given = values.get(OVERRIDE)
    if not given:
        return Configuration(values, CHART_DEFAULT)
    text = values.text(OVERRIDE)
    return Configuration(NoText(values, given), None) if text is None else _read(text)


def _read(text: Text | None) -> Configuration:
    assert text is not None
    stripped = text.value.strip()  # so does the scheduler (scheduler.go, loadSchedulerConf)
    above = text.value[: text.value.find(stripped)].count("\n")
    try:
        parsed = next(yaml_text.documents("\n" * above + stripped, with_positions=True), None)
    except Fault as fault:
        return Configuration(Unreadable(text.spot(fault.mark), fault), None)
    if parsed is None or _begins_later(stripped, parsed.mark.line - above):
        return Configuration(Embedded(text, None, {}), {})
    _settle(parsed)
    return Configuration(Embedded(text, parsed.value, parsed.positions or {}), parsed.value, parsed.faults)


def _begins_later(text: str, line: int) -> bool:
    """Whether an empty document stands before the one that begins on the line: Volcano takes the first."""
    return sum(each.startswith("---") for each in text.split("\n")[: line - 1]) > 1


def _settle(parsed: Parsed) -> None:
    """Gives scalars that readers of YAML differ on the value that Volcano's reader gives them, where it does not take
    whatever is written for text."""
    for each in parsed.ambiguous:
        parent = get(parsed.value, each.pointer[:-1])
        if not each.is_key and _is_typed(each.pointer) and isinstance(parent, dict | list):
            parent[each.pointer[-1]] = _as_read(each.text)  # type: ignore[index]


def _is_typed(pointer: Pointer) -> bool:
    """Whether the value there is a plugin's flag, or within the arguments of a plugin or an action."""
    is_name = pointer[-1:] == ("name",) and len(pointer) in (len(("configurations", 0, "name")), len(_A_NAME))
    return pointer[:1] in (("tiers",), ("configurations",)) and not is_name


def _as_read(text: str) -> Any:
    """A scalar without quotes as gopkg.in/yaml.v2 takes it (resolve.go): y and off are booleans, 010 is 8, 1_000 is
    1000 and 1e3 a number, 12:30:45 and dates are texts."""
    if (word := scalars.as_boolean(text)) is not None:
        return word
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return int(_OCTAL.sub(r"\1o", digits), 0)
    if _FLOAT.fullmatch(digits) and math.isfinite(float(digits)):
        return float(digits)
    return _NO_FINITE.get(text.lstrip("+"), text)
