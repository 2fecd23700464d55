"""JSON pointers (RFC 6901) as tuples: ("spec", "tiers", 0, "label"). Knows nothing of what they point into."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Pointer = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def render(pointer: Pointer) -> str:
    """The pointer as RFC 6901 writes it: /spec/queues/a~1b."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in pointer)


def dotted(pointer: Pointer) -> str:
    """The pointer as people read it: spec.tiers[0].capability["nvidia.com/gpu"]."""
    text = ""
    for part in pointer:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


def parse(text: str) -> tuple[str, ...]:
    """The parts of an RFC 6901 pointer, all as strings; ValueError where it does not start with a slash."""
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError(f"a JSON pointer starts with /, this one does not: {text}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def resolve(value: Any, parts: Sequence[str]) -> Pointer | None:
    """The textual parts as a typed pointer into value (list indices as ints); None where nothing is there."""
    pointer: list[str | int] = []
    for part in parts:
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            pointer.append(int(part))
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            pointer.append(part)
            value = value[part]
        else:
            return None
    return tuple(pointer)


def has(value: Any, pointer: Pointer) -> bool:
    """Whether value has something at the pointer, be it null."""
    for part in pointer:
        if isinstance(part, int):
            if not isinstance(value, list) or part >= len(value):
                return False
        elif not isinstance(value, Mapping) or part not in value:
            return False
        value = value[part]
    return True


def existing(value: Any, pointer: Pointer) -> Pointer:
    """The longest part of the pointer at which value has something."""
    return next(pointer[:length] for length in range(len(pointer), -1, -1) if has(value, pointer[:length]))


def get(value: Any, pointer: Pointer, default: Any = None) -> Any:
    """What value has at the pointer, else the default."""
    for part in pointer:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return default
    return value
