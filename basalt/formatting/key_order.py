"""The order of a document's first keys: apiVersion, kind, metadata, spec. Only of Basalt's own documents, and only
where each key's comments move with it for sure.
"""

from collections.abc import Iterator
from typing import NamedTuple

from basalt.formatting.tokens import tokens

_ORDER = ("apiVersion", "kind", "metadata", "spec")
_OWN = "basalt.dev/"
_OPENS = ("BlockMappingStart", "BlockSequenceStart", "FlowSequenceStart", "FlowMappingStart")
_CLOSES = ("BlockEnd", "FlowSequenceEnd", "FlowMappingEnd")
_BINDING = ("Alias", "Anchor", "Tag", "Directive")  # what stands before them counts


class _Document(NamedTuple):
    """The lines of one document's first keys, and the line after the last; is_fixed where they had better stay."""

    keys: dict[str, int]
    end: int
    is_own: bool
    is_fixed: bool


def ordered(text: str) -> str:
    """The text, which is in the one style, with the keys in order."""
    if _OWN not in text or not text.endswith("\n"):
        return text
    lines = text.split("\n")[:-1]
    for document in reversed([*_documents(text, len(lines))]):
        if document.is_own and not document.is_fixed:
            _order(document, lines)
    return "\n".join([*lines, ""])


def _order(document: _Document, lines: list[str]) -> None:
    known = [key for key in _ORDER if key in document.keys]
    wanted = [*known, *(key for key in document.keys if key not in known)]
    if wanted == [*document.keys]:
        return
    first, end = min(document.keys.values()), document.end
    while end > first and (not lines[end - 1] or lines[end - 1].startswith("#")):
        end -= 1  # what follows the last key is nobody's
    if "" in lines[first:end]:
        return  # parts that the author set apart, or a text's blank lines
    starts = [_with_comments(line, first, lines) for line in document.keys.values()]
    parts = dict(zip(document.keys, zip(starts, [*starts[1:], end], strict=True), strict=True))
    lines[first:end] = [line for key in wanted for line in lines[slice(*parts[key])]]


def _with_comments(line: int, first: int, lines: list[str]) -> int:
    """The first of the comments that stand directly above the key. Those above the first one are the document's."""
    while line > first and lines[line - 1].startswith("#"):
        line -= 1
    return line


def _documents(text: str, length: int) -> Iterator[_Document]:
    keys: dict[str, int] = {}
    depth, line, last = 0, 0, ""
    is_own = is_fixed = is_key = False
    for token in tokens(text):
        line += token.gap.count("\n")
        if token.kind in ("DocumentStart", "DocumentEnd", "StreamEnd"):
            yield _Document(keys, length if token.kind == "StreamEnd" else line, is_own, is_fixed or not keys)
            keys, is_own, is_fixed, last = {}, False, False, ""
        depth += (token.kind in _OPENS) - (token.kind in _CLOSES)
        is_fixed |= token.kind in _BINDING or (token.kind == "Key" and bool(token.text))
        is_fixed |= token.kind in _OPENS and depth == 1 and token.kind != "BlockMappingStart"
        if token.kind == "Key" and depth == 1:
            is_key = True
        elif token.kind in ("Scalar", "BlockScalar"):
            name = token.text.strip("'\"")
            if is_key:
                is_fixed |= name in keys or name == "<<"
                keys[name] = line
                last = name
            elif depth == 1:
                is_own |= last == "apiVersion" and name.startswith(_OWN)
            is_key = False
        line += token.text.count("\n")
