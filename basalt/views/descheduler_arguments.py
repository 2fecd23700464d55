"""What is wrong in a descheduler's policy: names, forms and arguments that it does not take. Thresholds are a rule of
their own.

Source: pkg/framework/plugins/*/validation.go, pkg/descheduler/policyconfig.go and pkg/framework/profile/profile.go of
kubernetes-sigs/descheduler; a policy with one fault is refused as a whole, and the descheduler does not start.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt import names
from basalt.api import durations
from basalt.api.schemas import show
from basalt.objects import mapping, sequence, strings
from basalt.pointers import Pointer, dotted
from basalt.views import descheduler_catalogue as catalogue
from basalt.views.descheduler_catalogue import Engine, Form, Shape
from basalt.views.node_selection import expression_fault

_HIGHEST_THRESHOLD = 2_000_000_000  # SystemCriticalPriority in pkg/utils/priority.go
_INT32 = 2**31
DEFAULT_PROTECTIONS = ("PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods")
EXTRA_PROTECTIONS = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")
_DEPRECATED = (
    "evictLocalStoragePods", "evictDaemonSetPods", "evictSystemCriticalPods", "ignorePvcPods", "evictFailedBarePods",
    "ignorePodsWithoutPDB",
)  # fmt: skip
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
# podLifeTimeAllowedStates in podlifetime/validation.go; of v0.27.1 the first four.
_STATES = (
    "Running", "Pending", "PodInitializing", "ContainerCreating", "Succeeded", "Failed", "Unknown", "NodeAffinity",
    "NodeLost", "Shutdown", "UnexpectedAdmissionError", "ImagePullBackOff", "CrashLoopBackOff",
    "CreateContainerConfigError", "ErrImagePull", "CreateContainerError", "InvalidImageName", "OOMKilled", "Error",
    "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun", "StartError",
)  # fmt: skip
_OLD_STATES = 4
# Lists whose items are one of a few words.
_WORDS: Mapping[tuple[str, str], Sequence[str]] = {
    (catalogue.RESTARTS, "states"): ("Running", "CrashLoopBackOff"),
    (catalogue.SPREAD, "constraints"): ("DoNotSchedule", "ScheduleAnyway"),
    (catalogue.HIGH, "evictionModes"): ("OnlyThresholdingResources",),
    (catalogue.NODE_AFFINITY, "nodeAffinityType"): (REQUIRED, PREFERRED),
}
_OF_TYPE = ("apiVersion", "kind")  # which any arguments may have
# Pairs of arguments of which one may be set.
_EITHER = (
    (("namespaces", "include"), ("namespaces", "exclude")),
    (("ownerKinds", "include"), ("ownerKinds", "exclude")),
    (("includedTaints",), ("excludedTaints",)),
    (("priorityThreshold", "value"), ("priorityThreshold", "name")),
)


class Fault(NamedTuple):
    pointer: Pointer
    message: str
    hint: str = ""


def shape_faults(value: Any, shape: Shape | None, at: Pointer) -> Iterator[Fault]:
    """Unknown fields and wrong forms. A null is left out, as Go's JSON reader does."""
    if value is None or shape is None:
        return
    if isinstance(shape, Form):
        if not _has_form(value, shape):
            yield Fault(at, f"takes {shape.value}, this is {show(value)}")
    elif isinstance(shape, Mapping):
        yield from _map_faults(value, shape, at)
    elif not isinstance(value, list):
        yield Fault(at, f"takes a list, this is {show(value)}")
    else:
        for place, item in enumerate(value):
            yield from shape_faults(item, shape[0], (*at, place))


def _map_faults(value: Any, shape: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield Fault(at, f"takes a map, this is {show(value)}")
        return
    for key, inner in value.items():
        if key in shape or "*" in shape:
            yield from shape_faults(inner, shape[key] if key in shape else shape["*"], (*at, key))
        else:
            yield Fault((*at, key), f"unknown field {key}", names.did_you_mean(str(key), shape))


def _has_form(value: Any, form: Form) -> bool:
    if form in (Form.BOOL, Form.TEXT):
        return isinstance(value, bool if form is Form.BOOL else str)
    if form is Form.DURATION:
        return isinstance(value, str) and durations.fault(value) is None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if form is Form.NUMBER:
        return True
    is_whole = isinstance(value, int) or value.is_integer()
    return is_whole and (0 if form is Form.COUNT else -_INT32) <= value < 2**64


def argument_faults(engine: Engine | None, plugin: str, args: Any, at: Pointer) -> Iterator[Fault]:
    """What is wrong with the arguments of a plugin, which stand at the pointer."""
    shown = {key: value for key, value in args.items() if key not in _OF_TYPE} if isinstance(args, Mapping) else args
    for each in shape_faults(shown, catalogue.arguments(engine, plugin), at):
        yield each._replace(message=_of(plugin, each, at))
    args = mapping(args)
    yield from _namespaces(args, at)
    for field in ("labelSelector", "namespaceLabelSelector"):
        yield from _selector(mapping(args.get(field)), (*at, field))
    for (own, field), words in {**_WORDS, (catalogue.LIFE_TIME, "states"): _states(engine)}.items():
        if plugin == own:
            yield from _words(strings(args.get(field)), words, (*at, field))
    check = _CHECKS.get(plugin)
    if check is not None:
        yield from check(engine, args, at)


def _of(plugin: str, fault: Fault, at: Pointer) -> str:
    is_unknown = fault.message.startswith("unknown field ")
    return f"{plugin} has no argument {dotted(fault.pointer[len(at) :])}" if is_unknown else fault.message


def _states(engine: Engine | None) -> Sequence[str]:
    return _STATES[:_OLD_STATES] if engine is Engine.VOLCANO else _STATES


def _namespaces(args: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    if sequence(mapping(args.get("evictableNamespaces")).get("include")):
        message = "evictableNamespaces takes exclude only"
        yield Fault((*at, "evictableNamespaces", "include"), message, "name the namespaces to leave out under exclude")
    for one, other in _EITHER:
        if _is_set(args, one) and _is_set(args, other):
            first, second = ".".join(one), ".".join(other)
            yield Fault(
                (*at, *other), f"{first} and {second} are both set, one of the two is taken", "keep one of them"
            )


def _is_set(args: Mapping[str, Any], path: Sequence[str]) -> bool:
    value: Any = args
    for key in path:
        value = mapping(value).get(key)
    return value is not None and value not in ("", [])


def _selector(selector: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    """Source: LabelSelectorAsSelector in k8s.io/apimachinery."""
    for key, value in mapping(selector.get("matchLabels")).items():
        fault = names.qualified_fault(str(key)) or (names.label_value_fault(value) if isinstance(value, str) else None)
        if fault:
            yield Fault((*at, "matchLabels", key), f"{key}: {show(value)} is no label: {fault}")
    for place, expression in enumerate(map(mapping, sequence(selector.get("matchExpressions")))):
        wrong_key = names.qualified_fault(str(expression.get("key")))
        if fault := expression_fault(expression):
            yield Fault((*at, "matchExpressions", place), fault)
        elif wrong_key:
            pointer = (*at, "matchExpressions", place, "key")
            yield Fault(pointer, f"the key {show(expression.get('key'))}: {wrong_key}")


def _words(found: Sequence[str], known: Sequence[str], at: Pointer) -> Iterator[Fault]:
    for place, word in enumerate(found):
        if word not in known:
            yield Fault((*at, place), f"{show(word)} is not known", names.did_you_mean(word, known))


def _word(value: Any, known: Sequence[str], at: Pointer) -> Iterator[Fault]:
    if isinstance(value, str) and value and value not in known:
        yield Fault(at, f"{show(value)} is none of {', '.join(known)}", names.did_you_mean(value, known))


def _evictor(_: Engine | None, args: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    threshold = mapping(args.get("priorityThreshold")).get("value")
    if isinstance(threshold, int) and threshold > _HIGHEST_THRESHOLD:
        message = f"{threshold} is above {_HIGHEST_THRESHOLD}, the highest threshold"
        yield Fault((*at, "priorityThreshold", "value"), message, f"lower it to {_HIGHEST_THRESHOLD} or less")
    yield from _word(args.get("noEvictionPolicy"), ("Preferred", "Mandatory"), (*at, "noEvictionPolicy"))
    protections = mapping(args.get("podProtections"))
    used = []
    for field, known in (("extraEnabled", EXTRA_PROTECTIONS), ("defaultDisabled", DEFAULT_PROTECTIONS)):
        found = strings(protections.get(field))
        used += found
        yield from _words(found, known, (*at, "podProtections", field))
        for place, word in enumerate(found):
            if word in found[:place]:
                yield Fault((*at, "podProtections", field, place), f"{word} is named twice", "take one of them out")
    deprecated = [field for field in _DEPRECATED if args.get(field) is True]
    if used and deprecated:
        message = f"{names.listed(deprecated)} is set beside podProtections, which replaces it"
        yield Fault((*at, deprecated[0]), message, "say it in podProtections alone")


def _life_time(engine: Engine | None, args: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    more = () if engine is Engine.VOLCANO else ("states", "conditions", "exitCodes")
    criteria = ("maxPodLifeTimeSeconds", *more)
    if not any(_is_set(args, (field,)) for field in criteria):
        yield Fault(at, f"PodLifeTime has no criterion: {' or '.join(criteria)} is needed", f"set {criteria[0]}")
    for place, condition in enumerate(sequence(args.get("conditions"))):
        if isinstance(condition, Mapping) and not any(_is_set(condition, (field,)) for field in condition):
            yield Fault((*at, "conditions", place), "the condition says nothing", "set its type, status or reason")


def _node_affinity(_: Engine | None, args: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    if not sequence(args.get("nodeAffinityType")):
        message = f"{catalogue.NODE_AFFINITY} needs nodeAffinityType"
        yield Fault((*at, "nodeAffinityType"), message, f"add nodeAffinityType: [{REQUIRED}]")


def _restarts(_: Engine | None, args: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    threshold = args.get("podRestartThreshold") or 0
    if isinstance(threshold, int) and threshold < 1:
        pointer = (*at, "podRestartThreshold")
        yield Fault(pointer, f"podRestartThreshold is {threshold}, the smallest is 1", "set it to 1 or more")


def _low(_: Engine | None, args: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    use, at = mapping(args.get("metricsUtilization")), (*at, "metricsUtilization")
    source, has_query = use.get("source"), bool(mapping(use.get("prometheus")).get("query"))
    known = (catalogue.KUBERNETES_METRICS, catalogue.PROMETHEUS)
    yield from _word(source, known, (*at, "source"))
    if isinstance(args.get("metricsUtilization"), Mapping) and not source and use.get("metricsServer") is not True:
        yield Fault(at, "metricsUtilization has no source", f"add source: {catalogue.KUBERNETES_METRICS}")
    if source == catalogue.PROMETHEUS and not has_query:
        yield Fault(at, "the source Prometheus has no prometheus.query", "add the query that gives each node's use")
    if source == catalogue.KUBERNETES_METRICS and use.get("prometheus") is not None:
        message = f"prometheus is set beside the source {source}"
        yield Fault((*at, "prometheus"), message, "take it out, or write source: Prometheus")
    if source == catalogue.KUBERNETES_METRICS and use.get("metricsServer") is True:
        message = f"metricsServer is set beside the source {source}, which replaces it"
        yield Fault((*at, "metricsServer"), message, "take metricsServer out")


def _load_aware(_: Engine | None, args: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    yield from _word(
        mapping(args.get("metrics")).get("type"), ("prometheus", "prometheus_adaptor"), (*at, "metrics", "type")
    )


_CHECKS = {
    catalogue.DEFAULT_EVICTOR: _evictor,
    catalogue.LIFE_TIME: _life_time,
    catalogue.NODE_AFFINITY: _node_affinity,
    catalogue.RESTARTS: _restarts,
    catalogue.LOW: _low,
    catalogue.LOAD_AWARE: _load_aware,
}


def provider_faults(policy: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with the policy's metricsProviders."""
    seen: set[str] = set()
    known = (catalogue.KUBERNETES_METRICS, catalogue.PROMETHEUS)
    for place, provider in enumerate(map(mapping, sequence(policy.get("metricsProviders")))):
        at, source = ("metricsProviders", place), provider.get("source")
        yield from _word(source, known, (*at, "source"))
        if isinstance(source, str) and source in seen:
            yield Fault((*at, "source"), f"the source {source} is configured twice", "keep one of them")
        seen |= {source} if isinstance(source, str) else set()
        if source == catalogue.PROMETHEUS:
            yield from _prometheus(mapping(provider.get("prometheus")), at)
    if catalogue.KUBERNETES_METRICS in seen and mapping(policy.get("metricsCollector")).get("enabled") is True:
        message = f"metricsCollector is enabled beside the source {catalogue.KUBERNETES_METRICS}, which replaces it"
        yield Fault(("metricsCollector", "enabled"), message, "take metricsCollector out")


def _prometheus(prometheus: Mapping[str, Any], at: Pointer) -> Iterator[Fault]:
    if not prometheus.get("url"):
        yield Fault((*at, "prometheus", "url"), "the source Prometheus has no prometheus.url", "add the address")
    token = prometheus.get("authToken")
    if isinstance(token, Mapping):
        reference = mapping(token.get("secretReference"))
        missing = [field for field in ("namespace", "name") if not reference.get(field)]
        if missing:
            message = f"authToken.secretReference has no {' and no '.join(missing)}"
            yield Fault((*at, "prometheus", "authToken"), message, "name the Secret and its namespace")
