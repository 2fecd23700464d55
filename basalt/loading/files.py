"""The files under a folder, read and parsed: documents, inventories, and what is wrong with the text itself.

One of the few places that touch the file system.
"""

import codecs
import contextlib
import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from basalt.findings import Source
from basalt.loading import inventories, json_text, nodes, yaml_text
from basalt.loading.inventories import Data, Places, nearest
from basalt.loading.limits import INVENTORY_BYTES, YAML_BYTES, Fault
from basalt.loading.marks import Mark
from basalt.loading.yaml_text import Ambiguous, Parsed
from basalt.pointers import Pointer

SUFFIXES = (".yaml", ".yml", ".json")
STAMP = "basalt.json"  # the file by which a folder is known to be the compiler's own output
_FIRST = 4096  # bytes that tell JSON from YAML
_NOTHING_THERE = (errno.ENOENT, errno.ELOOP, errno.ENXIO)  # a link to nothing or to itself, a socket


class Misuse(Exception):
    """The command cannot begin: one line for stderr, exit code 2."""


class SourceFile:
    """One input file: its bytes, its parsed documents, and the position of any value in them."""

    def __init__(self, path: Path, name: str, data: Data) -> None:
        self.path = path
        self.name = name
        self.data = data
        self.inventory: tuple[nodes.Node, ...] | None = None
        self._line_start = (1, 0)

    @property
    def is_json(self) -> bool:
        return self.path.suffix == ".json"

    @cached_property
    def holds_json(self) -> bool:
        """Whether the text is JSON, whatever the file is called: kubectl, too, tries that first."""
        if self.is_json or not self.text.lstrip().startswith("{"):
            return self.is_json
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(self.text) is not None
        return False

    @cached_property
    def text(self) -> str:
        return bytes(self.data).decode("utf-8-sig")

    def parse(self, *, with_positions: bool = False) -> Iterator[Parsed]:
        documents = json_text.documents if self.holds_json else yaml_text.documents
        return documents(self.text, with_positions=with_positions)

    @cached_property
    def _positions(self) -> list[dict[Pointer, Mark]]:
        found: list[dict[Pointer, Mark]] = []
        with contextlib.suppress(Fault):  # the text breaks off there; what stands before it has positions
            found.extend(parsed.positions or {} for parsed in self.parse(with_positions=True))
        return found

    def position(self, index: int, pointer: Pointer) -> Source:
        """Where the value at the pointer of the index-th document stands, else the nearest value around it."""
        if self.inventory is not None:
            return self.source(self._places.mark(pointer))
        marks = self._positions[index] if index < len(self._positions) else {}
        return self.source(nearest(marks, pointer))

    @cached_property
    def _places(self) -> Places:
        return Places(self.data)

    def source(self, mark: Mark) -> Source:
        return Source(self.name, mark.line, mark.column)

    def line(self, number: int) -> str:
        """The number-th line (from 1), without its end; empty where there is none."""
        at, start = self._line_start if self._line_start[0] <= number else (1, 0)
        for _ in range(number - at):
            start = self.data.find(b"\n", start) + 1
            if start == 0:
                return ""
        self._line_start = (number, start)  # findings come in file order: the next line is looked for from here
        limit = min(start + 2000, len(self.data))  # what follows is never looked at: a line may be the whole file
        end = self.data.find(b"\n", start, limit)
        raw = self.data[start : end if end >= 0 else limit]
        return raw.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode("utf-8", errors="replace").rstrip("\r")


@dataclass(frozen=True, slots=True)
class TextFault:
    """A Fault with its file."""

    file: SourceFile
    fault: Fault


@dataclass(frozen=True, slots=True)
class TextDocument:
    """One document of a file, as parsed. faults are those that it can be read in spite of."""

    file: SourceFile
    index: int
    value: Any
    ambiguous: tuple[Ambiguous, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(slots=True)
class Reading:
    """What the files of one or more folders hold."""

    files: list[SourceFile] = field(default_factory=list)
    documents: list[TextDocument] = field(default_factory=list)
    faults: list[TextFault] = field(default_factory=list)
    unchecked: list[SourceFile] = field(default_factory=list)  # inventories too large to look for repeated keys


def discover(root: Path) -> list[Path]:
    """The input files under a folder, sorted; hidden folders and the compiler's own output are left out."""
    if root.is_file():
        return [root]
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        raise Misuse(f"cannot read {error.filename}: {error.strerror}")

    for folder, subfolders, files in os.walk(root, onerror=refuse):
        if STAMP in files and Path(folder) != root:
            subfolders.clear()
            continue
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        names = (name for name in files if name.endswith(SUFFIXES) and not name.startswith(".") and name != STAMP)
        found.extend(Path(folder, name) for name in names)
    return sorted(found, key=lambda path: path.relative_to(root).parts)


def read(path: Path, reading: Reading) -> None:
    """Adds one file to the reading."""
    name = os.fsencode(os.path.relpath(path)).decode("utf-8", "replace")  # a name need not be UTF-8; a report must
    file = SourceFile(path, name, b"")
    try:
        file.data = _load(file)
    except Fault as fault:
        reading.files.append(file)
        reading.faults.append(TextFault(file, fault))
    except OSError as error:
        raise Misuse(f"cannot read {file.name}: {error.strerror}") from None
    else:
        take(file, reading)


def take(file: SourceFile, reading: Reading) -> None:
    """Adds a file whose bytes are there."""
    reading.files.append(file)
    try:
        if not file.is_json and len(file.data) > YAML_BYTES:
            raise _too_large(len(file.data), YAML_BYTES)
        _parse_file(file, reading)
    except Fault as fault:
        reading.faults.append(TextFault(file, fault))


def argument(path: str) -> SourceFile:
    """The file that a command line names, be it a pipe; - is stdin. Raises Misuse where it cannot be read."""
    name = "stdin" if path == "-" else os.fsencode(path).decode("utf-8", "replace")
    try:
        if path == "-":
            data = sys.stdin.buffer.read(INVENTORY_BYTES + 1)
        else:
            with open(path, "rb") as handle:
                data = handle.read(INVENTORY_BYTES + 1)
    except OSError as error:
        raise Misuse(f"cannot read {name}: {error.strerror}") from None
    if len(data) > INVENTORY_BYTES:
        raise Misuse(f"cannot read {name}: {_too_large(len(data), INVENTORY_BYTES).message}")
    data = data.removeprefix(codecs.BOM_UTF8)
    is_json = data[:_FIRST].lstrip().startswith(b"{")
    return SourceFile(Path(name).with_suffix(".json" if is_json else ".yaml"), name, data)


def _load(file: SourceFile) -> Data:
    """The file's bytes. Opened once, so a swap after the check has no effect; copied, not mapped, since a mapped file
    that another process cuts short ends this one (SIGBUS)."""
    try:
        descriptor = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK)  # a FIFO must not block
    except OSError as error:
        if error.errno not in _NOTHING_THERE:
            raise
        raise Fault("document-parses", Mark(1, 1), f"no file: {(error.strerror or '').lower()}", _PLAIN_FILE) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Fault("document-parses", Mark(1, 1), "not a regular file", _PLAIN_FILE)
    with os.fdopen(descriptor, "rb") as handle:
        limit = INVENTORY_BYTES if file.is_json else YAML_BYTES
        if status.st_size > limit:
            raise _too_large(status.st_size, limit)
        data = handle.read(limit + 1)
        if len(data) > limit:  # it grew
            raise _too_large(len(data), limit)
        return data


_PLAIN_FILE = "put a plain file here, or take this out of the folder"


def _too_large(size: int, limit: int) -> Fault:
    message = f"{size:,} bytes, {limit:,} ({limit // 1024**2:,} MiB) are read"
    return Fault("input-within-limits", Mark(1, 1), message, "split the file; write a large inventory as JSON")


def _parse_file(file: SourceFile, reading: Reading) -> None:
    file.inventory = inventories.read(file.data) if file.is_json else None
    if file.inventory is not None:
        if len(file.data) > inventories.STRICT_BYTES:
            reading.unchecked.append(file)
        return
    _check_encoding(file)
    if file.is_json and len(file.data) > YAML_BYTES:
        message = f"{len(file.data):,} bytes of JSON that is no node inventory, {YAML_BYTES:,} are read"
        raise Fault("input-within-limits", Mark(1, 1), message, "split the file")
    noted: list[int] = []
    try:
        for index, parsed in enumerate(file.parse()):
            reading.documents.append(TextDocument(file, index, parsed.value))
            if parsed.faults or parsed.ambiguous:
                noted.append(len(reading.documents) - 1)
    finally:  # what stands before a fault is told, too
        if noted:
            _add_notes(file, reading, noted)


def _add_notes(file: SourceFile, reading: Reading, places: list[int]) -> None:
    """Reads the file again with positions, for the faults and ambiguous scalars that the first pass saw."""
    again: list[Parsed] = []
    with contextlib.suppress(Fault):  # the first pass has it
        again.extend(file.parse(with_positions=True))
    for place in places:
        document = reading.documents[place]
        parsed = again[document.index]
        noted = TextDocument(file, document.index, document.value, parsed.ambiguous, parsed.faults)
        reading.documents[place] = noted


def _check_encoding(file: SourceFile) -> None:
    try:
        _ = file.text
    except UnicodeDecodeError as error:
        before = bytes(file.data[: error.start])
        line_start = before.rfind(b"\n") + 1
        mark = Mark(before.count(b"\n") + 1, len(before[line_start:].decode("utf-8", "replace")) + 1)
        is_utf16 = bytes(file.data[:2]) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        message = "UTF-16, not UTF-8" if is_utf16 else f"not UTF-8: byte 0x{file.data[error.start]:02x}"
        raise Fault("document-parses", mark, message, "save the file as UTF-8") from None
