"""Replaces a file as a whole: what is there stays as it is until the new one is complete.

One of the few places that touch the file system.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replaced(target: Path, *, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A hidden file beside the target, to be written: at the end of the block it takes the target's place, also a
    link's; where the block or the disk fails it is gone. mode: the new file's, less what the umask takes. Raises
    OSError."""
    partial = target.with_name(f".basalt-{os.urandom(6).hex()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
