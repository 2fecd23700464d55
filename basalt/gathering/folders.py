"""From a folder to its documents: `extends` first, then the folder itself; merged, classified, and nothing lost."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from basalt import names
from basalt.api.schemas import show
from basalt.findings import Place, Problem
from basalt.gathering import node_documents
from basalt.gathering.chart_values import is_chart_values
from basalt.gathering.documents import API_VERSION, GROUP, KINDS, Declaration, Document, merge_documents, ref_of
from basalt.gathering.expanding import expand, faults, is_plain_list
from basalt.loading import files, inventories, memory
from basalt.loading.files import KNOWN_INVENTORY, Misuse, Reading, SourceFile
from basalt.loading.memory import Memory
from basalt.loading.nodes import Node

_EXTENDS = ("spec", "extends")


@dataclass(slots=True)
class Gathered:
    """Everything that was written for one environment, or in one folder of plain manifests."""

    environment: Declaration | None = None
    declarations: tuple[Declaration, ...] = ()  # Basalt's documents, the Environment included
    manifests: tuple[Document, ...] = ()  # raw Kubernetes objects, Nodes left out
    chart_values: tuple[Document, ...] = ()  # values files of charts that Basalt knows
    nodes: tuple[tuple[Node, Document], ...] = ()
    inventories: tuple[SourceFile, ...] = ()
    reading: Reading = field(default_factory=Reading)
    problems: list[tuple[str, Problem]] = field(default_factory=list)  # rule, problem
    node_source: Callable[[], tuple[Node, ...]] = tuple  # what all_nodes are: asked for where they are needed
    folders: frozenset[Path] = frozenset()  # that were read, those extended among them

    @property
    def all_nodes(self) -> tuple[Node, ...]:
        """Of all inventories, then those written one by one; each name once."""
        return self.node_source()


def gather(root: Path, known: Memory = memory.NOTHING) -> Gathered:
    """What the environment's folder (or the single file) says, the folders it extends included."""
    gathered = Gathered()
    folders = _Folders(gathered, project_of(root), known)
    folders.visit(root.resolve(), ())
    gathered.folders = frozenset(folders.done)
    _classify(folders.documents, gathered)
    _join_nodes(gathered, known)
    return gathered


def of_documents(documents: Iterable[Document], beside: Iterable[Path] = ()) -> Gathered:
    """What documents say that stand in no folder. Of the files beside them only what tells about a cluster counts:
    nodes, Guardrails and an Environment."""
    gathered = Gathered()
    for path in beside:
        files.read(path, gathered.reading)
    texts = gathered.reading.documents
    told = [found for text in texts for found in expand(text) if _tells(found)]
    gathered.problems.extend(fault for text in texts for fault in faults(text) if _tells(fault[1].place))
    _classify([*told, *documents], gathered)
    _join_nodes(gathered)
    return gathered


def _tells(place: Place) -> bool:
    ref = place.ref
    if ref is None:
        return False
    return ref.kind in ("Environment", "Guardrail") if ref.group == GROUP else ref[:2] == ("v1", "Node")


def project_of(root: Path) -> Path:
    """The folder that `extends` may not leave: the nearest one above with a Pulumi.yaml, else the git repository,
    else the environment's parent."""
    start = root.resolve()
    parents = [start, *start.parents] if start.is_dir() else list(start.parents)
    for marker in ("Pulumi.yaml", ".git"):
        for folder in parents:
            if os.path.exists(folder / marker):
                return folder
    return start.parent


class _Folders:
    """The walk over `extends`, depth first. Each file is read once: a folder inside another is its own layer."""

    def __init__(self, gathered: Gathered, project: Path, known: Memory) -> None:
        self.gathered = gathered
        self.project = project
        self.known = known
        self.documents: list[Document] = []
        self.done: set[Path] = set()
        self.taken: set[Path] = set()
        self.readings: dict[Path, tuple[Reading, list[Document]]] = {}

    def visit(self, folder: Path, above: tuple[Path, ...]) -> None:
        paths = [path for path in files.discover(Path(os.path.relpath(folder))) if path not in self.taken]
        environments = [found for path in paths for found in self._read(path) if _is_kind(found, "Environment")]
        if environments:
            self._extend(min(environments, key=_depth), folder, (*above, folder))
        self.done.add(folder)
        rest = [path for path in paths if path not in self.taken]
        self._refuse_second([found for found in environments if found.file.path in set(rest)])
        for path in rest:
            self._take(path)

    def _read(self, path: Path) -> list[Document]:
        if path not in self.readings:
            reading = Reading()
            files.read(path, reading, self.known)
            self.readings[path] = reading, [found for text in reading.documents for found in expand(text)]
        return self.readings[path][1]

    def _take(self, path: Path) -> None:
        self.taken.add(path)
        self.documents.extend(self._read(path))
        (reading, _), into = self.readings.pop(path), self.gathered.reading
        into.files.extend(reading.files)
        into.documents.extend(reading.documents)
        into.faults.extend(reading.faults)
        into.unchecked.extend(reading.unchecked)
        for text in reading.documents:
            self.gathered.problems.extend(faults(text))

    def _refuse_second(self, environments: list[Document]) -> None:
        for extra in environments[1:]:
            first = environments[0].position(())
            message = f"a second Environment; the first is at {first}"
            self._report("one-environment", extra, ("kind",), message, "keep one Environment in a folder")

    def _extend(self, environment: Document, folder: Path, above: tuple[Path, ...]) -> None:
        spec = environment.value.get("spec")
        extends = spec.get("extends") if isinstance(spec, dict) else None
        base = folder if folder.is_dir() else folder.parent
        for index, relative in enumerate(extends if isinstance(extends, list) else []):
            if not isinstance(relative, str) or not relative:
                continue  # document-matches-schema speaks
            target = Path(os.path.realpath(base / relative.replace("\0", "\ufffd")))
            fault = self._fault(target, above)
            if fault:
                self._report(
                    "extends-stays-inside", environment, (*_EXTENDS, index), f"{relative} {fault[0]}", fault[1]
                )
            elif target not in self.done:
                self.visit(target, above)

    def _fault(self, target: Path, above: tuple[Path, ...]) -> tuple[str, str] | None:
        if not target.is_relative_to(self.project):
            shown = os.path.relpath(self.project)
            return f"is outside the project ({shown})", "move the folder into the project"
        if not os.path.isdir(target):
            return "is not a folder", "name a folder, relative to this one"
        if target in above:
            circle = " -> ".join(os.path.relpath(each) for each in (*above[above.index(target) :], target))
            return f"leads back: {circle}", "take it out of one of them"
        if held := [each for each in above if each.is_relative_to(target)]:
            return f"holds {os.path.relpath(held[-1])} itself", "name a folder beside this one, or inside it"
        return None

    def _report(self, rule: str, place: Document, pointer: tuple[str | int, ...], message: str, hint: str) -> None:
        self.gathered.problems.append((rule, Problem(place, pointer, message, hint)))


def _depth(document: Document) -> int:
    """How deep a document's file lies; the Environment nearest to the folder is the folder's own."""
    return len(document.file.path.parts)


def _is_kind(document: Document, kind: str) -> bool:
    value = document.value
    return isinstance(value, dict) and value.get("apiVersion") == API_VERSION and value.get("kind") == kind


def _classify(documents: Iterable[Document], gathered: Gathered) -> None:
    own: dict[tuple[str, ...], list[Document]] = {}
    manifests: list[Document] = []
    chart_values: list[Document] = []
    found_nodes: list[tuple[Node, Document]] = []
    for document in documents:
        if _is_kustomization(document):
            continue
        if is_chart_values(document.value):
            chart_values.append(document)
        elif (fault := _kind_fault(document)) is not None:
            gathered.problems.append(("document-kind-is-known", fault))
        elif document.value["apiVersion"] == API_VERSION:
            own.setdefault(_identity(document), []).append(document)
        elif document.value["kind"] == "Node" and document.value["apiVersion"] == "v1":
            _add_node(document, found_nodes, gathered)
        elif is_plain_list(document.value):  # one whose items are a list is no document any more
            message = f"takes a list, this is {show(document.value['items'])}"
            gathered.problems.append(("object-matches-schema", Problem(document, ("items",), message)))
        else:
            manifests.append(document)
    gathered.declarations = tuple(merge_documents(tuple(layers)) for layers in own.values())
    gathered.environment = next((each for each in gathered.declarations if each.kind == "Environment"), None)
    gathered.manifests = tuple(manifests)
    gathered.chart_values = tuple(chart_values)
    gathered.nodes = tuple(found_nodes)
    gathered.inventories = tuple(file for file in gathered.reading.files if file.is_inventory)


def _join_nodes(gathered: Gathered, known: Memory = memory.NOTHING) -> None:
    """Takes each node once: what two of one name would say about domains and capacity is nobody's mistake."""
    large = [file for file in gathered.inventories if known.is_on and file.size > inventories.STRICT_BYTES]
    is_only = len(gathered.inventories) == 1 and not gathered.nodes
    if large and is_only and known.recall(KNOWN_INVENTORY, [large[0].content_key]) is not None:
        gathered.node_source = lambda: large[0].inventory or ()
        return
    listed = [(file, index, node) for file in gathered.inventories for index, node in enumerate(file.inventory or ())]
    every = [node for _, _, node in listed] + [node for node, _ in gathered.nodes]
    gathered.node_source = lambda: tuple(every)
    if len({node.name for node in every}) == len(every):
        for file in large:
            known.keep(KNOWN_INVENTORY, [file.content_key], len(file.inventory or ()))
        return
    places = [node_documents.in_inventory(*each) for each in listed] + [document for _, document in gathered.nodes]
    first: dict[str, tuple[Node, Document]] = {}
    for node, place in zip(every, places, strict=True):
        if first.setdefault(node.name, (node, place))[0] is not node:
            earlier = first[node.name][1].position(())
            message = f"Node/{node.name} is declared again; the first is at {earlier}"
            problem = Problem(place, ("metadata", "name"), message, "keep one inventory of each node")
            gathered.problems.append(("object-is-declared-once", problem))
    gathered.node_source = lambda: tuple(node for node, _ in first.values())


def _identity(document: Document) -> tuple[str, ...]:
    ref = ref_of(document.value)
    if ref is None or ref.kind == "Environment":
        return ("Environment",)
    return (ref.kind, ref.namespace or "", ref.name) if ref.name else (ref.kind, str(id(document)))


def _add_node(document: Document, into: list[tuple[Node, Document]], gathered: Gathered) -> None:
    node, problems = node_documents.read(document)
    gathered.problems.extend(problems)
    if node is not None:
        into.append((node, document))


def _is_kustomization(document: Document) -> bool:
    """Whether it tells kustomize what to do: no object of a cluster. kustomize asks for no apiVersion and no kind."""
    value = document.value
    if not isinstance(value, dict):
        return False
    is_bare = document.file.path.stem == "kustomization" and "kind" not in value
    return is_bare or str(value.get("apiVersion")).startswith("kustomize.config.k8s.io/")


def _kind_fault(document: Document) -> Problem | None:
    value = document.value
    if not isinstance(value, dict):
        return Problem(document, (), f"a document is a map with apiVersion and kind, this is {show(value)}")
    for key in ("apiVersion", "kind"):
        if value.get(key) is not None and not isinstance(value[key], str):
            return Problem(document, (key,), f"takes text, this is {show(value[key])}")
    missing = [key for key in ("apiVersion", "kind") if not value.get(key)]
    if missing:
        hint = f"add {' and '.join(missing)}, or move the file out of the folder"
        return Problem(document, (), f"no {' and no '.join(missing)}", hint)
    return _own_kind_fault(document, value["apiVersion"], value["kind"])


def _own_kind_fault(document: Document, api_version: str, kind: str) -> Problem | None:
    group = api_version.partition("/")[0]
    if group != GROUP and (kind not in KINDS or names.nearest(group, [GROUP]) is None):
        return None
    if api_version != API_VERSION:
        return Problem(document, ("apiVersion",), f"{api_version} is not known", f"write {API_VERSION}")
    if kind not in KINDS:
        return Problem(document, ("kind",), f"{kind} is not a kind of {API_VERSION}", names.did_you_mean(kind, KINDS))
    return None


def folder_of(environment: str, stacks: str = "stacks") -> Path:
    """The folder or file that the command line names: a path, or a name under `stacks/` here or in the project."""
    try:
        candidates = [Path(environment), Path(stacks, environment), project_of(Path.cwd()) / stacks / environment]
        for candidate in candidates:
            if environment and candidate.exists():
                return candidate
        known = sorted(each.name for each in Path(stacks).iterdir() if each.is_dir()) if Path(stacks).is_dir() else []
    except (OSError, ValueError) as error:
        raise Misuse(f"cannot read {environment}: {getattr(error, 'strerror', None) or error}") from None
    hint = names.did_you_mean(environment, known)
    raise Misuse(f"no environment {environment}: neither a path nor a folder under {stacks}/" + (hint and f"; {hint}"))
