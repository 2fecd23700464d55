"""`basalt check --watch`: what counts as a change, and a real process that sees one."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from basalt.loading.stamps import Stamp, Stamps, changes, stamps
from tests.test_cli import ENVIRONMENT, basalt, project  # noqa: F401 (a fixture)

_LIMIT = 120  # seconds, after which a process that says nothing is ended, and the test fails
A, B = Stamp(1, 1, 1), Stamp(2, 1, 1)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({}, {}, []),
        ({"a": A}, {"a": A}, []),
        ({"a": A}, {"a": B}, ["a"]),
        ({"a": A}, {"a": Stamp(1, 2, 1)}, ["a"]),
        ({"a": A}, {"a": Stamp(1, 1, 2)}, ["a"]),
        ({"b": A}, {"a": A}, ["a", "b"]),
        ({"a": None}, {"a": A}, ["a"]),
        ({}, {"a": None}, ["a"]),
    ],
)
def test_what_differs_came_or_went_is_a_change(before: Stamps, after: Stamps, changed: list[str]) -> None:
    assert changes(before, after) == changed


def _replace(root: Path) -> None:
    (root / "new").write_text("a: 1\n")
    (root / "new").replace(root / "in" / "a.yaml")


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (lambda root: None, []),
    "a file is written": (lambda root: (root / "in" / "a.yaml").write_text("a: 22\n"), ["in/a.yaml"]),
    "another is put in its place": (_replace, ["in/a.yaml"]),
    "a file comes": (lambda root: (root / "in" / "deep" / "b.json").write_text("{}"), ["in/deep/b.json"]),
    "a file goes": (lambda root: (root / "in" / "a.yaml").unlink(), ["in/a.yaml"]),
    "a folder comes beside it": (lambda root: (root / "base").mkdir(), ["base"]),
    "the folder goes": (lambda root: (root / "in").rename(root / ".gone"), ["in", "in/a.yaml", "in/link.yaml"]),
    "a link leads to nothing any more": (lambda root: (root / "target").unlink(), ["in/link.yaml"]),
    "an editor's own file": (lambda root: (root / "in" / ".a.yaml.swp").write_text(""), []),
    "another program's file": (lambda root: (root / "in" / "README.md").write_text(""), []),
    "a hidden folder's file": (lambda root: (root / "in" / ".git" / "a.yaml").write_text("b: 2\n"), []),
    "the compiler's own output": (lambda root: (root / "in" / "build" / "b.yaml").write_text("b: 2\n"), []),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_only_what_is_read_counts(tmp_path: Path, change: Callable[[Path], object], expected: list[str]) -> None:
    for folder in ("in/deep", "in/.git", "in/build"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "in" / "build" / "basalt.json").touch()
    (tmp_path / "in" / "a.yaml").write_text("a: 1\n")
    (tmp_path / "target").touch()
    (tmp_path / "in" / "link.yaml").symlink_to(tmp_path / "target")
    before = stamps([tmp_path / "in"])

    change(tmp_path)

    assert changes(before, stamps([tmp_path / "in"])) == [str(tmp_path / each) for each in expected]


@pytest.mark.parametrize("file", ["modules/own.py", "modules/own/__init__.py", "modules/own/sizes.py"])
def test_code_that_is_not_there_yet_counts(tmp_path: Path, file: str) -> None:
    before = stamps([], [tmp_path / "modules"])

    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    (tmp_path / "modules" / "notes.yaml").touch()

    assert changes(before, stamps([], [tmp_path / "modules"])) == [str(tmp_path / file)]


@pytest.fixture
def watcher(request: pytest.FixtureRequest, project: Path) -> Iterator[subprocess.Popen[str]]:  # noqa: F811
    command = [sys.executable, "-m", "basalt", "check", "broken", "--watch", *getattr(request, "param", ())]
    process = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(_LIMIT, process.kill)
    limit.start()
    yield process
    limit.cancel()
    process.kill()
    process.communicate()


def _said(process: subprocess.Popen[str]) -> str:
    """The next line on stderr, without the time of day."""
    assert process.stderr is not None
    time, _, line = process.stderr.readline().partition(" ")
    assert len(time.split(":")) == 3, f"no time of day: {time} {line}"
    return line


def test_each_change_is_checked_until_ctrl_c(watcher: subprocess.Popen[str], project: Path) -> None:  # noqa: F811
    file = project / "stacks" / "broken" / "environment.yaml"
    text = file.read_text()

    assert _said(watcher) == "1 error; watching 1 file\n"
    file.write_text(text.replace("reserch", "root"))
    assert _said(watcher) == "no findings; watching 1 file; changed: stacks/broken/environment.yaml\n"
    (file.parent / "more.yaml").write_text("a: [\n")
    assert _said(watcher) == "1 error; watching 2 files; changed: stacks/broken/more.yaml\n"
    os.rename(file.parent, project / "elsewhere")
    assert _said(watcher).startswith("cannot read stacks/broken: No such file or directory; changed: ")
    watcher.send_signal(signal.SIGINT)

    stdout, stderr = watcher.communicate(timeout=_LIMIT)
    assert (watcher.returncode, stderr) == (130, "basalt: interrupted\n")
    assert "\x1b" not in stdout
    assert stdout.count("[queue-parent-exists]") == stdout.count("[document-parses]") == 1


@pytest.mark.parametrize("watcher", [["--modules"]], indirect=True)
def test_a_module_that_comes_later_is_seen(watcher: subprocess.Popen[str], project: Path) -> None:  # noqa: F811
    file = project / "stacks" / "broken" / "environment.yaml"

    assert _said(watcher) == "1 error; watching 1 file\n"
    file.write_text(ENVIRONMENT + "{modules: {own: {}}}\n")
    assert _said(watcher) == "1 error; watching 1 file; changed: stacks/broken/environment.yaml\n"
    (project / "modules").mkdir()
    (project / "modules" / "new").write_text("def manifests(declared, platform):\n    return []\n")
    (project / "modules" / "new").rename(project / "modules" / "own.py")
    assert _said(watcher) == "no findings; watching 2 files; changed: modules/own.py\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing"], "no environment nothing"),
        (["broken", "--format", "json"], "--watch shows text; leave out --format"),
    ],
)
def test_misuse_ends_it_at_once(project: Path, arguments: list[str], line: str) -> None:  # noqa: F811
    done = basalt("check", "--watch", *arguments, cwd=project)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert line in done.stderr
