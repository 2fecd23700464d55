"""What registering 1,000 objects with Pulumi costs, as a ratio to bare CustomResources of the same objects in the same
run. Both under Pulumi's mocks, in fresh processes, CPU time of the registration alone. Exit code 1 above the aim.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pulumi

from basalt.compiling import Compilation, compile_folder
from basalt.rendering import layout
from pulumi_basalt import program, registering
from pulumi_basalt.options import type_token
from tests.mock_engine import Engine

AIM = 1.5
_NODE = {"allocatable": {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}}
ENVIRONMENT = """
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: bench}
spec:
  topology:
    tiers: [{name: rack, label: example.com/rack}, {name: leaf, label: example.com/leaf}]
"""
RACKS, NODES, RACKS_OF_A_LEAF = 888, 8, 8


def write(folder: Path) -> None:
    """An environment of 999 HyperNodes: 888 racks of eight nodes, under 111 leaves."""
    folder.mkdir()
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"r{rack}-n{node}",
                "labels": {"example.com/rack": f"r{rack}", "example.com/leaf": f"l{rack // RACKS_OF_A_LEAF}"},
            },
            "status": _NODE,
        }
        for rack in range(RACKS)
        for node in range(NODES)
    ]
    (folder / "environment.yaml").write_text(ENVIRONMENT, encoding="utf-8")
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    (folder / "nodes.json").write_text(json.dumps(listed), encoding="utf-8")


def bare(compilation: Compilation) -> None:
    """The objects without components, edges and options."""
    provider = registering.provider("kubernetes", {}, identifier="bench")
    for each in layout.in_apply_order(compilation.objects):
        opts = pulumi.ResourceOptions(provider=provider)
        token = type_token(each.ref.api_version, each.ref.kind)
        pulumi.CustomResource(token, registering.name_of(each), {**each.value}, opts)


def own(compilation: Compilation) -> None:
    program.register(compilation)


HOW: dict[str, Callable[[Compilation], None]] = {"bare": bare, "own": own}


def once(how: str, folder: Path) -> None:
    """Prints the number of resources and the CPU seconds of one registration."""
    compilation = compile_folder(folder)
    start = time.process_time()
    engine = Engine().run(lambda: HOW[how](compilation))
    print(len(engine.objects), time.process_time() - start)


def measure(how: str, folder: Path) -> tuple[int, float]:
    command = [sys.executable, "-m", "benchmarks.registering", "--once", how, "--folder", str(folder)]
    count, seconds = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(count), float(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--once", choices=HOW)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.once:
        once(options.once, options.folder)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "bench"
        write(folder)
        found = [(measure("bare", folder), measure("own", folder)) for _ in range(options.runs)]
    count = found[0][1][0]
    reference, cost = (statistics.median(each[which][1] for each in found) for which in (0, 1))
    print("| objects | bare CustomResources CPU s | with Basalt CPU s | ratio |\n|---|---|---|---|")
    print(f"| {count} | {reference:.2f} | {cost:.2f} | {cost / reference:.2f} |")
    return int(cost / reference > AIM)


if __name__ == "__main__":
    sys.exit(main())
