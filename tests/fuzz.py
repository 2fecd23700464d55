"""Nearly right documents through every command, for as long as one likes: make fuzz SECONDS=1800.

    python -m tests.fuzz [--seconds 60] [--seed N] [--only EXAMPLE]

Says every example that crashed (exit code 3), was killed (10 s of CPU a command, 3 GiB) or touched what it should not,
each kind of crash once, and how to run it again. Ends with 1 where there was any.
"""

import argparse
import contextlib
import gc
import importlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.attacked import _LATE, BYTES, Ran, Watch, run
from tests.nearly_right import Files, changed, corpus

COMMANDS = (
    "check case",
    "check case --format sarif",
    "compile case -o out/tree",
    "fit case",
    "plan base case",
    "report case --base base --format html",
    "topology case",
)
_BATCH = 25


def example(number: int) -> tuple[Files, Files]:
    """The number-th example: the files as they were, and changed."""
    chance = random.Random(number)
    files = chance.choice(corpus())
    return files, changed(files, [chance.randrange(2**32) for _ in range(chance.choice((1, 1, 2, 3, 6)))])


def tried(folder: Path, number: int, *, limited: bool = False) -> Ran:
    """What the commands say of the example, in the folder, which is the current one."""
    for name, files in zip(("base", "case"), example(number), strict=True):
        for path, text in files.items():
            target = folder / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", errors="surrogatepass")
    (folder / "out").mkdir()
    (folder / "Pulumi.yaml").touch()
    return run(COMMANDS, limited=limited)


def crashes(ran: Ran) -> dict[str, str]:
    """By the last lines of its traceback, each command that ended otherwise than the contract says."""
    found = {}
    for command, (code, _, err) in ran.items():
        if code not in (0, 1):
            lines = [line.strip() for line in err.splitlines() if line.strip() and "report it" not in line]
            found[" | ".join(lines[-3:])[-300:] or str(code)] = command
    return found


def _batch(numbers: list[int]) -> tuple[int, int | None, dict[str, tuple[str, int]]]:
    """How the process ended in which the examples were tried, the example that it was at, and its crashes."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        with tempfile.TemporaryDirectory() as root, os.fdopen(writer, "w") as told:
            watch = Watch(Path(root))
            for number in numbers:
                told.write(f"{json.dumps([number, {}])}\n")
                told.flush()
                folder = Path(root, str(number))
                folder.mkdir()
                os.chdir(folder)
                gc.collect()  # the command, whose process ends, leaves it to nobody
                found = crashes(tried(folder, number, limited=True)) | dict.fromkeys(watch.touched, "touched")
                told.write(f"{json.dumps([number, found])}\n")
            os.chdir("/")
        os._exit(0)
    os.close(writer)
    lines = [json.loads(line) for line in os.fdopen(reader)]
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = {fact: (command, number) for number, found in lines for fact, command in found.items()}
    return ended, lines[-1][0] if lines else None, seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--only", type=int, metavar="EXAMPLE")
    options = parser.parse_args()
    sys.dont_write_bytecode = True
    for name in _LATE:
        importlib.import_module(f"basalt.{name}")
    corpus()
    if options.only is not None:
        with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
            for command, (code, out, err) in tried(Path(root), options.only).items():
                print(f"== {command}: {code}\n{out}{err}")
        return 0
    chance, until, count, seen = random.Random(options.seed), time.monotonic() + options.seconds, 0, Counter[str]()
    while time.monotonic() < until:
        numbers = [chance.randrange(2**48) for _ in range(_BATCH)]
        ended, last, found = _batch(numbers)
        count += len(numbers)
        if ended:
            how = "hung" if -ended in (signal.SIGPROF, signal.SIGALRM) else f"ended with {ended}"
            found[f"{how} at example {last}"] = ("killed", last or 0)
        for fact, (command, number) in found.items():
            if not seen[fact]:
                print(f"{fact}\n    {command}: python -m tests.fuzz --only {number}", flush=True)
            seen[fact] += 1
    print(f"{count} examples with seed {options.seed}: {len(seen)} kinds of crash")
    return int(bool(seen))


if __name__ == "__main__":
    sys.exit(main())
