"""Which objects become documents: proposes, compiles, compares, and takes back what comes out otherwise. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from basalt import names
from basalt.api.kinds import Catalog
from basalt.deriving import version_of
from basalt.gathering.documents import Declaration
from basalt.importing import entries, flows, patching, teams, tiers, training
from basalt.importing.proposal import Fault, Identity, JobKey, Proposal, Wanted, identity, made
from basalt.importing.roles import Unspeakable
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping
from basalt.pointers import dotted, get
from basalt.views import sensitive
from basalt.views.domains import tiers_of
from modules import scheduler, tenancy

_TEMPLATE, _FLOW = ("flow.volcano.sh", "JobTemplate"), ("flow.volcano.sh", "JobFlow")
_JOBS = {("batch.volcano.sh", "Job"), ("batch.volcano.sh", "CronJob"), _TEMPLATE}
_CONFIGURATION: Identity = ("", "ConfigMap", scheduler.NAMESPACE, scheduler.CONFIG_MAP)
_ENTRIES = {
    ("scheduling.volcano.sh", "Queue"): ("queues", entries.queue),
    ("scheduling.k8s.io", "PriorityClass"): ("priorities", entries.priority),
}


class Versions(NamedTuple):
    """The versions that run, as an Environment writes them; None where nothing tells."""

    kubernetes: str | None = None
    volcano: str | None = None


class Choice(NamedTuple):
    """The documents, the objects that they make (by identity), what they would make beyond those, and for the rest why
    not."""

    proposal: Proposal
    covered: frozenset[Identity]
    added: tuple[KubeObject, ...]
    reasons: Mapping[Identity, str]


def choose(
    name: str, objects: Iterable[KubeObject], nodes: tuple[Node, ...], catalog: Catalog, versions: Versions
) -> Choice:
    """The documents for as many of the objects as come out the same; versions are those that are known to run."""
    every = list(objects)
    counts = Counter(identity(each.ref) for each in every)
    reasons = {key: "it is declared twice" for key, count in counts.items() if count > 1}
    reasons |= {identity(each.ref): fault for each in every if (fault := _form_fault(each, catalog)) is not None}
    sound = {identity(each.ref): each for each in every if each.name and identity(each.ref) not in reasons}
    wanted = Wanted(sound, nodes, catalog)
    proposal = _with_topology(_started(name, wanted, versions), wanted, reasons)
    groups = teams.teams(wanted.objects.values())
    proposal = _settled(_with_entries(proposal, groups, wanted), wanted, reasons)
    proposal = _settled(replace(proposal, teams=groups), wanted, reasons)
    proposal = _settled(_with_entries(proposal, proposal.teams, wanted), wanted, reasons)
    proposal = _settled(_with_jobs(proposal, wanted, reasons), wanted, reasons)
    done = made(proposal, wanted)
    added = tuple(each for each in done.added if identity(each.ref) not in counts)
    return Choice(proposal, frozenset(done.covered), added, reasons)


def _form_fault(each: KubeObject, catalog: Catalog) -> str | None:
    """What the API server would refuse: no document makes that, and what reads it may trust its form."""
    kind = catalog.find(*each.ref[:2]) if is_expressible(each.ref.group, each.ref.kind) else None
    fault = next(kind.shape.faults(each.value), None) if kind is not None else None
    if fault is None:
        return None
    is_secret = sensitive.is_at(each.value, fault.pointer)
    return f"{dotted(fault.pointer) or 'it'}: {'not what the API takes here' if is_secret else fault.message}"


def _started(name: str, wanted: Wanted, versions: Versions) -> Proposal:
    """The versions and the scheduler's configuration; who installs Volcano, where that makes just what is there."""
    told = {product: {"version": version} for product, version in versions._asdict().items() if version is not None}
    plain = Proposal(name, told)
    newest = version_of(Declaration(plain.environment, ()), "volcano")
    for delivery, chart, text in entries.deliveries(wanted.objects.values()):
        declared = entries.scheduler_configuration(text, newest)
        volcano = {"version": chart, **({"scheduler": declared} if declared else {})}
        tried = Proposal(name, {**told, "volcano": volcano, "delivery": delivery})
        done = made(tried, wanted)
        if done.covered and not (done.faults or done.added):
            return tried
    configuration = wanted.objects.get(_CONFIGURATION)
    text = get(configuration.value, ("data", scheduler.KEY)) if configuration else None
    if declared := entries.scheduler_configuration(text, newest):
        return Proposal(name, {**told, "volcano": {**told.get("volcano", {}), "scheduler": declared}})
    return plain


def _with_topology(proposal: Proposal, wanted: Wanted, reasons: dict[Identity, str]) -> Proposal:
    """With the first topology that makes HyperNodes that are there, and no others."""
    hyper_nodes = [key for key in wanted.objects if key[:2] == ("topology.volcano.sh", "HyperNode")]
    reason = "no label of the nodes makes this tree" if wanted.nodes else "no node inventory tells what it follows from"
    for topology in tiers.topologies(wanted.objects.values(), wanted.nodes):
        tried = replace(proposal, spec={**proposal.spec, "topology": topology})
        done = made(tried, wanted)
        if not any(each.part == ("topology",) for each in done.faults) and any(
            part == ("topology",) for part in done.covered.values()
        ):
            return replace(proposal, spec={**proposal.spec, "topology": topology})
        reason = next((each.reason for each in done.faults if each.part == ("topology",)), reason)
    reasons.update(dict.fromkeys(hyper_nodes, reason))
    return proposal


def _with_entries(proposal: Proposal, groups: Mapping[str, Mapping[str, Any]], wanted: Wanted) -> Proposal:
    """With the queues and priorities that none of the teams has."""
    spec = dict(proposal.spec)
    for key, each in wanted.objects.items():
        if (found := _ENTRIES.get(key[:2])) is not None and _is_free(key, groups):
            section, entry = found
            spec[section] = {**spec.get(section, {}), each.name: entry(each.value)}
    return replace(proposal, spec=spec)


def _is_free(key: Identity, groups: Mapping[str, Mapping[str, Any]]) -> bool:
    return key[1] != "Queue" or "queue" not in groups.get(key[3], {})


def _settled(proposal: Proposal, wanted: Wanted, reasons: dict[Identity, str]) -> Proposal:
    """The proposal without the parts that make anything else than what is there."""
    while faults := made(proposal, wanted).faults:
        smaller = proposal
        for fault in faults:
            _note(fault, wanted, reasons)
            smaller = _taken_back(smaller, fault)
        if smaller == proposal:
            return Proposal(proposal.name)
        proposal = smaller
    return proposal


def _taken_back(proposal: Proposal, fault: Fault) -> Proposal:
    part = fault.part
    is_there = part[0] in ("Team", "Teams", "TrainingJob") or part[0] in proposal.spec
    if is_there and len(part) > 1 and part[0] in proposal.spec:
        is_there = part[1] in proposal.spec[part[0]]
    return proposal.without(part) if is_there else proposal


def _note(fault: Fault, wanted: Wanted, reasons: dict[Identity, str]) -> None:
    """Remembers why an object is in no document; of a Team's objects the first difference stands for all."""
    if fault.of is not None:
        reasons[fault.of] = fault.reason
        return
    groups = {"queues": ("scheduling.volcano.sh", "Queue"), "priorities": ("scheduling.k8s.io", "PriorityClass")}
    if (group := groups.get(fault.part[0])) is not None and len(fault.part) > 1:
        reasons[(*group, "default", fault.part[1])] = fault.reason
    elif fault.part[0] == "Team":
        for key, each in wanted.objects.items():
            if each.labels.get(tenancy.TEAM_LABEL) == fault.part[1]:
                reasons.setdefault(key, f"team {fault.part[1]} is no Team: {fault.reason}")


def _with_jobs(proposal: Proposal, wanted: Wanted, reasons: dict[Identity, str]) -> Proposal:
    """With the TrainingJobs that make Jobs that are there: each the first of its proposals that does, then the first
    that does with a patch."""
    numbers = {tier.number: tier.name for tier in tiers_of(mapping(proposal.spec.get("topology")))}
    steps = flows.steps(wanted.objects.values())
    waiting: dict[JobKey, Iterator[dict[str, Any]]] = {}
    there: dict[JobKey, KubeObject] = {}
    for key, each in wanted.objects.items():
        if key[:2] in _JOBS:
            around = _around(each, proposal, numbers, steps)
            if isinstance(around, str) or key[2:] in there:
                reasons[key] = around if isinstance(around, str) else f"{there[key[2:]].ref.kind} has its name already"
                continue
            waiting[key[2:]] = training.proposals(_without_nulls(each.value), around)
            there[key[2:]] = each
    settled: dict[JobKey, Mapping[str, Any]] = {}
    rounds: list[dict[JobKey, dict[str, Any]]] = []
    while waiting:
        rounds.append(tried := _next_round(waiting, there, reasons))
        settled |= {key: tried[key] for key in _same(proposal, tried, wanted, reasons)}
        waiting = {key: each for key, each in waiting.items() if key not in settled}
    for tried in rounds:
        rest = {key: each for key, each in tried.items() if key not in settled}
        patched = patching.patched(proposal, rest, wanted)
        settled |= {key: patched[key] for key in _same(proposal, patched, wanted, reasons)}
    return replace(proposal, jobs=dict(sorted(settled.items())))


def _without_nulls(value: Any) -> Any:
    """The value as the API server reads it: a field that is null is not there."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _around(
    each: KubeObject, proposal: Proposal, numbers: Mapping[int, str], steps: Mapping[JobKey, Mapping[str, Any]]
) -> training.Surroundings | str:
    """What the job takes from the documents around it; a text is why it can be none."""
    namespace = each.ref.namespace or "default"
    if (fault := _name_fault(each)) is not None:
        return fault
    flow = steps.get((namespace, each.name)) if each.ref.kind == "JobTemplate" else None
    if each.ref.kind == "JobTemplate" and flow is None:
        return "it is a step of no JobFlow, or of several"
    for name, team in proposal.teams.items():
        if namespace in team.get("namespaces", {}):
            queue = name if "queue" in team else "default"
            return training.Surroundings(numbers, queue, next(iter(team.get("priorities", ())), None), flow)
    return training.Surroundings(numbers, flow=flow)


def _name_fault(each: KubeObject) -> str | None:
    """Why the object has no name for a document."""
    for text in (each.name, each.ref.namespace or "default"):
        if fault := names.subdomain_fault(text):
            return f"its name or namespace {fault}"
    return None


def _next_round(
    waiting: dict[JobKey, Iterator[dict[str, Any]]], there: Mapping[JobKey, KubeObject], reasons: dict[Identity, str]
) -> dict[JobKey, dict[str, Any]]:
    """The next proposal for each job; those that have no more leave."""
    found: dict[JobKey, dict[str, Any]] = {}
    for key in list(waiting):
        try:
            proposed = next(waiting[key], None)
        except Unspeakable as reason:
            reasons[identity(there[key].ref)] = str(reason)
            proposed = None
        if proposed is None:
            del waiting[key]
        else:
            found[key] = proposed
    return found


def _same(
    proposal: Proposal, tried: Mapping[JobKey, Mapping[str, Any]], wanted: Wanted, reasons: dict[Identity, str]
) -> list[JobKey]:
    """The jobs whose proposals make what is there."""
    left = dict(tried)
    while left:
        done = made(replace(proposal, jobs=left), wanted)
        wrong = {fault.part[1:]: fault for fault in done.faults if _is_of_job(fault)}
        for key, fault in wrong.items():
            of = fault.of or next(each for each in wanted.objects if each[:2] in _JOBS and each[2:] == key)
            reasons.setdefault(of, fault.reason)
            left.pop((key[0], key[1]), None)
        if not wrong:
            return list(left)
    return []


def _is_of_job(fault: Fault) -> bool:
    """A flow is judged when all of its steps are known."""
    return fault.part[0] == "TrainingJob" and (fault.of is None or fault.of[:2] != _FLOW)


def is_expressible(ref_group: str, kind: str) -> bool:
    """Whether there is a document for objects of the kind at all."""
    return (ref_group, kind) in {*_JOBS, _FLOW, *_ENTRIES, ("topology.volcano.sh", "HyperNode")}
