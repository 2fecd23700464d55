"""The tokens of a YAML text as libyaml sees them, and the comments, which stand in the gaps between them."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import yaml

_BLOCK_STYLES = ("|", ">")


class Token(NamedTuple):
    """One token: its kind, its text, what stands between the token before and this one, and its column. Those that only
    tell of the structure have no text."""

    kind: str  # libyaml's name without "Token", or BlockScalar
    text: str
    gap: str
    column: int


def tokens(text: str) -> Iterator[Token]:
    """Every token up to the end of the stream, whose gap is what follows the last one. The text is known to be YAML
    whose only line ends are line feeds."""
    end = 0
    for found in yaml.scan(text, Loader=yaml.CSafeLoader):
        kind = type(found).__name__.removesuffix("Token")
        start, stop = found.start_mark.index, found.end_mark.index
        if isinstance(found, yaml.ScalarToken) and found.style in _BLOCK_STYLES:
            kind, stop = "BlockScalar", start + len(_content(text[start:stop]))
        if kind == "StreamEnd":
            yield Token(kind, "", text[end:], 0)
        elif start == stop or kind == "StreamStart":
            yield Token(kind, "", "", found.start_mark.column)
        else:
            yield Token(kind, text[start:stop], text[end:start], found.start_mark.column)
            end = stop


def _content(block: str) -> str:
    """A block scalar without the line end of its last line: of its last one with a text, unless it keeps the others, or
    says itself how far it is indented, which its blank lines then count from."""
    header, *lines = block.split("\n")
    if re.match(r".[-1-9]*\+|.[-+]?[1-9]", header):
        return block.removesuffix("\n")
    indent = indent_of(lines)
    while lines and not lines[-1].strip(" ") and len(lines[-1]) <= indent:
        lines.pop()
    return "\n".join((header, *lines))


def indent_of(lines: Iterable[str]) -> int:
    """How far a block scalar is indented: as its first line that is not blank; where all are, as the longest."""
    every = list(lines)
    told = (len(line) - len(line.lstrip(" ")) for line in every if line.strip(" "))
    return next(told, max(map(len, every), default=0))


def comments(text: str) -> list[str]:
    """Every comment, in the order of the text."""
    found: list[str] = []
    for token in tokens(text):
        found.extend(_in_gap(token.gap))
        if token.kind == "BlockScalar":
            found.extend(_in_gap(token.text.partition("\n")[0].lstrip("|>+-0123456789")))
    return found


def _in_gap(gap: str) -> Iterator[str]:
    return (line.strip(" \t") for line in gap.split("\n") if line.strip(" \t"))
