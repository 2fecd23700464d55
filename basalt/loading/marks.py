"""Where something stands in a text, counted as editors count: a line ends at a line feed, and nowhere else."""

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

# libyaml ends lines at these too, and would count them.
_OTHER_BREAKS = re.compile("[\x85\u2028\u2029]|\r(?!\n)")


class Mark(NamedTuple):
    """Where something stands in a text; both count from 1."""

    line: int
    column: int


class Lines:
    """The lines of a text."""

    def __init__(self, text: str) -> None:
        self._newlines = [-1, *(found.start() for found in re.finditer("\n", text))]

    def mark(self, offset: int) -> Mark:
        line = bisect_right(self._newlines, offset - 1)
        return Mark(line, offset - self._newlines[line - 1])


def has_other_breaks(text: str) -> bool:
    """Whether the text has line ends that YAML 1.1 counts and editors do not."""
    return _OTHER_BREAKS.search(text) is not None


def of_yaml(text: str) -> Callable[[Any], Mark]:
    """What makes a Mark of libyaml's own mark."""
    if not has_other_breaks(text):
        return _plain
    lines = Lines(text)
    return lambda mark: lines.mark(mark.index)


def _plain(mark: Any) -> Mark:
    return Mark(mark.line + 1, mark.column + 1)
