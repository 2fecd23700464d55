"""What it costs to check objects: by kubeconform, against their schemas, and by `basalt check`, by every rule."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks import processes
from benchmarks.page import Figures, Section, table
from benchmarks.peers import mixed, programs, work

COUNT, RUNS = 20_000, 3
_SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
_BUNDLES = ("kubernetes/1.34.json", "volcano/1.15.json")
_WHERE = "schemas/{{.Group}}_{{.ResourceAPIVersion}}_{{.ResourceKind}}.json"
_BASALT = [sys.executable, "-m", "basalt", "check"]
INPUTS = {"HyperNodes": "HyperNodes of eight nodes", "mix": "objects of ten kinds"}


def measured(folder: Path, count: int = COUNT, runs: int = RUNS) -> dict[str, Any]:
    """By input, the median cost of each of the two; why kubeconform is left out, where it is."""
    objects = {"HyperNodes": map(work.hyper_node, range(count)), "mix": mixed.objects(count)}
    for name, each in objects.items():
        _write(folder / f"{name}.yaml", each)
    found: dict[str, Any] = {"count": count, "runs": runs, "left": "", "version": programs.versions()["kubeconform"]}
    commands = {"basalt": [*_BASALT, "--quiet"]}
    try:
        commands["kubeconform"] = _kubeconform(folder)
    except programs.Refusal as refusal:
        found["left"] = str(refusal)
        print(f"left out: {refusal}", file=sys.stderr)
    for command in commands.values():
        _hold_to_its_word(command, folder)
    return {**found, "inputs": {name: _measured(folder, f"{name}.yaml", commands, runs) for name in objects}}


def _measured(folder: Path, file: str, commands: Mapping[str, list[str]], runs: int) -> dict[str, dict[str, float]]:
    costs = [[processes.run([*command, file], folder) for command in commands.values()] for _ in range(runs)]
    found = {}
    for name, own in zip(commands, zip(*costs, strict=True), strict=True):
        cost = processes.median(own)
        found[name] = {"cpu": round(cost.cpu, 3), "wall": round(cost.wall, 3), "mib": round(cost.memory)}
        print(f"{file}, {name}: {cost.cpu:.2f} s", file=sys.stderr, flush=True)
    return found


def _hold_to_its_word(command: list[str], folder: Path) -> None:
    """The comparison is void where one of them does not look at what it is given."""
    wrong = work.hyper_node(0)
    wrong["spec"]["tier"] = "one"
    _write(folder / "wrong.yaml", [wrong])
    processes.run([*command, "wrong.yaml"], folder, ends_with=1)


def _kubeconform(folder: Path) -> list[str]:
    """The command, with the same schemas that Basalt has; no network."""
    program = programs.go("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform")
    (folder / "schemas").mkdir(exist_ok=True)
    for bundle in _BUNDLES:
        for name, schema in _schemas(json.loads((_SCHEMAS / bundle).read_text(encoding="utf-8"))):
            (folder / "schemas" / name).write_text(json.dumps(schema), encoding="utf-8")
    return [str(program), "-strict", "-schema-location", _WHERE]


def _schemas(bundle: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema for each kind, by the name that kubeconform looks for."""
    for each, known in bundle["kinds"].items():
        group, version, kind = each.split("/") if each.count("/") == 2 else ("v1", *each.split("/"))
        schema = {"$ref": f"#/definitions/{known['definition']}", "definitions": bundle["definitions"]}
        yield f"{group}_{version}_{kind.lower()}.json", schema


def _write(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        yaml.dump_all(objects, file, Dumper=_Plain, sort_keys=False, explicit_start=True)


class _Plain(yaml.CSafeDumper):
    """No anchors: each object is written out."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def text(figures: Figures) -> str:
    left = f"\nkubeconform is left out: {figures['left']}.\n" if figures["left"] else ""
    return f"""
What it costs to check {figures["count"]:,} objects in one file, side by side in one run,
in the median of {figures["runs"]}. kubeconform {figures["version"]} is given the schemas that Basalt has, as local
files, and checks against nothing else; `basalt check` also judges CEL rules, names, quantities, references between
objects and all its other rules, and keeps the line of every value. Both refuse an object whose tier is a word. The
ratio is CPU time, and how many times that of Basalt.
{left}
{table(("", "of", "CPU s", "wall s", "peak MiB", "us an object", "ratio"), list(_rows(figures)), named=2)}
"""


def _rows(figures: Figures) -> Iterator[tuple[object, ...]]:
    for name, costs in figures["inputs"].items():
        for program, cost in costs.items():
            title = "basalt check" if program == "basalt" else program
            each = f"{cost['cpu'] / figures['count'] * 1e6:.0f}"
            times = (f"{cost['cpu']:.2f}", f"{cost['wall']:.2f}", cost["mib"], each)
            yield title, INPUTS[name], *times, f"{cost['cpu'] / costs['basalt']['cpu']:.2f}"


def missed(figures: Figures) -> list[str]:
    """kubeconform is to take as much as Basalt, or more."""
    return [
        f"kubeconform takes {ratio:.2f} times the CPU of Basalt for {INPUTS[name]}"
        for name, costs in figures["inputs"].items()
        if "kubeconform" in costs and (ratio := costs["kubeconform"]["cpu"] / costs["basalt"]["cpu"]) < 1
    ]


SECTION = Section("judging", "Checking objects: kubeconform", measured, text, lambda _: {}, missed)
