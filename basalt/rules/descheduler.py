"""The policies of both deschedulers, and whether they leave gangs whole."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer
from basalt.rules.rule import Rule
from basalt.views import descheduler_catalogue as catalogue
from basalt.views.descheduler_arguments import Fault, argument_faults, provider_faults, shape_faults
from basalt.views.descheduler_catalogue import Engine
from basalt.views.descheduler_policy import Config, Policy, Profile
from basalt.views.embedding import Unreadable
from basalt.views.evictions import EVICT, Cluster, Danger, dangers, protections
from basalt.views.gangs import Priorities, gangs
from basalt.views.metric_sources import Scrape, Sources, seconds

_WITH_THRESHOLDS = (catalogue.LOW, catalogue.HIGH, catalogue.LOAD_AWARE)
_BOTH = ("thresholds", "targetThresholds")
_MEASURED = ("cpu", "memory", "pods")  # what metrics-server tells of a node, and its pods counted
_LOAD_AWARE_WINDOW = 30  # of irate in loadaware/metrics/metrics_client_prometheus.go
_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")
_OLD = "descheduler/v1alpha1"
_TO_PROFILES = "write descheduler/v1alpha2, and the strategies as profiles"
_CRITICAL = "SystemCriticalPods"  # the protection that the priority threshold is part of
_JOB_NAME = "volcano.sh/job-name"
_WINDOW = re.compile(r"\bnode_\w+\s*(?:\{[^}]*\})?\s*\[([0-9a-z]+)\]")


def one_descheduler(index: Index) -> Iterator[Problem]:
    found = [each for each in index.deschedulers if each.evicts]
    found.sort(key=lambda each: each.place.position(each.pointer))
    for each in found[1:]:
        message = f"a second descheduler; the first is {found[0]}"
        yield Problem(each.place, each.pointer, message, "keep one of them: neither knows what the other evicts")
    for configuration in index.scheduler_configurations if found else ():
        if configuration.has_plugin("rescheduling") and configuration.has_action("shuffle"):
            message = f"rescheduling with the action shuffle evicts pods too, beside {found[0]}"
            yield configuration.problem(("actions",), message, "take shuffle out of actions, or the descheduler away")


def descheduler_thresholds_are_ordered(index: Index) -> Iterator[Problem]:
    for policy in index.descheduler_policies:
        for profile in policy.profiles():
            for config in profile.configs():
                if config.plugin in _WITH_THRESHOLDS:
                    for fault in _threshold_faults(config):
                        yield policy.problem(*fault)


def _threshold_faults(config: Config) -> Iterator[Fault]:
    fields = _BOTH[:1] if config.plugin == catalogue.HIGH else _BOTH
    given = {field: mapping(config.args.get(field)) for field in fields}
    at = config.args_pointer
    wholes = [config.value.get("args"), *(config.args.get(field) for field in fields)]
    if any(each is not None and not isinstance(each, Mapping) for each in wholes):
        return  # of the wrong form
    missing = [field for field in fields if not given[field]]
    if missing:
        hint = f"add {missing[0]}, such as {missing[0]}: {{cpu: 20}}"
        yield Fault((*at, missing[0]), f"{config.plugin} has no {' and no '.join(missing)}", hint)
        return
    for field in fields:
        for key, value in given[field].items():
            if _is_number(value) and not 0 <= value <= 100:
                message = f"{field} has {key} {value}; a percentage from 0 to 100 is allowed"
                yield Fault((*at, field, key), message, "write a part of the node's capacity in percent")
    keys = list(_key_faults(config, given))
    yield from keys
    if not keys and len(fields) == 2 and config.args.get("useDeviationThresholds") is not True:
        yield from _unordered(given, at)


def _key_faults(config: Config, given: Mapping[str, Mapping[str, Any]]) -> Iterator[Fault]:
    source = mapping(config.args.get("metricsUtilization")).get("source")
    if source == catalogue.PROMETHEUS:
        yield from _queried(given, config.args_pointer)
        return
    for field, found in given.items():
        other = [key for key in found if key not in _MEASURED]
        if source == catalogue.KUBERNETES_METRICS and other:
            message = f"{field} has {names.listed(other)}; {source} tells {', '.join(_MEASURED)} of a node"
            hint = names.did_you_mean(other[0], _MEASURED)
            yield Fault((*config.args_pointer, field, other[0]), message, hint)
            return
    if len(given) == 2:
        yield from _lone(given, config.args_pointer)


def _queried(given: Mapping[str, Mapping[str, Any]], at: Pointer) -> Iterator[Fault]:
    """With a query a node has one value, which goes by the name MetricResource."""
    wanted = catalogue.METRIC_RESOURCE
    wrong = [field for field, found in given.items() if found.keys() != {wanted}]
    if wrong:
        found = given[wrong[0]]
        key = next((key for key in found if key != wanted), wanted)
        verb = "have" if len(wrong) > 1 else "has"
        message = (
            f"{' and '.join(wrong)} {verb} {names.listed(found)}; with the source Prometheus {wanted} is the only key"
        )
        yield Fault((*at, wrong[0], key), message, f"write {wanted} alone, the percentage for the query's value")


def _lone(given: Mapping[str, Mapping[str, Any]], at: Pointer) -> Iterator[Fault]:
    for field, other in (_BOTH, _BOTH[::-1]):
        lone = [key for key in given[field] if key not in given[other]]
        if lone:
            rest = [key for key in given[other] if key not in given[field]]
            close = names.nearest(lone[0], rest)
            hint = f"write {lone[0]} or {close} in both" if close else f"add {names.listed(lone)} to {other}"
            message = f"{field} has {names.listed(lone)}, which {other} does not have"
            yield Fault((*at, field, lone[0]), message, hint)
            return


def _unordered(given: Mapping[str, Mapping[str, Any]], at: Pointer) -> Iterator[Fault]:
    low, high = (given[field] for field in _BOTH)
    wrong = [key for key in low if _is_number(low[key]) and _is_number(high[key]) and low[key] > high[key]]
    if wrong:
        terms = names.listed(f"{key} {low[key]} is above {high[key]}" for key in wrong)
        message = f"thresholds are above targetThresholds: {terms}"
        yield Fault((*at, "thresholds", wrong[0]), message, "lower thresholds, or raise targetThresholds")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def descheduler_policy_is_known(index: Index) -> Iterator[Problem]:
    for policy in index.descheduler_policies:
        if policy.value is None:
            if isinstance(policy.written, Unreadable):
                yield policy.problem((), policy.written.fault.message, policy.written.fault.hint)
            continue
        known = catalogue.api_versions(policy.engine)
        version = policy.value.get("apiVersion")
        if isinstance(version, str) and version not in known:
            reader = policy.engine.value if policy.engine else "a descheduler"
            message = f"{version} is not read by {reader}, which reads {names.listed(known)}"
            yield policy.problem(("apiVersion",), message, _TO_PROFILES if version == _OLD else f"write {known[0]}")
        elif version != _OLD:
            for found in _policy_faults(policy):
                yield policy.problem(*found)


def _policy_faults(policy: Policy) -> Iterator[Fault]:
    value = mapping(policy.value)
    for fault in shape_faults(value, catalogue.policy_shape(policy.engine), ()):
        is_point = len(fault.pointer) == 4 and fault.pointer[2] == "plugins"
        message = fault.message.replace("unknown field", "unknown extension point") if is_point else fault.message
        yield fault._replace(message=f"{message}, which is ignored" if message.startswith("unknown") else message)
    yield from provider_faults(value)
    for profile in policy.profiles():
        yield from _config_faults(policy, profile)
        yield from _enabled_faults(policy, profile)


def _config_faults(policy: Policy, profile: Profile) -> Iterator[Fault]:
    known = catalogue.plugins(policy.engine)
    for config in profile.configs():
        if config.plugin not in known:
            yield _unknown(policy, config.plugin, (*config.pointer, "name"))
            continue
        yield from argument_faults(policy.engine, config.plugin, config.value.get("args"), config.args_pointer)
    for place, config_value in enumerate(sequence(profile.value.get("pluginConfig"))):
        if isinstance(config_value, Mapping) and config_value.get("name") in (None, ""):
            yield Fault((*profile.pointer, "pluginConfig", place), "the entry names no plugin", "add its name")


def _unknown(policy: Policy, plugin: str, pointer: Pointer) -> Fault:
    if policy.engine is None:
        message = f"no descheduler has a plugin {plugin}"
    else:
        message = f"{policy.engine.value} has no plugin {plugin}"
    if plugin in catalogue.plugins(None):
        other = next(each.value for each in Engine if plugin in catalogue.plugins(each))
        return Fault(pointer, message, f"take it out: only {other} has it")
    return Fault(pointer, message, names.did_you_mean(plugin, catalogue.plugins(policy.engine)))


def _enabled_faults(policy: Policy, profile: Profile) -> Iterator[Fault]:
    configured = {each.plugin for each in profile.configs()} | {catalogue.DEFAULT_EVICTOR}
    known = catalogue.plugins(policy.engine)
    told: set[str] = set()
    for each in profile.enabled():
        if each.point not in catalogue.POINTS or (each.plugin in told):
            continue
        points = catalogue.points_of(each.plugin)
        if each.plugin not in known:
            if each.plugin not in configured:
                yield _unknown(policy, each.plugin, each.pointer)
        elif each.point not in points:
            message = f"{each.plugin} has no extension point {each.point}"
            yield Fault(each.pointer, message, f"enable it under {' or '.join(points)}")
        elif each.plugin not in configured:
            message = f"{each.plugin} is enabled without an entry in pluginConfig: the profile does not start"
            yield Fault(each.pointer, message, f"add {{name: {each.plugin}}} to pluginConfig, with its args")
        else:
            continue
        told.add(each.plugin)


def eviction_spares_gangs(index: Index) -> Iterator[Problem]:
    found = [policy for policy in index.descheduler_policies if policy.value is not None and not policy.idle]
    if not found:
        return
    priorities = Priorities(index.of_kind("PriorityClass"))
    declared = list(gangs(index.workloads, index.of_kind("PodGroup"), index.others, priorities))
    budgets = [each for each in index.others if (each.ref.group, each.ref.kind) == ("policy", "PodDisruptionBudget")]
    cluster = Cluster(declared, priorities, index.of_kind("Namespace"), budgets, index.nodes)
    for policy in found:
        for profile in policy.profiles():
            taken = list(dangers(policy, profile, cluster)) if declared else []
            if taken:
                yield _endangered(policy, profile, taken)


def _endangered(policy: Policy, profile: Profile, taken: Sequence[Danger]) -> Problem:
    used = {each.pointer: each for danger in taken for each in danger.plugins}
    enabled = [each for each in profile.enabled() if each.pointer in used]
    plugins = names.listed(dict.fromkeys(each.plugin for each in enabled))
    needs = names.listed(f"{each.gang.object.ref} needs {each.gang.minimum} of {each.gang.size}" for each in taken)
    message = f"profile {profile.name} may evict pods that gangs need, by {plugins}: {needs}"
    return policy.problem(enabled[0].pointer, message, _way_out(profile, taken))


def _way_out(profile: Profile, taken: Sequence[Danger]) -> str:
    pods = [pods for danger in taken for pods in danger.gang.pods]
    if all(EVICT in each.annotations for each in pods):
        return f"take the annotation {EVICT} off the pods: it opens them to every plugin"
    if any(_JOB_NAME not in (each.labels or {}) for each in pods):
        spaces = names.listed(sorted({each.namespace for each in pods}))
        return f"exclude the namespaces of the gangs ({spaces}) from its plugins"
    hint = f"give {catalogue.DEFAULT_EVICTOR} a labelSelector with {_JOB_NAME} DoesNotExist"
    lowest = min((each.priority or 0 for each in pods), default=0)
    has_threshold = _CRITICAL in protections(profile.args(catalogue.DEFAULT_EVICTOR))
    return f"{hint}, or a priorityThreshold of at most {lowest}" if lowest > 0 and has_threshold else hint


def descheduler_priority_exists(index: Index) -> Iterator[Problem]:
    known = {each.name for each in index.of_kind("PriorityClass")} | {*_SYSTEM_CLASSES}
    for policy in index.descheduler_policies:
        for profile in policy.profiles():
            for config in profile.configs():
                name = mapping(config.args.get("priorityThreshold")).get("name")
                if isinstance(name, str) and name and name not in known:
                    pointer = (*config.args_pointer, "priorityThreshold", "name")
                    hint = names.did_you_mean(name, known, otherwise="name a declared PriorityClass")
                    yield policy.problem(pointer, f"the PriorityClass {name} is not declared", hint)


class _Reader(NamedTuple):
    """Who reads the node exporter's samples, and over how many seconds it needs two of them."""

    name: str
    window: float


def descheduler_sees_metrics(index: Index) -> Iterator[Problem]:
    sources, is_whole = index.metric_sources, index.is_whole
    readers: list[_Reader] = []
    for policy in index.descheduler_policies:
        if is_whole:
            yield from _missing_providers(policy, sources)
        for config in _running(policy):
            if config.plugin == catalogue.LOW:
                yield from _low_use(policy, config)
                readers += _windows(config)
            elif config.plugin == catalogue.LOAD_AWARE:
                yield from _load_aware(policy, config, sources, is_whole=is_whole)
                readers += _load_aware_window(config)
    if index.knows(Fact.PROMETHEUS):
        yield from _too_rare(readers, sources)


def _running(policy: Policy) -> Iterator[Config]:
    """The configurations of the plugins that are enabled."""
    for profile in policy.profiles():
        configs = map(profile.config, dict.fromkeys(each.plugin for each in profile.enabled()))
        yield from (config for config in configs if config is not None)


def _missing_providers(policy: Policy, sources: Sources) -> Iterator[Problem]:
    value = mapping(policy.value)
    if mapping(value.get("metricsCollector")).get("enabled") is True and not sources.has_resource_metrics:
        yield policy.problem(("metricsCollector", "enabled"), *_NO_METRICS_SERVER)
    for place, provider in enumerate(map(mapping, sequence(value.get("metricsProviders")))):
        pointer: Pointer = ("metricsProviders", place)
        if provider.get("source") == catalogue.KUBERNETES_METRICS and not sources.has_resource_metrics:
            yield policy.problem((*pointer, "source"), *_NO_METRICS_SERVER)
        url = mapping(provider.get("prometheus")).get("url")
        if provider.get("source") == catalogue.PROMETHEUS and _is_inside(url) and not sources.has_prometheus:
            message = f"{url} is read, and no Prometheus is installed"
            yield policy.problem((*pointer, "prometheus", "url"), message, _INSTALL)


_NO_METRICS_SERVER = ("KubernetesMetrics is read, and nothing that gives it is installed", "install metrics-server")
_INSTALL = "install Prometheus, or name the address of one outside the cluster"


def _is_inside(url: Any) -> bool:
    """Whether the address is that of a Service in the cluster: its host ends in .svc, or has no domain."""
    if not isinstance(url, str) or not url:
        return False
    host = url.partition("://")[2].partition("/")[0] if "://" in url else url.partition("/")[0]
    host = host.partition(":")[0]
    return host.count(".") <= 1 or host.endswith(".svc") or ".svc." in host


def _low_use(policy: Policy, config: Config) -> Iterator[Problem]:
    providers = [mapping(each).get("source") for each in sequence(mapping(policy.value).get("metricsProviders"))]
    use = mapping(config.args.get("metricsUtilization"))
    source = catalogue.KUBERNETES_METRICS if use.get("metricsServer") is True else use.get("source")
    collects = mapping(mapping(policy.value).get("metricsCollector")).get("enabled") is True
    if source in providers or (source == catalogue.KUBERNETES_METRICS and collects):
        return
    if source in (catalogue.KUBERNETES_METRICS, catalogue.PROMETHEUS):
        field = "metricsServer" if use.get("metricsServer") is True else "source"
        message = f"{config.plugin} reads {source}, which metricsProviders does not name"
        hint = f"add {{source: {source}}} to metricsProviders"
        yield policy.problem((*config.args_pointer, "metricsUtilization", field), message, hint)


def _windows(config: Config) -> Iterator[_Reader]:
    """The shortest window over the node exporter's samples in the query."""
    query = mapping(mapping(config.args.get("metricsUtilization")).get("prometheus")).get("query")
    found = [length for text in _WINDOW.findall(query if isinstance(query, str) else "") if (length := seconds(text))]
    if found:
        yield _Reader(f"the query of {config.plugin}", min(found))


def _load_aware(policy: Policy, config: Config, sources: Sources, *, is_whole: bool) -> Iterator[Problem]:
    metrics, at = mapping(config.args.get("metrics")), (*config.args_pointer, "metrics")
    kind, address = metrics.get("type"), metrics.get("address")
    if not kind or (kind == "prometheus" and not address):
        field = "address" if kind else "type"
        message = f"LoadAware has no metrics.{field}: it reads nothing and evicts nothing"
        hint = "add the address of Prometheus" if kind else "write type: prometheus, and the address"
        yield policy.problem((*at, field), message, hint)
    elif is_whole and kind == "prometheus" and _is_inside(address) and not sources.has_prometheus:
        yield policy.problem((*at, "address"), f"{address} is read, and no Prometheus is installed", _INSTALL)
    elif is_whole and kind == "prometheus_adaptor" and not sources.has_custom_metrics:
        message = "LoadAware reads custom metrics, and no prometheus-adapter is installed"
        yield policy.problem((*at, "type"), message, "install it, or write type: prometheus")


def _load_aware_window(config: Config) -> Iterator[_Reader]:
    metrics = mapping(config.args.get("metrics"))
    if metrics.get("type") == "prometheus" and metrics.get("address"):
        yield _Reader("LoadAware", _LOAD_AWARE_WINDOW)


def _too_rare(readers: Sequence[_Reader], sources: Sources) -> Iterator[Problem]:
    if not readers:
        return
    reader = min(readers, key=lambda each: each.window)
    most = reader.window / 2
    for scrape in sources.scrapes():
        every = seconds(scrape.interval)
        if every is not None and every > most:
            yield _rare(scrape, reader, most)


def _rare(scrape: Scrape, reader: _Reader, most: float) -> Problem:
    does = "by default every" if scrape.is_default else "every"
    message = (
        f"the node exporter is scraped {does} {scrape.interval}; {reader.name} needs two samples in "
        f"{reader.window:g}s: every {most:g}s or more often"
    )
    return Problem(scrape.place, scrape.pointer, message, f"set the interval to {most:g}s or less")


RULES: tuple[Rule, ...] = (
    Rule("one-descheduler", Severity.ERROR, one_descheduler),
    Rule("descheduler-thresholds-are-ordered", Severity.ERROR, descheduler_thresholds_are_ordered),
    Rule("descheduler-policy-is-known", Severity.ERROR, descheduler_policy_is_known),
    Rule(
        "eviction-spares-gangs",
        Severity.ERROR,
        eviction_spares_gangs,
        partly_needs=(Fact.PRIORITIES, Fact.NAMESPACES),
    ),
    Rule("descheduler-priority-exists", Severity.ERROR, descheduler_priority_exists, needs=(Fact.PRIORITIES,)),
    Rule(
        "descheduler-sees-metrics",
        Severity.ERROR,
        descheduler_sees_metrics,
        partly_needs=(Fact.PROMETHEUS, Fact.METRICS_SERVER),
    ),
)
