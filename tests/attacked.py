"""Every command that reads input, over folders that nobody means well with: one process a folder, within limits.

    python -m tests.attacked FOLDER...

Each folder is a project with the environments `base` and `case`. Prints one line of JSON a folder: how its process
ended, what each command returned and printed, and what it touched outside the folder's `out`.
"""

import contextlib
import importlib
import io
import json
import os
import resource
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from basalt import cli

COMMANDS = (
    "check case",
    "check case --format json",
    "check case --format sarif",
    "check case --format github",
    "compile case -o out/tree",
    "compile case -o -",
    "compile case -o out/tree --format json",
    "fit case",
    "fit case --format json",
    "plan base case",
    "plan case base --format json",
    "report case --base base --format markdown",
    "report case --format html -o out/report.html",
    "report case --base base --format sarif",
    "report case --base base --format json",
    "topology case",
    "fmt case --diff",
)
SECONDS, WAIT = 10, 120  # of CPU that one command may take, and of time on a machine with other things to do
BYTES = 3 * 1024**3  # of address space, most of it libraries
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod"}
_LATE = ("check", "compile", "explain", "fit", "fmt", "plan", "report", "schema", "topology")

Ran = dict[str, tuple[int, str, str]]  # code, stdout, stderr


class Watch:
    """What a process does to the world outside one folder. An audit hook stays for good, so it is off until told."""

    def __init__(self, allowed: Path) -> None:
        self.allowed = allowed.resolve()
        self.touched: list[str] = []
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"):
            self.touched.append(f"{event} {arguments!r}")
        elif event == "open" and isinstance(arguments[0], str | bytes) and arguments[2] & _WRITES:
            self._note(event, arguments[0])
        elif event in _CHANGES:
            for path in arguments[:2]:
                if isinstance(path, str | bytes):
                    self._note(event, path)

    def _note(self, event: str, path: str | bytes) -> None:
        folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        found = Path(os.path.realpath(folder), name)
        if not found.is_relative_to(self.allowed) and str(found) != os.devnull:
            self.touched.append(f"{event} {found}")


def run(commands: Iterable[str], *, limited: bool = False) -> Ran:
    """What each command returns and prints, in the current folder. With limited, one that hangs ends the process."""
    ran: Ran = {}
    for command in commands:
        out, err = io.StringIO(), io.StringIO()
        _limit(SECONDS * limited, WAIT * limited)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(command.split())
        _limit(0, 0)
        ran[command] = code, out.getvalue(), err.getvalue()
    return ran


def _limit(seconds: int, wait: int) -> None:
    """Lets signals end the process after that much CPU time, or time, whatever it is in the midst of; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(wait)


def _attacked(folder: Path, commands: Iterable[str]) -> dict[str, Any]:
    """The folder's record, from a process of its own: what ends that one ends no other."""
    record = folder.parent / f"{folder.name}.json"
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        os.chdir(folder)
        watch = Watch(folder / "out")
        ran = run(commands, limited=True)
        touched = list(watch.touched)
        record.write_text(json.dumps({"ran": ran, "touched": touched}), encoding="utf-8", errors="surrogateescape")
        os._exit(0)
    _, status, usage = os.wait4(child, 0)
    end = {"folder": folder.name, "ended": os.waitstatus_to_exitcode(status), "kib": usage.ru_maxrss}
    told = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {"ran": {}, "touched": []}
    return {**end, **told}


def main() -> None:
    sys.dont_write_bytecode = True
    for name in _LATE:  # read once, not in every process
        importlib.import_module(f"basalt.commands.{name}")
    for folder in sys.argv[1:]:
        print(json.dumps(_attacked(Path(folder).resolve(), COMMANDS)), flush=True)


if __name__ == "__main__":
    main()
