"""The work: N HyperNodes of eight nodes each, as every program is given them, and what must come out."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.peers.programs import HERE

MEMBERS = 8


def hyper_node(number: int) -> dict[str, Any]:
    """The object as Basalt generates it, which is what all others are made to write."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in _nodes(number)]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": _name(number), "labels": {"app.kubernetes.io/managed-by": "basalt"}},
        "spec": {"tier": 1, "tierName": "rack", "members": members},
    }


def write(folder: Path, count: int) -> None:
    """Everything that a program may be given: the list of names, the same as an inventory and as manifests, and the
    charts and programs that read it."""
    shutil.copytree(HERE / "inputs", folder)
    listed = [{"name": _name(number), "nodes": _nodes(number)} for number in range(count)]
    (folder / "hypernodes.json").write_text(json.dumps({"hyperNodes": listed}), encoding="utf-8")
    (folder / "kustomization.yaml").write_text("resources: [hypernodes.yaml]\n", encoding="utf-8")
    (folder / "hypernodes.yaml").write_text("".join(map(_manifest, range(count))), encoding="utf-8")
    _environment(folder / "inventory", "{topology: {tiers: [{name: rack, label: example.com/rack}]}}")
    (folder / "inventory" / "nodes.json").write_text(_inventory(count), encoding="utf-8")
    _environment(folder / "manifests", "{}")
    shutil.copy(folder / "hypernodes.yaml", folder / "manifests")


def difference(path: Path, count: int) -> str | None:
    """How the HyperNodes of a YAML stream, or of the files under a folder, differ from those that were asked for."""
    expected = {_name(number): hyper_node(number) for number in range(count)}
    found = [each for each in _documents(path) if each["kind"] == "HyperNode"]
    if len(found) != count:
        return f"{len(found)} HyperNodes, not {count}"
    by_name = {each["metadata"]["name"]: each for each in found}
    wrong = [name for name, each in expected.items() if by_name.get(name) != each]
    return f"{len(wrong)} HyperNodes differ, {wrong[0]} among them" if wrong else None


def _documents(path: Path) -> Iterator[Mapping[str, Any]]:
    files: Iterable[Path] = sorted(path.rglob("hypernode*.yaml")) if path.is_dir() else [path]
    for file in files:
        with file.open(encoding="utf-8") as text:
            yield from filter(None, yaml.load_all(text, yaml.CSafeLoader))


def _name(number: int) -> str:
    return f"r{number:06}"


def _nodes(number: int) -> list[str]:
    return [f"{_name(number)}-n{member}" for member in range(MEMBERS)]


def _manifest(number: int) -> str:
    members = "".join(
        f"  - type: Node\n    selector:\n      exactMatch:\n        name: {node}\n" for node in _nodes(number)
    )
    return (
        "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\n"
        f"metadata:\n  name: {_name(number)}\n  labels:\n    app.kubernetes.io/managed-by: basalt\n"
        f"spec:\n  tier: 1\n  tierName: rack\n  members:\n{members}"
    )


def _environment(folder: Path, spec: str) -> None:
    folder.mkdir()
    text = f"apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {{name: bench}}\nspec: {spec}\n"
    (folder / "environment.yaml").write_text(text, encoding="utf-8")


def _inventory(count: int) -> str:
    nodes = (
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": node, "labels": {"example.com/rack": _name(number)}},
            }
        )
        for number in range(count)
        for node in _nodes(number)
    )
    return '{"apiVersion": "v1", "kind": "List", "items": [\n' + ",\n".join(nodes) + "\n]}\n"
