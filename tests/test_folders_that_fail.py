"""Folders that change while they are read, and that cannot be written: findings or one line, and nothing half done."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from basalt.loading import files
from basalt.loading.files import SourceFile
from basalt.loading.memory import Memory
from tests.attacked import run
from tests.test_attacks import ENVIRONMENT, NODE, ROLE
from tests.test_cli import basalt

READING = ("check .", "fit .", "plan . .", "report .", "compile . -o ../out")
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: KIND, plural: PLURAL}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with an inventory, and the current folder."""
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "environment.yaml").write_text(ENVIRONMENT)
    names = (f"n{number}" for number in range(3_000))
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"rack": "a"}}} for name in names
    ]
    (tmp_path / "case" / "nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    (tmp_path / "case" / "small.yaml").write_text(NODE.replace("NAME", "one"))
    monkeypatch.chdir(tmp_path / "case")
    return tmp_path / "case"


def _gone(path: Path) -> None:
    path.unlink(missing_ok=True)


def _cut(path: Path) -> None:
    if path.exists():
        os.truncate(path, 10)


def _a_folder(path: Path) -> None:
    _gone(path) if path.is_file() else None
    path.mkdir(exist_ok=True)


def _overwritten(path: Path) -> None:
    path.write_bytes(b"\xff{[" * 1000)


@pytest.mark.parametrize("happens", [_gone, _cut, _a_folder, _overwritten])
@pytest.mark.parametrize("name", ["nodes.json", "small.yaml"])
@pytest.mark.parametrize("moment", ["before it is opened", "after it is read"])
def test_a_file_that_changes_while_it_is_read_is_a_finding_or_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Path], None], name: str, moment: str
) -> None:
    load = files._load
    before = (folder / name).read_bytes()

    def changing(file: SourceFile, known: Memory) -> None:
        if file.path.name != name:
            load(file, known)
            return
        if moment == "before it is opened":
            happens(folder / name)
            load(file, known)
            return
        load(file, known)
        happens(folder / name)

    monkeypatch.setattr(files, "_load", changing)
    for command in READING:
        if (folder / name).is_dir():
            (folder / name).rmdir()
        (folder / name).write_bytes(before)
        (code, out, err) = run([command])[command]
        assert code in (0, 1), err
        if moment == "before it is opened" and command == "check .":
            assert "[document-" in out or "[input-" in out


def test_a_folder_that_vanishes_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = os.walk

    def vanishing(top: Path, **how: Any) -> Any:
        yield from walk(os.path.join(top, "gone"), **how)

    monkeypatch.setattr(os, "walk", vanishing)

    code, out, err = run(["check ."])["check ."]

    assert (code, out, err.count("\n")) == (2, "", 1)


def _written(folder: Path, limit: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command, where no file may be longer than the limit: writing fails as on a full disk."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "basalt", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False, preexec_fn=limited
    )


@pytest.mark.parametrize("arguments", [("compile", ".", "-o", "../out/tree"), ("report", ".", "-o", "../out/report")])
def test_a_write_that_fails_half_way_is_one_line_and_leaves_what_was_there(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    (folder.parent / "out").mkdir()
    assert basalt(*arguments, cwd=folder).returncode == 0
    before = {path: path.read_bytes() for path in (folder.parent / "out").rglob("*") if path.is_file()}
    (folder / "more.yaml").write_text("".join(f"{ROLE.replace('NAME', f'r{number}')}---\n" for number in range(40)))

    done = _written(folder, 200, *arguments)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot write ../out/" in done.stderr
    assert {path: path.read_bytes() for path in (folder.parent / "out").rglob("*") if path.is_file()} == before
    assert len(os.listdir(folder.parent / "out")) == 1


@pytest.mark.parametrize("options", ["size=1m,nr_inodes=20", "ro"])
def test_a_full_or_read_only_file_system_is_one_line(folder: Path, options: str) -> None:
    out = folder.parent / "out"
    out.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o "$0" tmpfs "$1" && shift && exec "$@"']
    try:
        able = subprocess.run([*mount, options, str(out), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        pytest.skip("no right to mount a tmpfs here")
    (folder / "more.yaml").write_text("".join(f"{ROLE.replace('NAME', f'r{number}')}---\n" for number in range(40)))
    command = [*mount, options, str(out), sys.executable, "-m", "basalt", "compile", ".", "-o", "../out/tree"]

    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "basalt: cannot write ../out/tree: " in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
@pytest.mark.parametrize("arguments", [("compile", ".", "-o", "../out/tree"), ("report", ".", "-o", "../out/report")])
def test_a_read_only_folder_is_one_line(folder: Path, arguments: tuple[str, ...]) -> None:
    (folder.parent / "out").mkdir(mode=0o555)

    done = basalt(*arguments, cwd=folder)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot write ../out/" in done.stderr


def test_a_report_goes_to_where_a_link_leads(folder: Path) -> None:
    (folder.parent / "report.md").write_text("old")
    (folder.parent / "link.md").symlink_to("report.md")

    assert basalt("report", ".", "-o", "../link.md", cwd=folder).returncode == 0

    assert (folder.parent / "link.md").is_symlink()
    assert (folder.parent / "report.md").read_text() != "old"


def test_a_report_to_a_device_leaves_it_one(folder: Path) -> None:
    done = basalt("report", ".", "-o", "/dev/stdout", cwd=folder)

    assert (done.returncode, done.stderr) == (0, "")
    assert "case" in done.stdout


def test_names_that_differ_in_case_only_share_no_file_anywhere(folder: Path) -> None:
    (folder / "roles.yaml").write_text("---\n".join(ROLE.replace("NAME", name) for name in ("reader", "Reader", "own")))

    assert basalt("compile", ".", "-o", "../out", cwd=folder).returncode == 0

    found = sorted(path.name for path in (folder.parent / "out").glob("60-tenancy/clusterrole.*"))
    kind = "clusterrole.rbac.authorization.k8s.io"
    assert len({name.casefold() for name in found}) == 3
    assert f"{kind}-own.yaml" in found


def test_kinds_that_differ_in_case_only_share_no_file(folder: Path) -> None:
    kinds = ("Thing", "THING")
    (folder / "things.yaml").write_text(
        "---\n".join(f"{{apiVersion: example.com/v1, kind: {kind}, metadata: {{name: a}}}}\n" for kind in kinds)
        + "---\n" + "---\n".join(CRD.replace("KIND", kind).replace("PLURAL", f"p{at}") for at, kind in enumerate(kinds))
    )  # fmt: skip

    done = basalt("compile", ".", "-o", "../out", cwd=folder)

    assert done.returncode == 0, done.stdout
    assert len(list((folder.parent / "out").glob("70-manifests/thing.example.com-a-*.yaml"))) == 2


@pytest.mark.parametrize("name", ["\x1b[31mred", "\u202ered", "\x9b31m", "a\nb"])
def test_misuse_says_nothing_that_a_terminal_obeys(folder: Path, name: str) -> None:
    for arguments in (["check", name], ["explain", name], ["schema", name], ["plan", name, name], [name]):
        done = basalt(*arguments, cwd=folder)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert name not in done.stderr
