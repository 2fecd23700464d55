"""The policies of deschedulers, wherever they stand: as objects, as texts in ConfigMaps, or in the values of the
descheduler's chart; and which of the two deschedulers reads each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.findings import Place, Problem
from basalt.gathering import places
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, get
from basalt.views import embedding
from basalt.views.charts import Values
from basalt.views.descheduler_catalogue import CHART_PROFILES, LOAD_AWARE, Engine
from basalt.views.deschedulers import CHART, Installed
from basalt.views.embedding import Embedded, Text, Unreadable
from basalt.views.written import Written

GROUP = "descheduler"
KIND = "DeschedulerPolicy"
_IN_VALUES = "deschedulerPolicy"
_API_VERSION = "deschedulerPolicyAPIVersion"
_NEWEST = "descheduler/v1alpha2"


class Enabled(NamedTuple):
    """One plugin that a profile enables, and where."""

    point: str
    plugin: str
    pointer: Pointer


class Config(NamedTuple):
    """One entry of pluginConfig."""

    pointer: Pointer
    plugin: str
    value: Mapping[str, Any]

    @property
    def args(self) -> Mapping[str, Any]:
        return mapping(self.value.get("args"))

    @property
    def args_pointer(self) -> Pointer:
        return (*self.pointer, "args")


class Profile(NamedTuple):
    """One profile of a policy."""

    pointer: Pointer
    value: Mapping[str, Any]

    @property
    def name(self) -> str:
        name = self.value.get("name")
        return name if isinstance(name, str) and name else str(self.pointer[-1])

    def enabled(self) -> Iterator[Enabled]:
        for point, found in mapping(self.value.get("plugins")).items():
            for place, plugin in enumerate(sequence(mapping(found).get("enabled"))):
                if isinstance(plugin, str):
                    yield Enabled(point, plugin, (*self.pointer, "plugins", point, "enabled", place))

    def configs(self) -> Iterator[Config]:
        for place, found in enumerate(sequence(self.value.get("pluginConfig"))):
            name = mapping(found).get("name")
            if isinstance(name, str):
                yield Config((*self.pointer, "pluginConfig", place), name, mapping(found))

    def config(self, plugin: str) -> Config | None:
        """The first of the plugin, which is the one that counts."""
        return next((each for each in self.configs() if each.plugin == plugin), None)

    def args(self, plugin: str) -> Mapping[str, Any]:
        config = self.config(plugin)
        return config.args if config else {}


class Policy(NamedTuple):
    """One policy: what it says, None where its text is not YAML, and where it stands. engine is who reads it, None
    where that is unknown; idle says that nobody evicts by it."""

    written: Embedded | Unreadable | Values | KubeObject
    value: Mapping[str, Any] | None
    engine: Engine | None
    idle: bool = False

    def profiles(self) -> Iterator[Profile]:
        for number, profile in enumerate(sequence(mapping(self.value).get("profiles"))):
            yield Profile(("profiles", number), mapping(profile))

    def at(self, pointer: Pointer) -> tuple[Place, Pointer]:
        """The place and the pointer of a finding about the value at the pointer; where it is not written, about what
        stands around it."""
        if isinstance(self.written, Unreadable):
            return self.written.spot, self.written.spot.pointer
        if isinstance(self.written, Values):
            pointer = (_API_VERSION,) if pointer == ("apiVersion",) else (_IN_VALUES, *pointer)
        return Written(self.written).at(pointer)

    def problem(self, pointer: Pointer, message: str, hint: str = "") -> Problem:
        return Problem(*self.at(pointer), message, hint)


def policies(
    objects: Iterable[KubeObject], values: Iterable[Values], deschedulers: Sequence[Installed]
) -> Iterator[Policy]:
    """The policies among the objects and in their texts, then those of charts."""
    engines = {each.engine for each in deschedulers}
    of_all = next(iter(engines)) if len(engines) == 1 else None
    is_idle = bool(deschedulers) and not any(each.evicts for each in deschedulers)
    for declared in objects:
        if (declared.ref.group, declared.ref.kind) == (GROUP, KIND):
            yield _policy(declared, declared.value, of_all, is_idle)
        elif (declared.ref.group, declared.ref.kind) == ("", "ConfigMap"):
            readers = [each for each in deschedulers if each.mounts(declared)]
            engine = readers[0].engine if readers else of_all
            idle = not any(each.evicts for each in readers) if readers else is_idle
            for text in _texts(declared):
                yield from _read(text, engine, idle)
    for each in values:
        if each.chart == CHART:
            readers = [reader for reader in deschedulers if reader.place is each.place]
            yield from _of_chart(each, readers)


def _texts(config_map: KubeObject) -> Iterator[Text]:
    for key, value in mapping(config_map.value.get("data")).items():
        if isinstance(value, str) and KIND in value and (text := embedding.text_at(config_map, ("data", key))):
            yield text


def _read(text: Text, engine: Engine | None, idle: bool) -> Iterator[Policy]:
    written = embedding.read(text)
    if isinstance(written, Unreadable):
        if any(line.replace('"', "").replace("'", "").split() == ["kind:", KIND] for line in text.value.splitlines()):
            yield Policy(written, None, engine, idle)
    elif mapping(written.value).get("kind") == KIND:
        yield _policy(written, mapping(written.value), engine, idle)


def _policy(
    written: Embedded | Values | KubeObject, value: Mapping[str, Any], engine: Engine | None, idle: bool
) -> Policy:
    """One that uses LoadAware is Volcano's, where nothing else tells."""
    policy = Policy(written, value, engine, idle)
    if engine is None and any(_uses(profile, LOAD_AWARE) for profile in policy.profiles()):
        return policy._replace(engine=Engine.VOLCANO)
    return policy


def _uses(profile: Profile, plugin: str) -> bool:
    named = {*(each.plugin for each in profile.configs()), *(each.plugin for each in profile.enabled())}
    return plugin in named


def _of_chart(values: Values, readers: Sequence[Installed]) -> Iterator[Policy]:
    """Helm merges the values over the chart's own, map by map; null takes one out."""
    given = values.value.get(_IN_VALUES, {})
    if not isinstance(given, Mapping):
        return  # null: the chart then makes no policy
    own = {} if is_partial(values) else {"profiles": CHART_PROFILES}
    version = values.value.get(_API_VERSION) or _NEWEST
    merged = {key: value for key, value in {**own, **given}.items() if value is not None}
    engine = readers[0].engine if readers else Engine.SIGS
    idle = bool(readers) and not any(each.evicts for each in readers)
    yield _policy(values, {"apiVersion": version, "kind": KIND, **merged}, engine, idle)


def is_partial(values: Values) -> bool:
    """Whether the chart gets values from elsewhere too, so that what these leave out is unknown."""
    value = places.value(values.place)
    helms = [get(value, ("spec", "source", "helm"))]
    helms += [mapping(each).get("helm") for each in sequence(get(value, ("spec", "sources")))]
    elsewhere: list[Any] = [values.unread]
    elsewhere += [mapping(helm).get(key) for helm in helms for key in ("valueFiles", "fileParameters")]
    return any(elsewhere)
