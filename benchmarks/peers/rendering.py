"""What it costs to write N HyperNodes as YAML: by Basalt, which also judges them, and by others, which do not."""

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import processes
from benchmarks.page import Figures, Section, table
from benchmarks.peers import programs, work
from benchmarks.plot import Bars
from benchmarks.processes import Cost, OverLimit

SIZES, RUNS, LIMIT = (1_000, 5_000, 20_000), 3, 120  # the limit is in seconds of CPU
AIMS = {"helm": 1, "cdk8s-node": 10, "cdk8s-python": 10, "pulumi": 50}  # so many times what Basalt takes, or more
_STREAM = "stream.yaml"
_BASALT = [sys.executable, "-m", "basalt", "compile"]


class Way(NamedTuple):
    """How the HyperNodes are written: a name and what the page says of it; the command, or Refusal where the program
    cannot be had; where its output is, and what makes it print what it does not write."""

    name: str
    title: str
    given: str
    command: Callable[[], list[str]]
    output: str = _STREAM
    printing: tuple[str, ...] = ()


def _basalt(folder: str, output: str) -> Callable[[], list[str]]:
    return lambda: [*_BASALT, folder, "--quiet", "-o", output]


def _cdk8s_node() -> list[str]:
    packages = programs.node("cdk8s_node")
    return [programs.found("env"), f"NODE_PATH={packages}", programs.found("node"), "cdk8s_app.js"]


def _cdk8s_python() -> list[str]:
    programs.found("node")  # which jsii runs
    quiet = "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=18,20,22,24"
    return [programs.found("env"), quiet, str(programs.python("cdk8s_python")), "cdk8s_app.py"]


def _helm() -> list[str]:
    helm = programs.go("helm", "helm.sh/helm/v4/cmd/helm")
    return [str(helm), "template", "bench", "chart", "-f", "hypernodes.json"]


WAYS = (
    Way("basalt", "Basalt, to one stream", "inventory", _basalt("inventory", "-")),
    Way("basalt-tree", "Basalt, a file for each", "inventory", _basalt("inventory", "tree"), "tree"),
    Way("basalt-manifests", "Basalt, raw manifests", "manifests", _basalt("manifests", "-")),
    Way("helm", "helm template", "list", _helm),
    Way("jsonnet", "go-jsonnet", "list",
        lambda: [str(programs.go("jsonnet", "github.com/google/go-jsonnet/cmd/jsonnet")), "-y", "hypernodes.jsonnet"]),
    Way("kcl", "KCL", "list", lambda: [str(programs.python("kcl")), "kcl_render.py"]),
    Way("cdk8s-node", "cdk8s, Node", "list", _cdk8s_node, "dist/hypernodes.k8s.yaml"),
    Way("cdk8s-python", "cdk8s, Python", "list", _cdk8s_python, "dist/hypernodes.k8s.yaml"),
    Way("kustomize", "kustomize", "manifests",
        lambda: [str(programs.go("kustomize", "sigs.k8s.io/kustomize/kustomize/v5")), "build", "."]),
    Way("pulumi", "Pulumi, Python, mocks", "list", lambda: [sys.executable, "pulumi_bare.py"], printing=("--print",)),
)  # fmt: skip


def measured(folder: Path, sizes: Sequence[int] = SIZES, runs: int = RUNS) -> dict[str, Any]:
    """By size and way, the median cost, None where it is over the limit; the ways that are left out, with reasons."""
    ways, left = _to_be_had()
    found = {str(size): _at(folder / str(size), size, ways, runs) for size in sizes}
    return {
        "runs": runs,
        "limit": LIMIT,
        "left": left,
        "sizes": found,
        "versions": {**programs.versions(), "Pulumi": metadata.version("pulumi")},
    }


def _to_be_had() -> tuple[dict[Way, list[str]], dict[str, str]]:
    ways, left = {}, {}
    for way in WAYS:
        try:
            ways[way] = way.command()
        except programs.Refusal as refusal:
            left[way.title] = str(refusal)
            print(f"left out: {way.title}: {refusal}", file=sys.stderr)
    return ways, left


def _at(folder: Path, size: int, ways: Mapping[Way, list[str]], runs: int) -> dict[str, dict[str, float] | None]:
    """In turn, so that what else the machine does meets all of them."""
    work.write(folder, size)
    costs: dict[str, list[Cost] | None] = {way.name: [] for way in ways}
    for number in range(runs):
        for way, command in ways.items():
            so_far = costs[way.name]
            if so_far is None:
                continue
            try:
                so_far.append(_once(way, command, folder))
            except OverLimit:
                costs[way.name] = None
                continue
            if number == 0:
                _hold_to_its_word(way, command, folder, size)
                print(f"{size} HyperNodes, {way.title}: {so_far[0].cpu:.2f} s", file=sys.stderr, flush=True)
    shutil.rmtree(folder)
    return {name: None if each is None else _figures(each) for name, each in costs.items()}


def _once(way: Way, command: list[str], folder: Path, more: Sequence[str] = ()) -> Cost:
    if (target := folder / way.output).is_dir():
        shutil.rmtree(target)
    return processes.run([*command, *more], folder, output=_STREAM, limit=LIMIT)


def _hold_to_its_word(way: Way, command: list[str], folder: Path, size: int) -> None:
    """The comparison is void where a program has not written what the others have."""
    if way.printing:
        _once(way, command, folder, way.printing)
    if wrong := work.difference(folder / way.output, size):
        raise SystemExit(f"{way.title}: {wrong}")


def _figures(costs: Sequence[Cost]) -> dict[str, float]:
    cost = processes.median(costs)
    return {"cpu": round(cost.cpu, 3), "wall": round(cost.wall, 3), "mib": round(cost.memory)}


def text(figures: Figures) -> str:
    left = "".join(f"\nLeft out: {title}: {reason}.\n" for title, reason in figures["left"].items())
    tables = "\n".join(
        f"### {int(size):,} HyperNodes\n\n{_table(costs, int(size), figures['limit'])}\n"
        for size, costs in figures["sizes"].items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    return f"""
What it costs to get HyperNodes of {work.MEMBERS} nodes each from their names to YAML, side by side in one run, in turn,
in the median of {figures["runs"]}. Ratios are CPU time, and how many times that of Basalt's first row. Whatever
a program wrote was parsed and compared with what it was to write, value by value: all wrote the same HyperNodes.

It is the same work in what comes out, not in what is done for it. The others take a JSON *list* of HyperNodes with the
names of their nodes, and put them into a template or an object; none of them judges anything. Basalt derives the
HyperNodes from an *inventory* of {work.MEMBERS} Nodes for each, of name and one label, checks every Node and HyperNode
against its schema and its CEL rules, judges all rules, and with a file for each also writes digests of all files and
switches the folder at once; a namespace and the scheduler's configuration come with them. (As kubectl prints them, the
Nodes of one HyperNode would be 80 kB; [the benchmarks](../benchmarks/README.md#from-end-to-end) measure these.) From
*manifests*, Basalt and kustomize read the very YAML that they are to write, which for Basalt means to know the line of
every value. go-jsonnet prints JSON documents in a YAML stream. Pulumi registers the same objects with an engine that
only echoes, and writes nothing. Those written in Go, and Node, use a second core where there is one.

Versions: {versions}. A program that took more than {figures["limit"]} s of CPU was ended.
{left}
{{cpu}}

{{memory}}

{tables}
{_aims(figures)}
"""


def _table(costs: Mapping[str, Any], size: int, limit: int) -> str:
    base = costs["basalt"]["cpu"]
    rows: list[Sequence[object]] = []
    for way, cost in _known(costs):
        if cost is None:
            rows.append(
                (way.title, way.given, f"> {limit}", "", "", f"> {limit / size * 1e6:.0f}", f"> {limit / base:.1f}")
            )
        else:
            times = (f"{cost['cpu']:.2f}", f"{cost['wall']:.2f}", cost["mib"])
            rows.append((way.title, way.given, *times, f"{cost['cpu'] / size * 1e6:.0f}", f"{cost['cpu'] / base:.2f}"))
    return table(("", "from", "CPU s", "wall s", "peak MiB", "us a HyperNode", "ratio"), rows, named=2)


def _known(costs: Mapping[str, Any]) -> Iterator[tuple[Way, Mapping[str, float] | None]]:
    return ((way, costs[way.name]) for way in WAYS if way.name in costs)


def _ratios(figures: Figures) -> Iterator[tuple[str, int, float]]:
    """By title: how far ahead Basalt is to be at the largest size, and how far it is."""
    costs = list(figures["sizes"].values())[-1]
    for way, cost in _known(costs):
        if way.name in AIMS and cost is not None:
            yield way.title, AIMS[way.name], cost["cpu"] / costs["basalt"]["cpu"]


def _aims(figures: Figures) -> str:
    told = [f"{title}: {ratio:.2f} of {aim}" for title, aim, ratio in _ratios(figures)]
    return f"The aims at {int(list(figures['sizes'])[-1]):,} HyperNodes, as ratios: {'; '.join(told)}."


def missed(figures: Figures) -> list[str]:
    return [
        f"{title} takes {ratio:.2f} times the CPU of Basalt, not {aim}"
        for title, aim, ratio in _ratios(figures)
        if ratio < aim
    ]


def plots(figures: Figures) -> dict[str, Bars]:
    size, costs = list(figures["sizes"].items())[-1]
    finished = [(way.title, cost) for way, cost in _known(costs) if cost]
    return {
        "cpu": Bars(
            f"{int(size):,} HyperNodes to YAML: CPU time",
            "CPU seconds",
            [(title, each["cpu"]) for title, each in finished],
        ),
        "memory": Bars(
            f"{int(size):,} HyperNodes to YAML: peak memory", "MiB", [(title, each["mib"]) for title, each in finished]
        ),
    }


SECTION = Section("rendering", "HyperNodes to YAML: peers", measured, text, plots, missed)
