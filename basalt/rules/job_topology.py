"""The family Jobs and topology: whether a job's networkTopology names a constraint that exists, and that the scheduler
enforces."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt import names
from basalt.api.versions import Version
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.quantities import parse
from basalt.rules.bounds import bounded
from basalt.rules.rule import Rule
from basalt.views import network_topology, survival
from basalt.views.hyper_nodes import HyperNode
from basalt.views.network_topology import ConstrainedJob, Constraint, Pods, Tiers
from basalt.views.scheduler_configuration import Configuration

_PLUGIN = "network-topology-aware"
_SWITCH = "enabledHyperNodeGradient"  # of the plugin, for hard constraints (pkg/scheduler/conf/scheduler_conf.go)
_TIER_NAMES = Version(1, 14)  # highestTierName exists since then
_GANG_EVICTION = Version(1, 15)  # gangpreempt and gangreclaim exist since then


def hard_topology_names_a_tier(index: Index) -> Iterator[Problem]:
    for job in index.constrained_jobs:
        for constraint in job.constraints:
            if job.is_patch and constraint.at_mode == constraint.at:
                continue  # what a patch leaves out, its JobTemplate may have
            if constraint.is_hard and constraint.is_annotated and constraint.number is None:
                yield _annotated_without_tier(job, constraint)
            elif constraint.is_hard and not constraint.says_a_tier:
                is_default = " (the default)" if constraint.at_mode == constraint.at else ""
                message = f"mode hard{is_default} without a highest tier constrains nothing"
                yield Problem(job.object, constraint.at_mode, message, _tier_hint(index, job))


def _annotated_without_tier(job: ConstrainedJob, constraint: Constraint) -> Problem:
    """An annotation that is no number is dropped with a warning (parseNetworkTopologyFromPod)."""
    hint = f"set the annotation {constraint.keys.number} to a tier's number"
    if constraint.says_a_tier:
        message = f"the highest tier {constraint.value[constraint.keys.number]} is no number: nothing is constrained"
        return Problem(job.object, constraint.at_number, message, hint)
    return Problem(job.object, constraint.at_mode, "mode hard without a highest tier constrains nothing", hint)


def _tier_hint(index: Index, job: ConstrainedJob) -> str:
    tiers = index.job_tiers
    known = f", {_range(tiers)}" if tiers else ""
    has_names = index.catalog.versions["volcano"] >= _TIER_NAMES
    field = "highestTierAllowed or highestTierName" if has_names else "highestTierAllowed"
    return f"set {'highestTier' if job.object.module else field}{known}, or mode: soft"


def topology_names_one_tier(index: Index) -> Iterator[Problem]:
    for job in index.constrained_jobs:
        for constraint in job.constraints:
            if constraint.number is not None and constraint.name is not None:
                number, name = constraint.number, constraint.name
                message = f"highestTierAllowed {number} and highestTierName {name} exclude each other"
                yield Problem(job.object, constraint.at_name, message, "keep one of the two")


def topology_tier_exists(index: Index) -> Iterator[Problem]:
    surviving = [(each, tier) for each in index.others if (tier := survival.tier_of(each)) is not None]
    tiers = index.job_tiers if index.constrained_jobs or surviving else None
    if tiers is None:
        return
    for job in index.constrained_jobs:
        for constraint in job.constraints:
            if (constraint.number is None) == (constraint.name is None):
                continue  # none, or both: hard-topology-names-a-tier, topology-names-one-tier
            if _limit(job, constraint, tiers) is None and (fault := _tier_fault(index, job, constraint, tiers)):
                yield Problem(job.object, constraint.at_tier, *fault)

    for declared, tier in surviving:
        if tier not in tiers.names and tier not in map(str, tiers.numbers):
            yield Problem(declared, survival.AT, *_survive_fault(index, declared, tier, tiers))


def _survive_fault(index: Index, declared: KubeObject, tier: str, tiers: Tiers) -> tuple[str, str]:
    field = "topology.survive" if declared.module else survival.AT[-1]
    if not tiers:
        instead = "declare the topology's tiers" if index.environment else "declare the HyperNodes"
        return f"tier {tier} does not exist: no tier is declared", f"{instead}, or take {field} out"
    return f"no tier is called {tier}: there is nothing to survive", _name_hint(index, declared, tier, tiers)


def _tier_fault(index: Index, job: ConstrainedJob, constraint: Constraint, tiers: Tiers) -> tuple[str, str] | None:
    number, name = constraint.number, constraint.name
    if not tiers:
        asked = f"{number}" if number is not None else f"{name}"
        instead = "declare the topology's tiers" if index.environment else "declare the HyperNodes"
        return f"tier {asked} does not exist: no tier is declared", f"{instead}, or take networkTopology out"
    effect = ": nothing is constrained" if constraint.is_hard else ""
    if number is None:
        unknown = name is not None and name not in tiers.names
        return (
            (f"no tier is called {name}{effect}", _name_hint(index, job.object, name or "", tiers)) if unknown else None
        )
    hint = f"name a tier: {_range(tiers)}"
    if number < tiers.lowest:
        effect = ": no domain is allowed, and the job never runs" if constraint.is_hard else ""
        return f"tier {number} is below the lowest, {tiers.show(tiers.lowest)}{effect}", hint
    if number > tiers.highest:
        return f"tier {number} is above the highest, {tiers.show(tiers.highest)}{effect}", hint
    return None


def _name_hint(index: Index, declared: KubeObject, name: str, tiers: Tiers) -> str:
    domain = index.hyper_nodes.by_name.get(name)
    if domain is not None and domain.tier is not None:
        return f"{name} is a domain of tier {tiers.show(domain.tier)}: name the tier"
    if name in map(str, tiers.numbers):
        return f"write {'highestTier' if declared.module else 'highestTierAllowed'}: {name}, without quotes"
    return names.did_you_mean(name, tiers.names, otherwise=f"name a tier: {_range(tiers)}")


def topology_constrains(index: Index) -> Iterator[Problem]:
    tiers = index.job_tiers if index.constrained_jobs else None
    if not tiers:
        return
    domains = _Domains(index)
    for job in index.constrained_jobs:
        for constraint in job.constraints:
            if not constraint.is_hard or (constraint.number is None) == (constraint.name is None):
                continue
            number = tiers.number_of(constraint)
            if number is None or number > tiers.highest or _is_said(job, constraint, number, tiers):
                continue  # topology-tier-exists, partition-tier-within-job-tier
            if (top := domains.top(number)) is not None and domains.holds_all(top, job):
                yield Problem(job.object, constraint.at_tier, *domains.fault(top, tiers))


def _is_said(job: ConstrainedJob, constraint: Constraint, number: int, tiers: Tiers) -> bool:
    """Whether the job's own tier is no higher than that of its part: then what holds of the part is said there."""
    if job.whole is None or constraint is job.whole or not job.whole.is_hard:
        return False
    whole = tiers.number_of(job.whole)
    return whole is not None and number >= whole


class _Domains:
    """The domains of each tier that hold nodes, and what the nodes outside of one offer; each found once."""

    def __init__(self, index: Index) -> None:
        self._nodes = index.nodes
        self._names = frozenset(node.name for node in index.nodes)
        self._below = index.hyper_nodes.nodes_below
        found = {
            tier: [each for each in every if self._below[each.name]] for tier, every in index.hyper_nodes.tiers.items()
        }
        self._tiers = {tier: domains for tier, domains in found.items() if domains}
        self._outside: dict[str, set[frozenset[str]]] = {}

    def top(self, number: int) -> HyperNode | None:
        """The one domain of the highest tier up to that number; None where there are several, or none."""
        domains = self._tiers.get(max((tier for tier in self._tiers if tier <= number), default=-1), [])
        return domains[0] if len(domains) == 1 else None

    def holds_all(self, domain: HyperNode, job: ConstrainedJob) -> bool:
        """Whether it holds every node that offers what some pod of the job requests."""
        asked = [{name for name, amount in each.items() if amount > 0} for each in job.requests] or [set[str]()]
        return not any(needed <= offered for offered in self._offered_outside(domain) for needed in asked)

    def _offered_outside(self, domain: HyperNode) -> set[frozenset[str]]:
        if domain.name not in self._outside:
            outside = (node for node in self._nodes if node.name not in self._below[domain.name])
            self._outside[domain.name] = {_offered(node) for node in outside}
        return self._outside[domain.name]

    def fault(self, domain: HyperNode, tiers: Tiers) -> tuple[str, str]:
        tier = domain.tier or 0
        count = len(self._below[domain.name] & self._names)
        which = f"all {count} nodes" if count > 1 else "the only node"
        which += " that could run it" if self._offered_outside(domain) else ""
        message = f"tier {tiers.show(tier)} has one domain, {domain.name}, with {which}: nothing is constrained"
        lower = max((each for each, domains in self._tiers.items() if each < tier and len(domains) > 1), default=None)
        return (
            message,
            f"name a lower tier, such as {tiers.show(lower)}" if lower is not None else "take networkTopology out",
        )


def _offered(node: Node) -> frozenset[str]:
    return frozenset(name for name, amount in node.allocatable.items() if parse(amount) != 0)


def topology_is_enforced(index: Index) -> Iterator[Problem]:
    assert index.scheduler is not None  # the fact SCHEDULER
    fault = _unenforced(index.scheduler)
    if fault is not None:
        yield from bounded(Problem(job.object, job.first.at_mode, *fault) for job in index.constrained_jobs)


def _unenforced(scheduler: Configuration) -> tuple[str, str] | None:
    entries = [plugin for plugin in scheduler.plugins() if plugin.name == _PLUGIN]
    unheard = f"{_where(scheduler)} lacks the plugin {_PLUGIN}: Volcano ignores the topology without a word"
    if not entries and scheduler.is_chart_default:
        return unheard, f"set custom.scheduler_config_override to a configuration with {_PLUGIN}"
    if not entries:
        return unheard, f"add {{name: {_PLUGIN}}} to the scheduler's tiers"
    if all(plugin.settings.get(_SWITCH) is False for plugin in entries):
        return f"{_where(scheduler)} switches {_SWITCH} of {_PLUGIN} off: no tier is a limit", f"set {_SWITCH}: true"
    return None


def _where(scheduler: Configuration) -> str:
    kind = "the chart's default configuration" if scheduler.is_chart_default else "the scheduler's configuration"
    return f"{kind} ({scheduler})"


def topology_can_preempt(index: Index) -> Iterator[Problem]:
    scheduler = index.scheduler
    assert scheduler is not None  # the fact SCHEDULER
    effects = {
        "preempt": "preempt passes over jobs with networkTopology",
        "reclaim": "reclaim evicts without regard to domains",
    }
    lone = [each for each in effects if scheduler.has_action(each) and not scheduler.has_action(f"gang{each}")]
    if lone:
        missing = " and ".join(f"gang{each}" for each in lone)
        message = f"{', and '.join(effects[each] for each in lone)}; {_where(scheduler)} lacks {missing}"
        hint = _eviction_hint(index, lone)
        yield from bounded(Problem(job.object, job.first.at_mode, message, hint) for job in index.constrained_jobs)


def _eviction_hint(index: Index, lone: list[str]) -> str:
    gangs, singles = (" and ".join(prefix + each for each in lone) for prefix in ("gang", ""))
    version = index.catalog.versions["volcano"]
    if version < _GANG_EVICTION:
        return f"{gangs} came with Volcano {_GANG_EVICTION}, here is {version}: upgrade, or expect such jobs to wait"
    since = "" if index.catalog.is_declared else f" (from Volcano {_GANG_EVICTION} on)"
    return f"put {gangs} in place of {singles}{since}"


def topology_pods_have_requests(index: Index) -> Iterator[Problem]:
    defaulted = network_topology.defaulted_namespaces(index.of_kind("LimitRange"))
    for job in index.constrained_jobs:
        if job.is_patch or job.object.ref.namespace in defaulted:
            continue  # the JobTemplate may say what a patch leaves out
        idle: dict[Pointer, list[Pods]] = {}
        for pods in job.pods:
            if _requests_nothing(pods.spec):
                idle.setdefault(job.object.origin(pods.pointer), []).append(pods)
        for alike in idle.values():
            which = " and ".join(pods.name for pods in alike)
            request = f"{which} request" if len(alike) > 1 else f"{which} requests"
            message = f"{request} nothing: backfill places such pods, and ignores networkTopology"
            hint = "set the container's requests, such as cpu and memory"
            yield Problem(job.object, _resources(alike[0]), message, hint)


def _resources(pods: Pods) -> Pointer:
    """The resources of the first container, else the container."""
    first: Pointer = (*pods.pointer, "containers", 0)
    return (*first, "resources") if "resources" in mapping(sequence(pods.spec.get("containers"))[0]) else first


def _requests_nothing(pod: Mapping[str, Any]) -> bool:
    """Whether Volcano takes the pod for best effort: no request in any container, init containers included, of the
    pod itself, nor overhead (GetPodResourceRequest and IsEmpty in pkg/scheduler/api)."""
    containers = sequence(pod.get("containers"))
    every = [pod, *containers, *sequence(pod.get("initContainers"))]
    is_readable = bool(containers) and all(isinstance(each, Mapping) for each in every)
    if not is_readable or _is_something(pod.get("overhead")):
        return False
    return not any(_asks(each.get("resources")) for each in every)


def _asks(resources: Any) -> bool:
    """Whether it requests something, or what cannot be read; a limit without a request is one."""
    if resources is None:
        return False
    parts = [mapping(resources).get(kind) for kind in ("limits", "requests")]
    if not isinstance(resources, Mapping) or not all(part is None or isinstance(part, Mapping) for part in parts):
        return True
    return _is_something({**mapping(parts[0]), **mapping(parts[1])})


def _is_something(amounts: Any) -> bool:
    """Whether some amount is above zero, or cannot be read."""
    if amounts is None:
        return False
    return not isinstance(amounts, Mapping) or any(each is not None and parse(each) != 0 for each in amounts.values())


def partition_tier_within_job_tier(index: Index) -> Iterator[Problem]:
    having = [job for job in index.constrained_jobs if job.parts]
    tiers = (index.job_tiers if having and index.knows(Fact.HYPER_NODES) else None) or Tiers(())
    for job in having:
        for part in job.parts:
            if (limit := _limit(job, part, tiers)) is not None:
                number = tiers.number_of(part) or 0
                message = f"tier {tiers.show(number)} is above the job's own, {tiers.show(limit)}"
                raised = f", or raise the job's to {tiers.show(number)}" if number in tiers.numbers else ""
                less = " or less" if limit > (tiers.lowest if tiers else 1) else ""
                yield Problem(job.object, part.at_tier, message, f"lower it to {tiers.show(limit)}{less}{raised}")


def _limit(job: ConstrainedJob, part: Constraint, tiers: Tiers) -> int | None:
    """The job's own highest tier where that of its part is above it; both are hard: a soft one limits nothing."""
    if job.whole is None or part is job.whole or not (job.whole.is_hard and part.is_hard):
        return None
    limit, number = tiers.number_of(job.whole), tiers.number_of(part)
    return limit if limit is not None and number is not None and number > limit else None


def _range(tiers: Tiers) -> str:
    shown = dict.fromkeys(map(tiers.show, (tiers.lowest, tiers.highest)))
    return " to ".join(shown)


RULES: tuple[Rule, ...] = (
    Rule("hard-topology-names-a-tier", Severity.ERROR, hard_topology_names_a_tier),
    Rule("topology-names-one-tier", Severity.ERROR, topology_names_one_tier),
    Rule("topology-tier-exists", Severity.ERROR, topology_tier_exists, needs=(Fact.HYPER_NODES,)),
    Rule("topology-constrains", Severity.WARNING, topology_constrains, needs=(Fact.HYPER_NODES, Fact.NODES)),
    Rule("topology-is-enforced", Severity.ERROR, topology_is_enforced, needs=(Fact.SCHEDULER,)),
    Rule("topology-can-preempt", Severity.WARNING, topology_can_preempt, needs=(Fact.SCHEDULER,)),
    Rule("topology-pods-have-requests", Severity.ERROR, topology_pods_have_requests),
    Rule(
        "partition-tier-within-job-tier",
        Severity.ERROR,
        partition_tier_within_job_tier,
        partly_needs=(Fact.HYPER_NODES,),
    ),
)
