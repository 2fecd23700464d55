"""The whole way of an environment: documents -> declarations -> objects -> index -> findings. Pure but for gathering,
which reads the files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from basalt import judging
from basalt.api import versions
from basalt.api.charts import Chart, locked
from basalt.api.kinds import Catalog
from basalt.findings import Finding, Problem, Ref, Skipped, Source
from basalt.gathering import document_checks
from basalt.gathering.documents import Declaration
from basalt.gathering.folders import Gathered, gather
from basalt.index import Index
from basalt.loading.files import SourceFile, TextFault
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, Manifest, generated, mapping
from basalt.pointers import Pointer
from basalt.views.domains import Domains, participating, tiers_of
from modules import delivery, jobs, priorities, queues, scheduler, tenancy, topology

_BREAKING = ("document-parses", "input-within-limits", "extends-stays-inside")
_BREAKING_KINDS = ("Environment", "Team")


@dataclass(frozen=True, slots=True)
class Compilation:
    """What one run found out about a folder."""

    name: str
    has_environment: bool
    index: Index
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    files: tuple[SourceFile, ...]

    @property
    def objects(self) -> tuple[KubeObject, ...]:
        return self.index.objects


def compile_folder(root: Path, *, needs_environment: bool = False) -> Compilation:
    """Everything that is to know about an environment's folder, a folder of plain manifests, or a single file."""
    gathered = gather(root)
    noted = _noted(gathered)
    unusable = _check_documents(gathered, noted)
    if needs_environment and gathered.environment is None and _broken(noted, unusable) is None:
        hint = "add one: kind Environment of basalt.dev/v1alpha1"
        missing = Problem(_Folder(root), (), "no Environment document", hint)
        noted.setdefault("one-environment", []).append(missing)
    index = _index(gathered, noted, unusable)
    verdict = judging.judge(index)
    name = gathered.environment.name if gathered.environment and gathered.environment.name else root.resolve().name
    files = tuple(gathered.reading.files)
    return Compilation(name, gathered.environment is not None, index, *verdict, files)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder as the place of a finding that no file is to blame for."""

    path: Path
    ref: Ref | None = None
    waiver: str | None = None

    def position(self, _: Pointer) -> Source:
        return Source(str(self.path), 1, 1)


@dataclass(frozen=True, slots=True)
class _Text:
    """A spot in a text that could not be read as a document."""

    fault: TextFault
    ref: Ref | None = None
    waiver: str | None = None

    def position(self, _: Pointer) -> Source:
        return self.fault.file.source(self.fault.fault.mark)


def _noted(gathered: Gathered) -> dict[str, list[Problem]]:
    """The problems that were seen while reading, by rule."""
    noted: dict[str, list[Problem]] = {}
    for rule, problem in gathered.problems:
        noted.setdefault(rule, []).append(problem)
    for text in gathered.reading.faults:
        fault = text.fault
        noted.setdefault(fault.rule, []).append(Problem(_Text(text), fault.pointer, fault.message, fault.hint))
    return noted


def _check_documents(gathered: Gathered, noted: dict[str, list[Problem]]) -> frozenset[Declaration]:
    """Judges the form of Basalt's documents; returns those that nothing can be derived from."""
    unusable = set()
    for declaration in gathered.declarations:
        checked = document_checks.check(declaration)
        noted.setdefault("document-matches-schema", []).extend(checked.problems)
        if checked.is_unusable:
            unusable.add(declaration)
    return frozenset(unusable)


def _broken(noted: Mapping[str, list[Problem]], unusable: frozenset[Declaration]) -> str | None:
    """Why the whole cannot be known: rules about how parts fit would blame parts that are only unreadable."""
    for rule in _BREAKING:
        for problem in noted.get(rule, ()):
            source = problem.place.position(problem.pointer)
            return f"{source.file}:{source.line} breaks {rule}"
    for problem in noted.get("document-kind-is-known", ()):
        if problem.place.ref is not None and problem.place.ref.group == "basalt.dev":
            return f"{problem.place.position(()).file} breaks document-kind-is-known"
    for declaration in unusable:
        if declaration.kind in _BREAKING_KINDS:
            return f"{declaration.kind}/{declaration.name} breaks document-matches-schema"
    return None


def _index(gathered: Gathered, noted: Mapping[str, list[Problem]], unusable: frozenset[Declaration]) -> Index:
    usable = tuple(each for each in gathered.declarations if each not in unusable)
    environment = next((each for each in usable if each.kind == "Environment"), None)
    raw = [KubeObject(document.value, document) for document in gathered.manifests]
    objects = [*derive(environment, usable, gathered.all_nodes), *raw] if environment else raw
    broken = _broken(noted, unusable)
    return Index(gathered, objects, _catalog(environment, raw), noted=noted, unusable=unusable, broken=broken)


def _version(environment: Declaration | None, product: str) -> versions.Version:
    text = mapping(environment.spec.get(product)).get("version") if environment else None
    found = versions.parse(str(text))
    return found if found in versions.known(product) else versions.newest(product)


def _catalog(environment: Declaration | None, raw: list[KubeObject]) -> Catalog:
    catalog = Catalog(
        _version(environment, "kubernetes"), _version(environment, "volcano"), is_declared=environment is not None
    )
    catalog.add_definitions(each for each in raw if each.ref.kind == "CustomResourceDefinition")
    return catalog


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
    volcano = _version(environment, "volcano")
    teams = [each for each in declarations if each.kind == "Team"]
    chart = _volcano_chart(spec, volcano) if "delivery" in spec else None
    yield "scheduler", environment, scheduler.scheduler(mapping(spec.get("volcano")).get("scheduler"), volcano, chart)
    yield "priorities", environment, priorities.priority_classes(spec.get("priorities", {}))
    yield "queues", environment, queues.queues(spec.get("queues", {}))
    yield "topology", environment, _hyper_nodes(spec, nodes, volcano)
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
