"""The sandboxes of this user: each a folder with what it was made of and the ids of its processes."""

import json
import os
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from basalt.loading.sources import Misuse
from basalt.sandbox import processes
from basalt.sandbox.control_plane import ControlPlane, Progress
from basalt.sandbox.manifests import Wanted
from basalt.sandbox.processes import Started
from basalt.sandbox.programs import Programs

_RECORD = "sandbox.json"
_PAUSE = 0.5  # seconds between two looks at whether a held sandbox is still there
# Clients first, then the API server, then etcd: an API server without etcd hangs for minutes, holding its port.
_LAST = {"kube-apiserver": 1, "etcd": 2}


def _turn(process: Started) -> int:
    return _LAST.get(process.name, 0)


class Sandbox(NamedTuple):
    """One sandbox: its name, its folder, what it was made of, the processes it has started, and whether all of it came
    up. token tells it from another one of the same name; "" where its record cannot be read."""

    name: str
    folder: Path
    environment: str
    processes: tuple[Started, ...]
    is_complete: bool
    token: str

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def stopped(self) -> tuple[str, ...]:
        """The processes that have ended."""
        return tuple(each.name for each in self.processes if not each.is_running)

    @property
    def state(self) -> str:
        """running, starting (or broken off while it did), broken, or failed, with what ended."""
        if not self.token:
            return "broken: its record cannot be read"
        if self.stopped:
            return f"failed: {', '.join(self.stopped)} ended"
        return "running" if self.is_complete else "starting"


def sandboxes() -> list[Sandbox]:
    """All of them, by name."""
    try:
        folders = sorted(each for each in _home().iterdir() if each.is_dir())
    except OSError:
        return []
    return [_read(folder) for folder in folders]


def up(name: str, environment: Path, wanted: Wanted, programs: Programs, progress: Progress) -> Sandbox:
    """Starts a sandbox. Whatever keeps it from coming up, Ctrl-C too, leaves nothing of it. Misuse where there is one
    of that name, or its folder cannot be written."""
    folder = _home() / name
    if "," in str(folder):
        raise Misuse(f"{folder} has a comma, at which KWOK cuts paths: set XDG_STATE_HOME to another folder")
    made = Sandbox(name, folder, str(environment.resolve()), (), is_complete=False, token=uuid.uuid4().hex)
    with _interruptible(), _readable(folder):
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise Misuse(
                f"there is a sandbox {name} already; basalt sandbox down {name} ends it, --name gives another name"
            ) from None
        started: list[Started] = []

        def record(process: Started) -> None:
            started.append(process)
            _write(made._replace(processes=tuple(started)))

        try:
            _write(made)
            ControlPlane(folder, programs, record).start(name, wanted, progress)
            _write(complete := made._replace(processes=tuple(started), is_complete=True))
        except BaseException:
            with _uninterrupted():
                down(made._replace(processes=tuple(started)))
            raise
    return complete


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """What the file system refuses, as one line."""
    try:
        yield
    except FileNotFoundError:
        raise Misuse(f"{folder.name} was taken down while it started") from None
    except OSError as error:
        raise Misuse(f"{error.filename or folder}: {error.strerror}") from None


def hold(sandbox: Sandbox) -> None:
    """Waits for Ctrl-C, and takes the sandbox down then; ends where somebody else has taken it down."""
    with _interruptible():
        try:
            while _read(sandbox.folder).token == sandbox.token:
                time.sleep(_PAUSE)
        finally:
            with _uninterrupted():
                if _read(sandbox.folder).token == sandbox.token:
                    down(sandbox)


def down(sandbox: Sandbox) -> None:
    """Stops the sandbox's processes and removes its folder."""
    by_turn = sorted(sandbox.processes, key=_turn)
    for _, together in groupby(by_turn, key=_turn):
        processes.stop(together)
    shutil.rmtree(sandbox.folder, ignore_errors=True)  # another `down` may be at it
    for emptied in (_home(), _home().parent):
        with suppress(OSError):  # another sandbox is there
            emptied.rmdir()


def _home() -> Path:
    given = Path(os.environ.get("XDG_STATE_HOME") or "")
    state = given if given.is_absolute() else Path.home() / ".local" / "state"
    return state / "basalt" / "sandboxes"


def _read(folder: Path) -> Sandbox:
    try:
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        started = tuple(Started(str(name), int(pid), str(folder)) for name, pid, _ in record["processes"])
        return Sandbox(
            folder.name, folder, str(record["environment"]), started, bool(record["complete"]), str(record["token"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return Sandbox(folder.name, folder, "", (), is_complete=False, token="")


def _write(sandbox: Sandbox) -> None:
    record = {
        "environment": sandbox.environment,
        "processes": sandbox.processes,
        "complete": sandbox.is_complete,
        "token": sandbox.token,
    }
    unfinished = sandbox.folder / f"{_RECORD}.new"
    unfinished.write_text(json.dumps(record), encoding="utf-8")
    unfinished.replace(sandbox.folder / _RECORD)


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and a closed terminal end the command as Ctrl-C does."""
    with _handling(_interrupt, *processes.ENDING[1:]):
        yield


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C does not break off the cleaning up."""
    with _handling(signal.SIG_IGN, *processes.ENDING):
        yield


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], Any] | signal.Handlers, *signals: int) -> Iterator[None]:
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)
