"""From a folder to its documents: `extends` first, then the folder itself; merged, classified, and nothing lost."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from basalt import names
from basalt.documents import API_VERSION, GROUP, KINDS, Declaration, Document, merge_documents, ref_of
from basalt.findings import Problem
from basalt.loading import files, nodes
from basalt.loading.files import Misuse, Reading, SourceFile
from basalt.loading.nodes import Node

_EXTENDS = ("spec", "extends")


@dataclass(slots=True)
class Gathered:
    """Everything that was written for one environment, or in one folder of plain manifests."""

    environment: Declaration | None = None
    declarations: tuple[Declaration, ...] = ()  # Basalt's documents, the Environment included
    manifests: tuple[Document, ...] = ()  # raw Kubernetes objects, Nodes left out
    nodes: tuple[tuple[Node, Document], ...] = ()
    inventories: tuple[SourceFile, ...] = ()
    reading: Reading = field(default_factory=Reading)
    problems: list[tuple[str, Problem]] = field(default_factory=list)  # rule, problem

    @property
    def all_nodes(self) -> tuple[Node, ...]:
        """The nodes of all inventories, then those written one by one."""
        listed = (node for file in self.inventories for node in file.inventory or ())
        return (*listed, *(node for node, _ in self.nodes))


def gather(root: Path) -> Gathered:
    """What the environment's folder (or the single file) says, the folders it extends included."""
    gathered = Gathered()
    folders = _Folders(gathered, project_of(root))
    folders.visit(root.resolve(), ())
    documents = folders.documents
    _classify(documents, gathered)
    return gathered


def project_of(root: Path) -> Path:
    """The folder that `extends` may not leave: the nearest one above with a Pulumi.yaml, else the git repository,
    else the environment's parent."""
    start = root.resolve()
    parents = [start, *start.parents] if start.is_dir() else list(start.parents)
    for marker in ("Pulumi.yaml", ".git"):
        for folder in parents:
            if (folder / marker).exists():
                return folder
    return start.parent


class _Folders:
    """The walk over `extends`, depth first, each folder read once."""

    def __init__(self, gathered: Gathered, project: Path) -> None:
        self.gathered = gathered
        self.project = project
        self.documents: list[Document] = []
        self.done: set[Path] = set()

    def visit(self, folder: Path, above: tuple[Path, ...]) -> None:
        reading = Reading()
        files.read(Path(os.path.relpath(folder)), reading)
        documents = list(_documents(reading))
        environments = [found for found in documents if _is_kind(found, "Environment")]
        for extra in environments[1:]:
            first = environments[0].position(())
            message = f"a second Environment; the first is at {first.file}:{first.line}"
            self._report("one-environment", extra, ("kind",), message, "keep one Environment in a folder")
        for environment in environments[:1]:
            self._extend(environment, folder, (*above, folder))
        self.done.add(folder)
        self._take(reading)
        self.documents.extend(documents)

    def _take(self, reading: Reading) -> None:
        into = self.gathered.reading
        into.files.extend(reading.files)
        into.documents.extend(reading.documents)
        into.faults.extend(reading.faults)
        into.unchecked.extend(reading.unchecked)

    def _extend(self, environment: Document, folder: Path, above: tuple[Path, ...]) -> None:
        spec = environment.value.get("spec")
        extends = spec.get("extends") if isinstance(spec, dict) else None
        base = folder if folder.is_dir() else folder.parent
        for index, relative in enumerate(extends if isinstance(extends, list) else []):
            if not isinstance(relative, str) or "\0" in relative:
                continue  # document-matches-schema speaks
            target = Path(os.path.realpath(base / relative))
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
            return f"is outside the project, which is {shown}", "move the folder into the project"
        if not target.is_dir():
            return "is not a folder", "name a folder, relative to this one"
        if target in above:
            circle = " -> ".join(os.path.relpath(each) for each in (*above[above.index(target) :], target))
            return f"leads back: {circle}", "take it out of one of them"
        return None

    def _report(self, rule: str, place: Document, pointer: tuple[str | int, ...], message: str, hint: str) -> None:
        self.gathered.problems.append((rule, Problem(place, pointer, message, hint)))


def _documents(reading: Reading) -> Iterator[Document]:
    for text in reading.documents:
        yield from _expand(Document(text.file, text.index, text.value))


def _expand(document: Document) -> Iterator[Document]:
    """The document, or the items of a List."""
    value = document.value
    is_list = isinstance(value, dict) and nodes.is_list(value.get("apiVersion"), value.get("kind"))
    if not is_list or not isinstance(value.get("items"), list):
        yield document
        return
    for index, item in enumerate(value["items"]):
        yield Document(document.file, document.index, item, (*document.prefix, "items", index))


def _is_kind(document: Document, kind: str) -> bool:
    value = document.value
    return isinstance(value, dict) and value.get("apiVersion") == API_VERSION and value.get("kind") == kind


def _classify(documents: Iterable[Document], gathered: Gathered) -> None:
    own: dict[tuple[str, ...], list[Document]] = {}
    manifests: list[Document] = []
    found_nodes: list[tuple[Node, Document]] = []
    for document in documents:
        if (fault := _kind_fault(document)) is not None:
            gathered.problems.append(("document-kind-is-known", fault))
        elif document.value["apiVersion"] == API_VERSION:
            own.setdefault(_identity(document), []).append(document)
        elif document.value["kind"] == "Node" and document.value["apiVersion"] == "v1":
            _add_node(document, found_nodes, gathered)
        elif not _is_kustomization(document.value):
            manifests.append(document)
    gathered.declarations = tuple(merge_documents(tuple(layers)) for layers in own.values())
    gathered.environment = next((each for each in gathered.declarations if each.kind == "Environment"), None)
    gathered.manifests = tuple(manifests)
    gathered.nodes = tuple(found_nodes)
    gathered.inventories = tuple(file for file in gathered.reading.files if file.inventory is not None)


def _identity(document: Document) -> tuple[str, ...]:
    ref = ref_of(document.value)
    if ref is None or ref.kind == "Environment":
        return ("Environment",)
    return (ref.kind, ref.namespace or "", ref.name) if ref.name else (ref.kind, str(id(document)))


def _add_node(document: Document, into: list[tuple[Node, Document]], gathered: Gathered) -> None:
    node = nodes.from_value(document.value)
    if isinstance(node, Node):
        into.append((node, document))
        return
    fact, _, path = node.partition(" - at ")
    message = f"not a Node that the API server prints: {fact[:1].lower()}{fact[1:]}" + (f" at {path}" if path else "")
    gathered.problems.append(("object-matches-schema", Problem(document, _json_path(path), message)))


def _json_path(path: str) -> tuple[str | int, ...]:
    """msgspec's `$.spec.taints[0]` as a pointer; parts it leaves open ([...]) end it."""
    pointer: list[str | int] = []
    for part in path.strip("`$").replace("[", ".[").split("."):
        if part.startswith("["):
            if not part[1:-1].isdecimal():
                break
            pointer.append(int(part[1:-1]))
        elif part:
            pointer.append(part)
    return tuple(pointer)


def _is_kustomization(value: dict[str, Any]) -> bool:
    return str(value["apiVersion"]).startswith("kustomize.config.k8s.io/")


def _kind_fault(document: Document) -> Problem | None:
    value = document.value
    if not isinstance(value, dict):
        return Problem(document, (), "not an object: a document is a map with apiVersion and kind")
    missing = [key for key in ("apiVersion", "kind") if not isinstance(value.get(key), str) or not value[key]]
    if missing:
        hint = f"add {' and '.join(missing)}, or move the file out of the folder"
        return Problem(document, (), f"no {' and no '.join(missing)}", hint)
    api_version, kind = value["apiVersion"], value["kind"]
    if api_version.split("/")[0] != GROUP:
        return None
    if api_version != API_VERSION:
        return Problem(document, ("apiVersion",), f"{api_version} is not known", f"write {API_VERSION}")
    if kind not in KINDS:
        return Problem(document, ("kind",), f"{kind} is not a kind of {API_VERSION}", names.did_you_mean(kind, KINDS))
    return None


def folder_of(environment: str, stacks: str = "stacks") -> Path:
    """The folder or file that the command line names: a path, or a name under `stacks/` here or in the project."""
    path = Path(environment)
    candidates = [path, Path(stacks, environment), project_of(Path.cwd()) / stacks / environment]
    try:
        for candidate in candidates:
            if environment and candidate.exists():
                return candidate
        known = sorted(each.name for each in Path(stacks).iterdir() if each.is_dir()) if Path(stacks).is_dir() else []
    except (OSError, ValueError) as error:
        raise Misuse(f"cannot read {environment}: {getattr(error, 'strerror', None) or error}") from None
    hint = names.did_you_mean(environment, known)
    raise Misuse(f"no environment {environment}: neither a path nor a folder under {stacks}/" + (hint and f"; {hint}"))
