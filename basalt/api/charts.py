"""The charts that Basalt installs, each at one exact version: schemas/charts.lock.json."""

import json
from functools import cache
from typing import Any, NamedTuple

from basalt.api.schemas import ROOT


class Chart(NamedTuple):
    """A chart at an exact version. repository is its URL (oci:// for a registry); digest is that of its archive,
    sha256:..., None where the lock has none."""

    name: str
    version: str
    repository: str
    digest: str | None


@cache
def locked(name: str, version: str | None = None) -> Chart:
    """The chart of the lock; at another version it has no digest. KeyError for a chart that is not in the lock."""
    entry = _lock()[name]
    is_locked = version in (None, entry["version"])
    digest = entry.get("digest") if is_locked else None
    return Chart(name, version or entry["version"], entry["repository"], digest)


@cache
def _lock() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "charts.lock.json").read_bytes())
    return found
