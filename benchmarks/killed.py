"""Compiles killed at random moments, and two at once into one folder: how often the tree that is left is torn or mixed.

    python -m benchmarks.killed [--kills 200] [--pairs 50] [--seed 7]

Ends with 1 where any tree was neither the old one nor the new one. A shorter form of both is in tests/test_switch.py.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

_HEAD = "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\n"
_COMPILE = [sys.executable, "-m", "basalt", "compile", "e", "--quiet", "-o"]
_OBJECTS = 400
_ROOT = Path(__file__).resolve().parent.parent

Tree = dict[str, bytes]


def environment(folder: Path, value: int) -> None:
    """An environment of which every object says the value."""
    priorities = ", ".join(f"p{number}: {{value: {value + number}}}" for number in range(_OBJECTS))
    (folder / "e").mkdir(parents=True, exist_ok=True)
    (folder / "e" / "environment.yaml").write_text(f"{_HEAD}spec: {{priorities: {{{priorities}}}}}\n")


def started(folder: Path, out: Path) -> "subprocess.Popen[bytes]":
    surroundings = {**os.environ, "PYTHONPATH": str(_ROOT)}
    return subprocess.Popen([*_COMPILE, str(out)], cwd=folder, env=surroundings)


def tree(folder: Path) -> Tree:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def killed(root: Path, kills: int, chance: random.Random) -> Counter[str]:
    """How many of the runs left which tree. Half of the moments are in the last quarter of a run, where it writes."""
    folder, out, trees, length = root / "killed", root / "out-killed", [], 0.0
    for value in (0, 10_000):
        environment(folder, value)
        begun = time.monotonic()
        assert started(folder, out).wait() == 0
        length = time.monotonic() - begun
        trees.append(tree(out))
    found: Counter[str] = Counter()
    for attempt in range(kills):
        new = attempt % 2
        environment(folder, 10_000 * new)
        process = started(folder, out)
        moment = chance.uniform(0, length) if attempt % 4 < 2 else chance.uniform(length * 0.75, length * 1.05)
        try:
            process.wait(timeout=moment)
            found["not killed in time"] += 1
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        left = tree(out)
        found["the new tree" if left == trees[new] else "the old tree" if left in trees else "torn or mixed"] += 1
        found["a stage left behind"] += any(name.startswith(".basalt-stage-") for name in os.listdir(root))
    assert started(folder, out).wait() == 0
    found["a stage left behind by the next run"] = sum(name.startswith(".basalt-") for name in os.listdir(root))
    return found


def at_once(root: Path, pairs: int) -> Counter[str]:
    """How many pairs of runs into one folder left which tree."""
    trees, folders = [], [root / "one", root / "two"]
    for value, folder in enumerate(folders):
        environment(folder, 10_000 * value)
        assert started(folder, folder / "alone").wait() == 0
        trees.append(tree(folder / "alone"))
    found: Counter[str] = Counter()
    for _ in range(pairs):
        both = [started(folder, root / "shared") for folder in folders]
        found["failed"] += sum(process.wait() != 0 for process in both)
        left = tree(root / "shared")
        found[f"the tree of {trees.index(left) + 1}" if left in trees else "torn or mixed"] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        alone = killed(Path(name), options.kills, random.Random(options.seed))
        print(f"{options.kills} runs killed: {dict(sorted(alone.items()))}", flush=True)
        both = at_once(Path(name), options.pairs)
        print(f"{options.pairs} pairs at once: {dict(sorted(both.items()))}")
    is_sound = not (alone["torn or mixed"] or both["torn or mixed"] or both["failed"])
    return int(not (is_sound and not alone["a stage left behind by the next run"]))


if __name__ == "__main__":
    sys.exit(main())
