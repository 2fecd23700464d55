"""Whole environments: the exact output, the same bytes every time, and YAML that every reader takes alike."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from basalt.compiling import compile_folder
from basalt.loading import yaml_text
from basalt.rendering import layout, yaml_writer
from tests import golden


def _tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.yaml")}


@pytest.mark.parametrize("tree", golden.SOURCES)
def test_environment_compiles_to_its_golden_tree(tree: str) -> None:
    assert golden.compiled(tree) == _tree(golden.FOLDER / tree)


@pytest.mark.parametrize("tree", golden.SOURCES)
def test_environment_has_no_findings(tree: str) -> None:
    assert compile_folder(golden.SOURCES[tree]).findings == ()


@pytest.mark.parametrize("tree", golden.SOURCES)
def test_output_reads_back_to_the_same_objects(tree: str) -> None:
    compilation = compile_folder(golden.SOURCES[tree])

    for declared in compilation.objects:
        text = yaml_writer.document(declared.value)
        assert yaml.safe_load(text) == declared.value
        assert [parsed.value for parsed in yaml_text.documents(text)] == [declared.value]


def test_hyper_nodes_of_seed_are_three_tiers_of_the_composite_label() -> None:
    compilation = compile_folder(golden.ROOT / "stacks" / "seed")
    found = {each.name: each.spec for each in compilation.index.of_kind("HyperNode")}

    def members(name: str) -> list[Any]:
        return [member["selector"]["exactMatch"]["name"] for member in found[name]["members"]]

    assert {name: spec["tier"] for name, spec in found.items()} == {
        "s0-s1-rack-1": 1, "s0-s1-rack-2": 1, "s0-s2-rack-3": 1, "s0-s2-rack-4": 1, "s0-s1": 2, "s0-s2": 2, "s0": 3,
    }  # fmt: skip
    assert members("s0-s1-rack-1") == ["te1", "te2"]
    assert members("s0-s2-rack-4") == ["te7", "te8"]
    assert members("s0-s1") == ["s0-s1-rack-1", "s0-s1-rack-2"]
    assert members("s0") == ["s0-s1", "s0-s2"]


_SURROUNDINGS: tuple[dict[str, str], ...] = (
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "2", "TZ": "America/Lima", "LC_ALL": "tr_TR.UTF-8"},
    {"PYTHONHASHSEED": "77", "PYTHONUTF8": "0", "COLUMNS": "20"},
)


@pytest.mark.slow
@pytest.mark.parametrize("environment", golden.ENVIRONMENTS)
def test_the_same_bytes_in_every_process(environment: str, tmp_path: Path) -> None:
    streams = set()
    for surroundings in _SURROUNDINGS:
        command = [sys.executable, "-m", "basalt", "compile", environment, "-o", "-"]
        done = subprocess.run(
            command, capture_output=True, check=True, cwd=golden.ROOT, env={**os.environ, **surroundings}
        )
        streams.add(done.stdout)

    assert len(streams) == 1


def test_the_same_bytes_in_every_order_of_files_and_documents(tmp_path: Path) -> None:
    source = golden.ROOT / "stacks" / "seed"
    (tmp_path / "Pulumi.yaml").touch()
    folder = tmp_path / "seed"
    folder.mkdir()
    for number, path in enumerate(sorted(source.iterdir(), reverse=True)):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".yaml":
            text = "\n---\n".join(reversed(text.split("\n---\n")))
        (folder / f"{number}{path.suffix}").write_text(text, encoding="utf-8")

    assert layout.stream(compile_folder(folder).objects) == layout.stream(compile_folder(source).objects)
