"""`basalt schema`: the JSON Schema of a document, or of all of them."""

import argparse
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
        for name, schema_text in files.items():
            (folder / name).write_text(schema_text, encoding="utf-8")
    except OSError as error:
        raise Misuse(f"cannot write {error.filename or folder}: {error.strerror}") from None
    if options.format == "json":
        write(json_format.text({"output": str(folder), "files": [*files]}))
    elif not options.quiet:
        write(f"written: {folder}: {', '.join(files)}\n")
    return 0
