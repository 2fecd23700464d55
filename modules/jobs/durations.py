"""Durations as people write them."""

import re

_DURATION = re.compile(r"([0-9]+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str | int) -> int | None:
    """How many seconds "24h", "90m", "1h30m" or 3600 is; None where it is no duration."""
    if isinstance(duration, int):
        return duration
    parts = _DURATION.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)
