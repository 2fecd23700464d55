"""Measures the same work by others and by Basalt, and prints the tables; `python -m benchmarks.performance rendering
judging` writes them into docs/performance.md. Exit code 1 where an aim is missed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.peers import judging, rendering


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=rendering.SIZES, help="HyperNodes to write")
    parser.add_argument("--objects", type=int, default=judging.COUNT, help="objects to check")
    parser.add_argument("--runs", type=int, default=rendering.RUNS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        written = rendering.measured(Path(folder), options.sizes, options.runs)
        checked = judging.measured(Path(folder), options.objects, options.runs)
    print(rendering.text(written).format_map({"cpu": "", "memory": ""}), judging.text(checked), sep="\n")
    missed = [*rendering.missed(written), *judging.missed(checked)]
    print("".join(f"{each}\n" for each in missed), end="", file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
