"""Declarations to Kubernetes objects: runs the module of every part, and gives each what it takes from the others."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from basalt.api import versions
from basalt.api.charts import Chart, locked
from basalt.gathering.documents import Declaration
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, Manifest, generated, mapping
from basalt.platform import Platform
from basalt.views.domains import Domains, participating, tiers_of
from modules import delivery, descheduler, jobs, priorities, queues, scheduler, tenancy, topology

# The parts of a platform that an Environment switches on by naming them.
_SWITCHED: dict[str, Callable[[Mapping[str, Any], Platform], Iterator[Manifest]]] = {
    "descheduler": descheduler.descheduler,
}


def version_of(environment: Declaration | None, product: str) -> versions.Version:
    """The declared version of kubernetes or volcano; the newest that Basalt knows where none is."""
    text = mapping(environment.spec.get(product)).get("version") if environment else None
    found = versions.parse(str(text))
    return found if found in versions.known(product) else versions.newest(product)


def derive(
    environment: Declaration, declarations: tuple[Declaration, ...], nodes: tuple[Node, ...]
) -> Iterator[KubeObject]:
    """The objects of every module, from declarations that have the right form."""
    engine = mapping(environment.spec.get("delivery"))
    for module, written, manifests in _parts(environment, declarations, nodes):
        for manifest in manifests:
            made = delivery.delivered(manifest, engine) if delivery.is_release(manifest) else (manifest,)
            yield from (generated(each, written, module) for each in made)


_Part = tuple[str, Declaration, Iterator[Manifest]]


def _parts(environment: Declaration, declarations: tuple[Declaration, ...], nodes: tuple[Node, ...]) -> Iterator[_Part]:
    spec = environment.spec
    platform = _platform(environment, declarations, nodes)
    volcano = version_of(environment, "volcano")
    teams = [each for each in declarations if each.kind == "Team"]
    chart = _volcano_chart(spec, volcano) if "delivery" in spec else None
    yield "scheduler", environment, scheduler.scheduler(mapping(spec.get("volcano")).get("scheduler"), volcano, chart)
    yield "priorities", environment, priorities.priority_classes(spec.get("priorities", {}))
    yield "queues", environment, queues.queues(spec.get("queues", {}))
    yield "topology", environment, _hyper_nodes(spec, nodes, volcano)
    for part, module in _SWITCHED.items():
        if part in spec:
            yield part, environment, module(spec[part], platform)
    if teams:
        yield "tenancy", environment, tenancy.cluster_roles()
    for team in _distinct(teams):
        yield "tenancy", team, tenancy.team(team.name, team.spec)
        if "queue" in team.spec:
            yield "queues", team, iter((queues.queue(team.name, team.spec["queue"], ("spec", "queue")),))
    tiers = {tier.name: tier.number for tier in tiers_of(spec.get("topology", {}))}
    for declaration in declarations:
        if declaration.kind == "TrainingJob":
            context = _context(str(declaration.value["metadata"]["namespace"]), teams, tiers)
            job = jobs.job(declaration.value["metadata"], declaration.spec, context)
            yield "jobs", declaration, iter((job,))


def _platform(environment: Declaration, declarations: tuple[Declaration, ...], nodes: tuple[Node, ...]) -> Platform:
    labels = mapping(mapping(environment.value.get("metadata")).get("labels"))
    return Platform(
        name=environment.name,
        spec=environment.spec,
        teams={each.name: each.spec for each in declarations if each.kind == "Team"},
        nodes=nodes,
        kubernetes=version_of(environment, "kubernetes"),
        volcano=version_of(environment, "volcano"),
        is_development=labels.get("basalt.dev/purpose") == "development",
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


def _hyper_nodes(spec: Mapping[str, Any], nodes: tuple[Node, ...], volcano: versions.Version) -> Iterator[Manifest]:
    declared = mapping(spec.get("topology"))
    domains = Domains(tiers_of(declared), participating(declared, nodes))
    return topology.hyper_nodes(
        domains,
        members=declared.get("members", "exact"),
        with_tier_names=volcano >= topology.TIER_NAMES_SINCE,
        selector=declared.get("nodeSelector", {}),
    )


def _context(namespace: str, teams: list[Declaration], tiers: Mapping[str, int]) -> jobs.Context:
    team = next((each for each in teams if namespace in each.spec.get("namespaces", {})), None)
    if team is None:
        return jobs.Context(queues.DEFAULT, None, tiers)
    allowed = team.spec.get("priorities") or [None]
    return jobs.Context(team.name if "queue" in team.spec else queues.DEFAULT, allowed[0], tiers)
