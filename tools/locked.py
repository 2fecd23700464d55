"""The packages of the lock files, as they stand there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# What the compiler needs, what `pulumi up` needs on top, and what only its developers need.
FILES = ("requirements.txt", "requirements-pulumi.txt", "requirements-dev.txt")
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Package(NamedTuple):
    """A package at its version: the file that locks it, and the SHA-256 of each of its files."""

    file: str
    name: str
    version: str
    hashes: tuple[str, ...]


def packages(root: Path = ROOT) -> Iterator[Package]:
    """Every package once, by the first file that locks it. Raises ValueError for one without a hash."""
    seen = set()
    for file in FILES:
        text = (root / file).read_text(encoding="utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            if pin := _PIN.match(line):
                hashes = tuple(sorted(_HASH.findall(line)))
                if not hashes:
                    raise ValueError(f"{file}: {pin[1]} has no hash; run `make lock`")
                if (pin[1], pin[2]) not in seen:
                    seen.add((pin[1], pin[2]))
                    yield Package(file, pin[1], pin[2], hashes)
