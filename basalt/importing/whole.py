"""A folder of plain manifests to a new environment's files, and what there is to say about it. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from basalt import deriving
from basalt.api import versions
from basalt.api.kinds import Catalog
from basalt.compiling import giving_way
from basalt.gathering.documents import Document
from basalt.gathering.expanding import expand
from basalt.gathering.folders import of_documents
from basalt.importing import choosing, comments, keeping, writing
from basalt.importing.choosing import Choice, Versions
from basalt.importing.keeping import Spot
from basalt.importing.proposal import Identity, identity
from basalt.loading.nodes import Node
from basalt.loading.sources import SourceFile, TextDocument
from basalt.objects import MANAGED_BY, KubeObject
from basalt.plan.objects import stored_changes
from basalt.rendering.layout import Output
from basalt.views import volcano_version

_KUBELET = re.compile(rb"kubeletVersion\"?: *\"?v?([0-9]+\.[0-9]+)")


class Source(NamedTuple):
    """What was read: where, and what it holds."""

    root: Path
    shown: str
    objects: tuple[KubeObject, ...]
    nodes: tuple[Node, ...]
    files: tuple[SourceFile, ...]
    texts: tuple[TextDocument, ...]
    catalog: Catalog


class Left(NamedTuple):
    """An object that stays as it is, and why."""

    object: KubeObject
    reason: str


class Imported(NamedTuple):
    """The new environment: its files, the documents in them, and what a reader should know."""

    outputs: tuple[Output, ...]
    documents: Mapping[str, int]
    entries: Mapping[str, int]
    expressed: int
    nodes: int  # taken over as they are
    left: tuple[Left, ...]
    added: tuple[KubeObject, ...]
    labelled: int  # objects that get the label of Basalt's
    cleaned: int  # objects that held what only servers write
    left_out: tuple[str, ...]  # files that only tell kustomize about the others
    comments: tuple[str, ...]  # places of those that stay behind, or of the objects that they are in


class Lost(AssertionError):
    """The new environment would not be what was read: a bug."""


def imported(source: Source, name: str) -> Imported:
    """The environment of that name."""
    choice = choosing.choose(name, source.objects, source.nodes, source.catalog, _versions(source))
    gone = {_spot(each): each for each in source.objects if identity(each.ref) in choice.covered}
    kept = keeping.kept(source.files, source.texts, keeping.paths(source.files, source.root), gone.keys())
    found = comments.comments(source.files, source.texts, choice, gone)
    written = writing.documents(choice.proposal, found.leading, source.shown)
    _prove(source, choice, written, kept)
    expressed = list(gone.values())
    rewritten = {file.name for file in source.files} - kept.unchanged
    touched = [each for each in source.objects if _spot(each) in gone or _is_rewritten(each, rewritten)]
    return Imported(
        (*written, *kept.outputs),
        Counter(value["kind"] for value in choice.proposal.values()),
        {part: len(each) for part, each in _entries(choice).items() if each},
        len(expressed),
        len(source.nodes),
        tuple(Left(each, _reason(each, choice)) for each in source.objects if _spot(each) not in gone),
        choice.added,
        sum(each.labels.get(next(iter(MANAGED_BY))) is None for each in expressed),
        sum(keeping.has_noise(each.value) for each in touched),
        tuple(kept.left_out),
        tuple(found.left),
    )


def _entries(choice: Choice) -> dict[str, Collection[object]]:
    spec = choice.proposal.spec
    tiers = spec.get("topology", {}).get("tiers", ())
    return {"queues": spec.get("queues", {}), "priorities": spec.get("priorities", {}), "tiers": tiers}


def _spot(each: KubeObject) -> Spot:
    assert isinstance(each.written, Document)
    return keeping.spot(each.written)


def _is_rewritten(each: KubeObject, names: set[str]) -> bool:
    """Whether it is an item of a List of which others became documents."""
    file, _, prefix = _spot(each)
    return bool(prefix) and file in names


def _versions(source: Source) -> Versions:
    """What the nodes' kubelets and Volcano's own images or chart tell."""
    found = {match.decode() for file in source.files for match in _KUBELET.findall(bytes(file.data))}
    known = {each for each in map(versions.parse, found) if each in versions.known("kubernetes")}
    volcano = volcano_version.installed(source.objects)
    return Versions(str(min(known)) if known else None, None if volcano is None else str(volcano))


def _reason(each: KubeObject, choice: Choice) -> str:
    if (told := choice.reasons.get(identity(each.ref))) is not None:
        return told
    if choosing.is_expressible(each.ref.group, each.ref.kind):
        return "its document would not make it"
    return f"no document makes this {each.ref.kind}"


def _prove(source: Source, choice: Choice, written: list[Output], kept: keeping.Kept) -> None:
    """Reads what would be written, and compares the objects with those that were read. Raises Lost."""
    new = [SourceFile(Path(each.path), each.path, each.content) for each in written]
    texts = [
        TextDocument(file, index, parsed.value, parsed.ambiguous, parsed.faults)
        for file in (*new, *kept.rewritten)
        for index, parsed in enumerate(file.parse(with_positions=True))
    ]
    gathered = of_documents([document for text in texts for document in expand(text)])
    assert gathered.environment is not None
    copied = [each for each in source.objects if _spot(each)[0] in kept.unchanged]
    raw = [*copied, *(KubeObject(document.value, document) for document in gathered.manifests)]
    derived = deriving.derive(gathered.environment, gathered.declarations, lambda: source.nodes)
    made = [
        *giving_way(derived, gathered.environment, raw),
        *deriving.derive_hyper_nodes(gathered.environment, source.nodes),
        *raw,
    ]
    there: dict[Identity, list[KubeObject]] = {}
    for each in made:
        there.setdefault(identity(each.ref), []).append(each)
    for each in source.objects:
        same = there.get(identity(each.ref), ())
        if not any(not stored_changes(each.value, other.value, each.ref, source.catalog) for other in same):
            raise Lost(f"{each.ref} ({each.position(())}) would not come back as it is")
    extra = len(made) - len(source.objects) - len(choice.added)
    if extra:
        raise Lost(f"{extra} more objects than were read: {Counter(there.keys()).most_common(1)}")
