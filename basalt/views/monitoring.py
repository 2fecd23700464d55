"""The Prometheuses that are declared, and which monitors and rules each of them selects.

Sources: the Prometheus, PrometheusAgent and ThanosRuler types of prometheus-operator (a selector that is absent selects
nothing, an empty one everything; a namespace selector that is absent selects the Prometheus' own namespace);
templates/prometheus/prometheus.yaml of the chart kube-prometheus-stack.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place
from basalt.gathering import places
from basalt.names import label_fault
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, get
from basalt.views.charts import Values
from basalt.views.descheduler_policy import is_partial

GROUP = "monitoring.coreos.com"
STACK = "kube-prometheus-stack"
SELECTORS = {
    "PodMonitor": "podMonitor",
    "Probe": "probe",
    "PrometheusRule": "rule",
    "ScrapeConfig": "scrapeConfig",
    "ServiceMonitor": "serviceMonitor",
}
_MONITORS = tuple(kind for kind in SELECTORS if kind != "PrometheusRule")
_READS: Mapping[str, tuple[str, ...]] = {
    "Prometheus": tuple(SELECTORS),
    "PrometheusAgent": _MONITORS,
    "ThanosRuler": ("PrometheusRule",),
}
_NAME = "kubernetes.io/metadata.name"


class Selection(NamedTuple):
    """What one Prometheus selects of one kind. labels and namespaces are selectors, None where absent; release is set
    where the chart made up the labels."""

    labels: Mapping[str, Any] | None
    namespaces: Mapping[str, Any] | None
    release: str | None = None


class Prometheus(NamedTuple):
    """One that is declared, and what it selects by kind; a kind that is missing is unknown."""

    place: Place
    namespace: str | None
    selections: Mapping[str, Selection]
    value_of: Mapping[str, str]

    def __str__(self) -> str:
        return str(self.place.ref) if self.place.ref else self.place.position(()).file


class Namespaces:
    """The labels of namespaces; of one that is not declared only its name is known."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._labels = {each.name: {_NAME: each.name, **each.labels} for each in objects}

    def may_match(self, selector: Mapping[str, Any], namespace: str) -> bool:
        """Whether the selector selects the namespace, or could."""
        known = self._labels.get(namespace)
        if known is not None:
            return matches(selector, known)
        return matches(_about_name(selector), {_NAME: namespace})


def _about_name(selector: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of the selector that the name alone answers."""
    labels = mapping(selector.get("matchLabels"))
    expressions = [each for each in sequence(selector.get("matchExpressions")) if mapping(each).get("key") == _NAME]
    return {"matchLabels": {key: labels[key] for key in labels if key == _NAME}, "matchExpressions": expressions}


def matches(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Whether a label selector of Kubernetes selects the labels. What is wrong in it counts as matching."""
    return not list(misses(selector, labels))


def misses(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> Iterator[str]:
    """The requirements of a label selector that the labels do not meet."""
    for key, value in mapping(selector.get("matchLabels")).items():
        if labels.get(key) != value:
            yield f"{key}: {value}"
    for each in map(mapping, sequence(selector.get("matchExpressions"))):
        key, operator, values = str(each.get("key")), each.get("operator"), strings(each.get("values"))
        value = labels.get(key)
        if operator == "In" and value not in values:
            yield f"{key} in ({', '.join(values)})"
        elif operator == "NotIn" and value in values:
            yield f"{key} not in ({', '.join(values)})"
        elif operator == "Exists" and key not in labels:
            yield key
        elif operator == "DoesNotExist" and key in labels:
            yield f"no {key}"


def prometheuses(objects: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Prometheus]:
    """Everything that is declared and selects monitors or rules."""
    for declared in objects:
        if declared.ref.group == GROUP and declared.ref.kind in _READS:
            yield _of_object(declared)
    for each in values:
        if each.chart == STACK and each.get(("prometheus", "enabled")) is not False:
            yield _of_chart(each)


def _of_object(declared: KubeObject) -> Prometheus:
    selections: dict[str, Selection] = {}
    spec = declared.spec
    # With none of these selectors the operator leaves the configuration to its user.
    is_managed = declared.ref.kind == "ThanosRuler" or any(
        spec.get(f"{SELECTORS[kind]}Selector") is not None for kind in _MONITORS
    )
    for kind in _READS[declared.ref.kind]:
        labels, namespaces = (spec.get(f"{SELECTORS[kind]}{part}") for part in ("Selector", "NamespaceSelector"))
        is_known = all(each is None or isinstance(each, Mapping) for each in (labels, namespaces))
        if is_known and (is_managed or kind == "PrometheusRule"):
            selections[kind] = Selection(labels, namespaces)
    return Prometheus(declared, declared.ref.namespace, selections, {})


def _of_chart(values: Values) -> Prometheus:
    selections: dict[str, Selection] = {}
    spec = mapping(values.get(("prometheus", "prometheusSpec")))
    release, namespace = _release(values)
    switches = {kind: f"{field}SelectorNilUsesHelmValues" for kind, field in SELECTORS.items()}
    is_whole = not is_partial(values)
    for kind, field in SELECTORS.items():
        labels, namespaces = (spec.get(f"{field}{part}") or {} for part in ("Selector", "NamespaceSelector"))
        if not isinstance(labels, Mapping) or not isinstance(namespaces, Mapping) or not is_whole:
            continue
        if labels or spec.get(switches[kind], True) is False:
            selections[kind] = Selection(labels, namespaces)
        elif release is not None:
            selections[kind] = Selection({"matchLabels": {"release": release}}, namespaces, release)
    return Prometheus(values.place, namespace, selections, switches)


def _release(values: Values) -> tuple[str | None, str | None]:
    """The name of the chart's release and its namespace; None where they are not known."""
    value = places.value(values.place)
    ref, spec = values.place.ref, mapping(mapping(value).get("spec"))
    if ref is None:
        return None, None
    if ref.kind == "HelmRelease":
        target = spec.get("targetNamespace")
        default = f"{target}-{ref.name}" if target else ref.name
        name, namespace = spec.get("releaseName") or default, target or ref.namespace
    elif ref.kind == "Application":
        name, namespace = get(value, _helm(values)) or ref.name, get(spec, ("destination", "namespace"))
    else:
        name, namespace = spec.get("name") or ref.name, spec.get("namespace") or ref.namespace
    is_name = isinstance(name, str) and label_fault(name) is None
    return name if is_name else None, namespace if isinstance(namespace, str) else None


def _helm(values: Values) -> Pointer:
    """Where an Application names the release of these values."""
    base = values.base if values.embedded is None else values.embedded.pointer
    return (*base[:-1], "releaseName")


class Miss(NamedTuple):
    """Why one Prometheus does not select an object: the labels it lacks, or its namespace."""

    prometheus: Prometheus
    selection: Selection
    labels: tuple[str, ...]
    is_of_namespace: bool


def missed(
    kind: str, labels: Mapping[str, Any], namespace: str | None, every: Iterable[Prometheus], known: Namespaces
) -> list[Miss]:
    """Why none of the Prometheuses selects an object of the kind; none where one does, or may."""
    found: list[Miss] = []
    for each in every:
        if kind not in each.selections:
            if kind in _READS.get(each.place.ref.kind if each.place.ref else "", SELECTORS):
                return []
            continue
        selection = each.selections[kind]
        lacking = tuple(misses(selection.labels, labels)) if selection.labels is not None else ()
        is_far = namespace is not None and not _may_come_from(namespace, each, selection, known)
        if selection.labels is not None and not lacking and not is_far:
            return []
        found.append(Miss(each, selection, lacking, is_far))
    return found


def _may_come_from(namespace: str, each: Prometheus, selection: Selection, known: Namespaces) -> bool:
    if selection.namespaces is None:
        return each.namespace in (None, namespace)
    return known.may_match(selection.namespaces, namespace)
