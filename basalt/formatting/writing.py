"""Tokens to text: each keeps its own text, and gets the indentation and the spaces of one style.

Maps and lists are indented by two, lists under a key too. Where lines end is the author's choice, but for blank lines:
of several, one is left.
"""

import re
from typing import NamedTuple

from basalt.formatting.tokens import Token, indent_of, tokens

_STEP = 2
_OPENS = {"BlockMappingStart": "map", "BlockSequenceStart": "list"}
_MARKERS = ("DocumentStart", "DocumentEnd", "Directive")
_FLOW_STARTS, _FLOW_ENDS = ("FlowSequenceStart", "FlowMappingStart"), ("FlowSequenceEnd", "FlowMappingEnd")
_NEEDS_SPACE = ("Alias", "Anchor", "Tag", "Key", "Value", "FlowEntry", "BlockEntry")  # before a colon
_SIMPLE = re.compile(r"'[^'\"\\\n]*'")


def written(text: str) -> str:
    """The text in the one style."""
    writer = _Writer()
    for token in tokens(text):
        writer.take(token)
    return _joined(writer.lines) + ("" if _ends_open(text, writer.last) else "\n" if writer.lines else "")


def _ends_open(text: str, last: Token) -> bool:
    """Whether the text ends within a block scalar whose value would get a line end more with the file's own."""
    return last.kind == "BlockScalar" and not text.endswith("\n")


class _Block(NamedTuple):
    """An open map or list in block style: where it stood, and where it stands now. A list is bare where its dashes
    stood under the key itself."""

    kind: str
    old: int
    new: int
    is_bare: bool = False


class _Line(NamedTuple):
    code: str
    comment: str = ""
    column: int = 0  # of the comment, as it was


class _Writer:
    """Takes the tokens in turn; lines holds what is complete."""

    def __init__(self) -> None:
        self.lines: list[_Line] = []
        self.line = ""  # the one that is being written
        self.source = 0  # how far the line reached in the text it comes from
        self.is_begun = False
        self.blocks: list[_Block] = []
        self.were_open: list[_Block] = []  # at the last token that has a text
        self.opening: str | None = None
        self.is_key = False
        self.depth = 0  # of flow collections
        self.last = Token("StreamStart", "", "", 0)

    def take(self, token: Token) -> None:
        if token.kind in _OPENS:
            self.opening = _OPENS[token.kind]
        elif token.kind == "BlockEnd":
            if self.blocks.pop().is_bare:
                self.blocks.pop()
        elif token.kind == "StreamEnd":
            self._break(token, 0)
        else:
            self._end_bare_list(token)
            if token.text:
                self._place(token)
            elif token.kind == "Key":
                self.is_key = True

    def _end_bare_list(self, token: Token) -> None:
        """A key, or the value of one, ends the list whose dashes stand under the key before."""
        is_of_map = token.kind in ("Key", "Value") and self.opening is None and not self.depth
        if is_of_map and self.blocks and self.blocks[-1].is_bare:
            self.blocks.pop()
        is_bare = token.kind == "BlockEntry" and self.opening is None
        if is_bare and (not self.blocks or self.blocks[-1].kind == "map"):
            self.blocks.append(_Block("list", token.column, self._inner, is_bare=True))

    def _place(self, token: Token) -> None:
        if not self.is_begun or "\n" in token.gap:
            column = self._column(token)
            self._break(token, column)
            self.line = " " * column
        else:
            self.line += _space(self.last.kind, token.kind)
        if self.opening is not None:
            self.blocks.append(_Block(self.opening, token.column, len(self.line)))
        self.depth += (token.kind in _FLOW_STARTS) - (token.kind in _FLOW_ENDS)
        self._write(token)
        _, line_end, tail = token.text.rpartition("\n")
        self.source = len(tail) if line_end else token.column + len(token.text)
        self.were_open, self.opening, self.is_key, self.last = list(self.blocks), None, False, token

    @property
    def _inner(self) -> int:
        """The column of what stands under the innermost open block."""
        return self.blocks[-1].new + _STEP if self.blocks else 0

    @property
    def _continued(self) -> int:
        """The column of what goes on with a text or a flow collection."""
        return (self.blocks[-1].new if self.blocks else 0) + _STEP * max(self.depth, 1)

    def _column(self, token: Token) -> int:
        """The column of a token that begins a line."""
        if self.depth:
            if token.kind not in _FLOW_ENDS:
                return self._continued
            least = 1 if self.blocks else 0  # a bracket under its own key would end the map
            return (self.blocks[-1].new if self.blocks else 0) + _STEP * max(self.depth - 1, least)
        if token.kind in _MARKERS:
            return 0
        if self.opening is None and (self.is_key or token.kind in ("BlockEntry", "Key", "Value")):
            return self.blocks[-1].new
        return self._inner

    def _write(self, token: Token) -> None:
        first, *rest = token.text.split("\n")
        if token.kind == "BlockScalar":
            self._write_block(first.rstrip(" \t"), rest)
        elif rest:
            strips = not first.startswith('"')  # within these an escaped blank may end a line
            self._flow_on(first, rest, strips=strips)
        else:
            self.line += f'"{first[1:-1]}"' if token.kind == "Scalar" and _SIMPLE.fullmatch(first) else first

    def _flow_on(self, first: str, rest: list[str], *, strips: bool) -> None:
        """A text of several lines, which reads the same however far they are indented."""
        for line in rest:
            self.lines.append(_Line((self.line + first).rstrip(" \t") if strips else self.line + first))
            first, self.line = line.lstrip(" \t"), " " * self._continued
            if not first:
                self.line = ""
        self.line += first

    def _write_block(self, header: str, lines: list[str]) -> None:
        """A block scalar: all of its lines move as one."""
        held = self.blocks[-1] if self.blocks else None
        told = re.match(r"[|>][-+]?([1-9])", header)
        old = (max(held.old, 0) if held else 0) + int(told[1]) if told else indent_of(lines)
        new = (held.new if held else 0) + (int(told[1]) if told else _STEP)
        self.line += header
        for line in lines:
            self.lines.append(_Line(self.line))
            self.line = " " * new + line[old:] if len(line) > old else ""

    def _break(self, token: Token, column: int) -> None:
        """Ends the line, writes the blank lines and the comments that follow, and leaves a new line to the token."""
        trailing, *between = token.gap.split("\n")
        if not self.is_begun:
            between.insert(0, trailing)
        else:
            comment = trailing.strip(" \t")
            at = self.source + len(trailing) - len(trailing.lstrip(" \t"))
            self.lines.append(_Line(self.line, comment, at))
        if token.kind != "StreamEnd":
            between.pop()
        while token.kind == "StreamEnd" and between and not between[-1].strip(" \t"):
            between.pop()
        for line in between:
            comment = line.strip(" \t")
            if comment:
                at = self._of_comment(len(line) - len(line.lstrip(" \t")), token, column)
                self.lines.append(_Line(" " * at + comment))
            elif self.lines and (self.lines[-1].code or self.lines[-1].comment):
                self.lines.append(_Line(""))
        self.is_begun, self.line = True, ""

    def _of_comment(self, column: int, token: Token, at: int) -> int:
        """The new column of a comment that has its line to itself: that of the token below, or of a block that ends
        there, where the comment stood as deep as its entries."""
        if self.depth:
            return self._continued
        found = at
        for block in self.were_open:
            if token.column < block.old <= column:
                found = block.new
        return found


def _space(before: str, kind: str) -> str:
    """What stands between two tokens of one line."""
    if before in _FLOW_STARTS:
        return ""
    if kind in ("FlowEntry", *_FLOW_ENDS):
        return " " if before in ("Value", "Tag") else ""
    if kind == "Value":
        return " " if before in _NEEDS_SPACE else ""
    return " "


def _joined(lines: list[_Line]) -> str:
    """The lines with their comments, one blank before each; those that stood in one column, line after line, still
    do."""
    done: list[str] = []
    while len(done) < len(lines):
        line = lines[len(done)]
        if not line.comment:
            done.append(line.code)
            continue
        run = [line]
        for at in range(len(done) + 1, len(lines)):  # no slice: it would copy the rest for each comment
            if not lines[at].comment or lines[at].column != line.column:
                break
            run.append(lines[at])
        width = max(len(each.code) for each in run)
        done.extend(f"{each.code:<{width}} {each.comment}" for each in run)
    return "\n".join(done)
