"""Volcano's HyperNode discovery, as volcano-controller.conf switches it on."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from basalt.documents import Document
from basalt.findings import Ref, Source
from basalt.loading import scalars, yaml_text
from basalt.loading.limits import Fault
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer

_KEY = "volcano-controller.conf"
_TEXT = ("data", _KEY)
_BLOCK = re.compile(r"[|>][-+1-9]*\s*(#.*)?$")  # what announces a text on the lines below


@dataclass(frozen=True, slots=True)
class Discovery:
    """A source that is switched on; as the place of a finding, its own line in the ConfigMap's text."""

    object: KubeObject
    source: str
    line: int  # in the text, from 1

    @property
    def written(self) -> Any:
        return self.object.written

    @property
    def ref(self) -> Ref | None:
        return self.object.ref

    @property
    def waiver(self) -> str | None:
        return self.object.waiver

    def position(self, pointer: Pointer) -> Source:
        """The line of the file where a block of text has the line; else where the text begins."""
        start = self.object.position(pointer)
        written = self.written
        if pointer != _TEXT or not isinstance(written, Document) or not _is_block(written, start):
            return start
        text = written.file.line(start.line + self.line)
        return Source(start.file, start.line + self.line, len(text) - len(text.lstrip()) + 1)


def _is_block(written: Document, start: Source) -> bool:
    return _BLOCK.search(written.file.line(start.line)) is not None


def enabled_sources(config_maps: Iterable[KubeObject]) -> Iterator[tuple[Discovery, Pointer]]:
    """Each source that a controller's configuration switches on, and the pointer to that text."""
    for declared in config_maps:
        text = mapping(declared.value.get("data")).get(_KEY)
        for place, source in _sources(text) if isinstance(text, str) else ():
            yield Discovery(declared, source, place), _TEXT


def _sources(text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each enabled source; none where the text is not YAML, which Volcano does not take."""
    try:
        parsed = next(yaml_text.documents(text, with_positions=True), None)
    except Fault:
        return
    if parsed is None:
        return
    for index, source in enumerate(map(mapping, sequence(mapping(parsed.value).get("networkTopologyDiscovery")))):
        enabled = source.get("enabled")
        if enabled is True or (isinstance(enabled, str) and scalars.as_boolean(enabled)):
            mark = (parsed.positions or {}).get(("networkTopologyDiscovery", index, "enabled"), parsed.mark)
            yield mark.line, str(source.get("source"))
