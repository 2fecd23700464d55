"""JSON node inventories, read fast: whether a text is one that can be taken as it is, and where its nodes stand."""

import codecs
import contextlib
import json
from typing import Any, NamedTuple

from basalt.loading import json_text, nodes
from basalt.loading.limits import Fault
from basalt.loading.marks import Mark
from basalt.loading.nodes import Node
from basalt.pointers import Pointer

Data = bytes
STRICT_BYTES = 16 * 1024**2  # above this the keys are not checked for repetition
_CHUNK = 1 << 24


def read(data: Data) -> tuple[Node, ...] | None:
    """The nodes of a sound inventory; None sends the text to the careful reader."""
    inventory = nodes.decode(memoryview(data))
    return inventory if inventory is not None and _is_utf8(data) and _keys_unique(data) else None


def _is_utf8(data: Data) -> bool:
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


def _keys_unique(data: Data) -> bool:
    """Whether no map repeats a key; one too large to look at is taken."""
    if len(data) > STRICT_BYTES:
        return True
    repeated = False

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) != len(pairs)
        return found

    try:
        json.loads(bytes(data), object_pairs_hook=note)
    except (ValueError, RecursionError):
        return False
    return not repeated


class _Item(NamedTuple):
    offset: int
    length: int
    mark: Mark


class Places:
    """Where the values of an inventory stand. Items are found one after the other, once."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._items = list(_items(data))
        self._last: tuple[int, dict[Pointer, Mark]] = (-1, {})

    def mark(self, pointer: Pointer) -> Mark:
        """The mark of the value at the pointer (items, index, ...), else of the nearest value around it."""
        if len(pointer) < 2 or not isinstance(pointer[1], int):
            return Mark(1, 1)
        item = self._items[pointer[1]]
        found = nearest(self._marks(pointer[1]), pointer[2:])
        before = item.mark.column - 1 if found.line == 1 else 0
        return Mark(item.mark.line + found.line - 1, found.column + before)

    def _marks(self, index: int) -> dict[Pointer, Mark]:
        if self._last[0] != index:
            item = self._items[index]
            text = self._data[item.offset : item.offset + item.length].decode()
            parsed = None
            with contextlib.suppress(Fault):  # the item's own place has to do
                parsed = next(json_text.documents(text, with_positions=True), None)
            self._last = (index, (parsed.positions if parsed else None) or {})
        return self._last[1]


def _items(data: Data) -> list[_Item]:
    found, offset, here = [], 0, Mark(1, 1)
    for item in nodes.raw_items(memoryview(data)):
        text = bytes(item)
        at = data.find(text, offset)
        here = _after(here, data[offset:at])
        found.append(_Item(at, len(text), here))
        here = _after(here, text)
        offset = at + len(text)
    return found


def _after(mark: Mark, text: bytes) -> Mark:
    """The mark that follows the text which begins at the mark."""
    newlines = text.count(b"\n")
    if not newlines:
        return Mark(mark.line, mark.column + _characters(text))
    return Mark(mark.line + newlines, _characters(text[text.rfind(b"\n") + 1 :]) + 1)


def _characters(text: bytes) -> int:
    return len(text) if text.isascii() else len(text.decode("utf-8", "replace"))


def nearest(marks: dict[Pointer, Mark], pointer: Pointer) -> Mark:
    """The mark of the value at the pointer, else of the nearest value around it."""
    for length in range(len(pointer), -1, -1):
        if pointer[:length] in marks:
            return marks[pointer[:length]]
    return Mark(1, 1)
