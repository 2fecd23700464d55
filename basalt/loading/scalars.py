"""What an unquoted YAML scalar means, and whether YAML 1.1 and 1.2 readers agree on it.

Basalt takes what every reader takes: null, booleans spelt true or false, and plain decimal numbers. Anything that
readers differ on stays the text that was written, until the schema of its place asks for a boolean or a number
(loading/settling); the rule scalar-is-unambiguous speaks about it either way.
"""

import math
import re
from typing import Any

_CONSTANTS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_BOOLEAN_WORDS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_LONGEST_EXPLAINED = 40
_LONGEST = 20  # characters of a number of 64 bits, its sign included
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]{1,3})?")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,15}")
_SEXAGESIMAL = r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"
_INFINITE = r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_DATE = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?"
    r"([ \t]*(Z|[-+][0-9]{1,2}(:?[0-9]{2})?))?"
)  # as YAML 1.1 defines a timestamp
_AMBIGUOUS = re.compile(
    r"[-+]?0[0-9_]+|[-+]?0[bB][01_]+|[-+]?0[oO][0-7_]+|[-+]?0[xX][0-9a-fA-F_]+"
    r"|[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+"  # exponents: each standard asks for another form
    rf"|{_SEXAGESIMAL}|{_INFINITE}|{_DATE}"
)
# Digits, where there are underscores between them.
_GROUPED = re.compile(r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)([eE][-+]?[0-9]+)?")
_FIRST_OF_NUMBER = frozenset("+-.0123456789")


def resolve(text: str) -> tuple[Any, bool]:
    """(value, ambiguous): the value of a plain scalar, and whether YAML 1.1 and 1.2 readers differ on it."""
    if text in _CONSTANTS:
        return _CONSTANTS[text], False
    if text[0] not in _FIRST_OF_NUMBER:
        return text, text in _BOOLEAN_WORDS or text == "="
    if _INTEGER.fullmatch(text):
        return (int(text), False) if len(text) <= _LONGEST else (text, True)
    if _FLOAT.fullmatch(text):
        return (float(text), False) if math.isfinite(float(text)) else (text, True)
    if _HEX.fullmatch(text):
        return int(text, 16), False
    return text, _AMBIGUOUS.fullmatch(text) is not None or ("_" in text and _GROUPED.fullmatch(text) is not None)


def as_boolean(text: str) -> bool | None:
    """What kubectl makes of a word where a boolean is wanted; None where it is no such word."""
    return _BOOLEAN_WORDS.get(text, _CONSTANTS.get(text))


def as_null(text: str) -> None:
    """Nothing, whatever the text: what !!null says."""


def as_float(text: str) -> float | None:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def as_integer(text: str) -> int | None:
    """What kubectl makes of an ambiguous number where an integer is wanted: 010 is 8, 1_000 is 1000, 1e3 is 1000."""
    digits = text.replace("_", "").lstrip("+").lower()
    if len(digits) > _LONGEST_EXPLAINED or not re.fullmatch(r"-?[.0-9].*", digits):
        return None
    try:
        if re.fullmatch(r"-?0(x[0-9a-f]+|b[01]+|o?[0-7]+)", digits):
            return int(re.sub(r"^(-?0)(?=[0-7])", r"\1o", digits), 0)
        return int(digits) if re.fullmatch(r"-?[0-9]+", digits) else _whole(float(digits))
    except ValueError:
        return None


def _whole(number: float) -> int | None:
    return int(number) if number.is_integer() and abs(number) < 2**53 else None


_READINGS = (
    (r"[-+]?[1-9][0-9]+|[-+]?[0-9.]+[eE]\+?[0-9]{3,}", "readers round it, keep all its digits, or take it for text"),
    (r"[-+]?0[0-9_]*[89][0-9_]*|[-+]?0[oO].*", "YAML 1.2 reads a number, YAML 1.1 text"),
    (r"[-+]?[0-9.]+[eE].*", "YAML 1.2 reads a number, YAML 1.1 text"),
    (_SEXAGESIMAL, "YAML 1.1 reads a number in base 60, YAML 1.2 text"),
    (_DATE, "YAML 1.1 reads a date, YAML 1.2 text"),
    (_INFINITE, "YAML reads a number that JSON, and so the API server, does not have"),
    (r"=", "YAML 1.1 gives it a meaning of its own, YAML 1.2 reads text"),
)


def readings(text: str) -> str:
    """How the readers differ, for the message."""
    if len(text) > _LONGEST_EXPLAINED:
        return "readers of YAML differ on it"
    if (word := as_boolean(text)) is not None:
        return f"YAML 1.1 reads {str(word).lower()}, YAML 1.2 the text {text}"
    if re.fullmatch(r"[-+]?0[0-7]+", text):
        return f"YAML 1.1 reads octal {int(text, 8)}, YAML 1.2 the number {int(text)}"
    found = (reading for pattern, reading in _READINGS if re.fullmatch(pattern, text))
    return next(found, "YAML 1.1 reads a number, YAML 1.2 text")
