"""The files under a folder, read and parsed: documents, inventories, and what is wrong with the text itself.

One of the few places that touch the file system.
"""

import codecs
import contextlib
import errno
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from basalt.findings import Source
from basalt.loading import inventories, json_text, memory, nodes, piecewise, yaml_text
from basalt.loading.inventories import Data, Places, nearest
from basalt.loading.limits import INVENTORY_BYTES, YAML_BYTES, Fault
from basalt.loading.marks import Mark
from basalt.loading.memory import Memory
from basalt.loading.yaml_text import Ambiguous, Parsed
from basalt.pointers import Pointer

SUFFIXES = (".yaml", ".yml", ".json")
STAMP = "basalt.json"  # the file by which a folder is known to be the compiler's own output
KNOWN_INVENTORY = "inventory"  # what is remembered of a sound one in which every node has a name of its own
_BUFFER = 1 << 20
_FIRST = 4096  # bytes that tell JSON from YAML
_NOTHING_THERE = (errno.ENOENT, errno.ELOOP, errno.ENXIO)  # a link to nothing or to itself, a socket


class Misuse(Exception):
    """The command cannot begin: one line for stderr, exit code 2."""


class _State(NamedTuple):
    """What tells that a file is still the same."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, handle: BufferedReader) -> "_State":
        status = os.fstat(handle.fileno())
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class _Large(NamedTuple):
    """Of an inventory whose bytes are not kept: the file's state, and a digest, empty where nobody asked for one."""

    state: _State
    content: str


class SourceFile:
    """One input file: its bytes, its parsed documents, and the position of any value in them."""

    def __init__(self, path: Path, name: str, data: Data) -> None:
        self.path = path
        self.name = name
        self._data: Data | None = data
        self._nodes: tuple[nodes.Node, ...] | None = None
        self._large: _Large | None = None
        self._line_start = (1, 0)

    def take(self, data: Data) -> None:
        self._data = data
        self._nodes = inventories.read(data) if self.is_json else None

    def take_large(self, large: _Large, found: tuple[nodes.Node, ...] | None) -> None:
        """An inventory whose bytes are not kept; they are read again where they are needed, as are nodes that were not
        decoded, since an earlier run did."""
        self._data, self._large, self._nodes = None, large, found

    @property
    def data(self) -> Data:
        if self._data is None:
            with self._opened_again() as handle:
                self._data = handle.read()
        return self._data

    @property
    def digest(self) -> str:
        """sha256:<hexadecimal digits> of the bytes."""
        if self._data is not None:
            return "sha256:" + hashlib.sha256(self._data).hexdigest()
        with self._opened_again() as handle:
            return "sha256:" + hashlib.file_digest(handle, "sha256").hexdigest()

    @property
    def size(self) -> int:
        return self._large.state.size if self._large else len(self.data)

    @property
    def is_inventory(self) -> bool:
        return self._nodes is not None or self._large is not None

    @property
    def inventory(self) -> tuple[nodes.Node, ...] | None:
        """The nodes of a JSON inventory; None of anything else."""
        if self._nodes is None and self._large is not None:
            with self._opened_again() as handle:
                digest = memory.new_hash()
                self._nodes = piecewise.decode(_hashing(handle, digest))
            if self._nodes is None or digest.hexdigest() != self._large.content:
                self._raise_changed()
        return self._nodes

    @property
    def content_key(self) -> str:
        """What stands for the bytes of an inventory."""
        if self._large is not None:
            return self._large.content
        digest = memory.new_hash()
        digest.update(self.data)
        return digest.hexdigest()

    @contextlib.contextmanager
    def _opened_again(self) -> Iterator[BufferedReader]:
        """A large inventory, as it was when it was read."""
        try:
            with open(self.path, "rb") as handle:
                yield handle
                state = _State.of(handle)
        except OSError as error:
            raise Misuse(f"cannot read {self.name}: {error.strerror}") from None
        if self._large is None or state != self._large.state:
            self._raise_changed()

    def _raise_changed(self) -> NoReturn:
        raise Misuse(f"{self.name} changed while it was read; run the command again")

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
        if self.is_inventory:
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


def read(path: Path, reading: Reading, known: Memory = memory.NOTHING) -> None:
    """Adds one file to the reading. known are the large inventories that an earlier run found sound."""
    name = os.fsencode(os.path.relpath(path)).decode("utf-8", "replace")  # a name need not be UTF-8; a report must
    file = SourceFile(path, name, b"")
    reading.files.append(file)
    try:
        _load(file, known)
        _parse_file(file, reading)
    except Fault as fault:
        reading.faults.append(TextFault(file, fault))
    except OSError as error:
        raise Misuse(f"cannot read {file.name}: {error.strerror}") from None


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


def _load(file: SourceFile, known: Memory) -> None:
    """Takes the file's bytes, or the nodes of a large inventory. Opened once, so a swap after the check has no effect;
    copied, not mapped, since a mapped file that another process cuts short ends this one (SIGBUS)."""
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
        if file.is_json and status.st_size > inventories.STRICT_BYTES and _load_large(file, handle, known):
            return
        handle.seek(0)
        data = handle.read(limit + 1)
        if len(data) > limit:  # it grew
            raise _too_large(len(data), limit)
        file.take(data)


def _load_large(file: SourceFile, handle: BufferedReader, known: Memory) -> bool:
    """Whether the file is an inventory that can be taken piece by piece, or that an earlier run took."""
    state = _State.of(handle)
    if known.is_on:
        content = _digest(handle)
        if known.recall(KNOWN_INVENTORY, [content]) is not None:
            file.take_large(_Large(state, content), None)
            return True
        handle.seek(0)
    digest = memory.new_hash() if known.is_on else None
    found = piecewise.decode(handle.readinto if digest is None else _hashing(handle, digest))
    if found is not None:
        file.take_large(_Large(state, "" if digest is None else digest.hexdigest()), found)
    return found is not None


def _digest(handle: BufferedReader) -> str:
    digest = memory.new_hash()
    fill = _hashing(handle, digest)
    with memoryview(bytearray(_BUFFER)) as buffer:
        while fill(buffer):
            pass
    return digest.hexdigest()


def _hashing(handle: BufferedReader, digest: memory.Hash) -> Callable[[memoryview], int]:
    """Fills a buffer from the file, and the digest with it."""

    def fill(buffer: memoryview) -> int:
        count = handle.readinto(buffer)
        digest.update(buffer[:count])
        return count

    return fill


_PLAIN_FILE = "put a plain file here, or take this out of the folder"


def _too_large(size: int, limit: int) -> Fault:
    message = f"{size:,} bytes, {limit:,} ({limit // 1024**2:,} MiB) are read"
    return Fault("input-within-limits", Mark(1, 1), message, "split the file; write a large inventory as JSON")


def _parse_file(file: SourceFile, reading: Reading) -> None:
    if file.is_inventory:
        if file.size > inventories.STRICT_BYTES:
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
