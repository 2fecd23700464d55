"""The whole way of an environment: documents -> declarations -> objects -> index -> findings. Pure but for gathering,
which reads the files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from basalt import deriving, judging, own_modules, remembering
from basalt.api.kinds import Catalog
from basalt.findings import Finding, Problem, Ref, Skipped, Source
from basalt.gathering import document_checks
from basalt.gathering.documents import Declaration, Document
from basalt.gathering.folders import Gathered, gather, of_documents, project_of
from basalt.index import Index
from basalt.judging import Verdict
from basalt.loading import inventories, memory
from basalt.loading.memory import Memory
from basalt.loading.sources import SourceFile, TextFault
from basalt.objects import KubeObject, mapping
from basalt.pointers import Pointer

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
    folders: frozenset[Path] = frozenset()  # that were read, those extended among them

    @property
    def engine(self) -> str:
        """Who installs the charts."""
        environment = self.index.environment
        return str(mapping(environment.spec.get("delivery")).get("engine", "pulumi")) if environment else "pulumi"

    @property
    def objects(self) -> tuple[KubeObject, ...]:
        return self.index.objects


def compile_folder(
    root: Path, *, needs_environment: bool = False, runs_modules: bool = False, known: Memory = memory.NOTHING
) -> Compilation:
    """Everything that is to know about an environment's folder, a folder of plain manifests, or a single file.
    runs_modules: whether the code in the project's own modules/ is trusted. known is what earlier runs found out: it
    saves time, and changes nothing."""
    project = project_of(root) if runs_modules else None
    return compile_gathered(
        gather(root, known), root, needs_environment=needs_environment, project=project, known=known
    )


def compile_gathered(
    gathered: Gathered,
    root: Path,
    *,
    needs_environment: bool = False,
    project: Path | None = None,
    known: Memory = memory.NOTHING,
) -> Compilation:
    """Everything that is to know about what was gathered; root is the folder or file that it stands for, project the
    folder whose modules/ are trusted, if they are."""
    noted = _noted(gathered)
    unusable = _check_documents(gathered, noted)
    if needs_environment and gathered.environment is None and _broken(noted, unusable) is None:
        hint = "add one: kind Environment of basalt.dev/v1alpha1"
        missing = Problem(_Folder(root), (), "no Environment document", hint)
        noted.setdefault("one-environment", []).append(missing)
    index = _index(gathered, noted, unusable, project=project)
    verdict = _judged(index, known)
    name = gathered.environment.name if gathered.environment and gathered.environment.name else root.resolve().name
    return _compilation(name, gathered, index, verdict)


def _compilation(name: str, gathered: Gathered, index: Index, verdict: Verdict) -> Compilation:
    has_environment, files = gathered.environment is not None, tuple(gathered.reading.files)
    return Compilation(name, has_environment, index, verdict.findings, verdict.skipped, files, gathered.folders)


def _judged(index: Index, known: Memory) -> Verdict:
    is_large = any(file.is_inventory and file.size > inventories.STRICT_BYTES for file in index.files)
    if not (known.is_on and is_large):
        return judging.judge(index)
    key = [*remembering.key(index)]
    before = remembering.from_json(known.recall(remembering.KIND, key))
    verdict = judging.judge(index.knowing(before.views), before.silent)
    if not verdict.silent <= before.silent:
        silent = verdict.silent | before.silent
        known.keep(remembering.KIND, key, remembering.as_json(index, silent))
    return verdict


def compile_documents(
    name: str, documents: Iterable[Document], *, beside: Iterable[Path] = (), derives: bool = True
) -> Compilation:
    """Everything that is to know about documents that are not a whole platform, although an Environment is one of them:
    what it leaves out is unknown, not absent. beside: files with nodes, Guardrails and an Environment;
    derives: whether Basalt's own documents make objects, or only tell what the objects are judged by."""
    gathered = of_documents(documents, beside)
    noted = _noted(gathered)
    unusable = _check_documents(gathered, noted)
    index = _index(gathered, noted, unusable, is_whole=False, derives=derives)
    return _compilation(name, gathered, index, judging.judge(index))


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
            return f"{source} breaks {rule}"
    for problem in noted.get("document-kind-is-known", ()):
        if problem.place.ref is not None and problem.place.ref.group == "basalt.dev":
            return f"{problem.place.position(()).file} breaks document-kind-is-known"
    for declaration in unusable:
        if declaration.kind in _BREAKING_KINDS:
            return f"{declaration.kind}/{declaration.name} breaks document-matches-schema"
    return None


def _index(
    gathered: Gathered,
    noted: dict[str, list[Problem]],
    unusable: frozenset[Declaration],
    *,
    is_whole: bool = True,
    derives: bool = True,
    project: Path | None = None,
) -> Index:
    usable = tuple(each for each in gathered.declarations if each not in unusable)
    environment = next((each for each in usable if each.kind == "Environment"), None)
    raw = [KubeObject(document.value, document) for document in gathered.manifests]
    objects = raw
    derived: Callable[[], tuple[KubeObject, ...]] = tuple
    made = own_modules.Made()
    if environment and derives:
        platform = deriving.platform_of(environment, usable, gathered.node_source)
        made = own_modules.make(environment, platform, project)
        noted.setdefault("document-matches-schema", []).extend(made.problems)
        gathered.reading.files.extend(made.files)
        following = deriving.derive(environment, usable, gathered.node_source, unusable, made.parts)
        objects = [*giving_way(following, environment, raw), *raw]
        derived = cache(lambda: tuple(deriving.derive_hyper_nodes(environment, gathered.all_nodes)))
    if not is_whole:
        objects = [each for each in objects if _is_asked_for(each, environment)]
    broken = _broken(noted, unusable) or next((each.message for each in made.problems), None)
    catalog = _catalog(environment, raw, is_whole=is_whole)
    return Index(
        gathered, objects, catalog,
        derived=derived, noted=noted, unusable=unusable, broken=broken, is_whole=is_whole,
    )  # fmt: skip


def giving_way(
    derived: Iterable[KubeObject], environment: Declaration, raw: Iterable[KubeObject]
) -> Iterator[KubeObject]:
    """The derived objects without Basalt's own defaults for Volcano's scheduler that a raw manifest stands for."""
    given = {_key(each) for each in raw}
    is_declared = "scheduler" in mapping(environment.spec.get("volcano")) or "delivery" in environment.spec
    for each in derived:
        is_default = each.module == "scheduler" and (each.ref.kind == "Namespace" or not is_declared)
        if not (is_default and _key(each) in given):
            yield each


def _key(declared: KubeObject) -> tuple[str, str, str | None, str]:
    ref = declared.ref
    return ref.group, ref.kind, ref.namespace, ref.name


def _is_asked_for(declared: KubeObject, environment: Declaration | None) -> bool:
    """Whether it is not Basalt's own default: a whole platform has a scheduler, whether it is declared or not."""
    return declared.module != "scheduler" or (environment is not None and "volcano" in environment.spec)


def _catalog(environment: Declaration | None, raw: list[KubeObject], *, is_whole: bool) -> Catalog:
    told = [product for product in ("kubernetes", "volcano") if environment and product in environment.spec]
    catalog = Catalog(
        deriving.version_of(environment, "kubernetes"),
        deriving.version_of(environment, "volcano"),
        is_declared=environment is not None and (is_whole or len(told) == 2),
    )
    catalog.add_definitions(each for each in raw if each.ref.kind == "CustomResourceDefinition")
    return catalog
