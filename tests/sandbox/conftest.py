"""A sandbox of `seed`, shared by the tests that look at it, and what it takes to talk to it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from basalt.cluster import connection
from basalt.cluster.connection import Cluster
from basalt.sandbox import certificates, programs
from basalt.sandbox.certificates import Authority, Certificate
from basalt.sandbox.go_programs import Refusal

ROOT = Path(__file__).resolve().parents[2]
_Found = TypeVar("_Found")
_PATIENCE = 180  # seconds until something that must come about has; it takes one or two, longer on a busy machine


class Home(NamedTuple):
    """A user's surroundings: where sandboxes are kept, and a project with the stacks."""

    state: Path
    project: Path

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "NO_COLOR")}
        return {**kept, "XDG_STATE_HOME": str(self.state), "PYTHONPATH": str(ROOT), **more}

    def start(self, *arguments: str, module: str = "basalt", **more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.Popen(
            command, cwd=self.project, env=self.environment(more), text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str, module: str = "basalt", **more: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, module=module, **more) as process:
            out, err = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


class Up(NamedTuple):
    """A sandbox that is up, and a connection to it."""

    home: Home
    name: str
    cluster: Cluster

    @property
    def kubeconfig(self) -> str:
        return str(self.folder / "kubeconfig")

    @property
    def folder(self) -> Path:
        return self.home.state / "basalt" / "sandboxes" / self.name

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.home.run(*arguments, KUBECONFIG=self.kubeconfig)

    def stopped(self, signal: str, count: int, moment: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command, whose process gets the signal before or after its count-th request that writes."""
        words = (signal, str(count), moment, *arguments)
        return self.home.run(*words, module="tests.sandbox.stopped", KUBECONFIG=self.kubeconfig)

    def as_user(self, user: str, *groups: str) -> Cluster:
        """A connection by a client certificate of that user of those groups."""
        pem = Certificate((self.folder / "ca.crt").read_bytes(), (self.folder / "ca.key").read_bytes())
        text = certificates.kubeconfig(self.name, self.cluster.server, Authority.read(pem), user, groups)
        path = self.folder / f"{user}.kubeconfig"
        path.write_text(text)
        return connection.connect(str(path))


def make_home(folder: Path) -> Home:
    shutil.copytree(ROOT / "stacks", folder / "project" / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", folder / "project")
    return Home(folder / "state", folder / "project")


@pytest.fixture(scope="session")
def built() -> None:
    """The sandbox's programs; they take ten minutes where the cache has none."""
    try:
        programs.programs(lambda line: print(line, file=sys.__stderr__, flush=True))
    except Refusal as refusal:
        pytest.skip(str(refusal))


@pytest.fixture
def home(built: None, tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture(scope="session")
def seed(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The sandbox of `seed`, with everything applied."""
    yield from _up(make_home(tmp_path_factory.mktemp("seed")), is_applied=True)


@pytest.fixture(scope="session")
def empty(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The sandbox of `seed`, with nothing applied."""
    yield from _up(make_home(tmp_path_factory.mktemp("empty")), is_applied=False)


def _up(home: Home, *, is_applied: bool) -> Iterator[Up]:
    started = home.run("sandbox", "up", "seed")
    assert started.returncode == 0, started.stderr
    up = Up(home, "seed", connection.connect(str(home.state / "basalt" / "sandboxes" / "seed" / "kubeconfig")))
    try:
        if is_applied:
            applied = up.run("apply", "seed", "--yes")
            assert applied.returncode == 0, applied.stderr
        yield up
    finally:
        up.cluster.close()
        ended = home.run("sandbox", "down")
        assert ended.returncode == 0, ended.stderr


def eventually(look: Callable[[], _Found]) -> _Found:
    """What is seen as soon as it is true; the test fails where that does not come about."""
    end = time.monotonic() + _PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, "did not come about"
    return found
