"""The output folder is replaced as a whole, whatever happens, and nobody else's files are touched."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from basalt.loading.files import STAMP
from basalt.loading.sources import Misuse
from basalt.rendering import switch
from basalt.rendering.layout import Output

ROOT = Path(__file__).resolve().parent.parent


def _files(text: str, *names: str) -> list[Output]:
    outputs = ", ".join(f'"{name}": "sha256:"' for name in names)
    stamp = f'{{"basalt": "0", "outputs": {{{outputs}}}}}'
    return [*(Output(name, text.encode()) for name in names), Output(STAMP, stamp.encode())]


def _tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_new_folder_is_written_with_its_parents(tmp_path: Path) -> None:
    assert switch.replace(tmp_path / "a" / "b", _files("one", "x.yaml", "d/y.yaml"))

    assert _tree(tmp_path / "a" / "b").keys() == {"x.yaml", "d/y.yaml", STAMP}
    assert os.listdir(tmp_path / "a") == ["b"]


def test_an_unchanged_folder_is_not_written(tmp_path: Path) -> None:
    switch.replace(tmp_path / "out", _files("one", "x.yaml"))
    before = (tmp_path / "out").stat(), (tmp_path / "out" / "x.yaml").stat()

    assert not switch.replace(tmp_path / "out", _files("one", "x.yaml"))

    assert ((tmp_path / "out").stat(), (tmp_path / "out" / "x.yaml").stat()) == before


def test_a_changed_folder_holds_the_new_files_only(tmp_path: Path) -> None:
    switch.replace(tmp_path / "out", _files("one", "gone.yaml", "stays.yaml"))
    switch.replace(tmp_path / "out", _files("two", "stays.yaml"))

    assert _tree(tmp_path / "out").keys() == {"stays.yaml", STAMP}
    assert (tmp_path / "out" / "stays.yaml").read_text() == "two"
    assert os.listdir(tmp_path) == ["out"]


def test_an_edited_file_of_ours_is_written_again(tmp_path: Path) -> None:
    switch.replace(tmp_path / "out", _files("one", "x.yaml"))
    (tmp_path / "out" / "x.yaml").write_text("edited")

    assert switch.replace(tmp_path / "out", _files("one", "x.yaml"))
    assert (tmp_path / "out" / "x.yaml").read_text() == "one"


@pytest.mark.parametrize("stamp", [None, "", "[]", "{}", "not JSON", '{"basalt": "0", "outputs": []}', "[" * 100_000])
def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path, stamp: str | None) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs.txt").write_text("precious")
    if stamp is not None:
        (tmp_path / "out" / STAMP).write_text(stamp)
    before = _tree(tmp_path)

    with pytest.raises(Misuse, match="Basalt did not write"):
        switch.replace(tmp_path / "out", _files("one", "x.yaml"))

    assert _tree(tmp_path) == before


def test_a_stranger_in_our_folder_is_not_removed(tmp_path: Path) -> None:
    switch.replace(tmp_path / "out", _files("one", "x.yaml"))
    (tmp_path / "out" / "notes.txt").write_text("mine")

    with pytest.raises(Misuse, match=r"holds notes\.txt"):
        switch.replace(tmp_path / "out", _files("two", "x.yaml"))

    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_a_file_in_the_way_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")

    with pytest.raises(Misuse, match="is not a folder"):
        switch.replace(tmp_path / "out", _files("one", "x.yaml"))
    with pytest.raises(Misuse, match="cannot write"):
        switch.replace(tmp_path / "out" / "below", _files("one", "x.yaml"))

    assert (tmp_path / "out").read_text() == "a file"


def test_a_link_to_our_folder_stays_a_link(tmp_path: Path) -> None:
    switch.replace(tmp_path / "out", _files("one", "x.yaml"))
    (tmp_path / "link").symlink_to("out")

    switch.replace(tmp_path / "link", _files("two", "x.yaml"))

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out" / "x.yaml").read_text() == "two"


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # a killed process tidies nothing
        patch.setattr(switch, "_switch", killed)
        with pytest.raises(Killed):
            switch.replace(tmp_path / "out", _files("one", "x.yaml"))
    assert len(os.listdir(tmp_path)) == 1

    switch.replace(tmp_path / "out", _files("one", "x.yaml"))

    assert os.listdir(tmp_path) == ["out"]


def _environment(folder: Path, value: int) -> None:
    priorities = ", ".join(f"p{number}: {{value: {value + number}}}" for number in range(200))
    head = "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\n"
    text = f"{head}spec: {{priorities: {{{priorities}}}}}\n"
    (folder / "e").mkdir(exist_ok=True)
    (folder / "e" / "environment.yaml").write_text(text)


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_moment_leaves_the_old_tree_or_the_new(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "basalt", "compile", "e", "--quiet"]
    trees = []
    for value in (0, 1000):
        _environment(tmp_path, value)
        started = time.monotonic()
        subprocess.run(command, cwd=tmp_path, check=True)
        length = time.monotonic() - started
        trees.append(_tree(tmp_path / "build" / "e"))
    chance = random.Random(7)

    for attempt in range(40):
        _environment(tmp_path, 1000 * (attempt % 2))
        process = subprocess.Popen(command, cwd=tmp_path)
        try:
            process.wait(timeout=chance.uniform(length / 3, length * 1.1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert _tree(tmp_path / "build" / "e") in trees

    subprocess.run(command, cwd=tmp_path, check=True)
    assert os.listdir(tmp_path / "build") == ["e"]


@pytest.mark.slow
def test_two_runs_at_once_leave_one_of_the_trees(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for value, folder in enumerate(folders):
        folder.mkdir()
        _environment(folder, 1000 * value)
    command = [sys.executable, "-m", "basalt", "compile", "e", "--quiet", "-o"]
    trees = []
    for folder in folders:
        subprocess.run([*command, "alone"], cwd=folder, check=True)
        trees.append(_tree(folder / "alone"))

    for _ in range(5):
        both = [subprocess.Popen([*command, str(tmp_path / "out")], cwd=folder) for folder in folders]
        assert [process.wait() for process in both] == [0, 0]
        assert _tree(tmp_path / "out") in trees
