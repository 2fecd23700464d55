"""The sandbox's processes: they outlive the command that starts them, and are told and stopped by id and start."""

import os
import random
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # what asks a command to end
# Below what Linux hands out to clients by itself (ip_local_port_range), so that no outgoing connection is in the way.
_PORTS = range(20_000, 32_000)
_PATIENCE = 10  # seconds that a process has for ending by itself
_PAUSE = 0.02  # seconds between two looks
_SHOWN = 5  # lines of a log


class Started(NamedTuple):
    """A process: the sandbox's name for it, its id, and what its command line holds, the sandbox's folder. Ids are
    given out anew; when a process started is no sure sign either, since the machine's clock may be set."""

    name: str
    pid: int
    folder: str

    @property
    def is_running(self) -> bool:
        return self.process is not None

    @property
    def process(self) -> psutil.Process | None:
        """None once it has ended, be it that nobody has taken its exit code yet: on some machines that takes long."""
        try:
            found = psutil.Process(self.pid)
            words = found.cmdline()  # none yet in the moment in which the program takes its process over
            is_same = not words or self.folder in "\0".join(words)
            is_same = is_same and found.status() != psutil.STATUS_ZOMBIE
        except (psutil.Error, ValueError):
            return None
        return found if is_same else None


def start(name: str, command: Sequence[str], folder: Path) -> Started:
    """Starts a process in a session of its own: no Ctrl-C in the terminal reaches it. Its output goes to the folder's
    logs/<name>.log."""
    log = folder / "logs" / f"{name}.log"
    opened = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    quiet = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    actions = [quiet, opened, (os.POSIX_SPAWN_DUP2, 1, 2)]
    pid = os.posix_spawn(command[0], list(command), os.environ, file_actions=actions, setsid=True, setsigmask=())
    return Started(name, pid, str(folder))


@contextmanager
def undivided() -> Iterator[None]:
    """Ctrl-C has to wait until the block is over."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop(processes: Iterable[Started]) -> None:
    """Asks the processes to end, all at once, and ends those that do not."""
    running = list(processes)
    for ask in (psutil.Process.terminate, psutil.Process.kill):
        for process in filter(None, (each.process for each in running)):
            with suppress(psutil.NoSuchProcess):
                ask(process)
        end = time.monotonic() + _PATIENCE
        while any(each.is_running for each in running) and time.monotonic() < end:
            time.sleep(_PAUSE)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port on 127.0.0.1")


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def last_words(log: Path) -> str:
    """The end of a log, as one line; from the first word of a panic, where there is one."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").strip().splitlines()]
    panic = next((number for number, line in enumerate(lines) if line.startswith(("panic:", "fatal error:"))), None)
    chosen = lines[-_SHOWN:] if panic is None else lines[max(0, panic - 1) : panic + 1]
    return " | ".join(chosen)
