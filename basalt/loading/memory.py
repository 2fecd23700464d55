"""What earlier runs found out about large inputs: small values in the user's cache folder, by what they follow from.

A value is found again only where all it follows from is the same, byte for byte: the content that it is about, and
Basalt itself, with the packages and the interpreter that it runs on. One of the few places that touch the file system.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from basalt.loading.replacing import replaced

_ROOT = Path(__file__).resolve().parents[2]
_OWN = ("basalt", "modules", "schemas")  # the folders, beside each other, that hold code and data of the compiler
_KEPT = 200  # values, the oldest of which make room for new ones
_FOLDER = "known"


class Hash(Protocol):
    """What hashlib's have."""

    def update(self, data: Any, /) -> Any: ...

    def hexdigest(self) -> str: ...


def new_hash() -> Hash:
    """Of large inputs: BLAKE3 takes a third of the time of SHA-256."""
    from blake3 import blake3  # where there is a large input

    found: Hash = blake3()
    return found


class Memory:
    """folder None remembers nothing. What cannot be read or written is not remembered: no run fails for it."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @property
    def is_on(self) -> bool:
        return self._folder is not None

    def recall(self, kind: str, content: Iterable[str]) -> Any:
        """What was kept of the kind about the content; None where nothing was."""
        if self._folder is None:
            return None
        path = self._path(self._folder, kind, content)
        with contextlib.suppress(OSError, ValueError, RecursionError):
            kept = json.loads(path.read_bytes())
            if isinstance(kept, dict) and kept.get("of") == path.name and _sum(kept["value"]) == kept["sum"]:
                os.utime(path)
                return kept["value"]
        return None

    def keep(self, kind: str, content: Iterable[str], value: Any) -> None:
        """Keeps a value that JSON holds."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._path(self._folder, kind, content)
            with replaced(path) as stream:
                stream.write(json.dumps({"of": path.name, "sum": _sum(value), "value": value}).encode())
            self._make_room(self._folder)

    def _path(self, folder: Path, kind: str, content: Iterable[str]) -> Path:
        digest = new_hash()
        for part in (self._build, kind, *content):
            digest.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
        return folder / f"{kind}-{digest.hexdigest()}"

    @cached_property
    def _build(self) -> str:
        return _build()

    def _make_room(self, folder: Path) -> None:
        found = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in found[:-_KEPT]:
            path.unlink(missing_ok=True)


NOTHING = Memory(None)


def cache() -> Path:
    """The user's cache folder of Basalt; RuntimeError where the user has no home. A relative XDG_CACHE_HOME is none, as
    its specification says: it would be another one in each folder."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "basalt"


def of_user() -> Memory:
    """The memory in the user's cache folder, if that is nobody else's."""
    with contextlib.suppress(RuntimeError, OSError):  # no home
        folder = cache() / _FOLDER
        if not folder.exists() or folder.stat().st_uid == os.getuid():
            return Memory(folder)
    return NOTHING


def _sum(value: Any) -> str:
    digest = new_hash()
    digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()


def _build() -> str:
    """What stands for this very compiler: every file of it, and the versions of all that it runs on."""
    digest = new_hash()
    for path in _files():
        digest.update(os.fsencode(path.relative_to(_ROOT)) + b"\0")
        digest.update(path.read_bytes())
    installed = sorted(name for folder in sys.path if os.path.isdir(folder) for name in os.listdir(folder))
    told = [sys.version, *(name for name in installed if name.endswith((".dist-info", ".egg-info")))]
    digest.update("\0".join(told).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files() -> Iterator[Path]:
    for name in _OWN:
        for folder, below, files in os.walk(_ROOT / name):
            below[:] = sorted(each for each in below if each != "__pycache__")
            yield from (Path(folder, each) for each in sorted(files))
