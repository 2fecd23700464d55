"""Values to YAML that every YAML 1.1 and 1.2 reader takes back as the same value.

PyYAML's own dumper leaves y, N, 08, 0o10 and 1e3 unquoted, which kubectl reads as booleans and numbers.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*|[0-9]+[A-Za-z_-][A-Za-z0-9_-]*")
_WORDS = frozenset("y n yes no on off true false null ~ . .. .inf .nan nan inf infinity".split())
_NUMBER_LIKE = re.compile(r"[-+.]?[0-9_][0-9_.eExXoObBaAcCdDfF:+-]*")
_ESCAPED = re.compile("[\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")
_BLOCK_LINE = re.compile(r"([!-~]([ -~]*[!-~])?)?")
_NEWLINE = "\n"
_MAPS = (dict, Mapping)  # a dict is quick to tell, Mapping is not
_BLOCK_FIRST = re.compile(r"[!-~]([ -~]*[!-~])?")


@lru_cache(maxsize=262144)
def text(value: str) -> str:
    """The scalar that reads back as this text: plain where that is safe, else double-quoted as JSON does it."""
    if _PLAIN.fullmatch(value) and value.casefold() not in _WORDS and not _NUMBER_LIKE.fullmatch(value):
        return value
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def document(value: Mapping[str, Any]) -> str:
    """One document in block style, keys in the order given, ending in a newline."""
    lines: list[str] = []
    _mapping(value, "", lines)
    lines.append("")
    return "\n".join(lines)


def _mapping(value: Mapping[str, Any], indent: str, lines: list[str], first: str | None = None) -> None:
    """Lines of a map's entries; first, where given, is the prefix of the first line (a list's dash)."""
    prefix = indent if first is None else first
    for key, child in value.items():
        head = f"{prefix}{text(key)}:"
        prefix = indent
        if isinstance(child, str):
            lines.append(f"{head} {text(child) if _NEWLINE not in child else _string(child, indent)}")
        elif isinstance(child, _MAPS) and child:
            lines.append(head)
            _mapping(child, indent + "  ", lines)
        elif isinstance(child, list) and child:
            lines.append(head)
            _sequence(child, indent, lines)
        else:
            lines.append(f"{head} {_scalar(child, indent)}")


def _sequence(value: list[Any], indent: str, lines: list[str]) -> None:
    """Lines of a list's items, each behind a dash at the indent of the list's own key, as kubectl prints them."""
    inner, dash = indent + "  ", indent + "- "
    for child in value:
        if isinstance(child, _MAPS) and child:
            _mapping(child, inner, lines, dash)
        elif isinstance(child, list) and child:
            lines.append(dash.rstrip())
            _sequence(child, inner, lines)
        else:
            lines.append(dash + _scalar(child, indent))


def _scalar(value: Any, indent: str) -> str:
    if isinstance(value, str):
        return _string(value, indent)
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value) if value is None or isinstance(value, bool | int) else "[]" if value == [] else "{}"


def _string(value: str, indent: str) -> str:
    return _block(value, indent + "  ") if "\n" in value and _is_plain_text(value) else text(value)


def _number(value: float) -> str:
    shown = repr(value)
    mantissa, exponent, power = shown.partition("e")
    if not exponent:
        return shown
    sign = "" if power.startswith("-") else "+"  # YAML 1.1 asks for a point and a sign
    return f"{mantissa}{'' if '.' in mantissa else '.0'}e{sign}{power.lstrip('+')}"


def _is_plain_text(value: str) -> bool:
    """Whether a literal block keeps the text: printable ASCII, no blanks at line ends, at most one final newline."""
    lines = value.removesuffix("\n").split("\n")
    return bool(_BLOCK_FIRST.fullmatch(lines[0])) and bool(lines[-1]) and all(map(_is_block_line, lines))


def _is_block_line(line: str) -> bool:
    return not line or (bool(_BLOCK_LINE.fullmatch(line.lstrip(" "))) and not line.isspace())


def _block(value: str, indent: str) -> str:
    style = "|" if value.endswith("\n") else "|-"
    lines = value.removesuffix("\n").split("\n")
    return "\n".join([style, *(indent + line if line else "" for line in lines)])
