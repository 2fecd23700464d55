"""`basalt schema`: the JSON Schema of a document, or of all of them."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from basalt import names
from basalt.commands.printing import write
from basalt.gathering.documents import KINDS
from basalt.loading.sources import Misuse
from basalt.reporting import json_format, schema_files

Options = argparse.Namespace


def schema(options: Options) -> int:
    if options.all == (options.kind is not None):
        raise Misuse(f"name a kind ({', '.join(KINDS)}), or give --all")
    if options.output == "":
        raise Misuse("-o is empty; name a folder")
    if options.all:
        return _write_schemas(Path(options.output or schema_files.FOLDER), options)
    if options.output is not None:
        raise Misuse("-o is where --all writes; the schema of one kind goes to stdout")
    kinds = {kind.casefold(): kind for kind in KINDS}
    kind = kinds.get(options.kind.casefold())
    if kind is None:
        raise Misuse(f"no document kind {options.kind}; {names.did_you_mean(options.kind, KINDS)}")
    write(schema_files.text(kind))
    return 0


def _write_schemas(folder: Path, options: Options) -> int:
    files = schema_files.files()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(folder, files)
    except OSError as error:
        raise Misuse(f"cannot write {error.filename2 or folder}: {error.strerror}") from None
    if options.format == "json":
        write(json_format.text({"output": str(folder), "files": [*files]}))
    elif not options.quiet:
        write(f"written: {folder}: {', '.join(files)}\n")
    return 0


def _write_whole(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes the files beside their places, and moves them there when all are complete: a link is replaced, and where
    the disk is full what was there stays."""
    partial = {name: folder / f".basalt-schema-{os.getpid()}-{name}" for name in texts}
    begun: list[Path] = []
    try:
        for name, path in partial.items():
            with open(path, "x", encoding="utf-8") as stream:
                begun.append(path)
                stream.write(texts[name])
        for name, path in partial.items():
            os.replace(path, folder / name)
    finally:
        for path in begun:
            path.unlink(missing_ok=True)
