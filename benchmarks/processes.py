"""What a whole process costs, as the operating system accounts it."""

import os
import resource
import signal
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    """Of one process: CPU seconds, peak memory in MiB, and seconds on the clock."""

    cpu: float
    memory: float
    wall: float = 0


class OverLimit(Exception):
    """The process was ended because it took more CPU time than it was given."""


def run(
    command: list[str], folder: Path, *, ends_with: int = 0, output: str = os.devnull, limit: int | None = None
) -> Cost:
    """The cost of the command in the folder, its output thrown away or in a file; it must end with the exit code.
    OverLimit where it takes more seconds of CPU."""
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # whoever uses a program has it compiled once
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
        os.execv(command[0], command)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if limit is not None and code == -signal.SIGKILL:
        raise OverLimit
    if code != ends_with:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, time.perf_counter() - started)


def median(costs: Sequence[Cost]) -> Cost:
    """The median of the times, and the highest peak."""
    cpu, wall = (statistics.median(times) for times in ([each.cpu for each in costs], [each.wall for each in costs]))
    return Cost(cpu, max(each.memory for each in costs), wall)
