"""What a whole process costs, as the operating system accounts it."""

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    """Of one process: CPU seconds and peak memory in MiB."""

    cpu: float
    memory: float


def run(command: list[str], folder: Path, *, ends_with: int = 0) -> Cost:
    """The cost of the command in the folder, its output thrown away; it must end with the exit code."""
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(command[0], command)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != ends_with:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(statistics.median(each.cpu for each in costs), max(each.memory for each in costs))
