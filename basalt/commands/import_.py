"""`basalt import`: plain manifests to a new environment."""

import argparse
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from basalt.commands.printing import print_findings, write
from basalt.commands.reading import compiled_folder
from basalt.compiling import Compilation, compile_gathered
from basalt.findings import Finding, Severity
from basalt.gathering import folders
from basalt.gathering.documents import GROUP
from basalt.gathering.expanding import expand
from basalt.importing.whole import Imported, Source, imported
from basalt.loading import files
from basalt.loading.sources import Misuse
from basalt.rendering import switch
from basalt.reporting import import_text, json_format
from basalt.reporting.text import argument

Options = argparse.Namespace
# What keeps a text from being known as what it says.
_UNREADABLE = {"document-parses", "input-within-limits", "keys-are-unique", "document-kind-is-known"}
_STDIN = "-"
_NO_NAME = re.compile(r"[^a-z0-9]+")


def import_(options: Options) -> int:
    root = Path(options.folder)
    output = _output(options, root)
    _refuse_taken(output)
    compilation, shown = _read(root, options)
    if unreadable := _unreadable(compilation):
        print_findings(replace(compilation, findings=unreadable, skipped=()), options)
        return 1
    source = _source(compilation, compilation.files[0].path if options.folder == _STDIN else root, shown)
    _refuse_documents(source)
    found = imported(source, _NO_NAME.sub("-", output.resolve().name.lower()).strip("-") or "imported")
    _refuse_taken(output)
    switch.replace(output, found.outputs)
    _print(found, source.shown, output, options)
    return 0


def _read(root: Path, options: Options) -> tuple[Compilation, str]:
    """What there is to import, and what it is called."""
    if options.folder != _STDIN:
        return _compiled(root, options), _shown(root)
    file = files.argument(_STDIN)
    return compile_gathered(folders.of_files([file]), Path(file.name)), file.name


def _output(options: Options, root: Path) -> Path:
    if options.output is not None:
        output = Path(options.output)
    elif options.folder == _STDIN:
        raise Misuse("from stdin there is no name for the environment; give -o")
    else:
        resolved = root.resolve()
        output = Path("stacks", resolved.stem if root.is_file() else resolved.name)
    if options.folder != _STDIN and root.is_dir():
        inner, outer = os.path.realpath(output), os.path.realpath(root)
        if inner == outer or inner.startswith(f"{outer}{os.sep}"):
            raise Misuse(f"{output} lies in {root}, which would then hold its own copy; choose another -o")
    return output


def _refuse_taken(output: Path) -> None:
    try:
        if os.path.lexists(output) and (not output.is_dir() or any(os.scandir(output))):
            what = "holds something already" if output.is_dir() else "is there already"
            raise Misuse(f"{output} {what}; move it away or choose another -o")
    except (OSError, ValueError) as error:
        raise Misuse(f"cannot write {output}: {getattr(error, 'strerror', None) or error}") from None


def _compiled(root: Path, options: Options) -> Compilation:
    try:
        is_there = root.exists()
    except (OSError, ValueError) as error:
        raise Misuse(f"cannot read {root}: {getattr(error, 'strerror', None) or error}") from None
    if not is_there:
        raise Misuse(f"no folder and no file {root}")
    options.modules = False  # what is imported has no Environment that could ask for one
    return compiled_folder(root, options, needs_environment=False)


def _unreadable(compilation: Compilation) -> tuple[Finding, ...]:
    return tuple(each for each in compilation.findings if each.rule in _UNREADABLE and each.severity is Severity.ERROR)


def _source(compilation: Compilation, root: Path, shown: str) -> Source:
    index = compilation.index
    return Source(root, shown, index.objects, index.nodes, compilation.files, index.texts, index.catalog)


def _shown(path: Path | str) -> str:
    """The path as it may stand in a line of text."""
    return "".join(each if each.isprintable() else "?" for each in str(path))


def _refuse_documents(source: Source) -> None:
    own = (each for text in source.texts for each in expand(text) if each.ref is not None and each.ref.group == GROUP)
    for document in own:
        if document.ref is not None and document.ref.kind != "Guardrail":
            raise Misuse(f"{document.position(())} is a document of Basalt already; import takes plain manifests")
    if not source.objects and not source.nodes:
        raise Misuse(f"{source.shown} holds no Kubernetes object")


def _print(found: Imported, shown: str, output: Path, options: Options) -> None:
    following = _next(found, shown, output)
    if options.format == "json":
        write(json_format.text(_as_json(found, output, following)))
    else:
        write(import_text.report(found, shown, _shown(output), following, quiet=options.quiet))


def _next(found: Imported, shown: str, output: Path) -> list[str]:
    new = argument(_shown(output))
    plan = [] if shown == "stdin" else [f"basalt plan {argument(shown)} {new}"]
    return [f"basalt check {new}", *plan, *_proposing(found, output)]


def _proposing(found: Imported, output: Path) -> list[str]:
    """Where there is nothing but nodes: what makes more of them."""
    if found.expressed or found.left or found.nodes == 0:
        return []
    file = next((each.path for each in found.outputs if each.path != "environment.yaml"), "")
    proposed, nodes = (argument(_shown(path)) for path in (f"{output}-proposed", output / file))
    return [f"basalt init {proposed} --nodes {nodes}"]


def _as_json(found: Imported, output: Path, following: Iterable[str]) -> dict[str, Any]:
    return {
        "output": _shown(output),
        "documents": dict(found.documents),
        "entries": dict(found.entries),
        "expressed": found.expressed,
        "nodes": found.nodes,
        "kept": [
            {
                "object": json_format.ref(each.object.ref),
                "reason": each.reason,
                "source": each.object.position(())._asdict(),
            }
            for each in found.left
        ],
        "added": [json_format.ref(each.ref) for each in found.added],
        "labelled": found.labelled,
        "cleaned": found.cleaned,
        "leftOut": list(found.left_out),
        "comments": list(found.comments),
        "files": [_shown(each.path) for each in found.outputs],
        "next": list(following),
    }
