"""What earlier runs found out changes nothing but the time that a run takes."""

import errno
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.compiling import Compilation, compile_folder
from basalt.loading import inventories, memory
from basalt.loading.memory import Memory
from basalt.loading.sources import Misuse, SourceFile
from basalt.sandbox import go_programs
from benchmarks import inventory
from tests.test_planted import MISTAKES, Mistake

ROOT = Path(__file__).resolve().parent.parent
SEED = ROOT / "stacks" / "seed"


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventories, "STRICT_BYTES", -1)


@pytest.fixture
def seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(SEED, tmp_path / "seed")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "seed"


@pytest.fixture
def known(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "known")


def told(found: Compilation) -> object:
    return found.name, found.findings, found.skipped


def check(known: Memory = memory.NOTHING) -> object:
    return told(compile_folder(Path("seed"), known=known))


def nodes_of(compilation: Compilation) -> bool:
    """Whether the nodes were looked at."""
    return any(file._nodes is not None for file in compilation.files)


def test_a_second_run_looks_at_no_node_where_nothing_asks_for_one(seed: Path, known: Memory) -> None:
    for name in ("jobs.yaml", "teams.yaml"):
        (seed / name).unlink()
    first = compile_folder(Path("seed"), known=known)
    text = (seed / "environment.yaml").read_text(encoding="utf-8")
    (seed / "environment.yaml").write_text(text.replace("nvidia.com/gpu: 48", "nvidia.com/gpu: 47"), encoding="utf-8")

    second = compile_folder(Path("seed"), known=known)

    assert nodes_of(first)
    assert not nodes_of(second)
    assert told(second) == check()


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: f"{each.rules}: {each.new}")
def test_a_mistake_is_found_by_a_run_that_remembers(mistake: Mistake, seed: Path, known: Memory) -> None:
    check(known)
    text = (seed / mistake.file).read_text(encoding="utf-8")
    (seed / mistake.file).write_text(text.replace(mistake.old, mistake.new, 1), encoding="utf-8")

    assert check(known) == check(known) == check()

    (seed / mistake.file).write_text(text, encoding="utf-8")
    assert check(known) == check()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("shared")
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@settings(max_examples=40)
@given(number=st.integers(0, 2**32))
def test_a_run_that_remembers_says_what_one_that_does_not_says(number: int, shared: Path) -> None:
    shutil.rmtree(shared / "seed", ignore_errors=True)
    shutil.copytree(SEED, shared / "seed")
    known = Memory(shared / "known")
    chance = random.Random(number)
    for _ in range(3):
        path = chance.choice(sorted((shared / "seed").iterdir()))
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) or ["\n"]
        at = chance.randrange(len(lines))
        lines[at : at + 1] = chance.choice(
            [[], [lines[at]] * 2, [chance.choice(lines)], [lines[at].replace("1", "3")], [lines[at].replace("s", "t")]]
        )
        path.write_text("".join(lines), encoding="utf-8")

        assert check(known) == check()


def test_what_is_damaged_or_of_another_build_is_not_remembered(known: Memory, tmp_path: Path) -> None:
    known.keep("kind", ["a", "b"], {"x": 1})
    (path,) = (tmp_path / "known").iterdir()
    assert known.recall("kind", ["a", "b"]) == {"x": 1}
    assert known.recall("kind", ["ab"]) is None
    assert known.recall("other", ["a", "b"]) is None

    sound = path.read_bytes()
    other = Memory(tmp_path / "known")
    other.__dict__["_build"] = "another"
    assert other.recall("kind", ["a", "b"]) is None
    for damaged in (sound[:-3], b"", sound.replace(b"1}", b"2}"), b"[" * 100_000, b"{}", b"\xff"):
        path.write_bytes(damaged)
        assert known.recall("kind", ["a", "b"]) is None


def test_a_folder_that_cannot_be_written_is_no_fault(seed: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert check(Memory(tmp_path / "file" / "known")) == check()


def test_a_value_that_cannot_be_written_leaves_no_file(
    known: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    known.keep("kind", ["a"], 1)

    assert list((tmp_path / "known").iterdir()) == []


@pytest.mark.parametrize("home", ["", "cache", "./cache", "../cache"])
def test_a_cache_folder_that_is_relative_is_ignored(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", home)

    assert memory.cache() == go_programs.cache() == tmp_path / ".cache" / "basalt"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    assert memory.cache() == go_programs.cache() == tmp_path / "mine" / "basalt"


def test_room_is_made_for_new_values(known: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_KEPT", 3)
    for number in range(6):
        known.keep("kind", [str(number)], number)

    assert len(list((tmp_path / "known").iterdir())) == 3


def test_an_inventory_that_changes_before_it_is_looked_at_is_said_to_have(seed: Path, known: Memory) -> None:
    check(known)
    taken: list[SourceFile] = list(compile_folder(Path("seed"), known=known).files)
    (file,) = (each for each in taken if each.is_inventory)
    file.take_large(file._large, None) if file._large else None
    text = (seed / "nodes.json").read_text(encoding="utf-8")
    (seed / "nodes.json").write_text(text.replace('"te1"', '"te0"'), encoding="utf-8")

    with pytest.raises(Misuse, match=r"seed/nodes.json changed while it was read; run the command again"):
        _ = file.inventory


@pytest.mark.slow
def test_check_writes_and_reads_the_memory_unless_told_not_to(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    text = (SEED / "environment.yaml").read_text(encoding="utf-8").replace("volcano.sh/rack", "example.com/rack")
    (tmp_path / "env" / "environment.yaml").write_text(text, encoding="utf-8")
    inventory.write(tmp_path / "env" / "nodes.json", 2000)
    kept = tmp_path / "cache" / "basalt" / "known"

    def run(*options: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "basalt", "check", "env", "--format", "json", *options]
        environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    without = run("--no-cache")
    assert without[2] == ""
    assert not kept.exists()
    assert run() == without
    assert len(list(kept.iterdir())) == 2
    assert run() == without
