"""Who gives which metric, and whether Prometheus reads the monitors and rules that are declared."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt import names
from basalt.findings import Place, Problem, Severity
from basalt.gathering.documents import Document
from basalt.gathering.places import Spot, described
from basalt.index import Index
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, existing, get
from basalt.rules import metric_chain
from basalt.rules.rule import Rule
from basalt.views import images, scrapes
from basalt.views.charts import Values
from basalt.views.exporters import Exporter
from basalt.views.monitoring import GROUP, SELECTORS, Miss, Namespaces, missed, prometheuses
from basalt.views.pods import pods
from basalt.views.scrapes import Declared

_APIS = ("metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io")
_RESOURCE, _CUSTOM, _EXTERNAL = (f"v1beta1.{group}" for group in _APIS)
_SINGLE = (Exporter.DCGM, Exporter.NODE, Exporter.STATE)  # one of each is enough for a node, or the cluster
_SHARED = re.compile(r"--(shard|total-shards|pod|namespaces|resources|node|custom-resource-state-only)\b")
_METRICS_SERVER = "metrics-server"
_INSECURE = re.compile(
    r"(?<!\S)(?:--)?(kubelet-insecure-tls|deprecated-kubelet-completely-insecure)(?:=(?:1|t|true|T|True|TRUE))?(?!\S)"
)
_ARGS = ("args", "defaultArgs", "extraArgs")
_MONITOR_OF: Mapping[str, Pointer] = {
    "dcgm-exporter": ("serviceMonitor",),
    "gpu-operator": ("dcgmExporter", "serviceMonitor"),
}


class _Owner(NamedTuple):
    """What registers an APIService: where, and which Service stands behind it, None where a chart makes it up."""

    api: str
    place: Place
    pointer: Pointer
    service: tuple[Any, Any] | None = None

    def __str__(self) -> str:
        return described(self.place, self.pointer)


def one_metrics_provider(index: Index) -> Iterator[Problem]:
    first: dict[str, _Owner] = {}
    for owner in sorted(_owners(index), key=_position):
        known = first.setdefault(owner.api, owner)
        if known is not owner and (owner.service is None or owner.service != known.service):
            message = f"a second owner of the APIService {owner.api}; the first is {known}"
            yield Problem(owner.place, owner.pointer, message, "keep one: whoever is applied last answers for both")
    yield from _second_exporters(index)


def _position(each: _Owner | Declared) -> tuple[str, int, int]:
    return each.place.position(each.pointer)


def _owners(index: Index) -> Iterator[_Owner]:
    for each in index.others:
        if (each.ref.group, each.ref.kind) == ("apiregistration.k8s.io", "APIService"):
            service = mapping(each.spec.get("service"))
            if each.spec.get("group") in _APIS and service:
                pointer: Pointer = ("spec", "service")
                yield _Owner(each.name, each, pointer, (service.get("namespace"), service.get("name")))
    for values in index.chart_values:
        for api, pointer in _apis(values):
            yield _Owner(api, *_existing(values, pointer))


def _apis(values: Values) -> Iterator[tuple[str, Pointer]]:
    """The APIServices that a chart registers, and the value that says so."""
    if values.chart == _METRICS_SERVER and values.get(("apiService", "create")) is not False:
        yield _RESOURCE, ()
    if values.chart == "keda":
        yield _EXTERNAL, ()
    if values.chart == "prometheus-adapter":
        rules = mapping(values.get(("rules",)))
        if rules.get("resource"):
            yield _RESOURCE, ("rules", "resource")
        if rules.get("default") is not False or rules.get("custom"):
            yield _CUSTOM, ("rules", "custom")
        if rules.get("external"):
            yield _EXTERNAL, ("rules", "external")


def _existing(values: Values, pointer: Pointer) -> tuple[Place, Pointer]:
    """The place of the value, or of what stands around it where it is not written."""
    place, at = values.at(existing(values.value, pointer))
    return place, existing(place.value, at) if isinstance(place, KubeObject) else at


def _second_exporters(index: Index) -> Iterator[Problem]:
    found = sorted(scrapes.declared(index.others, index.chart_values), key=_position)
    for exporter in _SINGLE:
        every = [each for each in found if each.exporter is exporter]
        for at, each in enumerate(every):
            other = next((other for other in every[:at] if not _are_apart(other, each)), None)
            if other is not None:
                name = exporter.value.removeprefix("the ")
                message = f"a second {name}; the first is {other}: every metric of it is there twice"
                yield Problem(each.place, each.pointer, message, "keep one, or give each its own nodes")


def _are_apart(one: Declared, other: Declared) -> bool:
    """Whether the two share the work: they run on different nodes, or each watches its part."""
    specs = [_pod(each) for each in (one, other)]
    selectors = [mapping(spec.get("nodeSelector")) for spec in specs]
    if any(selectors[1].get(key, value) != value for key, value in selectors[0].items()):
        return True
    if any(get(spec, ("affinity", "nodeAffinity")) for spec in specs):
        return True
    return any(_SHARED.search(" ".join(_words(each))) for spec in specs for each in sequence(spec.get("containers")))


def _pod(each: Declared) -> Mapping[str, Any]:
    if each.values is not None or not isinstance(each.place, KubeObject) or each.pointer[-1:] != ("image",):
        return {}
    return mapping(get(each.place.value, each.pointer[:-3]))


def _words(container: Any) -> list[str]:
    return [*strings(mapping(container).get("command")), *strings(mapping(container).get("args"))]


def kubelet_is_verified(index: Index) -> Iterator[Problem]:
    for place, pointer, word in (*_of_pods(index), *_of_charts(index)):
        found = _INSECURE.search(word)
        if found is not None and not _is_development(index, place):
            message = f"--{found[1]} lets anybody who answers for a node's address make up its metrics"
            hint = "take it out; let the kubelets ask for certificates (serverTLSBootstrap) and approve them"
            yield Problem(place, pointer, message, hint)


_Word = tuple[Place, Pointer, str]


def _of_pods(index: Index) -> Iterator[_Word]:
    for pod in pods(index.others):
        for number, container in enumerate(map(mapping, sequence(pod.spec.get("containers")))):
            if images.program(container.get("image")).endswith(_METRICS_SERVER):
                for field in ("command", "args"):
                    at: Pointer = (*pod.pointer, "containers", number, field)
                    yield from ((pod.object, (*at, place), word) for place, word in _texts(container.get(field)))


def _of_charts(index: Index) -> Iterator[_Word]:
    for values in index.chart_values:
        if values.chart == _METRICS_SERVER:
            for field in _ARGS:
                given = values.get((field,))
                if isinstance(given, Mapping):
                    given_map = [(key, f"{key}={str(value).lower()}") for key, value in given.items()]
                    yield from ((*values.at((field, key)), word) for key, word in given_map)
                yield from ((*values.at((field, place)), word) for place, word in _texts(given))
    for declared in index.others:
        if (declared.ref.group, declared.ref.kind) == ("argoproj.io", "Application"):
            yield from _parameters(declared)


def _parameters(application: KubeObject) -> Iterator[_Word]:
    """The values that an Application gives to metrics-server one by one."""
    sources: list[Pointer] = [("spec", "source")]
    sources += [("spec", "sources", at) for at, _ in enumerate(sequence(application.spec.get("sources")))]
    for source in sources:
        if get(application.value, (*source, "chart")) == _METRICS_SERVER:
            at = (*source, "helm", "parameters")
            for place, each in enumerate(map(mapping, sequence(get(application.value, at)))):
                if str(each.get("name")).startswith(_ARGS) and isinstance(each.get("value"), str):
                    yield application, (*at, place, "value"), each["value"]


def _texts(values: Any) -> Iterator[tuple[int, str]]:
    return ((place, each) for place, each in enumerate(sequence(values)) if isinstance(each, str))


def _is_development(index: Index, place: Place) -> bool:
    while isinstance(place, Spot):
        place = place.place
    if isinstance(place, KubeObject):
        return index.is_development(place)
    return isinstance(place, Document) and index.is_development(KubeObject(mapping(place.value), place))


def monitor_is_selected(index: Index) -> Iterator[Problem]:
    every = list(prometheuses(index.others, index.chart_values))
    if not every:
        return
    known = Namespaces(index.of_kind("Namespace"))
    for declared in index.others:
        if declared.ref.group == GROUP and declared.ref.kind in SELECTORS:
            kind = declared.ref.kind
            if found := missed(kind, declared.labels, declared.ref.namespace, every, known):
                yield Problem(declared, *_unselected(declared, found))
    for place, pointer, labels in _made_monitors(index):
        found = missed("ServiceMonitor", labels, None, every, known)
        if found and all(each.selection.release for each in found):
            release = found[0].selection.release
            message = (
                f"makes a ServiceMonitor without the label release: {release}, by which {found[0].prometheus} selects"
            )
            hint = f"add release: {release} to its additionalLabels, or {_switch_off(found[0], 'ServiceMonitor')}"
            yield Problem(place, pointer, message, hint)


def _unselected(declared: KubeObject, found: Sequence[Miss]) -> tuple[Pointer, str, str]:
    """The nearest to selecting it speaks for all."""
    kind = declared.ref.kind
    miss = min(found, key=lambda each: (each.selection.labels is None, len(each.labels) + each.is_of_namespace))
    others = f" (nor does any of {len(found) - 1} more)" if len(found) > 1 else ""
    field = SELECTORS[kind]
    if miss.selection.labels is None:
        message = f"{miss.prometheus} has no {field}Selector: it selects no {kind}{others}"
        return ("metadata",), message, f"give it a {field}Selector; {{}} selects every {kind}"
    if miss.labels:
        wanted = names.listed(miss.labels)
        message = f"{miss.prometheus} selects by {wanted}; this {kind} {_has(declared, miss)}{others}"
        is_plain = all(": " in each for each in miss.labels)
        hint = f"label it {wanted}" if is_plain else f"change its labels so that they meet {wanted}"
        if miss.selection.release is not None:
            hint += f", or {_switch_off(miss, kind)}"
        return _label_pointer(declared, miss), message, hint
    where = f"of its own namespace {miss.prometheus.namespace}"
    if miss.selection.namespaces is not None:
        where = "of the namespaces that its selector names"
    message = f"{miss.prometheus} selects each {kind} {where}, not of {declared.ref.namespace}{others}"
    hint = f"widen its {field}NamespaceSelector, or move the {kind}"
    return ("metadata", "namespace"), message, hint


def _switch_off(miss: Miss, kind: str) -> str:
    return f"set prometheus.prometheusSpec.{miss.prometheus.value_of[kind]} to false"


def _key(miss: Miss) -> str:
    return re.split(r"[: ]", miss.labels[0].removeprefix("no "))[0]


def _has(declared: KubeObject, miss: Miss) -> str:
    key = _key(miss)
    return f"has {key}: {declared.labels[key]}" if key in declared.labels else "has no such label"


def _label_pointer(declared: KubeObject, miss: Miss) -> Pointer:
    return existing(declared.value, ("metadata", "labels", _key(miss)))


def _made_monitors(index: Index) -> Iterator[tuple[Place, Pointer, Mapping[str, Any]]]:
    """The ServiceMonitors that the GPU Operator and the DCGM exporter's chart are told to make, with the labels that
    they are told to give."""
    for declared in index.others:
        if (declared.ref.group, declared.ref.kind) == ("nvidia.com", "ClusterPolicy"):
            at: Pointer = ("spec", "dcgmExporter", "serviceMonitor")
            yield from _made(declared, at, get(declared.value, at))
    for values in index.chart_values:
        at = _MONITOR_OF.get(values.chart, ())
        if at:
            place, pointer = values.at(at)
            yield from _made(place, pointer, values.get(at))


def _made(place: Place, at: Pointer, settings: Any) -> Iterator[tuple[Place, Pointer, Mapping[str, Any]]]:
    if mapping(settings).get("enabled") is True:
        yield place, at, mapping(mapping(settings).get("additionalLabels"))


RULES: tuple[Rule, ...] = (
    Rule("one-metrics-provider", Severity.ERROR, one_metrics_provider),
    Rule("kubelet-is-verified", Severity.ERROR, kubelet_is_verified),
    Rule("monitor-is-selected", Severity.ERROR, monitor_is_selected),
    *metric_chain.RULES,
)
