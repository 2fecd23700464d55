"""Writes the digests of schemas/charts.lock.json from the repositories' own indexes: `make charts-lock`. Needs the
network. Nothing is written where a repository cannot be read or does not have the locked version."""

import json
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

LOCK = Path(__file__).resolve().parents[2] / "schemas" / "charts.lock.json"
_TIMEOUT = 60  # seconds
Entry = dict[str, str]


class Refusal(Exception):
    """Why nothing is written, in one line."""


def read(url: str) -> bytes:
    """What stands at the URL of a repository's index."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, ValueError) as error:
        raise Refusal(f"{url}: {error}") from None


def locked(lock: dict[str, Entry], read_url: Callable[[str], bytes] = read) -> dict[str, Entry]:
    """The lock, each entry with the digest that its repository gives; those of OCI registries stay as they are."""
    found: dict[str, Entry] = {}
    for chart, entry in lock.items():
        if entry["repository"].startswith("oci://"):
            found[chart] = entry
            continue
        url = f"{entry['repository'].rstrip('/')}/index.yaml"
        found[chart] = {**entry, "digest": f"sha256:{_digest(read_url(url), url, chart, entry['version'])}"}
    return found


def _digest(index: bytes, url: str, chart: str, version: str) -> str:
    try:
        value: Any = yaml.load(index, Loader=yaml.CSafeLoader)
        releases = {str(each["version"]): each.get("digest") for each in value["entries"][chart]}
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise Refusal(f"{url}: no index with {chart}: {error}") from None
    digest = releases.get(version)
    if not isinstance(digest, str) or not digest:
        raise Refusal(f"{url}: {chart} {version} has no digest there")
    return digest.removeprefix("sha256:")


def text(lock: dict[str, Entry]) -> str:
    """The lock as it is written: one chart a line."""
    lines = [f"  {json.dumps(chart)}: {json.dumps(entry)}" for chart, entry in lock.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    try:
        LOCK.write_text(text(locked(json.loads(LOCK.read_text(encoding="utf-8")))), encoding="utf-8")
    except Refusal as refusal:
        print(f"lock.py: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
