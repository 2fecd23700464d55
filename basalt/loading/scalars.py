"""What an unquoted YAML scalar means, and whether YAML 1.1 and 1.2 readers agree on it.

Basalt takes what every reader takes: null, booleans spelt true or false, and plain decimal numbers. Anything that
readers differ on stays the text that was written, until the schema of its place asks for a boolean or a number
(documents.settle); the rule scalar-is-unambiguous speaks about it either way.
"""

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
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]{1,3})?")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,30}")
_AMBIGUOUS_NUMBER = re.compile(
    r"[-+]?0[0-9_]+|[-+]?0b[01_]+|0o[0-7_]+"  # octal or decimal; binary; octal as 1.2 writes it
    r"|[-+]?[0-9][0-9_]*_[0-9_.]*"  # digits grouped by underscores
    r"|[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9_]*)?"  # base 60
    r"|[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+"  # exponents: each standard asks for another form
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|="
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?"  # a date
)
_FIRST_OF_SPECIAL = frozenset("+-.0123456789=nNtTfFyYoO~")


def resolve(text: str) -> tuple[Any, bool]:
    """(value, ambiguous): the value of a plain scalar, and whether YAML 1.1 and 1.2 readers differ on it."""
    if text in _CONSTANTS:
        return _CONSTANTS[text], False
    if text[0] not in _FIRST_OF_SPECIAL:
        return text, False
    if _INTEGER.fullmatch(text):
        return int(text), False
    if _FLOAT.fullmatch(text):
        return float(text), False
    if text in _BOOLEAN_WORDS or _AMBIGUOUS_NUMBER.fullmatch(text):
        return text, True
    return (int(text, 16), False) if _HEX.fullmatch(text) else (text, False)


def as_boolean(text: str) -> bool | None:
    """What kubectl makes of an ambiguous word where a boolean is wanted; None where it is no such word."""
    return _BOOLEAN_WORDS.get(text)


def as_integer(text: str) -> int | None:
    """What kubectl makes of an ambiguous number where an integer is wanted: 010 is 8, 1_000 is 1000, 1e3 is 1000."""
    digits = text.replace("_", "").lstrip("+")
    try:
        if re.fullmatch(r"-?0o?[0-7]+", digits):
            return int(digits.replace("o", ""), 8)
        if re.fullmatch(r"-?0[bB][01]+", digits):
            return int(digits, 2)
        return int(digits) if re.fullmatch(r"-?[0-9]{1,30}", digits) else _whole(float(digits))
    except ValueError:
        return None


def _whole(number: float) -> int | None:
    return int(number) if number.is_integer() and abs(number) < 2**53 else None


def readings(text: str) -> str:
    """How the readers differ, for the message."""
    if (word := as_boolean(text)) is not None:
        return f"YAML 1.1 reads {str(word).lower()}, YAML 1.2 the text {text}"
    if re.fullmatch(r"[-+]?0[0-7]+", text):
        return f"YAML 1.1 reads octal {int(text, 8)}, YAML 1.2 the number {int(text)}"
    if re.fullmatch(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9_]*)?", text):
        return "YAML 1.1 reads a number in base 60, YAML 1.2 text"
    if re.fullmatch(r"[0-9]{4}-.*", text):
        return "YAML 1.1 reads a date, YAML 1.2 text"
    if re.fullmatch(r"[-+]?[0-9.]+[eE].*|0o.*|0[0-9]+", text):
        return "YAML 1.2 reads a number, YAML 1.1 text"
    return "YAML 1.1 reads a number, YAML 1.2 text"
