"""Waivers: annotations by which a document's findings are reported without failing; and what is wrong with them."""

from collections.abc import Collection, Iterable, Iterator

from basalt import names
from basalt.findings import Place, Problem, Source
from basalt.gathering import places
from basalt.gathering.documents import WAIVER
from basalt.pointers import Pointer

RULE = "waiver-is-sound"
_AT: Pointer = ("metadata", "annotations", WAIVER)
_FORM = 'write "<rule>: <reason>", several joined by ";"'


class _Waiver:
    """One entry of an annotation, and whether some finding matched it."""

    def __init__(self, text: str) -> None:
        rule, colon, reason = text.partition(":")
        self.rule = rule.strip()
        self.reason = reason.strip() if colon else ""
        self.is_used = False


class Waivers:
    """The waivers of all documents, each annotation once, however many objects follow from its document."""

    def __init__(self, found: Iterable[Place], known: Collection[str]) -> None:
        self._known = known  # the rules that there are
        self._of: dict[Source, tuple[Place, list[_Waiver]]] = {}
        for place in found:
            self._entries(place)

    def cover(self, place: Place, rule: str) -> str | None:
        """The reason by which a waiver of the place's document covers a finding of the rule; it has then matched one.
        None where there is no such waiver."""
        matching = [entry for entry in self._entries(place) if entry.rule == rule and entry.reason]
        for entry in matching:
            entry.is_used = True
        return matching[0].reason if matching else None

    def _entries(self, place: Place) -> list[_Waiver]:
        text = place.waiver
        if text is None:
            return []
        where = places.written(place).position(_AT)
        if where not in self._of:
            self._of[where] = (place, [_Waiver(part) for part in text.split(";") if part.strip()])
        return self._of[where][1]

    def faults(self, unjudged: Collection[str], *, is_whole: bool) -> Iterator[tuple[Problem, str | None]]:
        """Waivers without a reason, for an unknown rule, or that matched no finding; and why each is waived.
        is_whole: every rule was judged but the given ones, so that a waiver that matched nothing is known to."""
        own: list[tuple[Place, _Waiver]] = []
        for place, entries in list(self._of.values()):
            if not entries:
                yield Problem(place, _AT, "waives nothing", _FORM), None
            own.extend((place, entry) for entry in entries if entry.rule == RULE)
            for entry in entries:
                if entry.rule != RULE and (fault := self._fault(entry, unjudged, is_whole=is_whole)):
                    yield Problem(place, _AT, *fault), self.cover(place, RULE)
        for place, entry in own:  # last, when it is known what they cover
            if fault := self._fault(entry, unjudged, is_whole=is_whole):
                yield Problem(place, _AT, *fault), None

    def _fault(self, entry: _Waiver, unjudged: Collection[str], *, is_whole: bool) -> tuple[str, str] | None:
        if not entry.rule:
            return "a waiver that names no rule", _FORM
        if entry.rule not in self._known:
            return f"waives {entry.rule}, which is no rule", names.did_you_mean(
                entry.rule, self._known, most=0
            ) or _FORM
        if not entry.reason:
            return f"waives {entry.rule} without a reason", f'write "{entry.rule}: why this is right here"'
        if is_whole and not entry.is_used and entry.rule not in unjudged:
            return f"waives {entry.rule}, which finds nothing here", "take the waiver out"
        return None
