"""What stays as it is: the files without the documents that became Basalt's, every other byte as it was. Pure."""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from basalt.gathering.documents import Document
from basalt.gathering.expanding import expand
from basalt.loading.limits import Fault
from basalt.loading.sources import SourceFile, TextDocument
from basalt.objects import mapping
from basalt.plan.stored import LAST_APPLIED
from basalt.pointers import Pointer
from basalt.rendering import yaml_writer
from basalt.rendering.layout import Output

FOLDER = "manifests"
# Ends a document wherever it stands, even in a block scalar; directives lead to it.
_BREAK = re.compile(r"^(?:%.*\n(?:[ \t\r]*(?:#.*)?\n)*){0,9}---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_END = re.compile(r"^\.\.\.[ \t\r]*(?:#.*)?\n?\Z", re.MULTILINE)
SERVERS = ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
           "resourceVersion", "selfLink", "uid")  # fmt: skip
Spot = tuple[str, int, Pointer]  # file, document, place of the item in it


class Kept(NamedTuple):
    """Files that are written: unchanged ones with all that they hold, others as the texts of their documents."""

    outputs: list[Output]
    unchanged: frozenset[str]  # names of files that are copied
    rewritten: list[SourceFile]  # the others, as they will be
    left_out: list[str]  # names of files that only tell kustomize about the others


def spot(document: Document) -> Spot:
    return document.file.name, document.index, document.prefix


def kept(
    files: Iterable[SourceFile], texts: Iterable[TextDocument], paths: Mapping[str, str], gone: Collection[Spot]
) -> Kept:
    """The files without what is gone; paths gives each file's own, by its name."""
    of_file: dict[str, list[TextDocument]] = {}
    for text in texts:
        of_file.setdefault(text.file.name, []).append(text)
    touched = {name for name, _, _ in gone}
    found = Kept([], frozenset(file.name for file in files if file.name not in touched), [], [])
    taken = set(paths.values())
    for file in files:
        path = paths[file.name]
        if file.name not in touched:
            if _is_kustomization(of_file.get(file.name, ())):
                found.left_out.append(file.name)
            else:
                found.outputs.append(Output(path, bytes(file.data)))
            continue
        content = _rest(file, of_file[file.name], gone)
        if not content:
            continue
        if file.holds_json:
            path = _free(os.path.splitext(path)[0] + ".yaml", taken)
        taken.add(path)
        found.outputs.append(Output(path, content.encode()))
        found.rewritten.append(SourceFile(Path(path).with_suffix(".yaml"), path, content.encode()))
    return found


def _is_kustomization(texts: Iterable[TextDocument]) -> bool:
    """Whether the file only tells kustomize what to do with files that are elsewhere now."""
    values = [mapping(text.value) for text in texts]
    return bool(values) and all(
        str(value.get("apiVersion")).startswith("kustomize.config.k8s.io/")
        or ("kind" not in value and "apiVersion" not in value and text.file.path.stem == "kustomization")
        for value, text in zip(values, texts, strict=True)
    )


def _free(path: str, taken: Collection[str]) -> str:
    return path if path not in taken else _free(f"{path[:-5]}.json.yaml", taken)


def _rest(file: SourceFile, texts: list[TextDocument], gone: Collection[Spot]) -> str:
    pieces = segments(file, texts)
    found: list[str] = []
    has_content = False
    for piece in pieces:
        if piece.source.startswith("%") and found and not _END.search(found[-1]):
            found.append("...\n")  # before a directive a document has to end
        if piece.text is None:
            found.append(piece.source)
            continue
        items = [each for each in expand(piece.text) if spot(each) not in gone]
        if not items:
            continue
        has_content = True
        is_whole = len(items) == len(list(expand(piece.text))) and piece.source
        found += [piece.source] if is_whole else [f"---\n{yaml_writer.document(cleaned(each.value))}" for each in items]
    text = "".join(each if each.endswith("\n") or not each else f"{each}\n" for each in found)
    return text.removeprefix("---\n") if has_content else ""


class Segment(NamedTuple):
    """A piece of a file: a document with the text that leads to it, or comments alone. Where the text cannot be cut,
    the source is empty."""

    source: str
    text: TextDocument | None


def segments(file: SourceFile, texts: list[TextDocument]) -> list[Segment]:
    """The file cut into its documents."""
    if not file.holds_json:
        starts = [0, *(found.start() for found in _BREAK.finditer(file.text) if found.start())]
        sources = [file.text[start:end] for start, end in zip(starts, [*starts[1:], len(file.text)], strict=True)]
        if (cut := _matched(file, sources, texts)) is not None:
            return cut
    return [Segment("", text) for text in texts]


def _matched(file: SourceFile, sources: list[str], texts: list[TextDocument]) -> list[Segment] | None:
    """The pieces with their documents; None where a piece by itself is not what it is in the whole."""
    waiting = iter(texts)
    found: list[Segment] = []
    for source in sources:
        held = values(file, source)
        text = next(waiting, None) if held else None
        if held is None or len(held) > 1 or (held and (text is None or held[0] != text.value)):
            return None
        found.append(Segment(source, text))
    return found if next(waiting, None) is None else None


def values(file: SourceFile, source: str) -> list[Any] | None:
    """The documents of a piece by itself; None where it is no text by itself."""
    try:
        return [parsed.value for parsed in SourceFile(file.path, file.name, source.encode()).parse()]
    except Fault:
        return None


def has_noise(value: Mapping[str, Any]) -> bool:
    """Whether it holds what only servers and tools write."""
    return cleaned(value) != value


def cleaned(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object without what only servers and tools write; a Node as it is, since its status is what it offers."""
    if value.get("kind") == "Node" or not isinstance(value.get("metadata"), Mapping):
        return value
    found = {key: part for key, part in value.items() if key != "status"}
    metadata = {key: part for key, part in value["metadata"].items() if key not in SERVERS}
    if isinstance(annotations := metadata.get("annotations"), Mapping) and LAST_APPLIED in annotations:
        metadata["annotations"] = {key: text for key, text in annotations.items() if key != LAST_APPLIED}
    return {**found, "metadata": {key: part for key, part in metadata.items() if part != {}}}


def paths(files: Iterable[SourceFile], root: Path) -> dict[str, str]:
    """Where each file goes: node inventories beside the Environment where there is one, the rest as it lay."""
    every = list(files)
    base = root.resolve() if root.is_dir() else root.resolve().parent
    inventories = [file for file in every if file.is_inventory]
    found = {}
    for file in every:
        relative = os.path.relpath(os.path.abspath(file.path), base)
        if relative.startswith(".."):
            relative = file.path.name
        is_only = inventories == [file]
        found[file.name] = f"nodes{file.path.suffix}" if is_only else os.path.join(FOLDER, relative)
    return found
