"""Configurations that stand as texts in an object, such as Dex's in a ConfigMap or a scheduler's in chart values: their
values, and where each value stands in the file that holds the object. Texts may hold texts."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from basalt.findings import Place, Source
from basalt.gathering import places
from basalt.gathering.places import Spot
from basalt.loading import yaml_text
from basalt.loading.inventories import nearest
from basalt.loading.limits import Fault
from basalt.loading.marks import Mark
from basalt.objects import KubeObject
from basalt.pointers import Pointer, get

_BLOCK = re.compile(r"[|>][-+0-9]*\s*(#.*)?$")  # the text begins on the next line


class Text(NamedTuple):
    """One text: the place that holds it, the pointer to the (outermost) text there, and where it stands in the file.
    start is None where its lines are no lines of the file: it is quoted, or made by Basalt."""

    place: Place
    pointer: Pointer
    value: str
    source: Source
    start: Source | None

    def spot(self, mark: Mark, pointer: Pointer = ()) -> Spot:
        """Where the mark in the text stands; in a text made by Basalt, what the value at the pointer follows from."""
        if isinstance(self.place, KubeObject) and self.place.origins is not None:
            return Spot(self.place, self.pointer, self.place.position((*self.pointer, *pointer)))
        return Spot(self.place, self.pointer, self._at(mark))

    @property
    def spot_of_all(self) -> Spot:
        """Where the text as a whole stands: at its key."""
        return Spot(self.place, self.pointer, self.source)

    def _at(self, mark: Mark) -> Source:
        file = places.file(self.place, self.source.file)
        if self.start is None or file is None:
            return self.source
        line = file.line(self.start.line + mark.line)
        return Source(self.start.file, self.start.line + mark.line, len(line) - len(line.lstrip()) + 1)


class Embedded(NamedTuple):
    """One document of a text: what it says, and where."""

    text: Text
    value: Any
    marks: dict[Pointer, Mark]

    @property
    def pointer(self) -> Pointer:
        """The pointer to the text in the object that holds it."""
        return self.text.pointer

    def place(self, pointer: Pointer) -> Spot:
        """Where the value at the pointer in the text stands: at its own line where the text is written line by
        line, at the text's key where it is quoted, in the declaration where Basalt made it."""
        return self.text.spot(nearest(self.marks, pointer), pointer)

    def inner(self, pointer: Pointer) -> Text | None:
        """The text that stands at the pointer in this one."""
        value = get(self.value, pointer)
        if not isinstance(value, str):
            return None
        spot = self.place(pointer)
        start = spot.source if self.text.start is not None else None
        return Text(self.text.place, self.pointer, value, spot.source, _by_line(self.text.place, start))


class Unreadable(NamedTuple):
    """A text that is no YAML: where it stops being it, and the fact."""

    spot: Spot
    fault: Fault


def text_at(place: Place, pointer: Pointer) -> Text | None:
    """The text that the place has at the pointer."""
    value = get(places.value(place), pointer)
    if not isinstance(value, str):
        return None
    source = place.position(pointer)
    return Text(place, pointer, value, source, _by_line(place, source))


def _by_line(place: Place, start: Source | None) -> Source | None:
    """The start, where the lines of a text that begins there are lines of the file."""
    file = places.file(place, start.file) if start else None
    if start is None or file is None or file.holds_json or not _BLOCK.search(file.line(start.line)):
        return None
    return start


def read(text: Text) -> Embedded | Unreadable:
    """The text's first document, which is the one that Go's YAML readers take; an empty text says null."""
    try:
        parsed = next(yaml_text.documents(text.value, with_positions=True), None)
    except Fault as fault:
        return Unreadable(text.spot(fault.mark), fault)
    if parsed is None:
        return Embedded(text, None, {})
    return Embedded(text, parsed.value, parsed.positions or {})


def documents(text: Text | None) -> Iterator[Embedded]:
    """The documents of a text; none where it is not YAML."""
    if text is not None:
        yield from (each for each in every(text) if isinstance(each, Embedded))


def every(text: Text) -> Iterator[Embedded | Unreadable]:
    """The documents of a text, and where it stops being YAML."""
    try:
        for parsed in yaml_text.documents(text.value, with_positions=True):
            yield Embedded(text, parsed.value, parsed.positions or {})
    except Fault as fault:
        yield Unreadable(text.spot(fault.mark), fault)
