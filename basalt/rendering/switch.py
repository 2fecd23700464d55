"""Replaces an output folder as a whole: a run that is killed at any moment leaves the old tree or the new one.

The new tree is staged beside the old one, then one rename puts it in place. Where a tree is already there Linux swaps
the two names in one step (renameat2 with RENAME_EXCHANGE), macOS likewise (renamex_np with RENAME_SWAP).
"""

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from basalt.loading.files import STAMP
from basalt.loading.sources import Misuse
from basalt.rendering.layout import Output, outputs_of

_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h; RENAME_SWAP of macOS' sys/stdio.h has the same value
_AT_FDCWD = -100
_STAGE = ".basalt-stage-"
_MANY = 500


def replace(folder: Path, files: Sequence[Output]) -> bool:
    """Makes the folder (or what a link of that name leads to) hold exactly the files; False where it already did, and
    nothing was written.

    Misuse where the folder holds what Basalt did not write, or cannot be written.
    """
    target = Path(os.path.realpath(folder))
    try:
        present = _present(target, folder)
        wanted = {file.path: file.content for file in files}
        if present == wanted.keys() and all((target / path).read_bytes() == wanted[path] for path in present):
            _remove_leftovers(target)
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        with _stage(target) as stage:
            _write(stage / "tree", files)
            _sync(stage / "tree", files)
            _switch(stage / "tree", target)
    except OSError as error:
        raise Misuse(f"cannot write {folder}: {error.strerror}") from None
    return True


def create(folder: Path, files: Sequence[Output]) -> None:
    """Makes a folder that is not there yet, or is empty, hold exactly the files; a run that is killed leaves none of
    them, or all. An empty folder stays the folder that it is, since a shell may stand in it: there the last file of
    the list comes last.

    Misuse where the folder holds anything, or cannot be written.
    """
    target = Path(os.path.realpath(folder))
    try:
        refuse_full(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _stage(target) as stage:
            _write(stage / "tree", files)
            _sync(stage / "tree", files)
            if not target.exists():
                os.rename(stage / "tree", target)
                return
            _move(stage / "tree", target, list(dict.fromkeys(Path(file.path).parts[0] for file in files)))
    except OSError as error:
        raise Misuse(f"cannot write {folder}: {error.strerror}") from None


def refuse_full(folder: Path) -> None:
    """Misuse where the folder holds anything, or is no folder."""
    try:
        held = sorted(os.listdir(folder))
    except FileNotFoundError:
        if not os.path.islink(folder):
            return
        raise Misuse(f"{folder} is a link to nothing") from None
    except OSError as error:
        raise Misuse(f"cannot write {folder}: {error.strerror}") from None
    if held:
        more = f" and {len(held) - 1} more" if len(held) > 1 else ""
        raise Misuse(f"{folder} holds {held[0]}{more}; name a folder that is not there yet, or an empty one")


def _move(tree: Path, folder: Path, entries: Sequence[str]) -> None:
    """Moves the entries into the empty folder one by one, or none of them."""
    moved: list[str] = []
    try:
        for name in entries:
            os.rename(tree / name, folder / name)
            moved.append(name)
    except OSError:
        for name in reversed(moved):
            os.rename(folder / name, tree / name)
        raise


def _present(target: Path, shown: Path) -> set[str]:
    """The files in the folder, all of them ours; Misuse where it is somebody else's, or no folder."""
    if not target.exists():
        return set()
    if not target.is_dir():
        raise Misuse(f"{shown} is not a folder")
    if not (target / STAMP).is_file():  # before a walk through what may be somebody's home
        _refuse(shown, set(os.listdir(target)))
        return set()
    present = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_symlink() or not path.is_dir()}
    _refuse(shown, present - _own(target))
    return present


def _refuse(shown: Path, strangers: set[str]) -> None:
    if strangers:
        named = min(strangers) + (f" and {len(strangers) - 1} more" if len(strangers) > 1 else "")
        raise Misuse(f"{shown} holds {named}, which Basalt did not write; move it away or choose another -o")


def _own(folder: Path) -> set[str]:
    """The files that the folder's stamp lists; none where the stamp is not ours."""
    try:
        stamp = json.loads((folder / STAMP).read_bytes())
    except (ValueError, RecursionError):
        return set()
    return outputs_of(stamp) if isinstance(stamp, dict) and "basalt" in stamp else set()


@contextlib.contextmanager
def _stage(folder: Path) -> Iterator[Path]:
    """A new folder beside the given one, removed at the end; what killed runs left there is removed first."""
    _remove_leftovers(folder)
    with contextlib.ExitStack() as stack:
        with _locked(folder.parent, fcntl.LOCK_EX):
            stage = Path(tempfile.mkdtemp(prefix=_prefix(folder), dir=folder.parent))
            stack.enter_context(_locked(stage, fcntl.LOCK_EX))
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def _prefix(folder: Path) -> str:
    return f"{_STAGE}{hashlib.sha256(os.fsencode(folder.name)).hexdigest()[:12]}-"


def _remove_leftovers(folder: Path) -> None:
    """Removes the stages that killed runs left. A stage in use is known by the lock on it; the parent is locked
    meanwhile, so that none is taken for a leftover before its lock is set."""
    found = [folder.parent / name for name in os.listdir(folder.parent) if name.startswith(_prefix(folder))]
    if not found:
        return
    with _locked(folder.parent, fcntl.LOCK_EX):
        for stage in found:
            unused = _locked(stage, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError, BlockingIOError), unused:
                shutil.rmtree(stage, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _write(tree: Path, files: Sequence[Output]) -> None:
    tree.mkdir(mode=0o755)
    for parent in sorted({str((tree / file.path).parent) for file in files}):
        os.makedirs(parent, exist_ok=True)
    root = str(tree)
    for file in files:
        with open(f"{root}/{file.path}", "wb") as handle:
            handle.write(file.content)


def _sync(tree: Path, files: Sequence[Output]) -> None:
    """Brings the tree to the disk before its name does: after a crash of the machine it is whole too."""
    if len(files) > _MANY:
        os.sync()  # one call for the whole file system is cheaper than thousands
        return
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
