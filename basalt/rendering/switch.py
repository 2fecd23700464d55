"""Replaces an output folder as a whole: a run that is killed at any moment leaves the old tree or the new one.

The new tree is staged beside the old one, then one rename puts it in place. Where a tree is already there Linux swaps
the two names in one step (renameat2 with RENAME_EXCHANGE), macOS likewise (renamex_np with RENAME_SWAP).
"""

import ctypes
import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from basalt.loading.files import STAMP, Misuse
from basalt.rendering.layout import Output, outputs_of

_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h; RENAME_SWAP of macOS' sys/stdio.h has the same value
_AT_FDCWD = -100
_STAGE = ".basalt-stage-"


def replace(folder: Path, files: Sequence[Output]) -> bool:
    """Makes the folder hold exactly the files; False where it already did, and nothing was written.

    Misuse where the folder holds what Basalt did not write, or cannot be written.
    """
    try:
        if _holds(folder, files):
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        _clean(folder)
        _stage_and_switch(folder, files)
    except OSError as error:
        raise Misuse(f"cannot write {error.filename or folder}: {error.strerror}") from None
    return True


def _holds(folder: Path, files: Sequence[Output]) -> bool:
    """Whether the folder is already what it should be; Misuse where it is somebody else's."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise Misuse(f"{folder} is not a folder")
    if not folder.exists():
        return False
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}
    strangers = present - _own(folder, present)
    if strangers:
        named = min(strangers) + (f" and {len(strangers) - 1} more" if len(strangers) > 1 else "")
        raise Misuse(f"{folder} holds {named}, which Basalt did not write; move it away or choose another -o")
    wanted = {file.path: file.content for file in files}
    return present == wanted.keys() and all((folder / path).read_bytes() == wanted[path] for path in present)


def _own(folder: Path, present: set[str]) -> set[str]:
    """The files that the folder's stamp lists; none where it has no stamp of ours."""
    if STAMP not in present:
        return set()
    try:
        stamp = json.loads((folder / STAMP).read_bytes())
    except (ValueError, RecursionError):
        return set()
    return outputs_of(stamp) if isinstance(stamp, dict) and "basalt" in stamp else set()


def _clean(folder: Path) -> None:
    """Removes what killed runs left: stages that no living process holds a lock on."""
    for stage in folder.parent.glob(f"{_STAGE}{folder.name}-*"):
        descriptor = os.open(stage, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(stage, ignore_errors=True)
        finally:
            os.close(descriptor)


def _stage_and_switch(folder: Path, files: Sequence[Output]) -> None:
    stage = Path(tempfile.mkdtemp(prefix=f"{_STAGE}{folder.name}-", dir=folder.parent))
    descriptor = os.open(stage, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        tree = stage / folder.name
        _write(tree, files)
        os.sync() if len(files) > 1000 else _sync(tree, files)
        _switch(tree, folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        os.close(descriptor)


def _write(tree: Path, files: Sequence[Output]) -> None:
    for parent in sorted({str((tree / file.path).parent) for file in files}):
        os.makedirs(parent, exist_ok=True)
    root = str(tree)
    for file in files:
        with open(f"{root}/{file.path}", "wb") as handle:
            handle.write(file.content)


def _sync(tree: Path, files: Sequence[Output]) -> None:
    """Brings the tree to the disk before its name does: after a crash of the machine it is whole too."""
    for path in (*(tree / file.path for file in files), *{(tree / file.path).parent for file in files}, tree):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _switch(tree: Path, folder: Path) -> None:
    """Gives the tree the folder's name in one step; the old tree ends up in the stage, which is then removed."""
    try:
        os.rename(tree, folder)  # nothing there yet, or an empty folder
    except OSError:
        if not folder.is_dir():
            raise
        _exchange(tree, folder)


def _exchange(one: Path, other: Path) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        failed = library.renamex_np(os.fsencode(one), os.fsencode(other), _EXCHANGE)
    else:
        failed = library.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE)
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: this file system cannot swap two folders", str(other))
