"""Places of findings, whatever they are: the files and the value behind one, and the place that is elsewhere than its
pointer says."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from basalt.findings import Place, Ref, Source
from basalt.gathering.documents import Declaration, Document
from basalt.loading.sources import SourceFile, TextFault
from basalt.objects import KubeObject
from basalt.pointers import Pointer


class Spot(NamedTuple):
    """A place in which one value is pointed at where it really stands: at a key written a second time, or at its line
    in a text that the object holds. source is the position of the value at the pointer."""

    place: Place
    pointer: Pointer
    source: Source

    @property
    def ref(self) -> Ref | None:
        return self.place.ref

    @property
    def waiver(self) -> str | None:
        return self.place.waiver

    def position(self, pointer: Pointer) -> Source:
        return self.source if pointer == self.pointer else self.place.position(pointer)


def written(place: Place) -> Place:
    """The document that a place follows from: what was written down."""
    while isinstance(place, Spot | KubeObject):
        place = place.place if isinstance(place, Spot) else place.written
    return place


def value(place: Place) -> Any:
    """The value that pointers of the place lead into; None where it has none."""
    if isinstance(place, Spot):
        return value(place.place)
    return place.value if isinstance(place, KubeObject | Document | Declaration) else None


def described(place: Place, pointer: Pointer) -> str:
    """How messages name what stands there: the object with its line, or the line alone."""
    source = place.position(pointer)
    return f"{place.ref} ({source})" if place.ref else f"{source}"


def file(place: Place, name: str) -> SourceFile | None:
    """The file of that name among those that the place was read from."""
    return next((each for each in _files(written(place)) if each.name == name), None)


def _files(place: Place) -> Iterator[SourceFile]:
    if isinstance(place, Declaration):
        yield from (layer.file for layer in place.layers)
    elif isinstance(place, Document):
        yield place.file
    elif isinstance(fault := getattr(place, "fault", None), TextFault):
        yield fault.file
