"""Which input files have changed, come or gone: by their stamps, which are looked at again and again. No file is
read.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from basalt.loading.files import STAMP, SUFFIXES


class Stamp(NamedTuple):
    """What a file has new when somebody saved it, by writing into it or by putting another in its place."""

    modified: int  # nanoseconds
    size: int
    inode: int


Stamps = Mapping[str, Stamp | None]  # None for a folder, and for a link to nothing


def changes(before: Stamps, after: Stamps) -> list[str]:
    """The files and folders that differ, came or went, sorted."""
    return sorted(path for path in before.keys() | after.keys() if _is_changed(path, before, after))


def _is_changed(path: str, before: Stamps, after: Stamps) -> bool:
    return (path in before) != (path in after) or before.get(path) != after.get(path)


def stamps(roots: Iterable[Path], code: Iterable[Path] = ()) -> dict[str, Stamp | None]:
    """Of all that is read under the roots, as basalt.loading.files discovers it, and of the folders beside them, which
    an Environment may extend; and of the Python files in the folders of code, there or not yet."""
    found: dict[str, Stamp | None] = {}
    for folder in code:
        _add(str(folder), found, is_root=True, suffixes=(".py",))
    for root in roots:
        if root.is_dir():
            _add(str(root), found, is_root=True)
        elif root.exists():
            found[str(root)] = _stamp(root)
        found.update(dict.fromkeys(_folders(root.parent)))
    return found


def _add(
    folder: str, found: dict[str, Stamp | None], *, is_root: bool = False, suffixes: tuple[str, ...] = SUFFIXES
) -> None:
    """Adds the files of a folder and of those in it; no recursion, since a folder may nest deep."""
    waiting = [folder]
    while waiting:
        folder = waiting.pop()
        entries = list(_entries(folder))
        if not is_root and any(entry.name == STAMP for entry in entries):
            continue  # the compiler's own output
        is_root = False
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.name.endswith(suffixes) and entry.name != STAMP:
                found[entry.path] = _stamp(entry)


def _folders(folder: Path) -> Iterator[str]:
    return (entry.path for entry in _entries(str(folder)) if entry.is_dir())


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """What is in the folder and not hidden; nothing where it has gone, or may not be read."""
    try:
        with os.scandir(folder) as every:
            yield from (entry for entry in every if not entry.name.startswith("."))
    except OSError:
        return


def _stamp(file: Path | os.DirEntry[str]) -> Stamp | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ino)
