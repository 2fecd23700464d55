"""How Volcano's scheduler reads a value of its configuration: which types it takes, and which range.

Source: pkg/scheduler/framework/arguments.go; mapstructure's Decode; parseRevocableZone in plugins/tdm/tdm.go.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from basalt import names
from basalt.api import booleans, durations
from basalt.api.schemas import show
from basalt.api.versions import Version
from basalt.objects import strings
from basalt.pointers import Pointer

_OLDEST = Version(1, 13)
_TAKES_TEXTS = Version(1, 15)  # GetBool, by strconv.ParseBool
_HOURS = re.compile(r"\s*([01]?[0-9]|2[0-3]):[0-5][0-9]-([01]?[0-9]|2[0-3]):[0-5][0-9]\s*")
_INT_64 = range(-(2**63), 2**63)
_ANY = "*"  # at the end of an argument's name


class Kind(Enum):
    """The types that Volcano tells apart."""

    INTEGER = auto()
    COUNT = auto()  # mapstructure cuts 1.5 to 1
    NUMBER = auto()
    SWITCH = auto()
    BOOLEAN = auto()  # a switch that takes no text
    TEXT = auto()
    DURATION = auto()
    HOURS = auto()
    LIST = auto()
    MAP = auto()

    @property
    def words(self) -> str:
        """The type as messages name it."""
        return _WORDS[self]


_WORDS = {
    Kind.INTEGER: "a whole number",
    Kind.COUNT: "a whole number",
    Kind.NUMBER: "a number",
    Kind.SWITCH: "true or false",
    Kind.BOOLEAN: "true or false",
    Kind.TEXT: "a text",
    Kind.DURATION: "a duration such as 5m",
    Kind.HOURS: "hours such as 22:00-06:00",
    Kind.LIST: "a list",
    Kind.MAP: "a map",
}


class Reading(NamedTuple):
    """How Volcano reads a value. otherwise is what it does with one of another type, beyond with one below least,
    above most or not among words; empty is what it does with null, "" where it takes that."""

    kind: Kind
    otherwise: str = ""
    least: float | None = None
    most: float | None = None
    words: tuple[str, ...] = ()
    beyond: str = ""
    empty: str | None = None
    fields: Mapping[str, "Reading"] = {}  # of a map, the keys that are read
    each: "Reading | None" = None  # a list's items, a map's values under any key that is not among the fields
    folds: bool = False  # the case of the fields' keys does not matter

    def is_type_of(self, value: Any, version: Version | None) -> bool:
        """Whether Volcano takes the value's type; the version is None where none is declared."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        match self.kind:
            case Kind.INTEGER:
                return is_number and isinstance(value, int) and value in _INT_64
            case Kind.COUNT | Kind.NUMBER:
                return is_number
            case Kind.BOOLEAN:
                return isinstance(value, bool)
            case Kind.SWITCH:
                takes_texts = (
                    isinstance(value, str) and value in booleans.EITHER and (version is None or version >= _TAKES_TEXTS)
                )
                return isinstance(value, bool) or takes_texts
            case Kind.LIST:
                return isinstance(value, list)
            case Kind.MAP:
                return isinstance(value, Mapping)
        return isinstance(value, str)

    def fault(self, value: Any) -> str:
        """Why the value, of the right type, is out of range; else ""."""
        if self.kind is Kind.DURATION:
            return _duration_fault(value, self.least)
        if self.kind is Kind.HOURS:
            return "" if _HOURS.fullmatch(value) else "is not of the form 22:00-06:00"
        if self.words:
            is_one = len(self.words) == 1
            known = self.words[0] if is_one else ", ".join(word for word in self.words if word)
            return "" if value in self.words else f"is {'not' if is_one else 'none of'} {known}"
        if self.least is not None and value < self.least:
            return f"is below {self.least:g}"
        return f"is above {self.most:g}" if self.most is not None and value > self.most else ""

    def field(self, key: str) -> "Reading | None":
        """How the value under the key of a map is read; None where it is not."""
        if self.folds:
            return next((each for name, each in self.fields.items() if name.casefold() == key.casefold()), self.each)
        return self.fields.get(key, self.each)

    def reads(self, key: str) -> bool:
        """Whether anything comes of the key of a map."""
        keys = {name.casefold() for name in self.fields} if self.folds else self.fields.keys()
        return not self.fields or (key.casefold() if self.folds else key) in keys


def _duration_fault(value: str, least: float | None) -> str:
    if fault := durations.fault(value):
        return fault
    is_positive = not value.startswith("-") and any(digit in value for digit in "123456789")
    return "" if least is None or is_positive else "is not above 0"


def faults(reading: Reading, value: Any, at: Pointer, version: Version | None) -> Iterator[tuple[Pointer, str, str]]:
    """The values of the wrong type or out of range in an argument: where, with what Volcano does then, and how to write
    them."""
    name = named(at)
    if value is None or not reading.is_type_of(value, version):
        then = reading.otherwise if value is not None or reading.empty is None else reading.empty
        if then:
            message = f"{name} is {show(value)}, and Volcano reads {reading.kind.words} there: it {then}"
            yield at, message, _typed(reading.kind, value)
    elif fault := reading.fault(value):
        yield at, f"{name} is {show(value)}, which {fault}: Volcano {reading.beyond}", ranged(reading, value)
    else:
        for key, below, inner in _within(reading, value):
            yield from faults(inner, below, (*at, key), version)


def _within(reading: Reading, value: Any) -> Iterator[tuple[str | int, Any, Reading]]:
    """The items of a list or the values of a map that are read, each with its key."""
    if reading.kind is Kind.LIST and reading.each is not None:
        yield from ((number, item, reading.each) for number, item in enumerate(value))
    elif reading.kind is Kind.MAP:
        for key, below in value.items():
            if (inner := reading.field(key)) is not None:
                yield key, below, inner


def named(at: Pointer) -> str:
    """The innermost key of the pointer."""
    return str(next(part for part in reversed(at) if isinstance(part, str)))


def _typed(kind: Kind, value: Any) -> str:
    """How to write the value so that it is of the kind."""
    if isinstance(value, str) and _is_quoted(kind, value):
        return f"take the quotes off: {value.strip()}"
    if kind is Kind.TEXT and isinstance(value, list):
        return f'write them in one text: "{", ".join(strings(value))}"'
    if kind is Kind.TEXT and isinstance(value, bool | int | float):
        return f'put it in quotes: "{str(value).lower()}"'
    if kind is Kind.DURATION and isinstance(value, int | float) and not isinstance(value, bool):
        return f"write it with its unit, such as {value:g}s"
    return f"write {kind.words}"


def _is_quoted(kind: Kind, text: str) -> bool:
    """Whether the text is a value of the kind, but for the quotes around it."""
    if kind in (Kind.SWITCH, Kind.BOOLEAN):
        return text in ("true", "false")
    digits = text.strip().removeprefix("-")
    is_number = kind is Kind.NUMBER and digits.replace(".", "", 1).isdecimal()
    return is_number or (kind in (Kind.INTEGER, Kind.COUNT) and digits.isdecimal())


def ranged(reading: Reading, value: Any) -> str:
    """How to write a value that is in range."""
    if reading.kind is Kind.DURATION:
        return "write a number with its unit, such as 30s"
    if reading.kind is Kind.HOURS:
        return "write two times of the day: 22:00-06:00"
    if len(reading.words) == 1:
        return f"write {reading.words[0]}"
    if reading.words:
        return names.did_you_mean(str(value), [word for word in reading.words if word])
    least, most = reading.least, reading.most
    return f"write {least:g} or more" if most is None else f"write {least:g} to {most:g}"


class Argument(NamedTuple):
    """An argument of a plugin or an action: the first version that reads it, and the first that no longer does. A name
    may end with * for any text; among names the argument that must list that text."""

    name: str
    reading: Reading
    since: Version = _OLDEST
    until: Version | None = None
    among: str = ""

    def is_read_by(self, version: Version | None) -> bool:
        return version is None or (self.since <= version and (self.until is None or version < self.until))

    def rest(self, name: str) -> str | None:
        """What stands for the * in the name; "" where there is none, None where the name is another."""
        if not self.name.endswith(_ANY):
            return "" if name == self.name else None
        return name.removeprefix(self.name[:-1]) if name.startswith(self.name[:-1]) else None


def argument(among: tuple[Argument, ...], name: str, version: Version | None) -> Argument | None:
    """The argument of that name, where the version reads it."""
    return next((each for each in among if each.rest(name) is not None and each.is_read_by(version)), None)
