"""Configurations that stand as texts in an object, such as Dex's in a ConfigMap: their values, and where each value
stands in the file that holds the object."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from basalt.findings import Source
from basalt.gathering import places
from basalt.gathering.places import Spot
from basalt.loading import yaml_text
from basalt.loading.inventories import nearest
from basalt.loading.limits import Fault
from basalt.loading.marks import Mark
from basalt.objects import KubeObject
from basalt.pointers import Pointer

_BLOCK = re.compile(r"[|>][-+0-9]*\s*(#.*)?$")  # the text begins on the next line


class Embedded(NamedTuple):
    """One document of a text: the object, the pointer to the text in it, and what the text says."""

    object: KubeObject
    pointer: Pointer
    value: Any
    marks: dict[Pointer, Mark]

    def place(self, pointer: Pointer) -> Spot:
        """Where the value at the pointer in the text stands: at its own line where the text is written line by
        line, at the text's key where it is quoted or made by Basalt."""
        start = self.object.position(self.pointer)
        mark = nearest(self.marks, pointer)
        return Spot(self.object, self.pointer, _source(self.object, start, mark))


def _source(declared: KubeObject, start: Source, mark: Mark) -> Source:
    file = places.file(declared, start.file)
    if file is None or file.holds_json or not _BLOCK.search(file.line(start.line)):
        return start
    line = file.line(start.line + mark.line)
    return Source(start.file, start.line + mark.line, len(line) - len(line.lstrip()) + 1)


def documents(declared: KubeObject, pointer: Pointer, text: str) -> Iterator[Embedded]:
    """The documents of a text that the object holds; none where it is not YAML."""
    try:
        for parsed in yaml_text.documents(text, with_positions=True):
            yield Embedded(declared, pointer, parsed.value, parsed.positions or {})
    except Fault:
        return
