"""One input file: its bytes, its parsed documents or nodes, and the position of any value in them.

One of the few places that touch the file system: the bytes of a large inventory are read again where they are needed.
"""

import codecs
import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from basalt.findings import Source
from basalt.loading import inventories, json_text, memory, nodes, piecewise, yaml_text
from basalt.loading.inventories import Data, Places, nearest
from basalt.loading.limits import Fault
from basalt.loading.marks import Mark
from basalt.loading.yaml_text import Ambiguous, Parsed
from basalt.pointers import Pointer


class Misuse(Exception):
    """The command cannot begin: one line for stderr, exit code 2."""


class State(NamedTuple):
    """What tells that a file is still the same."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, handle: BufferedReader) -> "State":
        status = os.fstat(handle.fileno())
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class Large(NamedTuple):
    """Of an inventory whose bytes are not kept: the file's state, and a digest, empty where nobody asked for one."""

    state: State
    content: str


class SourceFile:
    """One input file: its bytes, its parsed documents, and the position of any value in them."""

    def __init__(self, path: Path, name: str, data: Data) -> None:
        self.path = path
        self.name = name
        self._data: Data | None = data
        self._nodes: tuple[nodes.Node, ...] | None = None
        self._large: Large | None = None
        self._line_start = (1, 0)

    def take(self, data: Data) -> None:
        self._data = data

    def look_for_nodes(self) -> None:
        """Finds out whether the bytes are a JSON inventory."""
        if self.is_json and self._large is None:
            self._nodes = inventories.read(self.data)

    def take_large(self, large: Large, found: tuple[nodes.Node, ...] | None) -> None:
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
                self._nodes = piecewise.decode(hashing(handle, digest))
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
                state = State.of(handle)
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


def hashing(handle: BufferedReader, digest: memory.Hash) -> Callable[[memoryview], int]:
    """Fills a buffer from the file, and the digest with it."""

    def fill(buffer: memoryview) -> int:
        count = handle.readinto(buffer)
        digest.update(buffer[:count])
        return count

    return fill
