"""The sandboxes of this user: each a folder with what it was made of and the ids of its processes."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from basalt.loading.files import Misuse
from basalt.sandbox import processes
from basalt.sandbox.control_plane import ControlPlane, Progress
from basalt.sandbox.manifests import Wanted
from basalt.sandbox.processes import Started
from basalt.sandbox.programs import Programs

_RECORD = "sandbox.json"
# Clients first, then the API server, then etcd: an API server without etcd hangs for minutes, holding its port.
_LAST = {"kube-apiserver": 1, "etcd": 2}


def _turn(process: Started) -> int:
    return _LAST.get(process.name, 0)


class Sandbox(NamedTuple):
    """One sandbox: its name, its folder, the processes it has started, and whether all of it came up."""

    name: str
    folder: Path
    processes: tuple[Started, ...]
    is_complete: bool

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def stopped(self) -> tuple[str, ...]:
        """The processes that have ended."""
        return tuple(each.name for each in self.processes if not each.is_running)

    @property
    def state(self) -> str:
        """running, starting (or broken off while it did), or failed, with what ended."""
        if self.stopped:
            return f"failed: {', '.join(self.stopped)} ended"
        return "running" if self.is_complete else "starting"


def sandboxes() -> list[Sandbox]:
    """All of them, by name."""
    found = (_read(path.parent) for path in sorted(_home().glob(f"*/{_RECORD}")))
    return [each for each in found if each is not None]


def up(name: str, wanted: Wanted, programs: Programs, progress: Progress) -> Sandbox:
    """Starts a sandbox. Whatever keeps it from coming up, Ctrl-C too, leaves nothing of it. Misuse where there is one
    of that name."""
    folder = _home() / name
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise Misuse(
            f"there is a sandbox {name} already; basalt sandbox down {name} ends it, --name gives another name"
        ) from None
    except OSError as error:
        raise Misuse(f"{folder}: {error.strerror}") from None
    started: list[Started] = []

    def record(process: Started) -> None:
        started.append(process)
        _write(Sandbox(name, folder, tuple(started), is_complete=False))

    with _interruptible():
        try:
            _write(Sandbox(name, folder, (), is_complete=False))
            ControlPlane(folder, programs, record).start(name, wanted, progress)
            made = Sandbox(name, folder, tuple(started), is_complete=True)
            _write(made)
        except BaseException:
            with _uninterrupted():
                down(Sandbox(name, folder, tuple(started), is_complete=False))
            raise
    return made


def hold(sandbox: Sandbox) -> NoReturn:
    """Waits for Ctrl-C, and takes the sandbox down then."""
    with _interruptible():
        try:
            while True:
                signal.pause()
        finally:
            with _uninterrupted():
                down(sandbox)


def down(sandbox: Sandbox) -> None:
    """Stops the sandbox's processes and removes its folder."""
    by_turn = sorted(sandbox.processes, key=_turn)
    for _, together in groupby(by_turn, key=_turn):
        processes.stop(together)
    shutil.rmtree(sandbox.folder)
    for emptied in (_home(), _home().parent):
        with suppress(OSError):  # another sandbox is there
            emptied.rmdir()


def _home() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "basalt" / "sandboxes"


def _read(folder: Path) -> Sandbox | None:
    try:
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:  # it has just been ended
        return None
    started = tuple(Started(*each) for each in record["processes"])
    return Sandbox(folder.name, folder, started, record["complete"])


def _write(sandbox: Sandbox) -> None:
    record = {"processes": sandbox.processes, "complete": sandbox.is_complete}
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
