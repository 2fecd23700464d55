"""Durations as Go writes them: 1h30m.

Source: ParseDuration in time/format.go.
"""

import re

_ELEMENT = re.compile(r"([0-9]*)(\.[0-9]*)?([^.0-9]*)")
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,  # micro sign
    "\u03bcs": 10**3,  # Greek letter mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_MOST = 2**63
_DIGITS = 19  # of _MOST
_UNITS = "h, m, s, ms, us and ns"


def fault(text: str) -> str | None:
    """Why the text is no duration, else None."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return None
    total, at = 0, 0
    while at < len(rest):
        found = _ELEMENT.match(rest, at)
        assert found is not None  # it matches an empty text
        amount, reason = _element(found[1], found[2] or "", found[3])
        if reason:
            return reason
        total, at = total + amount, found.end()
        if total > _MOST:
            return "is too long"
    if not rest:
        return "is empty"
    return "is too long" if total == _MOST and text[:1] != "-" else None


def _element(whole: str, fraction: str, unit: str) -> tuple[int, str]:
    """The nanoseconds of one element, or why it is none."""
    if not whole and len(fraction) < 2:
        return 0, "is no number with a unit"
    if not unit:
        return 0, f"has a number without a unit; the units are {_UNITS}"
    if unit not in _NANOSECONDS:
        return 0, f"has the unit {unit}; the units are {_UNITS}"
    size = _NANOSECONDS[unit]
    digits = whole.lstrip("0")
    count = int(digits or "0") if len(digits) <= _DIGITS else _MOST + 1
    if count > _MOST // size:
        return 0, "is too long"
    return count * size + _fraction(fraction[1:], size), ""


def _fraction(digits: str, size: int) -> int:
    """With Go's own rounding."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > (_MOST - 1) // 10 or value * 10 + int(digit) > _MOST:
            break
        value, scale = value * 10 + int(digit), scale * 10
    return int(float(value) * (size / scale))
