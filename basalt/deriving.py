"""Declarations to Kubernetes objects: runs the module of every part, and gives each what it takes from the others."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from basalt.api import versions
from basalt.api.charts import Chart, locked
from basalt.findings import Source
from basalt.gathering.documents import Declaration
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, Manifest, generated, is_for_development, mapping
from basalt.platform import Platform
from basalt.pointers import Pointer
from basalt.views.domains import Domains, participating, tiers_of
from modules import (
    admission,
    delivery,
    descheduler,
    gpu,
    identity,
    jobs,
    metrics,
    network,
    priorities,
    queues,
    scheduler,
    tenancy,
    topology,
    vgpu,
)


def _gpus(declared: Mapping[str, Any], platform: Platform) -> Iterator[Manifest]:
    made = vgpu.vgpu if declared.get("provider") == vgpu.PROVIDER else gpu.gpu
    return made(declared, platform)


# The parts of a platform that an Environment switches on by naming them.
_SWITCHED: dict[str, Callable[[Mapping[str, Any], Platform], Iterator[Manifest]]] = {
    "descheduler": descheduler.descheduler,
    "gpu": _gpus,
    "identity": identity.identity,
    "metrics": metrics.metrics,
    "network": network.network,
}


def version_of(environment: Declaration | None, product: str) -> versions.Version:
    """The declared version of kubernetes or volcano; the newest that Basalt knows where none is."""
    text = mapping(environment.spec.get(product)).get("version") if environment else None
    found = versions.parse(str(text))
    return found if found in versions.known(product) else versions.newest(product)


def derive(
    environment: Declaration,
    declarations: tuple[Declaration, ...],
    nodes: Callable[[], tuple[Node, ...]],
    unusable: Collection[Declaration] = (),
    own: Iterable[tuple[str, Iterable[Manifest]]] = (),
) -> Iterator[KubeObject]:
    """The objects of every module but the topology, from declarations that have the right form; unusable are those that
    have not, own is what the project's own modules made."""
    engine = mapping(environment.spec.get("delivery"))
    training = [each for each in declarations if each.kind == "TrainingJob"]
    lost = {each.ref[1:] for each in unusable if each.ref is not None}
    made = ((file, environment, iter(manifests)) for file, manifests in own)
    for module, written, manifests in chain(_parts(environment, declarations, nodes), _flows(training, lost), made):
        for manifest in manifests:
            delivered = delivery.delivered(manifest, engine) if delivery.is_release(manifest) else (manifest,)
            yield from (generated(each, written, module) for each in delivered)


_Part = tuple[str, Declaration, Iterator[Manifest]]


def _parts(
    environment: Declaration, declarations: tuple[Declaration, ...], nodes: Callable[[], tuple[Node, ...]]
) -> Iterator[_Part]:
    spec = environment.spec
    platform = platform_of(environment, declarations, nodes)
    volcano = version_of(environment, "volcano")
    teams = [each for each in declarations if each.kind == "Team"]
    chart = _volcano_chart(spec, volcano) if "delivery" in spec else None
    yield "scheduler", environment, scheduler.scheduler(mapping(spec.get("volcano")).get("scheduler"), volcano, chart)
    yield "priorities", environment, priorities.priority_classes(spec.get("priorities", {}))
    yield "queues", environment, queues.queues(spec.get("queues", {}))
    for part, module in _SWITCHED.items():
        if part in spec:
            yield part, environment, module(spec[part], platform)
    if teams:
        yield "tenancy", environment, tenancy.cluster_roles()
    for team in _distinct(teams):
        yield "tenancy", team, tenancy.team(team.name, team.spec, platform.groups_prefix)
        yield "tenancy", team, admission.team_policies(platform, team.name, team.spec)
        if "queue" in team.spec:
            yield "queues", team, iter((queues.queue(team.name, team.spec["queue"], ("spec", "queue")),))
    tiers = {tier.name: tier.number for tier in tiers_of(spec.get("topology", {}))}
    for declaration in (each for each in declarations if each.kind == "TrainingJob"):
        context = _context(str(declaration.value["metadata"]["namespace"]), teams, tiers, spec.get("network"))
        job = jobs.job(declaration.value["metadata"], declaration.spec, context)
        yield "jobs", declaration, iter((job,))


def platform_of(
    environment: Declaration, declarations: tuple[Declaration, ...], nodes: Callable[[], tuple[Node, ...]]
) -> Platform:
    """What a module may take from the rest."""
    labels = mapping(mapping(environment.value.get("metadata")).get("labels"))
    return Platform(
        name=environment.name,
        spec=environment.spec,
        teams={each.name: each.spec for each in declarations if each.kind == "Team"},
        node_source=nodes,
        kubernetes=version_of(environment, "kubernetes"),
        volcano=version_of(environment, "volcano"),
        is_development=is_for_development(labels),
    )


def _volcano_chart(spec: Mapping[str, Any], minor: versions.Version) -> Chart:
    """At the declared version; where that names no patch, at the lock's, or else the first of the minor."""
    text = str(mapping(spec.get("volcano")).get("version", ""))
    exact = text if text.count(".") == 2 else locked("volcano").version
    return locked("volcano", exact if versions.parse(exact) == minor else f"{minor}.0")


def _distinct(teams: list[Declaration]) -> Iterator[Declaration]:
    """The teams, each without the namespaces that an earlier one has: namespace-has-one-team speaks of those."""
    taken: set[str] = set()
    for team in teams:
        namespaces: Mapping[str, Any] = team.spec.get("namespaces", {})
        own = {name: declared for name, declared in namespaces.items() if name not in taken}
        taken.update(own)
        spec = {**team.spec, "namespaces": own}
        yield team if len(own) == len(namespaces) else Declaration({**team.value, "spec": spec}, team.layers)


def derive_hyper_nodes(environment: Declaration, nodes: Iterable[Node]) -> Iterator[KubeObject]:
    """The objects of the module topology: they alone follow from all nodes, and are as many."""
    declared = mapping(environment.spec.get("topology"))
    manifests = topology.hyper_nodes(
        Domains(tiers_of(declared), participating(declared, nodes)),
        members=declared.get("members", "exact"),
        with_tier_names=declared.get("tierNames", True)
        and version_of(environment, "volcano") >= topology.TIER_NAMES_SINCE,
        selector=declared.get("nodeSelector", {}),
    )
    return (generated(each, environment, "topology") for each in manifests)


def _context(
    namespace: str, teams: list[Declaration], tiers: Mapping[str, int], network: Mapping[str, Any] | None
) -> jobs.Context:
    team = next((each for each in teams if namespace in each.spec.get("namespaces", {})), None)
    rdma, is_raised = jobs.rdma_resource(network), jobs.is_memlock_raised(network)
    if team is None:
        return jobs.Context(queues.DEFAULT, None, tiers, rdma_resource=rdma, is_memlock_raised=is_raised)
    allowed = team.spec.get("priorities") or [None]
    queue = team.name if "queue" in team.spec else queues.DEFAULT
    security = team.spec["namespaces"][namespace].get("security", "baseline")
    return jobs.Context(queue, allowed[0], tiers, security, rdma, is_raised)


@dataclass(frozen=True, slots=True, eq=False)
class _Together(Declaration):
    """Declarations that one object follows from; its pointers go through the map of their documents by name."""

    members: Mapping[str, Declaration]

    def position(self, pointer: Pointer) -> Source:
        first = next(iter(self.members.values()))
        if pointer[:1] != (jobs.MEMBERS,) or len(pointer) == 1:
            return first.position(pointer)
        return self.members[str(pointer[1])].position(pointer[2:])


def _flows(training: list[Declaration], lost: Collection[tuple[str, str | None, str]]) -> Iterator[_Part]:
    """The JobFlows: each follows from all jobs that name it, the first of them by name counting most. None is made that
    waits for a job whose document is lost to a fault of its own."""
    found: dict[jobs.Flow, dict[str, Declaration]] = {}
    for each in sorted(training, key=lambda each: each.name):
        if (flow := jobs.flow_of(each.value["metadata"], each.spec)) is not None:
            found.setdefault(flow, {})[each.name] = each
    for flow, members in found.items():
        awaited = {target for each in members.values() for target in each.spec["flow"].get("after", ())}
        if any(("TrainingJob", flow.namespace, name) in lost for name in awaited - members.keys()):
            continue
        documents = {name: each.value for name, each in members.items()}
        value = {**next(iter(documents.values())), jobs.MEMBERS: documents}
        together = _Together(value, tuple(layer for each in members.values() for layer in each.layers), members)
        made = jobs.flow(flow, ((name, each.spec) for name, each in members.items()))
        yield "jobs", together, iter((made,))
