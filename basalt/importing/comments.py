"""What becomes of comments: those that lead to a document go with it, and the places of all others are told. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.findings import Source
from basalt.gathering.expanding import expand
from basalt.importing import keeping
from basalt.importing.choosing import Choice
from basalt.importing.keeping import Segment, Spot
from basalt.importing.proposal import Part
from basalt.loading.sources import SourceFile, TextDocument
from basalt.objects import KubeObject

_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#")
_BREAK = re.compile(r"(\r\n|\n|\r)")
_MOST = 200  # readings of one piece of text; what is not known to be a comment after them is told as one
_TIED = {"Queue": "queues", "PriorityClass": "priorities"}


class Comments(NamedTuple):
    """The comments that go with the documents, by the part that they lead to, and the places of those that stay."""

    leading: dict[Part, list[str]]
    left: list[str]


def comments(
    files: Iterable[SourceFile], texts: Iterable[TextDocument], choice: Choice, gone: Mapping[Spot, KubeObject]
) -> Comments:
    """Of the files from which something is gone."""
    found = Comments({}, [])
    of_file: dict[str, list[TextDocument]] = {}
    for text in texts:
        of_file.setdefault(text.file.name, []).append(text)
    touched = {name for name, _, _ in gone}
    for file in files:
        if not file.holds_json and file.name in touched:
            _add(file, of_file[file.name], choice, gone, found)
    return found


def _add(
    file: SourceFile, texts: list[TextDocument], choice: Choice, gone: Mapping[Spot, KubeObject], found: Comments
) -> None:
    pieces = keeping.segments(file, texts)
    if not all(piece.source for piece in pieces):  # no piece of the text is kept
        found.left.extend(_places(file, _lines(file, file.text, [text.value for text in texts]), 1))
        return
    is_wholly_gone = all(keeping.spot(each) in gone for text in texts for each in expand(text))
    line = 1
    for piece in pieces:
        each = None if piece.text is None else gone.get((file.name, piece.text.index, ()))
        if each is not None:
            _add_object(file, piece, each, choice, found)
        elif _is_left(piece, gone, is_wholly_gone=is_wholly_gone):
            values = [] if piece.text is None else [piece.text.value]
            found.left.extend(_places(file, _lines(file, piece.source, values), line))
        line += len(_BREAK.findall(piece.source))


def _add_object(file: SourceFile, piece: Segment, each: KubeObject, choice: Choice, found: Comments) -> None:
    """Of a document that is an object of its own, and is gone."""
    assert piece.text is not None
    leading = _leading(piece.source)
    part = _part(each, choice)
    if part is not None and leading:
        found.leading.setdefault(part, []).extend(leading)
    inner = len(_lines(file, piece.source, [piece.text.value])) > len(leading)
    if inner or (leading and part is None):
        found.left.append(str(each.position(())))


def _is_left(piece: Segment, gone: Mapping[Spot, KubeObject], *, is_wholly_gone: bool) -> bool:
    """Whether the text of the piece is not kept: a List that loses items, or nothing in a file of which nothing is
    left."""
    if piece.text is None:
        return is_wholly_gone
    items = [keeping.spot(each) in gone for each in expand(piece.text)]
    return any(items) or not items


def _places(file: SourceFile, lines: Iterable[int], first: int) -> Iterator[str]:
    return (str(Source(file.name, first + at, 1)) for at in lines)


def _part(each: KubeObject, choice: Choice) -> Part | None:
    """The part of the documents that an object's comment is about."""
    section = _TIED.get(each.ref.kind)
    if section is not None and each.name in choice.proposal.spec.get(section, {}):
        return (section, each.name)
    if each.ref.kind == "Queue":
        return ("Team", each.name)
    key = (each.ref.namespace or "default", each.name)
    return ("TrainingJob", *key) if key in choice.proposal.jobs and each.ref.kind != "JobFlow" else None


def _leading(source: str) -> list[str]:
    """The comment lines that a document begins with."""
    found = []
    for line in source.splitlines():
        if line.startswith("#"):
            found.append(line.rstrip())
        elif line.strip() and line.strip() != "---" and not line.startswith("%"):
            break
    return found


def _lines(file: SourceFile, source: str, values: list[Any]) -> list[int]:
    """The lines with a comment, from 0: without one the text holds the same values. A # in a text is none."""
    parts = _BREAK.split(source)  # lines, and their ends between them
    waiting = [[(at, each.start()) for at, line in enumerate(parts) for each in _COMMENT.finditer(line)]]
    found: set[int] = set()
    tries = 0
    while waiting:
        marks = waiting.pop()
        tries += 1
        if tries > _MOST or keeping.values(file, _without(parts, marks)) == values:
            found.update(at // 2 for at, _ in marks)
        elif len(marks) > 1:
            waiting += [marks[: len(marks) // 2], marks[len(marks) // 2 :]]
    return sorted(found)


def _without(parts: Sequence[str], marks: Iterable[tuple[int, int]]) -> str:
    """The text, each line ending before its first mark."""
    ends = dict(reversed(list(marks)))
    return "".join(part[: ends.get(at)] for at, part in enumerate(parts))
