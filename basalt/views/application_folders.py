"""The folders that Applications of Argo CD read, as far as their files were read here."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from basalt.loading.files import SourceFile
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, get

_READ = (".yaml", ".yml", ".json")
# With one of these Argo CD runs a tool on the folder, and does not count its files.
_OF_TOOLS = ("kustomization.yaml", "kustomization.yml", "Kustomization", "Chart.yaml")
_TOOLS = ("chart", "helm", "kustomize", "plugin")
_BRACES = re.compile(r"\{([^{}]*)\}")
Parts = tuple[str, ...]


class Folder(NamedTuple):
    """The folder of one source of an Application. files are those that Argo CD reads there; None where the folder is
    not among what was read, or could be one of several."""

    application: KubeObject
    pointer: Pointer  # to the path
    path: str
    files: tuple[SourceFile, ...] | None

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files or ())


def folders(objects: Iterable[KubeObject], files: Sequence[SourceFile]) -> Iterator[Folder]:
    """The folders that Applications read as they are, without Helm, kustomize or a plugin."""
    found = [each for each in objects if (each.ref.group, each.ref.kind) == ("argoproj.io", "Application")]
    beside = _by_folder(files) if found else {}
    for application in found:
        for pointer in _sources(application):
            source = mapping(get(application.value, pointer))
            path = source.get("path")
            if not isinstance(path, str) or any(source.get(tool) for tool in _TOOLS):
                continue
            folder = _folder(tuple(part for part in path.split("/") if part not in ("", ".")), beside)
            if folder is None:
                yield Folder(application, (*pointer, "path"), path, None)
            elif not any(file.path.name in _OF_TOOLS for file in beside.get(folder, ())):
                read = tuple(_read(folder, beside, mapping(source.get("directory"))))
                yield Folder(application, (*pointer, "path"), path, read)


def _sources(application: KubeObject) -> list[Pointer]:
    several = range(len(sequence(application.spec.get("sources"))))
    return [("spec", "source"), *(("spec", "sources", number) for number in several)]


def _by_folder(files: Iterable[SourceFile]) -> Mapping[Parts, list[SourceFile]]:
    """The files by their folder, and the folders above these."""
    found: dict[Parts, list[SourceFile]] = {}
    for file in files:
        parts = PurePath(file.path).parent.parts
        found.setdefault(parts, []).append(file)
        for length in range(1, len(parts)):
            found.setdefault(parts[:length], [])
    return found


def _folder(path: Parts, beside: Mapping[Parts, Any]) -> Parts | None:
    """The one folder that the path, which counts from a repository's root, leads to."""
    if not path:
        return None
    if path in beside:
        return path
    ends = [parts for parts in beside if parts[-len(path) :] == path]
    ends = ends or [parts for parts in beside if parts and parts == path[-len(parts) :]]
    return ends[0] if len(ends) == 1 else None


def _read(
    folder: Parts, beside: Mapping[Parts, list[SourceFile]], directory: Mapping[str, Any]
) -> Iterator[SourceFile]:
    include, exclude = directory.get("include"), directory.get("exclude")
    for parts, files in beside.items():
        is_inside = parts == folder or (directory.get("recurse") is True and parts[: len(folder)] == folder)
        for file in files if is_inside else ():
            relative = "/".join((*parts[len(folder) :], file.path.name))
            if file.path.suffix in _READ and _takes(include, relative) and not _matches(exclude, relative):
                yield file


def _takes(include: Any, name: str) -> bool:
    return not isinstance(include, str) or not include or _matches(include, name)


def _matches(pattern: Any, name: str) -> bool:
    """Whether the name matches a glob, which may list alternatives: {a.yaml,b/*}."""
    if not isinstance(pattern, str) or not pattern:
        return False
    found = _BRACES.search(pattern)
    if found is None:
        return fnmatch.fnmatchcase(name, pattern)
    ways = found[1].split(",")
    return any(_matches(pattern[: found.start()] + way + pattern[found.end() :], name) for way in ways)
