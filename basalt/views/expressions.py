"""The PromQL expressions that somebody declares: in rules of Prometheus, dashboards, rules of prometheus-adapter and
policies of a descheduler."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer
from basalt.views import embedding, promql
from basalt.views.adapter_rules import Configuration, configurations
from basalt.views.charts import Values
from basalt.views.descheduler_policy import Policy
from basalt.views.embedding import Text
from basalt.views.monitoring import GROUP, STACK
from basalt.views.promql import Grouping, Selector, Uses
from basalt.views.written import Written

_LOW = "LowNodeUtilization"
_SERIES = "<<.Series>>"
_LABELS = re.compile(r"(?:\$labels|\.Labels)\.(\w+)|index \$labels \"(\w+)\"")  # in the templates of alerts
_DEEPEST = 60
_PROMETHEUS_CHART = "prometheus"


class Expression(NamedTuple):
    """One expression: where it stands, what it uses, and the name under which a rule records it. label is set where
    the place is that of a label alone."""

    place: Place
    pointer: Pointer
    uses: Uses
    records: str | None = None


def expressions(
    objects: Iterable[KubeObject], values: Iterable[Values], policies: Iterable[Policy]
) -> Iterator[Expression]:
    """Every expression, in the order of the objects, then of the charts, then of the policies."""
    every, charts = tuple(objects), tuple(values)
    config_maps = [each for each in every if (each.ref.group, each.ref.kind) == ("", "ConfigMap")]
    for declared in every:
        if (declared.ref.group, declared.ref.kind) == (GROUP, "PrometheusRule"):
            yield from _groups(Written(declared), ("spec", "groups"))
    for config_map in config_maps:
        yield from _of_config_map(config_map)
    for chart in charts:
        yield from _of_chart(chart)
    for found in configurations(config_maps, charts):
        yield from _of_configuration(found)
    for policy in policies:
        yield from _of_policy(policy)


def _expression(written: Written, pointer: Pointer, text: Any, records: Any = None) -> Iterator[Expression]:
    if isinstance(text, str):
        name = records if isinstance(records, str) else None
        yield Expression(*written.at(pointer), promql.uses(text), name)


def _groups(written: Written, at: Pointer) -> Iterator[Expression]:
    """The rules in a list of groups, as Prometheus reads it."""
    for number, group in enumerate(map(mapping, sequence(written.get(at)))):
        for place, rule in enumerate(map(mapping, sequence(group.get("rules")))):
            pointer: Pointer = (*at, number, "rules", place, "expr")
            for each in _expression(written, pointer, rule.get("expr"), rule.get("record")):
                yield _read(each, rule) if each.uses.groupings else each


def _read(expression: Expression, rule: Mapping[str, Any]) -> Expression:
    """The expression of an alert, with the labels of its result that the alert's texts read."""
    texts = (text for field in ("annotations", "labels") for text in strings([*mapping(rule.get(field)).values()]))
    needed = frozenset(one or other for text in texts for one, other in _LABELS.findall(text))
    groupings = tuple(each._replace(needed=needed) for each in expression.uses.groupings)
    return expression._replace(uses=expression.uses._replace(groupings=groupings))


def _of_chart(chart: Values) -> Iterator[Expression]:
    written = Written(chart)
    if chart.chart == STACK:
        for name in mapping(chart.get(("additionalPrometheusRulesMap",))):
            yield from _groups(written, ("additionalPrometheusRulesMap", name, "groups"))
        for number, _ in enumerate(sequence(chart.get(("additionalPrometheusRules",)))):
            yield from _groups(written, ("additionalPrometheusRules", number, "groups"))
    elif chart.chart == _PROMETHEUS_CHART:
        for name in mapping(chart.get(("serverFiles",))):
            yield from _groups(written, ("serverFiles", name, "groups"))


def _of_config_map(config_map: KubeObject) -> Iterator[Expression]:
    for key, value in mapping(config_map.value.get("data")).items():
        if not isinstance(value, str) or not isinstance(key, str) or "expr" not in value:
            continue
        text = embedding.text_at(config_map, ("data", key))
        if text is None:
            continue
        if key.endswith(".json"):
            yield from _of_dashboard(text)
        elif "groups" in value:
            for document in embedding.documents(text):
                yield from _groups(Written(document), ("groups",))


def _of_dashboard(text: Text) -> Iterator[Expression]:
    """The queries of a dashboard of Grafana. One that is JSON only (YAML takes no tabs) has no lines of its own."""
    found = next(embedding.documents(text), None)
    if found is not None:
        written = Written(found)
        for pointer, query in _targets(found.value, ()):
            yield from _expression(written, pointer, query)
        return
    try:
        value = json.loads(text.value)
    except (ValueError, RecursionError):
        return
    for _, query in _targets(value, ()):
        yield Expression(text.spot_of_all, text.pointer, promql.uses(query))


def _targets(value: Any, at: Pointer) -> Iterator[tuple[Pointer, str]]:
    """Every `expr` in the value."""
    if len(at) > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key == "expr" and isinstance(each, str):
                yield (*at, key), each
            else:
                yield from _targets(each, (*at, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _targets(each, (*at, number))


def _of_configuration(found: Configuration) -> Iterator[Expression]:
    for pointer, rule in found.rules():
        yield from _of_adapter(found.written, pointer, rule)
    for pointer, query in found.queries():
        for field in ("containerQuery", "nodeQuery"):
            yield from _expression(found.written, (*pointer, field), query.get(field))


def _of_adapter(written: Written, at: Pointer, rule: Mapping[str, Any]) -> Iterator[Expression]:
    """What a rule asks for; its labels of resources are such that it groups by."""
    query, template = rule.get("seriesQuery"), rule.get("metricsQuery")
    found = promql.selector(query) if isinstance(query, str) else None
    if isinstance(query, str):
        yield from _expression(written, (*at, "seriesQuery"), query)
    if isinstance(template, str):
        series = found.metric if found is not None and found.metric else _SERIES
        yield from _expression(written, (*at, "metricsQuery"), template.replace(_SERIES, series))
    overrides = mapping(mapping(rule.get("resources")).get("overrides"))
    for label in overrides:
        if isinstance(label, str) and found is not None:
            needed = Grouping((label,), (Selector(found.metric),), frozenset(), frozenset((label,)))
            uses = Uses(groupings=(needed,))
            yield Expression(*written.at((*at, "resources", "overrides", label)), uses)


def _of_policy(policy: Policy) -> Iterator[Expression]:
    for profile in policy.profiles():
        for config in profile.configs():
            query = mapping(mapping(config.args.get("metricsUtilization")).get("prometheus")).get("query")
            if config.plugin == _LOW and isinstance(query, str):
                pointer: Pointer = (*config.args_pointer, "metricsUtilization", "prometheus", "query")
                yield Expression(*policy.at(pointer), promql.uses(query))
