"""A text in the one style, and the proof that nothing is lost: the values and the comments of both are compared."""

from collections import Counter
from typing import Any, NamedTuple

from basalt.formatting.key_order import ordered
from basalt.formatting.tokens import comments
from basalt.formatting.writing import written
from basalt.loading import marks, yaml_text
from basalt.pointers import Pointer

_BOM = "\ufeff"


class Refusal(Exception):
    """The text stays as it is; the message says why."""


def formatted(text: str) -> str:
    """The text in the one style. Raises Fault where it cannot be read, Refusal where the style cannot be changed
    without a loss."""
    bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    before = _meaning(body)
    line_end = "\r\n" if body.partition("\n")[0].endswith("\r") else "\n"  # as of the first line
    plain = body.replace("\r\n", "\n")
    if marks.has_other_breaks(plain):
        raise Refusal("it has line ends that are not those of editors (U+0085, U+2028, U+2029 or a lone CR)")
    laid_out = written(plain)
    result = ordered(laid_out)
    if comments(plain) != comments(laid_out) or Counter(comments(plain)) != Counter(comments(result)):
        raise Refusal("a comment would be lost")
    if not _are_same(before, _meaning(result)):
        raise Refusal("a value would change")
    return bom + result.replace("\n", line_end)


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
