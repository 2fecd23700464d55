"""A text in the one style, and the proof that nothing is lost: the values and the comments of both are compared."""

import re
from collections import Counter
from itertools import zip_longest
from typing import Any, NamedTuple

import yaml

from basalt.formatting.key_order import ordered
from basalt.formatting.tokens import comments
from basalt.formatting.writing import written
from basalt.loading import marks, yaml_text
from basalt.loading.limits import Fault
from basalt.pointers import Pointer

_BOM = "\ufeff"
_MARK, _BREAK = re.compile(_BOM), re.compile("[\x85\u2028\u2029]|\r(?!\n)")
_AS_IT_IS = "keep the file out of `basalt fmt`, or write the part in plainer YAML"


class Refusal(Exception):
    """The text stays as it is; the message says why, line where."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def formatted(text: str) -> str:
    """The text in the one style. Raises Fault where it cannot be read, Refusal where the style cannot be changed
    without a loss."""
    bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    before = _meaning(body)
    line_end = "\r\n" if body.partition("\n")[0].endswith("\r") else "\n"  # as of the first line
    plain = body.replace("\r\n", "\n")
    if marks.has_other_breaks(plain):
        raise Refusal(
            "it has line ends that are not those of editors (U+0085, U+2028, U+2029 or a lone CR)",
            _line_of(_BREAK, plain),
        )
    try:
        return bom + _laid_out(_without_open_end(plain, before), before).replace("\n", line_end)
    except Refusal:
        if _BOM not in plain:
            raise
    raise Refusal("a byte order mark within the text (U+FEFF); remove it, it cannot be seen", _line_of(_MARK, plain))


def _without_open_end(plain: str, before: list["_Meaning"]) -> str:
    """The text without blanks after its last line end, where they are no part of a value."""
    shorter = plain.rstrip(" \t")
    is_open = shorter != plain and shorter.endswith("\n")
    return shorter if is_open and _are_same(before, _meaning(shorter)) else plain


def _line_of(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return 1 + text.count("\n", 0, found.start()) if found else 1


def _laid_out(plain: str, before: list["_Meaning"]) -> str:
    try:
        laid_out = written(plain)
        if comments(plain) != comments(laid_out):
            raise Refusal("a comment would be lost; move it to a line of its own", _other_comment(plain, laid_out))
        result = _in_order(laid_out, before)
        after = before if result != laid_out else _meaning(laid_out)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise Refusal(
            f"its style cannot be changed ({error.problem}); {_AS_IT_IS}", mark.line + 1 if mark else 1
        ) from None
    except (yaml.YAMLError, Fault, AssertionError, RecursionError, LookupError) as error:
        raise Refusal(f"its style cannot be changed ({type(error).__name__}); {_AS_IT_IS}") from None
    if not _are_same(before, after):
        way_out = _AS_IT_IS if plain.endswith("\n") else "end the file with a line end"
        raise Refusal(f"a value would change; {way_out}", _other_value(plain, before, after))
    return result


def _in_order(laid_out: str, before: list["_Meaning"]) -> str:
    """The text with the keys in order; as it is where more than an order would change."""
    result = ordered(laid_out)
    if result == laid_out:
        return laid_out
    result = written(result)  # blank lines that ended a text may end the file now
    is_kept = Counter(comments(laid_out)) == Counter(comments(result)) and ordered(result) == result
    return result if is_kept and _are_same(before, _meaning(result)) else laid_out


def _other_comment(plain: str, laid_out: str) -> int:
    """The line of the first comment that is not the same in both."""
    one, other = comments(plain), comments(laid_out)
    lost = next((text for text, kept in zip_longest(one, other) if text != kept), None)
    return _line_of(re.compile(re.escape(lost)), plain) if lost else 1


def _other_value(plain: str, before: list["_Meaning"], after: list["_Meaning"]) -> int:
    """The line where the first document begins that is not the same in both."""
    at = next(
        (at for at, pair in enumerate(zip(before, after, strict=False)) if not _are_same(*([x] for x in pair))), 0
    )
    starts = [0, *(found.end() for found in re.finditer(r"^---(?=\s)", plain, re.MULTILINE))]
    first = starts[min(at + (len(starts) > len(before)), len(starts) - 1)]
    return 1 + plain.count("\n", 0, first)


class _Meaning(NamedTuple):
    """What a document says: its value, the texts that readers differ on, and how many faults it has."""

    value: Any
    ambiguous: frozenset[tuple[str, Pointer, bool]]
    faults: int


def _meaning(text: str) -> list[_Meaning]:
    return [
        _Meaning(each.value, frozenset(found[1:] for found in each.ambiguous), len(each.faults))
        for each in yaml_text.documents(text, with_positions=True)
    ]


def _are_same(one: list[_Meaning], other: list[_Meaning]) -> bool:
    told = [(each.ambiguous, each.faults) for each in one] == [(each.ambiguous, each.faults) for each in other]
    return told and is_same([each.value for each in one], [each.value for each in other])


def is_same(one: Any, other: Any) -> bool:
    """Whether the values are equal, where 1, 1.0 and true differ, and the order of keys does not count. Iterative:
    aliases may nest deeper than any text."""
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            if one.keys() != other.keys():
                return False
            pairs.extend((child, other[key]) for key, child in one.items())
        elif isinstance(one, list):
            if len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif repr(one) != repr(other):
            return False
    return True
