"""What `basalt compile` costs from end to end, as a ratio to orjson.loads of the same inventory in the same run; what
`basalt check` costs after one line has changed; and what a command costs before it does anything.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import inventory
from benchmarks.page import Figures, Section, table
from benchmarks.plot import Plot
from benchmarks.processes import Cost, median, run

ROOT = Path(__file__).resolve().parent.parent
NODES = (1_000, 10_000, 100_000)
AIM_RATIO, AIM_MIB, AIM_CHANGED = 1.0, 1536, 1.0  # of orjson.loads' CPU; peak; CPU seconds: at the largest
LINEAR = 1.25  # how much dearer one more node may be in the largest inventory than in the one before
AIM_VERSION, AIM_CHECK = 1.5, 4.0  # times the interpreter with what the command imports
YAML_NODES = 1_000
_RUNS, _STARTS = 3, 15
ENVIRONMENT = """
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: bench}
spec:
  kubernetes: {version: "1.34"}
  topology:
    tiers:
      - {name: rack, label: example.com/rack}
      - {name: leaf, label: example.com/leaf}
      - {name: spine, label: example.com/spine}
  queues:
    research: {capability: {nvidia.com/gpu: 48}, weight: 1}
"""
JOB = """
---
apiVersion: basalt.dev/v1alpha1
kind: Team
metadata: {name: vision}
spec:
  access: {admin: [vision-leads], edit: [], view: []}
  namespaces: {vision-train: {quota: {cpu: 512, memory: 4Ti, nvidia.com/gpu: 48, pods: 500}}}
  queue: {parent: research}
---
apiVersion: basalt.dev/v1alpha1
kind: TrainingJob
metadata: {name: resnet, namespace: vision-train}
spec:
  framework: plain
  image: registry.example.com/vision/resnet:1.4.2
  roles:
    worker: {replicas: 4, command: [train], resources: {cpu: 16, memory: 128Gi, nvidia.com/gpu: 8}}
  topology: {mode: hard, highestTier: leaf}
"""
_BASALT = [sys.executable, "-m", "basalt"]
_IMPORTED = """
import sys
before = set(sys.modules)
from basalt import cli
cli.main(sys.argv[1:])
print("\\n" + " ".join(sorted(set(sys.modules) - before)))
"""
_DOCUMENTS = "from basalt.loading.yaml_text import documents"
_READERS = {
    "PyYAML CSafeLoader": (False, "import yaml; list(yaml.load_all(open('nodes.yaml'), yaml.CSafeLoader))"),
    "PyYAML compose, C": (True, "import yaml; list(yaml.compose_all(open('nodes.yaml'), yaml.CSafeLoader))"),
    "PyYAML compose, Python": (True, "import yaml; list(yaml.compose_all(open('nodes.yaml'), yaml.SafeLoader))"),
    "Basalt, positions on demand": (False, f"{_DOCUMENTS}; list(documents(open('nodes.yaml').read()))"),
    "Basalt, every position": (True, f"{_DOCUMENTS}; list(documents(open('nodes.yaml').read(), with_positions=True))"),
}


def measured(folder: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        sizes = [_size(folder / str(nodes), nodes) for nodes in NODES]
    return {"sizes": sizes, "start": _starts(), "yaml": _readers(folder / "yaml")}


def _size(folder: Path, nodes: int) -> dict[str, Any]:
    (folder / "bench").mkdir(parents=True)
    environment = folder / "bench" / "environment.yaml"
    environment.write_text(ENVIRONMENT, encoding="utf-8")
    inventory.write(folder / "bench" / "nodes.json", nodes)
    load = [sys.executable, "-c", "import orjson; orjson.loads(open('bench/nodes.json', 'rb').read())"]
    start = [sys.executable, "-c", "import orjson"]
    found: dict[str, list[Cost]] = {"orjson": [], "compile": [], "check": [], "changed": [], "job": []}
    for number in range(_RUNS):
        idle = run(start, folder).cpu
        loaded = run(load, folder)
        found["orjson"].append(Cost(loaded.cpu - idle, loaded.memory, loaded.wall))
        found["compile"].append(run([*_BASALT, "compile", "bench", "--quiet", "-o", f"out-{number}"], folder))
        found["check"].append(run([*_BASALT, "check", "bench", "--quiet", "--no-cache"], folder))
        run([*_BASALT, "check", "bench", "--quiet"], folder)
        environment.write_text(ENVIRONMENT.replace("48", str(47 - number)), encoding="utf-8")
        found["changed"].append(run([*_BASALT, "check", "bench", "--quiet"], folder))
        environment.write_text(ENVIRONMENT + JOB, encoding="utf-8")
        found["job"].append(run([*_BASALT, "check", "bench", "--quiet"], folder))
        environment.write_text(ENVIRONMENT, encoding="utf-8")
    print(f"{nodes} nodes measured", file=sys.stderr, flush=True)
    size = (folder / "bench" / "nodes.json").stat().st_size
    return {"nodes": nodes, "mb": round(size / 1e6), **{name: _shown(median(costs)) for name, costs in found.items()}}


def _shown(cost: Cost) -> dict[str, float]:
    return {"cpu": round(cost.cpu, 4), "wall": round(cost.wall, 4), "mib": round(cost.memory)}


def _starts() -> dict[str, Any]:
    """Each command beside an interpreter that only imports what the command does of others' packages."""
    found = {}
    for name, command in {"version": ["--version"], "check": ["check", "seed", "--quiet"]}.items():
        run([sys.executable, "-c", _IMPORTED, *command], ROOT, output=(out := f"/tmp/basalt-imports-{os.getpid()}"))
        modules = Path(out).read_text(encoding="utf-8").splitlines()[-1].split()
        Path(out).unlink()
        others = [each for each in modules if each.partition(".")[0] not in ("basalt", "modules", "__main__")]
        statements = ["import importlib, contextlib, sys"]
        statements += [f"with contextlib.suppress(Exception): importlib.import_module({each!r})" for each in others]
        pairs = [
            (run([sys.executable, "-c", "\n".join(statements)], ROOT), run([*_BASALT, *command], ROOT))
            for _ in range(_STARTS)
        ]
        found[name] = {
            "bare": _shown(median([run([sys.executable, "-c", "pass"], ROOT) for _ in range(_STARTS)])),
            "imports": _shown(median([each for each, _ in pairs])),
            "own": _shown(median([each for _, each in pairs])),
            "packages": len({each.partition(".")[0] for each in others}),
        }
    return found


def _readers(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    items = [inventory.node(number) for number in range(YAML_NODES)]
    listing = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    text = yaml.dump(listing, Dumper=yaml.CSafeDumper)
    (folder / "nodes.yaml").write_text(text, encoding="utf-8")
    (folder / "nodes.json").write_text(json.dumps(listing, indent=4), encoding="utf-8")
    found: dict[str, Any] = {"mb": round(len(text) / 1e6, 1)}
    for name, (keeps, program) in _READERS.items():
        command = [sys.executable, "-c", f"import gc; gc.disable(); {program}"]
        cost = median([run(command, folder) for _ in range(_RUNS)])
        found[name] = {"positions": keeps, **_shown(cost)}
    program = "from basalt.loading import nodes; nodes.decode(open('nodes.json', 'rb').read())"
    found["the same as JSON"] = {
        "positions": False, **_shown(median([run([sys.executable, "-c", program], folder) for _ in range(_RUNS)])),
    }  # fmt: skip
    return found


def text(figures: Figures) -> str:
    sizes, largest = figures["sizes"], figures["sizes"][-1]
    ratio = largest["compile"]["cpu"] / largest["orjson"]["cpu"]
    return f"""
`basalt compile` reads, validates, derives, judges by every rule, renders and writes; inventories are as kubectl prints
them, 10 kB a node, with three tiers. It takes {ratio:.2f} times the CPU time that `orjson.loads` takes for the largest
inventory alone: large ones are read piece by piece, only the fields that matter are decoded, and nothing else is kept.

{{nodes}}

{
        table(
            (
                "nodes",
                "inventory MB",
                "orjson.loads CPU s",
                "compile CPU s",
                "ratio",
                "us a node",
                "peak MiB (orjson)",
                "check CPU s",
                "after one changed line",
                "peak MiB",
                "with a new job",
            ),
            [
                (
                    f"{each['nodes']:,}",
                    each["mb"],
                    f"{each['orjson']['cpu']:.2f}",
                    f"{each['compile']['cpu']:.2f}",
                    f"{each['compile']['cpu'] / each['orjson']['cpu']:.2f}",
                    f"{each['compile']['cpu'] / each['nodes'] * 1e6:.0f}",
                    f"{each['compile']['mib']} ({each['orjson']['mib']})",
                    f"{each['check']['cpu']:.2f}",
                    f"{each['changed']['cpu']:.2f}",
                    each["changed"]["mib"],
                    f"{each['job']['cpu']:.2f}",
                )
                for each in sizes
            ],
        )
    }

One more node costs {_step(sizes[1:]) * 1e6:.0f} us up to the largest, and {_step(sizes[:2]) * 1e6:.0f} us up to the
one before it. The last columns are `basalt check`: as a whole, and once more after a line of the Environment has changed
(a queue's capability), when it takes from its cache that nodes and HyperNodes by themselves are sound; what is left is
reading the inventory to know that it is the same. Inventories up to 16 MiB are never taken from a cache. Jobs make it
read the nodes again: their verdicts are about them.

### Starting

{
        table(
            ("command", "python -c pass, ms", "with the packages it imports, ms", "command, ms", "ratio"),
            [
                (
                    name,
                    f"{each['bare']['cpu'] * 1e3:.0f}",
                    f"{each['imports']['cpu'] * 1e3:.0f}",
                    f"{each['own']['cpu'] * 1e3:.0f}",
                    f"{each['own']['cpu'] / each['imports']['cpu']:.1f}",
                )
                for name, each in (
                    ("basalt --version", figures["start"]["version"]),
                    ("basalt check seed", figures["start"]["check"]),
                )
            ],
        )
    }

CPU time; the packages are those that others wrote, the standard library's and the locked ones.

### Inventories in YAML

{
        table(
            ("reader", "positions", "CPU s", "peak MiB"),
            [
                (name, "yes" if each["positions"] else "", f"{each['cpu']:.2f}", each["mib"])
                for name, each in figures["yaml"].items()
                if name != "mb"
            ],
        )
    }

{YAML_NODES:,} nodes, {
        figures["yaml"]["mb"]
    } MB. PyYAML's composer in C knows positions and is fast, but gives nodes whose types are
still to be found, and overflows the stack at 25,000 levels. Of what gives values and knows where they stand, a loop over
libyaml's events is the fastest here; Basalt runs it without positions first, and again where something is to be said.
"""  # noqa: E501 - a row of a table


def _step(sizes: Sequence[Mapping[str, Any]]) -> float:
    """CPU seconds for one more node between two sizes."""
    first, last = sizes
    return float((last["compile"]["cpu"] - first["compile"]["cpu"]) / (last["nodes"] - first["nodes"]))


def plots(figures: Figures) -> dict[str, Plot]:
    points = [(each["nodes"], each["compile"]["cpu"]) for each in figures["sizes"]]
    return {"nodes": Plot("basalt compile, against nodes", "nodes", "CPU s", points)}


def missed(figures: Figures) -> list[str]:
    sizes, start = figures["sizes"], figures["start"]
    last = sizes[-1]
    aims = {
        "compile, in orjson.loads": (last["compile"]["cpu"] / last["orjson"]["cpu"], AIM_RATIO),
        "compile, MiB": (last["compile"]["mib"], AIM_MIB),
        "one more node in the largest": (_step(sizes[1:]) / _step(sizes[:2]), LINEAR),
        "check after one changed line, s": (last["changed"]["cpu"], AIM_CHANGED),
        "--version": (start["version"]["own"]["cpu"] / start["version"]["imports"]["cpu"], AIM_VERSION),
        "check seed": (start["check"]["own"]["cpu"] / start["check"]["imports"]["cpu"], AIM_CHECK),
    }
    return [f"{name}: {found:.2f}, the aim is {aim}" for name, (found, aim) in aims.items() if found > aim]


SECTION = Section("end-to-end", "From end to end", measured, text, plots, missed)
