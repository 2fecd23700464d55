"""Programs built from Go modules, once, into the user's cache."""

import fcntl
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from basalt.loading import memory

_FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false")
_OURS = ("missing go.sum entry", "updates to go.mod", "checksum mismatch")  # our mistake: no reason to go without it


class Refusal(Exception):
    """Why something cannot be had, in one line."""


def cache() -> Path:
    """The user's cache folder of Basalt."""
    return memory.cache()


def fingerprint(recipe: object, files: Iterable[Path]) -> str:
    """What tells programs from those of another recipe, or of modules with other lock files."""
    digest = hashlib.sha256(repr(recipe).encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def once(target: Path, make: Callable[[Path], None]) -> Path:
    """The folder, made where it is not there yet: at once, since half a folder would be taken for a whole one, and by
    one process at a time."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target.with_suffix(".lock")):
            if not target.exists():  # another process has made it meanwhile
                _make(target, make)
    return target


def _make(target: Path, make: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as unfinished:
        folder = Path(unfinished) / "made"
        folder.mkdir()
        make(folder)
        folder.replace(target)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(module: Path, package: str, target: Path, *more: str, environment: Mapping[str, str] | None = None) -> None:
    """Builds a package as the go.mod and go.sum in that folder have it. Refusal, in one line, where Go is missing or
    something that it is made from cannot be had."""
    fetched = _go(module, ("list", "-deps", *_FLAGS, package), environment)
    if fetched.returncode and not any(word in fetched.stderr for word in _OURS):
        raise Refusal(f"{target.name} cannot be built: {fetched.stderr.strip().splitlines()[-1]}")
    run = _go(module, ("build", *_FLAGS, *more, "-o", str(target), package), environment)
    if run.returncode:
        raise RuntimeError(run.stderr)


def folder_of(module: Path, dependency: str) -> Path:
    """The folder of a module that is among the module's own."""
    run = _go(module, ("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", dependency), None)
    if run.returncode:
        raise Refusal(f"{dependency} cannot be had: {run.stderr.strip().splitlines()[-1]}")
    return Path(run.stdout.strip())


def _go(
    module: Path, command: tuple[str, ...], environment: Mapping[str, str] | None
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **(environment or {})}
    try:
        return subprocess.run(["go", *command], cwd=module, env=variables, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Refusal("go is not on the PATH") from None
