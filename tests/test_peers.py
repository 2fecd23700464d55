"""What Basalt is compared with: the same work for all, and figures that say when an aim is missed."""

import copy
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from basalt.compiling import compile_folder
from benchmarks import page, processes
from benchmarks.peers import judging, mixed, programs, rendering, work
from benchmarks.processes import OverLimit

COUNT = 12
LOCKS = [path for path in programs.HERE.rglob("*") if path.name.startswith(("package", "requirements"))]
OWN = [way for way in rendering.WAYS if way.name.startswith("basalt")]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("peers") / "work"
    work.write(folder, COUNT)
    return folder


@pytest.mark.parametrize("way", OWN, ids=[way.name for way in OWN])
def test_basalt_writes_the_hypernodes_that_were_asked_for(inputs: Path, way: rendering.Way) -> None:
    processes.run(way.command(), inputs, output="stream.yaml")

    assert work.difference(inputs / way.output, COUNT) is None


@pytest.mark.parametrize("environment", ["inventory", "manifests"])
def test_environments_that_are_compared_have_no_findings(inputs: Path, environment: str) -> None:
    assert list(compile_folder(inputs / environment, needs_environment=True).findings) == []


def test_the_others_are_given_the_same_hypernodes(inputs: Path) -> None:
    listed = json.loads((inputs / "hypernodes.json").read_text(encoding="utf-8"))["hyperNodes"]
    members = [[each["selector"]["exactMatch"]["name"] for each in work.hyper_node(number)["spec"]["members"]]
               for number in range(COUNT)]  # fmt: skip

    assert [each["nodes"] for each in listed] == members
    assert work.difference(inputs / "hypernodes.yaml", COUNT) is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: found.pop(), "11 HyperNodes, not 12"),
        (lambda found: found.append(found[0]), "13 HyperNodes, not 12"),
        (lambda found: found[3]["spec"].update(tier=2), "1 HyperNodes differ, r000003 among them"),
        (lambda found: found[3]["metadata"].update(name="r000004"), "1 HyperNodes differ, r000003 among them"),
        (lambda found: found[5]["spec"]["members"].reverse(), "1 HyperNodes differ, r000005 among them"),
    ],
)
def test_output_that_differs_is_told(tmp_path: Path, change: Any, told: str) -> None:
    found = [work.hyper_node(number) for number in range(COUNT)]
    change(found)
    (tmp_path / "stream.yaml").write_text(yaml.safe_dump_all(found), encoding="utf-8")

    assert work.difference(tmp_path / "stream.yaml", COUNT) == told


def test_mix_is_of_ten_kinds_and_without_findings(tmp_path: Path) -> None:
    objects = list(mixed.objects(30))
    (tmp_path / "mix.yaml").write_text(yaml.safe_dump_all(objects), encoding="utf-8")

    assert len(objects) == 30
    assert len({each["kind"] for each in objects}) == 10
    assert list(compile_folder(tmp_path).findings) == []


def test_program_that_takes_more_than_its_limit_is_ended(tmp_path: Path) -> None:
    with pytest.raises(OverLimit):
        processes.run([sys.executable, "-c", "while True: pass"], tmp_path, limit=1)


def test_program_that_cannot_be_had_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(programs.Refusal, match="npm is not on the PATH"):
        programs.found("npm")


@pytest.mark.parametrize("path", LOCKS, ids=str)
def test_locks_have_hashes_and_no_download_addresses(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert "://" not in text
    assert "resolved" not in text
    assert path.name == "package.json" or "sha512-" in text or "--hash=sha256:" in text


def test_every_program_has_its_version() -> None:
    assert all(version[0].isdigit() for version in programs.versions().values())
    assert len(programs.versions()) == 7


@pytest.mark.parametrize(("name", "aim"), rendering.AIMS.items())
def test_aim_is_missed_where_another_takes_fewer_times_what_basalt_takes(name: str, aim: int) -> None:
    figures = copy.deepcopy(dict(page.kept(rendering.SECTION)))
    largest = list(figures["sizes"].values())[-1]
    for each, times in rendering.AIMS.items():
        largest[each] = {"cpu": largest["basalt"]["cpu"] * times * 1.1, "wall": 1, "mib": 1}
    assert rendering.missed(figures) == []

    largest[name]["cpu"] = largest["basalt"]["cpu"] * aim * 0.9
    assert len(rendering.missed(figures)) == 1


def test_aim_is_missed_where_kubeconform_is_ahead() -> None:
    figures = copy.deepcopy(dict(page.kept(judging.SECTION)))
    for costs in figures["inputs"].values():
        costs["kubeconform"] = dict(costs["basalt"])
    assert judging.missed(figures) == []

    figures["inputs"]["mix"]["kubeconform"]["cpu"] *= 0.9
    assert len(judging.missed(figures)) == 1


def test_page_tells_what_was_left_out_and_what_was_ended() -> None:
    figures = copy.deepcopy(dict(page.kept(rendering.SECTION)))
    figures["left"] = {"KCL": "it cannot be had"}
    for costs in figures["sizes"].values():
        costs.pop("kcl", None)
        costs["jsonnet"] = None

    text = rendering.text(figures)

    assert "Left out: KCL: it cannot be had." in text
    assert "| go-jsonnet | list | > 120 |" in text
    assert "KCL" not in [name for name, _ in rendering.plots(figures)["cpu"].values]
