"""What `basalt compile` costs from end to end, as a ratio to orjson.loads of the same inventory in the same run.

Each figure is the median over fresh processes, CPU time (user and system) and peak memory as the operating system
accounts them. Exit code 1 where an aim is missed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import inventory
from benchmarks.processes import Cost, median, run

AIM = 2.0  # times the CPU time of orjson.loads
LINEAR = 1.25  # how much dearer a node may be in the largest inventory than in the smallest
ENVIRONMENT = """
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: bench}
spec:
  topology:
    tiers:
      - {name: rack, label: example.com/rack}
      - {name: leaf, label: example.com/leaf}
      - {name: spine, label: example.com/spine}
"""


def measure(nodes: int, runs: int, folder: Path) -> tuple[Cost, Cost]:
    """The median cost of orjson.loads and of `basalt compile` on an inventory of so many nodes, in turn."""
    (folder / "bench").mkdir()
    (folder / "bench" / "environment.yaml").write_text(ENVIRONMENT, encoding="utf-8")
    inventory.write(folder / "bench" / "nodes.json", nodes)
    load = [sys.executable, "-c", "import orjson; orjson.loads(open('bench/nodes.json', 'rb').read())"]
    start = [sys.executable, "-c", "import orjson"]
    compile_ = [sys.executable, "-m", "basalt", "compile", "bench", "--quiet"]
    reference, own = [], []
    for number in range(runs):
        idle = run(start, folder).cpu
        loaded = run(load, folder)
        reference.append(Cost(loaded.cpu - idle, loaded.memory))
        own.append(run([*compile_, "-o", f"out-{number}"], folder))
    return median(reference), median(own)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(
        "| nodes | inventory MB | orjson.loads CPU s | basalt compile CPU s | ratio | us a node | peak MiB (orjson) |"
    )
    print("|---|---|---|---|---|---|---|")
    ratios, per_node = [], []
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory() as folder:
            reference, own = measure(nodes, options.runs, Path(folder))
            size = (Path(folder) / "bench" / "nodes.json").stat().st_size / 1e6
        ratios.append(own.cpu / reference.cpu)
        per_node.append(own.cpu / nodes)
        cells = (nodes, f"{size:.0f}", f"{reference.cpu:.2f}", f"{own.cpu:.2f}", f"{ratios[-1]:.2f}")
        memory = f"{own.memory:.0f} ({reference.memory:.0f})"
        print("|", " | ".join(map(str, (*cells, f"{own.cpu / nodes * 1e6:.0f}", memory))), "|", flush=True)
    growth = per_node[-1] / per_node[0]
    print(f"a node costs {growth:.2f} times as much in the largest inventory as in the smallest")
    return int(max(ratios) > AIM or growth > LINEAR)


if __name__ == "__main__":
    sys.exit(main())
