"""The files under a folder, read and parsed: documents, inventories, and what is wrong with the text itself.

One of the few places that touch the file system.
"""

import codecs
import contextlib
import json
import mmap
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from basalt.findings import Ref, Source
from basalt.loading import json_text, nodes, yaml_text
from basalt.loading.limits import INVENTORY_BYTES, YAML_BYTES, Fault
from basalt.loading.yaml_text import Ambiguous, Mark, Parsed
from basalt.pointers import Pointer

SUFFIXES = (".yaml", ".yml", ".json")
STAMP = "basalt.json"  # the file by which a folder is known to be the compiler's own output
_STRICT_JSON_BYTES = 16 * 1024**2  # above this an inventory's keys are not checked for repetition
_MAPPED_BYTES = 1024**2
_CHUNK = 1 << 24


class Misuse(Exception):
    """The command cannot begin: one line for stderr, exit code 2."""


class SourceFile:
    """One input file: its bytes, its parsed documents, and the position of any value in them."""

    def __init__(self, path: Path, name: str, data: "bytes | mmap.mmap") -> None:
        self.path = path
        self.name = name
        self.data = data
        self.inventory: tuple[nodes.Node, ...] | None = None

    @property
    def ref(self) -> Ref | None:
        return None

    @property
    def waiver(self) -> str | None:
        return None

    @property
    def is_json(self) -> bool:
        return self.path.suffix == ".json"

    @cached_property
    def text(self) -> str:
        return bytes(self.data).decode("utf-8-sig")

    def parse(self, *, with_positions: bool = False) -> Iterator[Parsed]:
        if self.is_json:
            return iter((json_text.document(self.text, with_positions=with_positions),))
        return yaml_text.documents(self.text, with_positions=with_positions)

    @cached_property
    def _positions(self) -> list[dict[Pointer, Mark]]:
        found: list[dict[Pointer, Mark]] = []
        with contextlib.suppress(Fault):  # the text breaks off there; what stands before it has positions
            found.extend(parsed.positions or {} for parsed in self.parse(with_positions=True))
        return found

    def position(self, index: int, pointer: Pointer) -> Source:
        """Where the value at the pointer of the index-th document stands, else the nearest value around it."""
        if self.inventory is not None:
            return self._inventory_position(pointer)
        marks = self._positions[index] if index < len(self._positions) else {}
        return self.source(_nearest(marks, pointer))

    def source(self, mark: Mark) -> Source:
        return Source(self.name, mark.line, mark.column)

    def line(self, number: int) -> str:
        """The number-th line (from 1), without its end; empty where there is none."""
        start = 0
        for _ in range(number - 1):
            start = self.data.find(b"\n", start) + 1
            if start == 0:
                return ""
        end = self.data.find(b"\n", start)
        raw = self.data[start : end if end >= 0 else len(self.data)]
        return raw[:2000].decode("utf-8", errors="replace").rstrip("\r")

    @cached_property
    def _item_offsets(self) -> list[int]:
        """Where each item of a JSON inventory begins: items follow one another, so each is found at once."""
        offsets, offset = [], 0
        for item in nodes.raw_items(memoryview(self.data)):
            offset = self.data.find(bytes(item), offset)
            offsets.append(offset)
            offset += len(bytes(item))
        return offsets

    def _inventory_position(self, pointer: Pointer) -> Source:
        if len(pointer) < 2 or not isinstance(pointer[1], int):
            return self.source(Mark(1, 1))
        start = self._item_offsets[pointer[1]]
        item = nodes.raw_items(memoryview(self.data))[pointer[1]]
        marks = json_text.document(bytes(item).decode(), with_positions=True).positions or {}
        mark = _nearest(marks, pointer[2:])
        line_start = self.data.rfind(b"\n", 0, start)
        lines_before = _count_lines(self.data, start)
        column = mark.column + (start - line_start - 1 if mark.line == 1 else 0)
        return self.source(Mark(lines_before + mark.line, column))


def _count_lines(data: "bytes | mmap.mmap", end: int) -> int:
    return sum(data[at : min(at + _CHUNK, end)].count(b"\n") for at in range(0, end, _CHUNK))


def _nearest(marks: dict[Pointer, Mark], pointer: Pointer) -> Mark:
    for length in range(len(pointer), -1, -1):
        if pointer[:length] in marks:
            return marks[pointer[:length]]
    return Mark(1, 1)


@dataclass(frozen=True, slots=True)
class TextFault:
    """A Fault with its file."""

    file: SourceFile
    fault: Fault


@dataclass(frozen=True, slots=True)
class TextDocument:
    """One document of a file, as parsed."""

    file: SourceFile
    index: int
    value: Any
    ambiguous: tuple[Ambiguous, ...] = ()


@dataclass(slots=True)
class Reading:
    """What the files of one or more folders hold."""

    files: list[SourceFile] = field(default_factory=list)
    documents: list[TextDocument] = field(default_factory=list)
    faults: list[TextFault] = field(default_factory=list)
    unchecked: list[SourceFile] = field(default_factory=list)  # inventories too large to look for repeated keys


def read(root: Path, reading: Reading) -> None:
    """Adds everything under the folder (or the one file) to the reading, in the order of the paths."""
    for path in discover(root):
        _read_file(path, reading)


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


def _read_file(path: Path, reading: Reading) -> None:
    file = SourceFile(path, os.path.relpath(path), b"")
    try:
        file.data = _load(file)
        reading.files.append(file)
        _parse_file(file, reading)
    except Fault as fault:
        if file not in reading.files:
            reading.files.append(file)
        reading.faults.append(TextFault(file, fault))
    except OSError as error:
        raise Misuse(f"cannot read {file.name}: {error.strerror}") from None


def _load(file: SourceFile) -> "bytes | mmap.mmap":
    """The file's bytes; large ones are mapped, not copied. Opened once, so a swap after the check has no effect."""
    descriptor = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK)  # a FIFO must not block
    with os.fdopen(descriptor, "rb") as handle:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Fault("document-parses", Mark(1, 1), "not a regular file", "put a plain file here")
        limit = INVENTORY_BYTES if file.is_json else YAML_BYTES
        if status.st_size > limit:
            message = f"{status.st_size / 1024**2:,.0f} MiB, {limit // 1024**2:,} MiB are read"
            raise Fault("input-within-limits", Mark(1, 1), message, "split the file; write a large inventory as JSON")
        if status.st_size >= _MAPPED_BYTES and file.is_json:
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        return handle.read(limit)


def _parse_file(file: SourceFile, reading: Reading) -> None:
    file.inventory = _inventory(file, reading)
    if file.inventory is not None:
        return
    _check_encoding(file)
    if file.is_json and len(file.data) > YAML_BYTES:
        message = f"{len(file.data) / 1024**2:,.0f} MiB of JSON that is not a node inventory"
        raise Fault("input-within-limits", Mark(1, 1), message, "split the file")
    ambiguous_at: list[int] = []
    for index, parsed in enumerate(file.parse()):
        reading.documents.append(TextDocument(file, index, parsed.value))
        if parsed.faults or parsed.ambiguous:
            ambiguous_at.append(len(reading.documents) - 1)
    if ambiguous_at:
        _add_notes(file, reading, ambiguous_at)


def _add_notes(file: SourceFile, reading: Reading, places: list[int]) -> None:
    """Reads the file again with positions, for the faults and ambiguous scalars that the first pass saw."""
    again = list(file.parse(with_positions=True))
    for place in places:
        document = reading.documents[place]
        parsed = again[document.index]
        reading.documents[place] = TextDocument(file, document.index, document.value, parsed.ambiguous)
        reading.faults.extend(TextFault(file, fault) for fault in parsed.faults)


def _check_encoding(file: SourceFile) -> None:
    try:
        _ = file.text
    except UnicodeDecodeError as error:
        before = bytes(file.data[: error.start])
        line_start = before.rfind(b"\n") + 1
        mark = Mark(before.count(b"\n") + 1, len(before[line_start:].decode("utf-8", "replace")) + 1)
        message = f"not UTF-8: byte 0x{file.data[error.start]:02x} ({error.reason})"
        raise Fault("document-parses", mark, message, "save the file as UTF-8") from None


def _is_utf8(data: "bytes | mmap.mmap") -> bool:
    """Whether the bytes are UTF-8; decoding field by field does not look at the fields it skips."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(data), _CHUNK):
            chunk = data[at : at + _CHUNK]
            if not chunk.isascii() or decoder.getstate() != (b"", 0):
                decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _inventory(file: SourceFile, reading: Reading) -> "tuple[nodes.Node, ...] | None":
    """The nodes of a sound JSON inventory; None sends the file to the careful reader."""
    inventory = nodes.decode(memoryview(file.data)) if file.is_json else None
    return inventory if inventory is not None and _is_utf8(file.data) and _keys_unique(file, reading) else None


def _keys_unique(file: SourceFile, reading: Reading) -> bool:
    """Whether a JSON inventory repeats no key; one too large to look at is noted, and taken."""
    if len(file.data) > _STRICT_JSON_BYTES:
        reading.unchecked.append(file)
        return True
    repeated = False

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) != len(pairs)
        return found

    try:
        json.loads(bytes(file.data), object_pairs_hook=note)
    except (ValueError, RecursionError):
        return False
    return not repeated
