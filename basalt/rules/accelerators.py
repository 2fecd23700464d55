"""The drivers and device plugins of GPUs and NICs, and what they offer under which name."""

from collections.abc import Iterable, Iterator, Sequence

from basalt import names
from basalt.facts import Fact
from basalt.findings import Place, Problem, Severity
from basalt.index import Index
from basalt.loading.nodes import Node
from basalt.objects import POD_SECURITY, KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.quantities import parse_map
from basalt.rules import gpu_operator as driver_rules
from basalt.rules.rule import Rule
from basalt.views import device_plugin, feature_discovery, gpu_products, mig, operator_parts
from basalt.views import gpu_operator as operator
from basalt.views.accelerators import Accelerators, Conflict, shown
from basalt.views.device_plugin import LABEL, Config, Configs
from basalt.views.gpu_operator import MIG_CONFIG, MIG_OFF, Settings
from basalt.views.gpu_providers import Plugin, Provider
from basalt.views.pods import PodSpec, pods
from basalt.views.queue_tree import POINTERS, Queue
from basalt.views.requests import container_requests
from basalt.views.workloads import queue_demands

_LABELS: Pointer = ("metadata", "labels")
_QUOTA = "requests."
_TEAM = "basalt.dev/team"


def _accelerators(index: Index) -> Accelerators:
    return Accelerators(index.others, index.chart_values, lambda: index.nodes)


def _where(place: Place, pointer: Pointer) -> str:
    source = place.position(pointer)
    return f"{source}"


def _named(nodes: Iterable[Node]) -> str:
    return names.listed(node.name for node in nodes)


def one_gpu_provider(index: Index) -> Iterator[Problem]:
    policies = operator.policies(index.others, index.chart_values)
    for extra in policies[1:]:
        first = policies[0]
        message = f"a second ClusterPolicy; the first comes from {first.title} ({_where(*first.at(()))})"
        hint = "keep one: the operator follows one of them and ignores the others"
        yield Problem(*(extra.at(()) if extra.is_chart else (extra.place, ("kind",))), message, hint)
    for conflict in _accelerators(index).conflicts:
        if not _are_policies(conflict.first, conflict.second):
            yield _conflicting(conflict)
    for chart in operator.charts(index.chart_values):
        deploys = (chart.get(("clusterPolicy", "deployCR")), chart.get(("gpuCluster", "deployCR")))
        if deploys[0] is not False and deploys[1] is True:
            message = "clusterPolicy.deployCR and gpuCluster.deployCR are both on: each offers the GPUs of every node"
            yield Problem(*chart.at(("gpuCluster", "deployCR")), message, "switch one of them off")


def _are_policies(first: Provider, second: Provider) -> bool:
    return all(isinstance(each, Plugin) and each.policy is not None for each in (first, second))


def _conflicting(conflict: Conflict) -> Problem:
    first, second = conflict.first, conflict.second
    what = f"offers {names.listed(both)}" if (both := conflict.resources) else "hands out the GPUs"
    on = f" on {_named(conflict.nodes)}" if conflict.nodes else ""
    message = f"{second.title} {what}{on}, as does {first.title} ({_where(first.place, first.pointer)})"
    hint = "let one part offer the GPUs of a node: switch one off, or give them different nodes"
    return Problem(second.place, second.pointer, message, hint)


def gpu_resource_resolves(index: Index) -> Iterator[Problem]:
    accelerators = _accelerators(index)
    if not accelerators.is_known:
        return
    everywhere = accelerators.offered()
    for place, pointer, prefix in _claims(index):
        resource = str(pointer[-1]).removeprefix(prefix)
        if not accelerators.resolves(resource, everywhere):
            yield Problem(place, pointer, *_unresolved(resource, everywhere, prefix))
    offers: dict[tuple[tuple[str, str], ...], frozenset[str]] = {}
    for pod in pods(index.others):
        selector = mapping(pod.spec.get("nodeSelector"))
        key = tuple(sorted((str(name), str(value)) for name, value in selector.items()))
        for resource, pointer in _asked(pod):
            if key not in offers:
                offers[key] = accelerators.offered(dict(key))
            if not accelerators.resolves(resource, offers[key]):
                yield Problem(pod.object, pointer, *_unresolved(resource, offers[key]))


def _claims(index: Index) -> Iterator[tuple[KubeObject, Pointer, str]]:
    """Where PodGroups, queues and quotas name a resource, and what stands before its name there."""
    for demand in queue_demands(index.others):
        if demand.object.ref.kind == "PodGroup":
            yield from ((demand.object, pointer, _QUOTA) for pointer in demand.requests.values())
    yield from ((queue.object, pointer, "") for queue in index.queues for pointer in _claimed(queue))
    for quota in index.of_kind("ResourceQuota"):
        for key, amount in parse_map(quota.spec.get("hard")).items():
            if amount > 0:
                yield quota, ("spec", "hard", key), _QUOTA


def _claimed(queue: Queue) -> Iterator[Pointer]:
    for field, at in POINTERS.items():
        yield from ((*at, resource) for resource, amount in queue.amounts(field).items() if amount > 0)


def _asked(pod: PodSpec) -> Iterator[tuple[str, Pointer]]:
    """What the pod's containers request of GPUs, each resource once."""
    seen: set[str] = set()
    for field in ("containers", "initContainers"):
        for number, container in enumerate(map(mapping, sequence(pod.spec.get(field)))):
            requests = mapping(mapping(container.get("resources")).get("requests"))
            for resource, amount in container_requests(container).items():
                if amount > 0 and resource not in seen:
                    seen.add(resource)
                    kind = "requests" if resource in requests else "limits"
                    yield resource, (*pod.pointer, field, number, "resources", kind, resource)


def _unresolved(resource: str, offered: frozenset[str], prefix: str = "") -> tuple[str, str]:
    if not offered:
        message = f"no GPU is offered as {resource}: the device plugin refuses how the nodes are partitioned"
        return message, "give all GPUs of a node one MIG profile, or set the MIG strategy to mixed"
    message = f"no GPU is offered as {resource}; the nodes offer {shown(offered)}"
    single = next(iter(offered)) if len(offered) == 1 else ""
    named = f"{prefix}{single}" if single and "*" not in single else "one of these"
    return message, f"name {named}, or change how the GPUs are shared"


def gpu_sharing_is_sound(index: Index) -> Iterator[Problem]:
    accelerators = _accelerators(index)
    plugins = [each for each in accelerators.providers if isinstance(each, Plugin)]
    seen: set[int] = set()
    for plugin in plugins:
        if plugin.configs is not None:
            seen.add(id(plugin.configs.place))
            yield from _faults(plugin.configs, plugin.strategy)
        yield from _undeclared(index, plugin)
        yield from _unknown_default(plugin)
        yield from _mps_on_mig(accelerators, plugin)
    yield from _unknown_keys(index, accelerators, plugins)
    for configs in device_plugin.config_maps(index.others):
        if id(configs.place) not in seen:
            yield from _faults(configs, None)
    for policy in operator.policies(index.others, index.chart_values):
        yield from _mig_default(policy)
        yield from _mig_profiles(index, accelerators, policy)


def _faults(configs: Configs, strategy: str | None) -> Iterator[Problem]:
    for config in configs.by_key.values():
        for fault in device_plugin.faults(config, strategy):
            yield Problem(*config.at(fault.pointer), fault.message, fault.hint)


def _undeclared(index: Index, plugin: Plugin) -> Iterator[Problem]:
    """Without an Environment the ConfigMap may be another folder's."""
    at: Pointer = ("devicePlugin", "config", "name")
    if not index.is_whole or plugin.policy is None or plugin.configs is not None:
        return
    if isinstance(name := plugin.policy.get(at), str) and name and not plugin.makes_configs:
        message = f"the device plugin takes its configurations from the ConfigMap {name}, which nobody declares"
        declared = [each.name for each in device_plugin.config_maps(index.others)]
        hint = names.did_you_mean(name, declared, otherwise=f"declare it, or take {'.'.join(map(str, at))} out")
        yield Problem(*plugin.policy.at(at), message, hint)


def _unknown_default(plugin: Plugin) -> Iterator[Problem]:
    if plugin.default and plugin.configs is not None and plugin.default not in plugin.configs.keys:
        place, pointer = plugin.policy.at(("devicePlugin", "config", "default")) if plugin.policy else _at(plugin)
        message = f"the default configuration {plugin.default} is not in {_keeper(plugin)}"
        yield Problem(place, pointer, message, names.did_you_mean(plugin.default, plugin.configs.keys))


def _keeper(plugin: Plugin) -> str:
    has_map = plugin.configs is not None and plugin.configs.name
    return f"the ConfigMap {plugin.configs.name}" if has_map and plugin.configs else plugin.title


def _unknown_keys(index: Index, accelerators: Accelerators, plugins: Sequence[Plugin]) -> Iterator[Problem]:
    """Labels that choose a configuration which no plugin of the node has."""
    wrong: dict[tuple[str, Plugin], list[Node]] = {}
    for node in accelerators.gpu_nodes if plugins else ():
        key = node.labels.get(LABEL)
        covering = [plugin for plugin in plugins if plugin.covers(node)] if key else []
        if key and covering and not any(_may_have(plugin, key) for plugin in covering):
            wrong.setdefault((key, covering[0]), []).append(node)
    for (key, plugin), nodes in wrong.items():
        verb = "asks" if len(nodes) == 1 else "ask"
        message = f"{_named(nodes)} {verb} for the configuration {key}, which {_keeper(plugin)} does not have"
        keys = plugin.configs.keys if plugin.configs is not None else ()
        hint = names.did_you_mean(key, keys, otherwise="declare a ConfigMap with that key, or take the label off")
        yield Problem(index.place_of(nodes[0]), (*_LABELS, LABEL), message, hint)


def _may_have(plugin: Plugin, key: str) -> bool:
    return plugin.wants_configs if plugin.configs is None else key in plugin.configs.keys


def _at(provider: Provider) -> tuple[Place, Pointer]:
    return provider.place, provider.pointer


def _mps_on_mig(accelerators: Accelerators, plugin: Plugin) -> Iterator[Problem]:
    """With the strategy mixed the configuration itself is refused, with none MIG devices are not offered."""
    wrong: dict[str, list[Node]] = {}
    for node in accelerators.gpu_nodes if plugin.configs is not None else ():
        for key in plugin.keys(node) if plugin.covers(node) else ():
            config = plugin.config(key)
            is_mps = config is not None and config.shares_by_mps and plugin.strategy_with(config) == "single"
            if is_mps and ((plugin.policy and mig.chosen(plugin.policy, node)) or mig.offered(node)):
                wrong.setdefault(key, []).append(node)
    for key, nodes in wrong.items():
        config = plugin.config(key)
        assert isinstance(config, Config)
        message = f"mps on {_named(nodes)}, whose GPUs are partitioned by MIG: the plugin does not offer them"
        yield Problem(
            *config.at(("sharing", "mps")), message, "share by timeSlicing there, or take MIG off these nodes"
        )


def _mig_default(policy: Settings) -> Iterator[Problem]:
    pointer = ("migManager", "config", "default")
    default = policy.get(pointer)
    if isinstance(default, str) and default not in MIG_OFF:
        message = f"migManager.config.default is {default}; only all-disabled or an empty one is taken"
        place, at = policy.at(pointer)
        yield Problem(place, at, message, f"label the nodes {MIG_CONFIG}={default} instead")


def _mig_profiles(index: Index, accelerators: Accelerators, policy: Settings) -> Iterator[Problem]:
    configs = mig.configs(policy, index.others)
    wrong: dict[tuple[str, str], list[Node]] = {}
    for node in accelerators.gpu_nodes if configs is not None else ():
        if (name := mig.chosen(policy, node)) and MIG_CONFIG in node.labels:
            wrong.setdefault((name, gpu_products.product(node.labels)), []).append(node)
    for (name, product), nodes in wrong.items():
        if configs is not None and (fault := _mig_fault(configs, name, product)):
            message = f"{_named(nodes)} {fault[0]}"
            yield Problem(index.place_of(nodes[0]), (*_LABELS, MIG_CONFIG), message, fault[1])


def _mig_fault(configs: mig.Configs, name: str, product: str) -> tuple[str, str] | None:
    known = gpu_products.profiles(product)
    if known == ():
        return f"asks for the MIG configuration {name}; {product} has no MIG", f"take {MIG_CONFIG} off"
    if not configs.knows(name):
        built_in = ("all-disabled", "all-enabled", "all-balanced", *(f"all-{profile}" for profile in known or ()))
        hint = names.did_you_mean(name, configs.by_name or built_in, otherwise="name one that is declared")
        return f"asks for the MIG configuration {name}, which does not exist", hint
    partition = configs.partition(name)
    if partition is None or known is None:
        return None
    foreign = [each for each in mig.profiles_of(partition) if each not in known]
    if not foreign:
        return None
    verb = "is no profile" if len(foreign) == 1 else "are no profiles"
    message = f"asks for the MIG configuration {name}; {names.listed(foreign)} {verb} of {product}"
    return message, f"its profiles: {', '.join(known)}"


def gpu_taint_is_tolerated(index: Index) -> Iterator[Problem]:
    accelerators = _accelerators(index)
    for part in operator_parts.parts(index.others, index.chart_values):
        wrong: dict[tuple[str, str, str], list[Node]] = {}
        for node in filter(part.covers, accelerators.gpu_nodes):
            for taint in operator_parts.taints(node):
                if not operator.tolerates(part.tolerations, *taint):
                    wrong.setdefault(taint, []).append(node)
        for (key, value, effect), tainted in wrong.items():
            shown_taint = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
            message = f"{shown_taint}, a taint of {_named(tainted)}, is not tolerated by {part.title}"
            hint = f"add {{key: {key}, operator: Exists, effect: {effect}}} to its tolerations"
            yield Problem(part.place, part.pointer, message, hint)


def operator_namespace_is_privileged(index: Index) -> Iterator[Problem]:
    declared = (*operator.policies(index.others, index.chart_values), *operator.charts(index.chart_values))
    psa = any(each.get(("psa", "enabled")) is True for each in declared)
    homes = operator_parts.namespaces(index.others, index.chart_values)
    for namespace in index.of_kind("Namespace"):
        part = homes.get(namespace.name) if _TEAM not in namespace.labels else None  # namespace-is-not-system
        level = namespace.labels.get(POD_SECURITY)
        if part is None or level not in ("baseline", "restricted") or (psa and part == operator_parts.GPU_OPERATOR):
            continue
        message = f"{namespace.name} enforces {level}, which refuses the privileged pods of {part}"
        yield Problem(namespace, (*_LABELS, POD_SECURITY), message, "enforce privileged in this namespace")


def one_feature_discovery(index: Index) -> Iterator[Problem]:
    found = list(feature_discovery.installed(index.others, index.chart_values))
    found.sort(key=lambda each: each.place.position(each.pointer))
    for extra in found[1:]:
        first = found[0]
        message = f"{extra.title} installs node-feature-discovery, as does {first.title}"
        message += f" ({_where(first.place, first.pointer)})"
        yield Problem(extra.place, extra.pointer, message, f"switch it off with {extra.switch}, or keep this one alone")
    is_seen = not index.is_whole and any(map(feature_discovery.is_labelled, index.nodes))
    for missing in feature_discovery.switched_off(index.chart_values) if not found and not is_seen else ():
        message = f"nothing installs node-feature-discovery: {missing.title} finds no GPU or NIC without its labels"
        yield Problem(missing.place, missing.pointer, message, "switch nfd.enabled on, or install it beside")
        return


RULES = (
    Rule("one-gpu-provider", Severity.ERROR, one_gpu_provider, partly_needs=(Fact.NODES,)),
    Rule("gpu-resource-resolves", Severity.ERROR, gpu_resource_resolves, partly_needs=(Fact.NODES,)),
    *driver_rules.RULES[:2],
    Rule("gpu-sharing-is-sound", Severity.ERROR, gpu_sharing_is_sound, partly_needs=(Fact.NODES,)),
    Rule("gpu-taint-is-tolerated", Severity.ERROR, gpu_taint_is_tolerated, needs=(Fact.NODES,)),
    *driver_rules.RULES[2:],
    Rule(
        "operator-namespace-is-privileged",
        Severity.ERROR,
        operator_namespace_is_privileged,
        needs=(Fact.NAMESPACES,),
    ),
    Rule("one-feature-discovery", Severity.ERROR, one_feature_discovery),
)
