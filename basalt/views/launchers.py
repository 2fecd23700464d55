"""How many processes and pods a container's launcher counts on: the flags of torchrun and its relatives."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from basalt.pointers import Pointer
from basalt.views.containers import Container

_VARIABLE = re.compile(r"\$[({]?([A-Za-z_][A-Za-z0-9_]*)[)}]?")
_NUMBER = re.compile(r"[0-9]{1,10}")
_RANGE = re.compile(r"([0-9]{1,10}):([0-9]{1,10})")
_PROCESSES = re.compile(r"(--nproc[-_]per[-_]node)(?:=|\s+|$)[\"']?([^\s\"';]*)")
_NODES = re.compile(r"(--nnodes)(?:=|\s+|$)[\"']?([^\s\"';]*)")
_ALONE = re.compile(r"--standalone\b")


class Said(NamedTuple):
    """A number that a launcher was told, least and most where it is a range; text is how it was said."""

    text: str
    pointer: Pointer
    least: int
    most: int


def processes(container: Container) -> Said | None:
    """The processes for each pod; None where the launcher counts them itself, or that is not known."""
    return next(_said(container, _PROCESSES, "PET_NPROC_PER_NODE"), None)


def nodes(container: Container) -> Said | None:
    """The pods that train together; None where nothing is said, or each trains for itself."""
    return None if _ALONE.search(container.command) else next(_said(container, _NODES, "PET_NNODES"), None)


def _said(container: Container, flag: re.Pattern[str], variable: str) -> Iterator[Said]:
    """A flag counts before a variable."""
    words = list(container.words)
    for index, (pointer, text) in enumerate(words):
        if (found := flag.search(text)) is not None:
            name, value = found.groups()
            is_next = not value and found.end() == len(text) and index + 1 < len(words)
            at, meant = words[index + 1] if is_next else (pointer, value)
            yield from _read(container, name, meant, at)
            return
    for name, pointer, value in container.environment:
        if name == variable and value is not None:
            yield from _read(container, name, value, (*pointer, "value"))


def _read(container: Container, name: str, value: str, pointer: Pointer) -> Iterator[Said]:
    meant = value
    if (variable := _VARIABLE.fullmatch(value)) is not None:
        meant = {each: text for each, _, text in container.environment if text is not None}.get(variable[1], "")
    if (bounds := _RANGE.fullmatch(meant)) is not None:
        yield Said(f"{name}={value}", pointer, int(bounds[1]), int(bounds[2]))
    elif _NUMBER.fullmatch(meant):
        yield Said(f"{name}={value}", pointer, int(meant), int(meant))
