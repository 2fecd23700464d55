"""A configuration wherever it stands: as an object, as a text in one, or in the values of a chart."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from basalt.findings import Place, Problem
from basalt.gathering import places
from basalt.objects import mapping
from basalt.pointers import Pointer, existing, get
from basalt.views.charts import Values
from basalt.views.embedding import Embedded

Source = Embedded | Values | Place


class Written(NamedTuple):
    """One configuration: what holds it, and where in there it begins."""

    source: Source
    base: Pointer = ()

    @property
    def value(self) -> Mapping[str, Any]:
        whole = self.source.value if isinstance(self.source, Embedded | Values) else places.value(self.source)
        return mapping(get(whole, self.base))

    @property
    def holder(self) -> Place:
        """The object or the document that it stands in."""
        if isinstance(self.source, Embedded):
            return self.source.text.place
        return self.source.place if isinstance(self.source, Values) else self.source

    def get(self, pointer: Pointer) -> Any:
        return get(self.value, pointer)

    def at(self, pointer: Pointer) -> tuple[Place, Pointer]:
        """The place and the pointer of a finding about the value at the pointer; where it is not written, about what
        stands around it."""
        inner = (*self.base, *pointer)
        if isinstance(self.source, Embedded):
            text = self.source.text
            return self.source.place(inner) if inner else text.spot_of_all, text.pointer
        if isinstance(self.source, Values):
            place, outer = self.source.at(inner)
            return place, outer if self.source.embedded is not None else existing(places.value(place), outer)
        return self.source, existing(places.value(self.source), inner)

    def problem(self, pointer: Pointer, message: str, hint: str = "") -> Problem:
        return Problem(*self.at(pointer), message, hint)

    def line(self, pointer: Pointer) -> str:
        """Where the value stands, as a message says it: dex.yaml:12."""
        place, outer = self.at(pointer)
        source = place.position(outer)
        return f"{source}"
