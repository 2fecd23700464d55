"""Real programs that read what Basalt writes: each folder here is a Go module of one program, with the versions of all
that it is made from in go.mod and their checksums in go.sum. They are built once, into the user's cache."""

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from basalt.sandbox import go_programs

HERE = Path(__file__).resolve().parent


@cache
def program(name: str) -> Path:
    """The program that the folder describes, built on its first use. Refusal, in one line, where Go is missing or
    something that it is made from cannot be had."""
    folder = HERE / name
    target = go_programs.cache() / "oracles" / f"{name}-{_fingerprint(folder)}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as unfinished:
        built = Path(unfinished) / name
        go_programs.build(folder, ".", built)
        built.replace(target)  # at once: another process may build the same
    return target


def _fingerprint(folder: Path) -> str:
    """Of everything that the program is made from."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.go"), folder / "go.mod", folder / "go.sum"]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def objection(name: str, text: str) -> str | None:
    """Why the program refuses the text, None where it takes it."""
    run = _run(name, text)
    return run.stderr.strip() if run.returncode else None


class Rendered(NamedTuple):
    """What Helm would send to a cluster; left are the subcharts that are not to be had, whose objects are missing."""

    objects: list[dict[str, Any]]
    left: list[str]


def rendered(chart: Path, name: str, namespace: str, kubernetes: str, values: Mapping[str, Any]) -> Rendered:
    """What comes of the chart in that folder; ValueError where Helm refuses it."""
    asked = {"chart": str(chart), "name": name, "namespace": namespace, "kubernetes": kubernetes, "values": values}
    run = _run("helm", json.dumps(asked))
    if run.returncode:
        raise ValueError(run.stderr.strip())
    return Rendered(**json.loads(run.stdout))


def _run(name: str, text: str) -> subprocess.CompletedProcess[str]:
    run = subprocess.run([program(name)], input=text, capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):  # it broke down: that is no verdict
        raise RuntimeError(f"{name}: {run.stderr}")
    return run
