"""Several tiers in one label: `s0-s1-rack-2` is spine s0, leaf s0-s1 and the rack itself. The pattern of each tier is
found from the values alone; they are taken apart only where all of them are built alike."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from basalt.proposing.vocabulary import LADDER, WORD_OF

_UNITS = re.compile(r"([^A-Za-z0-9]*)([A-Za-z]*)([0-9]*)")
_SPECIAL = re.compile(r"[.+*?()\[\]{}|^$\\]")
_LONGEST = 8  # parts of a value
_MOST = 100_000  # distinct values that are looked at


class Unit(NamedTuple):
    """A part of a value: what stands before it, its letters and whether a number follows. varies: other values have
    other letters here."""

    before: str
    letters: str
    is_numbered: bool
    varies: bool = False

    @property
    def expression(self) -> str:
        letters = "[A-Za-z]+" if self.varies else self.letters
        return _literal(self.before) + letters + (r"\d+" if self.is_numbered else "")


class Cut(NamedTuple):
    """A tier above the one that the whole value tells: the pattern that takes it out, and a name for it."""

    pattern: str
    name: str


def cuts(values: Iterable[str], taken: Sequence[str]) -> list[Cut]:
    """The tiers that the values hold beside the one of the whole value, from the lowest up; none where the values
    are not all built alike. taken: names that other tiers have."""
    units = _common(list(values))
    if units is None:
        return []
    ends = [at for at in range(len(units) - 1) if _tells(units, at)]
    names = _names(units, list(reversed(ends)), taken)
    return [Cut(_pattern(units, at), name) for at, name in zip(reversed(ends), names, strict=True)]


def odd_one(values: Counter[str]) -> str | None:
    """A value that is built otherwise than all others are, which hold several tiers; None where there is none."""
    shapes = Counter({value: count for value, count in values.items() if len(value) < 1000})
    if not 2 < len(shapes) <= _MOST:
        return None
    built: dict[tuple[str, ...], list[str]] = {}
    for value in shapes:
        key = tuple(
            f"{unit.before}|{unit.letters if unit.is_numbered else ''}|{unit.is_numbered}" for unit in _split(value)
        )
        built.setdefault(key, []).append(value)
    usual = max(built.values(), key=lambda each: (len(each), each))
    others = [value for each in built.values() if each is not usual for value in each]
    if 0 < len(others) * 10 <= len(shapes) and cuts(usual, ()):
        return min(others)
    return None


def _split(value: str) -> list[Unit]:
    found = [each.groups() for each in _UNITS.finditer(value)]
    return [Unit(before, letters, bool(digits)) for before, letters, digits in found if before or letters or digits]


def _common(values: Sequence[str]) -> list[Unit] | None:
    """How all the values are built; None where they differ."""
    if not values or len(values) > _MOST or max(map(len, values)) > 1000:
        return None
    split = [_split(value) for value in values]
    if not 1 < len(split[0]) <= _LONGEST or len(set(map(len, split))) > 1:
        return None
    columns = zip(*split, strict=True)
    units = [_unit(list(column)) for column in columns]
    if None in units:
        return None
    found = [unit for unit in units if unit is not None]
    return (
        found
        if all(map(_is_apart, found, [*found[1:], None])) and found[-1].letters + "0" * found[-1].is_numbered
        else None
    )


def _unit(column: list[Unit]) -> Unit | None:
    first = column[0]
    letters = {unit.letters for unit in column}
    if len({(unit.before, unit.is_numbered) for unit in column}) > 1 or (first.is_numbered and len(letters) > 1):
        return None
    return first._replace(varies=len(letters) > 1)


def _is_apart(unit: Unit, following: Unit | None) -> bool:
    """Whether one sees where the unit ends: by what stands after it, or by the letters that follow its number."""
    if following is None or following.before:
        return bool(unit.letters or unit.is_numbered)
    return unit.is_numbered and bool(unit.letters) and bool(following.letters) and not following.varies


def _tells(units: Sequence[Unit], at: int) -> bool:
    return units[at].is_numbered or units[at].varies


def _pattern(units: Sequence[Unit], at: int) -> str:
    inner = "".join(unit.expression for unit in units[: at + 1])
    following = units[at + 1]
    return f"^({inner}){_literal(following.before) or following.letters}"


def _literal(text: str) -> str:
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)


def _names(units: Sequence[Unit], ends: Sequence[int], taken: Sequence[str]) -> list[str]:
    """A name for each tier, from the lowest up: by the word before its number where that says something, else leaf,
    spine, core in this order."""
    words = [_word(units, at) for at in ends]
    used = {*taken, *(word for word in words if word and words.count(word) == 1)}
    names: list[str] = []
    for word in words:
        name = word if word and words.count(word) == 1 and word not in taken else None
        name = name or next((each for each in LADDER if each not in used), f"level-{len(names) + 2}")
        names.append(name)
        used.add(name)
    return names


def _word(units: Sequence[Unit], at: int) -> str | None:
    letters = units[at].letters
    if not letters and at and not units[at - 1].is_numbered:
        letters = units[at - 1].letters  # rack-2: the word stands apart from its number
    return None if units[at].varies else WORD_OF.get(letters.lower())
