"""Versions of Kubernetes and Volcano, compared by their numbers, and those that Basalt has schemas for."""

import re
from functools import cache
from typing import NamedTuple

from basalt.api.schemas import ROOT

_VERSION = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,6}))?(?:[-+].*)?")


class Version(NamedTuple):
    """A version down to its minor: schemas and fields change only with that."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def parse(text: str) -> Version | None:
    """The minor version that "1.34", "v1.34.4" or "1.34.4-gke.100" belongs to; None where it is no version."""
    found = _VERSION.fullmatch(text)
    return Version(int(found[1]), int(found[2])) if found else None


@cache
def known(product: str) -> tuple[Version, ...]:
    """The minors of `kubernetes` or `volcano` that there are schemas for, oldest first."""
    found = (parse(path.stem) for path in (ROOT / product).glob("*.json"))
    return tuple(sorted(version for version in found if version))


def newest(product: str) -> Version:
    return known(product)[-1]
