"""Where the part metrics of an Environment says something."""

from collections.abc import Mapping
from typing import Any

from basalt.pointers import Pointer

AT: Pointer = ("spec", "metrics")


def written(declared: Mapping[str, Any], *path: str) -> Pointer:
    """The pointer of the field in the Environment, or of the nearest map around it that is written."""
    value: Any = declared
    for length, field in enumerate(path):
        if not isinstance(value, Mapping) or field not in value:
            return (*AT, *path[:length])
        value = value[field]
    return (*AT, *path)
