"""`basalt schema`: the JSON Schema of a document, or of all of them."""

import argparse
import contextlib
from collections.abc import Mapping
from pathlib import Path

from basalt import names
from basalt.commands.printing import write
from basalt.gathering.documents import KINDS
from basalt.loading.replacing import replaced
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
    """Writes all files before any takes its place: a link is replaced, and on a full disk what was there stays."""
    with contextlib.ExitStack() as all_of_them:
        for name, text in texts.items():
            stream = all_of_them.enter_context(replaced(folder / name, mode=0o666))
            stream.write(text.encode("utf-8"))
            stream.flush()
