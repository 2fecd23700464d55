"""The configurations of prometheus-adapter, in ConfigMaps and in the values of its chart, and what the adapter refuses
in them.

Sources: pkg/config, pkg/naming and pkg/resourceprovider of prometheus-adapter v0.12.0 (a strict reading of YAML, Go
templates between << and >>), and what Prometheus refuses as a series selector.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt import names
from basalt.findings import Place
from basalt.objects import KubeObject, mapping, sequence
from basalt.patterns import compile_pattern, fault
from basalt.pointers import Pointer
from basalt.views import embedding, promql
from basalt.views.charts import Values
from basalt.views.embedding import Unreadable
from basalt.views.metric_sources import seconds
from basalt.views.written import Written

CHART = "prometheus-adapter"
_TEXT, _FLAG, _DURATION = "a text", "true or false", "a duration"
_RESOURCES = {
    "template": _TEXT,
    "overrides": {"*": {"group": _TEXT, "resource": _TEXT}},
    "namespaced": _FLAG,
}
_RULE = {
    "seriesQuery": _TEXT,
    "seriesFilters": [{"is": _TEXT, "isNot": _TEXT}],
    "resources": _RESOURCES,
    "name": {"matches": _TEXT, "as": _TEXT},
    "metricsQuery": _TEXT,
}
_QUERIES = {"containerQuery": _TEXT, "nodeQuery": _TEXT, "resources": _RESOURCES, "containerLabel": _TEXT}
_RESOURCE_RULES = {"cpu": _QUERIES, "memory": _QUERIES, "window": _DURATION}
_CONFIGURATION = {"rules": [_RULE], "resourceRules": _RESOURCE_RULES, "externalRules": [_RULE]}
_OF_CHART = {"custom": [_RULE], "external": [_RULE], "resource": _RESOURCE_RULES}
_QUERY_FIELDS = ("GroupBy", "GroupBySlice", "LabelMatchers", "LabelValuesByName", "Series")
_LABEL_FIELDS = ("Group", "Resource")
_CONTROLS = frozenset({"block", "break", "continue", "define", "else", "end", "if", "range", "template", "with"})
_FUNCTIONS = frozenset({
    "and", "call", "eq", "false", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "nil", "not", "or",
    "print", "printf", "println", "slice", "true", "urlquery",
}) | _CONTROLS  # fmt: skip
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`')
_FIELD = re.compile(r"(?<![\w$)\]])\.([A-Za-z_]\w*)")
_IDENTIFIER = re.compile(r"(?<![\w.$])[A-Za-z_]\w*")
_IN_TEXT = re.compile(r"^\s*(-\s*)?(seriesQuery|resourceRules|externalRules):", re.MULTILINE)


class Fault(NamedTuple):
    """What is wrong, and the pointer to it in the configuration."""

    pointer: Pointer
    message: str
    hint: str


class Configuration(NamedTuple):
    """One configuration. lists has the pointers to its lists of rules, shape what the adapter reads; unreadable is set
    where the text is not YAML."""

    written: Written
    lists: tuple[Pointer, ...]
    resource: Pointer
    shape: Mapping[str, Any]
    unreadable: Unreadable | None = None

    def rules(self) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
        """The rules that discover metrics, each with its pointer."""
        for pointer in self.lists:
            for number, rule in enumerate(sequence(self.written.get(pointer))):
                if isinstance(rule, Mapping):
                    yield (*pointer, number), rule

    def queries(self) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
        """The queries of the resource metrics API."""
        for name in ("cpu", "memory"):
            value = self.written.get((*self.resource, name))
            if isinstance(value, Mapping):
                yield (*self.resource, name), value


def configurations(config_maps: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Configuration]:
    """Those in ConfigMaps, then those of the chart."""
    for config_map in config_maps:
        for key, value in mapping(config_map.value.get("data")).items():
            if isinstance(value, str) and isinstance(key, str) and _IN_TEXT.search(value):
                yield from _in_text(config_map, ("data", key))
    for each in values:
        rules = each.get(("rules",))
        if each.chart == CHART and isinstance(rules, Mapping) and not rules.get("existing"):
            lists: tuple[Pointer, ...] = (("rules", "custom"), ("rules", "external"))
            yield Configuration(Written(each), lists, ("rules", "resource"), _OF_CHART)


def _in_text(place: Place, pointer: Pointer) -> Iterator[Configuration]:
    text = embedding.text_at(place, pointer)
    found = embedding.read(text) if text is not None else None
    lists: tuple[Pointer, ...] = (("rules",), ("externalRules",))
    if isinstance(found, Unreadable):
        yield Configuration(Written(place, pointer), (), (), {}, found)
    elif found is not None and _is_configuration(found.value):
        yield Configuration(Written(found), lists, ("resourceRules",), _CONFIGURATION)


def _is_configuration(value: Any) -> bool:
    rules = [mapping(each) for field in ("rules", "externalRules") for each in sequence(mapping(value).get(field))]
    return any("seriesQuery" in each for each in rules) or "resourceRules" in mapping(value)


def faults(found: Configuration) -> Iterator[Fault]:
    """What the adapter refuses in the configuration, or Prometheus in what it asks of it."""
    if found.shape is _CONFIGURATION:
        yield from _shape_faults(found.written.value, found.shape, ())
    else:
        for field, shape in found.shape.items():
            if (value := found.written.get(("rules", field))) is not None:
                yield from _shape_faults(value, shape, ("rules", field))
    for pointer, rule in found.rules():
        yield from _rule_faults(rule, pointer)
    for pointer, query in found.queries():
        for field in ("containerQuery", "nodeQuery"):
            yield from _template_faults(query.get(field), (*pointer, field), _QUERY_FIELDS)
        yield from _resource_faults(mapping(query.get("resources")), (*pointer, "resources"))


def _shape_faults(value: Any, shape: Any, at: Pointer) -> Iterator[Fault]:
    wanted = "a list" if isinstance(shape, list) else "a map" if isinstance(shape, dict) else shape
    if value is None:
        return
    if not _is_of(value, shape):
        yield Fault(at, f"{at[-1] if at else 'the configuration'} is not {wanted}", f"write {wanted}")
    elif isinstance(shape, list):
        for number, each in enumerate(value):
            yield from _shape_faults(each, shape[0], (*at, number))
    elif isinstance(shape, dict):
        for key, each in value.items():
            if key in shape or "*" in shape:
                yield from _shape_faults(each, shape.get(key, shape.get("*")), (*at, key))
            else:
                message = f"unknown field {key}: the adapter refuses its whole configuration"
                yield Fault((*at, key), message, names.did_you_mean(str(key), shape))


def _is_of(value: Any, shape: Any) -> bool:
    """As yaml.v2 reads it: any scalar is a text."""
    if isinstance(shape, list | dict):
        return isinstance(value, type(shape))
    if shape == _FLAG:
        return isinstance(value, bool)
    if shape == _DURATION:
        return value == "" or (isinstance(value, str) and seconds(value) is not None) or value in (0, "0")
    return not isinstance(value, Mapping | list)


def _rule_faults(rule: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    yield from _series_faults(rule, at)
    for number, each in enumerate(map(mapping, sequence(rule.get("seriesFilters")))):
        given = [field for field in ("is", "isNot") if each.get(field)]
        place = (*at, "seriesFilters", number)
        if len(given) != 1:
            has = "both is and isNot" if given else "neither is nor isNot"
            yield Fault(place, f"the filter has {has}", "write one of the two")
        for field in given:
            yield from _pattern_faults(each[field], (*place, field))
    yield from _name_faults(mapping(rule.get("name")), (*at, "name"))
    yield from _resource_faults(mapping(rule.get("resources")), (*at, "resources"))
    if _lacks(rule, "metricsQuery"):
        hint = "add one, such as sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
        yield Fault((*at, "metricsQuery"), "the rule has no metricsQuery: each request for its metrics fails", hint)
    yield from _template_faults(rule.get("metricsQuery"), (*at, "metricsQuery"), _QUERY_FIELDS)


def _lacks(rule: Mapping[str, Any], field: str) -> bool:
    """Whether the rule has no such field, nor one that is a misspelling of it."""
    unknown = (key for key in rule if key not in _RULE)
    return rule.get(field) in (None, "") and all(names.nearest(str(key), _RULE) != field for key in unknown)


def _series_faults(rule: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    query, place = rule.get("seriesQuery"), (*at, "seriesQuery")
    why = "Prometheus refuses it, and the adapter finds no metrics at all"
    hint = """write the metric's name, or matchers such as {__name__=~"^container_.*"}"""
    if _lacks(rule, "seriesQuery"):
        yield Fault(place, f"the rule has no seriesQuery: {why}", hint)
    elif isinstance(query, str) and query:
        found = promql.selector(query)
        if found is None:
            yield Fault(place, f"{query} is no series selector: {why}", hint)
            return
        for each in found.patterns:
            if wrong := fault(each):
                yield Fault(place, f"{each} is no RE2 expression: {wrong}", "mend the expression")


def _name_faults(name: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    pattern = name.get("matches")
    if not isinstance(pattern, str) or not pattern:
        return
    wrong = list(_pattern_faults(pattern, (*at, "matches")))
    yield from wrong
    if not wrong and not name.get("as"):
        groups = compile_pattern(pattern).groups
        if groups > 1:
            message = f"matches has {groups} groups and as is missing; one group at most is allowed without it"
            yield Fault((*at, "matches"), message, "add as, such as as: ${1}_per_second, or write (?:...) for a group")


def _pattern_faults(pattern: Any, at: Pointer) -> Iterator[Fault]:
    if isinstance(pattern, str) and (wrong := fault(pattern)):
        yield Fault(at, f"{pattern} is no RE2 expression: {wrong}", "mend the expression")


def _resource_faults(resources: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    template = resources.get("template")
    if isinstance(template, str) and template:
        wrong = list(_template_faults(template, (*at, "template"), _LABEL_FIELDS))
        yield from wrong
        if not wrong and ".Resource" not in template:
            hint = "write a template such as kube_<<.Group>>_<<.Resource>>"
            yield Fault((*at, "template"), f"{template} lacks <<.Resource>>", hint)
    for label, target in mapping(resources.get("overrides")).items():
        if isinstance(target, Mapping | None) and mapping(target).get("resource") in (None, ""):
            hint = "name it, such as {resource: pod}"
            yield Fault((*at, "overrides", label), f"the override of {label} names no resource", hint)


def _template_faults(template: Any, at: Pointer, fields: tuple[str, ...]) -> Iterator[Fault]:
    """What Go's text/template refuses, when it reads the template or when it fills it in."""
    if not isinstance(template, str):
        return
    actions, wrong = _actions(template)
    if wrong:
        yield Fault(at, wrong, "close each << with >>")
        return
    bare = [_QUOTED.sub('""', each) for each in actions if not each.startswith("/*")]
    words = [word for each in bare for word in _IDENTIFIER.findall(each)]
    opened = sum(word in ("block", "define", "if", "range", "with") for word in words)
    if opened != words.count("end"):
        yield Fault(
            at, f"of the template's blocks {opened} begin and {words.count('end')} end", "end each block: <<end>>"
        )
    elif "" in bare:
        yield Fault(at, "the template has an empty << >>", _known("", fields))
    for word in dict.fromkeys(word for word in words if word not in _FUNCTIONS):
        yield Fault(at, f"<<{word}>> is no function", _known(word, fields))
    inner = bare if _CONTROLS.isdisjoint(words) else []  # in a block the dot may be something else
    for word in dict.fromkeys(word for each in inner for word in _FIELD.findall(each) if word not in fields):
        yield Fault(at, f"<<.{word}>> is no field", _known(word, fields))


def _known(word: str, fields: tuple[str, ...]) -> str:
    close = names.nearest(word, fields)
    return f"did you mean <<.{close}>>?" if close else "known: " + ", ".join(f"<<.{field}>>" for field in fields)


def _actions(template: str) -> tuple[list[str], str | None]:
    """The texts between the delimiters, and why they are not balanced."""
    found: list[str] = []
    rest = template
    while rest:
        text, opening, rest = rest.partition("<<")
        if ">>" in text:
            return found, "a >> without its <<"
        if opening:
            action, closing, rest = rest.partition(">>")
            if not closing or "<<" in action:
                return found, "a << without its >>"
            found.append(re.sub(r"^- | -$", "", action).strip())
    return found, None
