"""Programs of the cache: built once, whole or not at all, and refused in one line where Go is missing."""

from pathlib import Path

import pytest

from basalt.sandbox import go_programs
from basalt.sandbox.go_programs import Refusal
from tools.engine import programs


def test_engine_is_refused_where_go_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")

    with pytest.raises(Refusal, match=r"needs Go 1\.26 or later: go is not on the PATH"):
        programs.engine(lambda _: None)

    assert [each.name for each in (tmp_path / "basalt").iterdir() if each.suffix != ".lock"] == []


def test_folder_is_made_once(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "engine-1"
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "program").touch()

    for _ in range(2):
        assert go_programs.once(target, make) == target

    assert len(made) == 1
    assert [each.name for each in target.iterdir()] == ["program"]


def test_half_a_folder_is_none(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "program").touch()
        raise Refusal("no")

    with pytest.raises(Refusal):
        go_programs.once(tmp_path / "engine-1", make)

    assert [each.name for each in tmp_path.iterdir()] == ["engine-1.lock"]


def test_other_lock_files_are_other_programs(tmp_path: Path) -> None:
    lock = tmp_path / "go.sum"
    found = set()
    for recipe, text in (("a", "1"), ("a", "2"), ("b", "2")):
        lock.write_text(text, encoding="utf-8")
        found.add(go_programs.fingerprint(recipe, [lock]))

    assert len(found) == 3
