"""Large JSON inventories, decoded piece by piece: what is read is let go of, and only the fields that matter stay.

A raw line break cannot stand inside a JSON string. So in a text that is laid out in lines, as kubectl prints it, a line
`},` at the depth of the items, with a line `{` after it, is where one item ends and the next begins. And where the text
before the items, the text after them, and each run of items between two such places is sound, the whole is what they
say together. A text that is laid out in any other way is read as a whole.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from basalt.loading.nodes import Node, are_nodes, is_list

_PIECE = 4 * 1024**2
_HEAD = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"v1"\s*,\s*"items"\s*:\s*(?=\[[ \t\r]*\n([ \t]*)\{)')
_TAIL = re.compile(rb'\s*\]\s*,(\s*"kind"[^\[\]]*\}\s*)\Z')
_LONGEST_TAIL = 4096
_Into = Callable[[memoryview], int]  # fills the buffer from the file, and says how far


class _Tail(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    metadata: dict[str, str | int]


_NODES = msgspec.json.Decoder(tuple[Node, ...])
_REST = msgspec.json.Decoder(_Tail)


class _Refused(Exception):
    """The text is laid out in another way, or has a fault: it is for the reader of whole texts."""


def decode(fill: _Into) -> tuple[Node, ...] | None:
    """The nodes of the inventory that fill gives; None where it is to be read as a whole."""
    try:
        return tuple(node for piece in _pieces(fill) for node in _nodes(piece))
    except (_Refused, msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _nodes(piece: memoryview) -> tuple[Node, ...]:
    if not bytes(piece).isascii():
        str(piece, "utf-8")  # decoding field by field does not look at the fields it skips
    found = _NODES.decode(piece)
    if not are_nodes(found):
        raise _Refused
    return found


class _Layout(NamedTuple):
    """Where the list of items begins in the text, and what stands between two of them."""

    start: int
    between: bytes


def _pieces(fill: _Into) -> Iterator[memoryview]:
    """The items as lists of some of them each. A piece is valid until the next is asked for."""
    buffer = bytearray(2 * _PIECE)
    end = _filled(fill, buffer, 0)
    start, between = _layout(buffer, end)
    while True:
        is_last = end < len(buffer)
        cut = _end_of_items(buffer, start, end) if is_last else buffer.rfind(between, start, end)
        if cut < 0:
            raise _Refused
        comma = cut if is_last else cut + between.index(b",")
        buffer[start] = ord("[")
        after = buffer[comma]
        buffer[comma] = ord("]")
        with memoryview(buffer) as view, view[start : comma + 1] as piece:
            yield piece
        buffer[comma] = after
        if is_last:
            return
        rest = end - comma
        buffer[:rest] = buffer[comma:end]
        start, end = 0, _filled(fill, buffer, rest)


def _layout(buffer: bytearray, end: int) -> _Layout:
    head = _HEAD.match(buffer, 0, min(end, _LONGEST_TAIL))
    if head is None:
        raise _Refused
    indent = head.group(1)
    return _Layout(head.end(), b"\n" + indent + b"},\n" + indent + b"{")


def _end_of_items(buffer: bytearray, start: int, end: int) -> int:
    """Where the list of items ends; what follows must be what ends a list, and nothing else."""
    at = buffer.rfind(b"]", max(start, end - _LONGEST_TAIL), end)
    found = _TAIL.match(buffer, at, end) if at >= 0 else None
    if found is None or not is_list("v1", _REST.decode(b"{" + found.group(1)).kind):
        raise _Refused
    return at


def _filled(fill: _Into, buffer: bytearray, at: int) -> int:
    """Fills the buffer from there on, up to its end or the file's."""
    with memoryview(buffer) as view:
        while at < len(buffer):
            with view[at:] as room:
                count = fill(room)
            if not count:
                break
            at += count
    return at
