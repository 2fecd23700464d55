"""Whether volcano-scheduler.conf says what Volcano reads: its keys, names and types."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt import names
from basalt.api.schemas import show
from basalt.api.versions import Version
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping, sequence, strings
from basalt.pointers import Pointer, dotted, get
from basalt.rules.rule import Rule
from basalt.views import scheduler_catalogue as catalogue
from basalt.views import scheduler_configuration as view
from basalt.views import scheduler_readings as readings
from basalt.views.embedding import Embedded, Unreadable
from basalt.views.scheduler_configuration import Configuration, NoText
from basalt.views.scheduler_readings import Argument, Kind, Reading

_Fault = tuple[Pointer, str, str]  # where, the fact and the way out
_TEXT, _FLAG, _MAP = "a text", "true or false", "a map"
_REST = "*"  # any other key
_UNREAD = ""  # what nobody reads may have any form
_PLUGIN = {"name": _TEXT, "arguments": _MAP, **dict.fromkeys(catalogue.FLAGS, _FLAG)}
# pkg/scheduler/conf/scheduler_conf.go
_STRUCTURE: Mapping[str, Any] = {
    "actions": _TEXT,
    "tiers": [{"plugins": [_PLUGIN]}],
    "configurations": [{"name": _TEXT, "arguments": _MAP}],
    "metrics": {_REST: _TEXT},
}
_BELOW_ARGUMENTS = "put it below arguments"
_BELOW_PLUGINS = "put the plugin into a list below plugins"
_BESIDE_NAME = "it is a flag: put it beside name, not below arguments"


class _Reader(NamedTuple):
    """A plugin or an action, and the arguments that are given to it."""

    configuration: Configuration
    at: Pointer
    what: str
    arguments: Mapping[str, Any]
    known: tuple[Argument, ...]


def _given(index: Index) -> Iterator[Configuration]:
    return (each for each in index.scheduler_configurations if not each.is_chart_default)


# scheduler-configuration-parses


def scheduler_configuration_parses(index: Index) -> Iterator[Problem]:
    for each in _given(index):
        written = each.written
        if each.is_generated:
            continue  # of what document-matches-schema lets through
        if isinstance(written, Unreadable):
            yield Problem(written.spot, written.spot.pointer, written.fault.message, written.fault.hint)
        elif isinstance(written, NoText):
            message = f"{view.OVERRIDE[-1]} is {show(written.value)}: the chart takes a text, and does not render"
            yield each.problem((), message, f"write it as one text: {view.OVERRIDE[-1]}: |")
        elif isinstance(written, Embedded) and written.value is None:
            hint = "write actions and tiers, or leave it out"
            yield each.problem((), f"an empty text: {_without_actions(index.volcano)}", hint)
        else:
            yield from (each.problem(*fault) for fault in _misfits(each.value, _STRUCTURE, ()))


def _without_actions(version: Version | None) -> str:
    if version is not None and version < catalogue.REFUSES_UNKNOWN_ACTIONS:
        return "Volcano schedules nothing"
    return "Volcano refuses that, and keeps its old configuration"


def _misfits(value: Any, form: Any, at: Pointer) -> Iterator[_Fault]:
    """The values whose types gopkg.in/yaml.v2 does not decode into the structure; null is nothing everywhere."""
    if value is None:
        return
    if isinstance(form, Mapping) and isinstance(value, Mapping):
        for key, below in value.items():
            yield from _misfits(below, form.get(key, form.get(_REST, _UNREAD)), (*at, key))
    elif isinstance(form, list) and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _misfits(item, form[0], (*at, number))
    elif not _fits(value, form):
        wanted = form if isinstance(form, str) else "a list" if isinstance(form, list) else _MAP
        subject = dotted(at) or "the whole"
        message = f"{subject} is {show(value)}: Volcano reads {wanted} there, and refuses the whole configuration"
        yield at, message, _shaped(value, wanted, at)


def _fits(value: Any, form: Any) -> bool:
    if form == _FLAG:
        return isinstance(value, bool)
    if form == _TEXT:
        return not isinstance(value, Mapping | list)
    return form == _UNREAD or (form == _MAP and isinstance(value, Mapping))


def _shaped(value: Any, wanted: str, at: Pointer) -> str:
    """How to write the value so that it is of the type wanted."""
    if at == ("actions",) and isinstance(value, list):
        return f'write them in one text: "{", ".join(strings(value))}"'
    if at[:1] == ("metrics",) and isinstance(value, Mapping) and len(at) > 1:
        below = next(iter(value), "insecureSkipVerify")
        return f"write both keys as one: {at[1]}.{below}"
    if at[-2:-1] == ("plugins",) and isinstance(value, str):
        return f"write it as a map: name: {value}"
    if wanted == "a list":
        return 'begin each item with "- "'
    if wanted == _FLAG and isinstance(value, str) and value.casefold() in ("true", "false"):
        return f"take the quotes off: {value.casefold()}"
    return f"write {wanted}"


# scheduler-key-is-known


def scheduler_key_is_known(index: Index) -> Iterator[Problem]:
    version = index.volcano
    for each in _given(index):
        yield from _repeated_keys(each)
        unknown = () if each.is_generated else _unknown_keys(each.value)  # else document-matches-schema speaks
        for fault in (*unknown, *_unknown_flags(each, version), *_repeated_actions(each.value)):
            yield each.problem(*fault)
    for reader in _readers(index, version):
        for fault in _unread_arguments(reader, version):
            yield reader.configuration.problem(*fault)


def _repeated_keys(configuration: Configuration) -> Iterator[Problem]:
    if isinstance(configuration.written, Embedded):
        text = configuration.written.text
        for fault in configuration.repeated:
            message = f"{fault.pointer[-1]} stands here for a second time: Volcano takes the last"
            yield Problem(text.spot(fault.mark), text.pointer, message, "keep one of them")


def _unknown_keys(value: Any) -> Iterator[_Fault]:
    """The keys beside those of plugins."""
    yield from _not_among(mapping(value), catalogue.TOP, (), "volcano-scheduler.conf")
    for tier, entry in enumerate(sequence(mapping(value).get("tiers"))):
        yield from _not_among(mapping(entry), catalogue.TIER, ("tiers", tier), "a tier")
    for number, entry in enumerate(sequence(mapping(value).get("configurations"))):
        at = ("configurations", number)
        yield from _not_among(mapping(entry), catalogue.CONFIGURATION, at, "an action's configuration")
    metrics = mapping(mapping(value).get("metrics"))
    scalars = {key: each for key, each in metrics.items() if not isinstance(each, Mapping | list)}
    yield from _not_among(scalars, catalogue.METRICS, ("metrics",), "metrics")


def _not_among(value: Mapping[str, Any], known: Iterable[str], at: Pointer, where: str) -> Iterator[_Fault]:
    for key in value:
        if key not in known:
            is_plugins = known is catalogue.TIER and (key in catalogue.PLUGIN or key in catalogue.FLAGS)
            hint = _BELOW_PLUGINS if is_plugins else names.did_you_mean(key, known)
            yield (*at, key), f"{key} is no key of {where}: Volcano drops it", hint


def _unknown_flags(configuration: Configuration, version: Version | None) -> Iterator[_Fault]:
    for plugin in configuration.plugins():
        for key in plugin.settings:
            since = catalogue.FLAGS.get(key)
            if key in catalogue.PLUGIN or (since and (version is None or version >= since)):
                continue
            if since:
                yield (*plugin.pointer, key), _since(key, since, version), "take it out"
            elif not configuration.is_generated:
                message = f"{key} is neither a flag nor a key of a plugin: Volcano drops it"
                yield (*plugin.pointer, key), message, _flag_meant(plugin.name, key, version)


def _flag_meant(plugin: str, key: str, version: Version | None) -> str:
    if readings.argument(catalogue.PLUGINS.get(plugin, ()), key, version) is not None:
        return _BELOW_ARGUMENTS
    known = (*catalogue.PLUGIN, *catalogue.FLAGS)
    return names.did_you_mean(key, known, otherwise=f"{_BELOW_ARGUMENTS}, if the plugin reads it")


def _since(name: str, since: Version, version: Version | None) -> str:
    return f"{name} is read since Volcano {since} (this is {version}): it is dropped"


def _repeated_actions(value: Any) -> Iterator[_Fault]:
    """GetArgOfActionFromConf takes the first entry of an action."""
    first: dict[str, int] = {}
    for number, entry in enumerate(sequence(mapping(value).get("configurations"))):
        name = mapping(entry).get("name")
        if isinstance(name, str) and first.setdefault(name, number) != number:
            message = f"configurations has {name} twice: Volcano reads the first only"
            yield ("configurations", number, "name"), message, "write all its arguments into one entry"


def _readers(index: Index, version: Version | None) -> Iterator[_Reader]:
    """The plugins and actions that the version has, with their arguments."""
    for each in _given(index):
        for plugin in each.plugins():
            if plugin.name in catalogue.PLUGINS:
                at, given = (*plugin.pointer, "arguments"), mapping(plugin.settings.get("arguments"))
                yield _Reader(each, at, f"the plugin {plugin.name}", given, catalogue.PLUGINS[plugin.name])
        for number, entry in enumerate(map(mapping, sequence(mapping(each.value).get("configurations")))):
            name, at = entry.get("name"), ("configurations", number, "arguments")
            if isinstance(name, str) and _is_action(name, version):
                given = mapping(entry.get("arguments"))
                yield _Reader(each, at, f"the action {name}", given, catalogue.ACTIONS[name])


def _unread_arguments(reader: _Reader, version: Version | None) -> Iterator[_Fault]:
    for key, value in reader.arguments.items():
        at = (*reader.at, key)
        found = readings.argument(reader.known, key, version)
        if found is None:
            yield at, *_unread(reader, key, version)
        elif found.among and found.rest(key) not in _listed(reader.arguments.get(found.among)):
            message = f"{found.among} does not list {found.rest(key)}, so nothing reads its weight"
            yield at, message, f"add it to {found.among}, or take the weight out"
        else:
            yield from _unread_fields(found.reading, value, at)


def _listed(value: Any) -> list[str]:
    """A list in place of the text is for scheduler-argument-is-typed."""
    return [each.strip() for each in (value.split(",") if isinstance(value, str) else strings(value))]


def _unread(reader: _Reader, key: str, version: Version | None) -> tuple[str, str]:
    other = next((each for each in reader.known if each.rest(key) is not None), None)
    if other is not None and version is not None:
        if other.until is not None and other.until <= version:
            message = f"Volcano {version} no longer reads {key}: it is dropped"
        else:
            message = _since(key, other.since, version)
        return message, catalogue.MOVED.get(key, "take it out")
    message = f"{reader.what} reads no argument {key}: Volcano drops it"
    if key in catalogue.FLAGS and reader.at[0] == "tiers":
        return message, _BESIDE_NAME
    moved = next((hint for name, hint in catalogue.MOVED.items() if key == name or key.startswith(f"{name}.")), None)
    plugins = [name for name, known in catalogue.PLUGINS.items() if readings.argument(known, key, version)]
    if moved or len(plugins) == 1:
        return message, moved or f"the plugin {plugins[0]} reads it"
    known = [each.name for each in reader.known if each.is_read_by(version)]
    return message, names.did_you_mean(key, known, otherwise="take it out")


def _unread_fields(reading: Reading, value: Any, at: Pointer) -> Iterator[_Fault]:
    """The keys within an argument's value that nothing reads."""
    if reading.kind is Kind.LIST and reading.each is not None:
        for number, item in enumerate(sequence(value)):
            yield from _unread_fields(reading.each, item, (*at, number))
    for key, below in mapping(value).items() if reading.kind is Kind.MAP else ():
        if not reading.reads(key):
            hint = names.did_you_mean(key, reading.fields)
            yield (*at, key), f"{key} is not read in {readings.named(at)}: Volcano drops it", hint
        elif (inner := reading.field(key)) is not None:
            yield from _unread_fields(inner, below, (*at, key))


# scheduler-action-is-known


def scheduler_action_is_known(index: Index) -> Iterator[Problem]:
    version = index.volcano
    for each in _given(index):
        for pointer, message, hint in (*_unknown_actions(each, version), *_configured(each.value, version)):
            yield each.problem(pointer, message, hint)


def _unknown_actions(configuration: Configuration, version: Version | None) -> Iterator[_Fault]:
    written = configuration.written.value if isinstance(configuration.written, Embedded) else None
    if not isinstance(written, Mapping) or isinstance(written.get("actions"), Mapping | list):
        return  # scheduler-configuration-parses speaks
    given = configuration.written_actions
    if not any(given):
        meant = (key for key in written if names.nearest(key, catalogue.TOP) == "actions" and key != "actions")
        if next(meant, None) is None:  # else scheduler-key-is-known speaks
            at: Pointer = ("actions",) if "actions" in written else ()
            hint = 'write them in one text: actions: "enqueue, allocate, backfill"'
            yield at, f"there are no actions: {_without_actions(version)}", hint
        return
    refuses = version is None or version >= catalogue.REFUSES_UNKNOWN_ACTIONS
    then = "refuses the whole configuration" if refuses else "goes on without it"
    for number, name in enumerate(given):
        if not name and refuses:
            message = "a comma too many: Volcano finds an action without a name, and refuses the whole configuration"
            yield ("actions", number), message, "take the comma out"
        elif name and not _is_action(name, version):
            fact, hint = _no_action(name, version)
            yield ("actions", number), f"{fact}, and Volcano {then}", hint


def _is_action(name: str, version: Version | None) -> bool:
    since = catalogue.ACTIONS_SINCE.get(name)
    return name in catalogue.ACTIONS and (since is None or version is None or version >= since)


def _no_action(name: str, version: Version | None) -> tuple[str, str]:
    if name in catalogue.ACTIONS:
        fact = f"{name} is an action since Volcano {catalogue.ACTIONS_SINCE[name]} (this is {version})"
        return fact, f"take it out, or say {name.removeprefix('gang')}"
    known = [each for each in catalogue.ACTIONS if _is_action(each, version)]
    return f"{name} is no action", names.did_you_mean(name, known)


def _configured(value: Any, version: Version | None) -> Iterator[_Fault]:
    for number, entry in enumerate(sequence(mapping(value).get("configurations"))):
        name = mapping(entry).get("name")
        at = ("configurations", number)
        if isinstance(entry, Mapping) and (name is None or name == ""):
            message = "configures an action and does not name it: nothing reads its arguments"
            yield at, message, "add name, such as allocate"
        elif isinstance(name, str) and name and name != catalogue.INIT_PARAMETERS and not _is_action(name, version):
            fact, hint = _no_action(name, version)
            yield (*at, "name"), f"{fact}: nothing reads its arguments", hint


# scheduler-plugin-is-known


def scheduler_plugin_is_known(index: Index) -> Iterator[Problem]:
    if view.has_own_plugins(index.chart_values, index.of_kind("Deployment")):
        return  # it may be one of them
    for each in _given(index):
        for plugin in each.plugins():
            name = plugin.settings.get("name")
            entry = get(each.value, plugin.pointer)
            is_map = entry is None or isinstance(entry, Mapping)
            if not is_map or isinstance(name, Mapping | list) or name in catalogue.PLUGINS:
                continue  # of the wrong type: scheduler-configuration-parses speaks
            if name is None or name == "":
                message = "a plugin without a name: Volcano logs that in every cycle, and goes on without it"
                yield each.problem(plugin.pointer, message, "add name, or take the entry out")
            else:
                message = f"{name} is no plugin: Volcano logs that in every cycle, and goes on without it"
                hint = names.did_you_mean(str(name), catalogue.PLUGINS, otherwise="take it out, or set --plugins-dir")
                yield each.problem((*plugin.pointer, "name"), message, hint)


# scheduler-argument-is-typed


def scheduler_argument_is_typed(index: Index) -> Iterator[Problem]:
    version = index.volcano
    for reader in _readers(index, version):
        for key, value in reader.arguments.items():
            if (found := readings.argument(reader.known, key, version)) is not None:
                for fault in readings.faults(found.reading, value, (*reader.at, key), version):
                    yield reader.configuration.problem(*fault)
    for each in _given(index):
        yield from (each.problem(*fault) for fault in _unusable_metrics(mapping(each.value).get("metrics")))


def _unusable_metrics(metrics: Any) -> Iterator[_Fault]:
    scalars = {key: each for key, each in mapping(metrics).items() if isinstance(each, str | bool | int | float)}
    given = {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in scalars.items()}
    for key, text in given.items():
        reading = catalogue.METRICS.get(key)
        if reading is not None and (fault := reading.fault(text)):
            message = f"metrics.{key} is {show(text)}, which {fault}: Volcano {reading.beyond}"
            yield ("metrics", key), message, readings.ranged(reading, text)
    if given.get("type") in catalogue.NEED_ADDRESS and not given.get("address"):
        message = f"metrics.type is {given['type']} and there is no address: Volcano collects no usage of nodes"
        yield ("metrics",), message, "add address, such as http://prometheus.monitoring:9090"


RULES: tuple[Rule, ...] = (
    Rule("scheduler-configuration-parses", Severity.ERROR, scheduler_configuration_parses),
    Rule("scheduler-key-is-known", Severity.ERROR, scheduler_key_is_known),
    Rule("scheduler-action-is-known", Severity.ERROR, scheduler_action_is_known),
    Rule("scheduler-plugin-is-known", Severity.ERROR, scheduler_plugin_is_known),
    Rule("scheduler-argument-is-typed", Severity.ERROR, scheduler_argument_is_typed),
)
