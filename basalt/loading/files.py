"""The files under a folder, read and parsed: documents, inventories, and what is wrong with the text itself.

One of the few places that touch the file system.
"""

import codecs
import contextlib
import errno
import os
import stat
import sys
from io import BufferedReader
from pathlib import Path

from basalt.loading import inventories, memory, piecewise
from basalt.loading.limits import INVENTORY_BYTES, YAML_BYTES, Fault
from basalt.loading.marks import Mark
from basalt.loading.memory import Memory
from basalt.loading.sources import Large, Misuse, Reading, SourceFile, State, TextDocument, TextFault, hashing
from basalt.loading.yaml_text import Parsed

SUFFIXES = (".yaml", ".yml", ".json")
STAMP = "basalt.json"  # the file by which a folder is known to be the compiler's own output
KNOWN_INVENTORY = "inventory"  # what is remembered of a sound one in which every node has a name of its own
_BUFFER = 1 << 20
_FIRST = 4096  # bytes that tell JSON from YAML
_NOTHING_THERE = (errno.ENOENT, errno.ELOOP, errno.ENXIO)  # a link to nothing or to itself, a socket


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
    file = source(path)
    try:
        load(file, known)
    except Fault as fault:
        reading.files.append(file)
        reading.faults.append(TextFault(file, fault))
    else:
        take(file, reading)


def source(path: Path) -> SourceFile:
    """The file, which nothing has been read of."""
    name = os.fsencode(os.path.relpath(path)).decode("utf-8", "replace")  # a name need not be UTF-8; a report must
    return SourceFile(path, name, b"")


def load(file: SourceFile, known: Memory = memory.NOTHING) -> None:
    """Reads the file's bytes. Raises Fault where there is nothing to read, Misuse where that is not allowed."""
    try:
        _load(file, known)
    except OSError as error:
        raise Misuse(f"cannot read {file.name}: {error.strerror}") from None


def take(file: SourceFile, reading: Reading) -> None:
    """Adds a file whose bytes are there."""
    reading.files.append(file)
    try:
        if not file.is_json and file.size > YAML_BYTES:
            raise _too_large(file.size, YAML_BYTES)
        _parse_file(file, reading)
    except Fault as fault:
        reading.faults.append(TextFault(file, fault))


def decoded(file: SourceFile) -> str:
    """The file's text, its byte order mark included; raises Fault where it is not UTF-8."""
    _check_encoding(file)
    return bytes(file.data).decode("utf-8")


def argument(path: str) -> SourceFile:
    """The file that a command line names, be it a pipe; - is stdin. Raises Misuse where it cannot be read."""
    name = "stdin" if path == "-" else os.fsencode(path).decode("utf-8", "replace")
    try:
        if path == "-":
            data = stdin(INVENTORY_BYTES + 1)
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


def stdin(limit: int = -1) -> bytes:
    """What comes in on stdin; raises Misuse where that is closed or cannot be read."""
    if sys.stdin is None:  # as Python leaves it where the shell closed it
        raise Misuse("cannot read stdin: it is closed")
    try:
        return sys.stdin.buffer.read(limit)
    except OSError as error:
        raise Misuse(f"cannot read stdin: {error.strerror}") from None


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
    state = State.of(handle)
    if known.is_on:
        content = _digest(handle)
        if known.recall(KNOWN_INVENTORY, [content]) is not None:
            file.take_large(Large(state, content), None)
            return True
        handle.seek(0)
    digest = memory.new_hash() if known.is_on else None
    found = piecewise.decode(handle.readinto if digest is None else hashing(handle, digest))
    if found is not None:
        file.take_large(Large(state, "" if digest is None else digest.hexdigest()), found)
    return found is not None


def _digest(handle: BufferedReader) -> str:
    digest = memory.new_hash()
    fill = hashing(handle, digest)
    with memoryview(bytearray(_BUFFER)) as buffer:
        while fill(buffer):
            pass
    return digest.hexdigest()


_PLAIN_FILE = "put a plain file here, or take this out of the folder"


def _too_large(size: int, limit: int) -> Fault:
    message = f"{size:,} bytes, {limit:,} ({limit // 1024**2:,} MiB) are read"
    return Fault("input-within-limits", Mark(1, 1), message, "split the file; write a large inventory as JSON")


def _parse_file(file: SourceFile, reading: Reading) -> None:
    file.look_for_nodes()
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
