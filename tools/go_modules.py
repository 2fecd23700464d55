"""The Go modules that generated files are made from: pinned in go_modules.json, each with its checksum."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from basalt.sandbox import go_programs

_ROOT = Path(__file__).resolve().parents[1]
Refusal = go_programs.Refusal
PINS = Path(__file__).with_suffix(".json")


def pinned() -> list[dict[str, str]]:
    """Every module with its version and sum, as go.sum spells them."""
    found: list[dict[str, str]] = json.loads(PINS.read_text(encoding="utf-8"))
    return found


def write(generated: Callable[[list[dict[str, str]]], Iterable[tuple[Path, str]]]) -> int:
    """Writes the files that are generated from the pins, all or none; the exit code."""
    try:
        files = dict(generated(pinned()))
    except Refusal as refusal:
        print(f"generate.py: {refusal}", file=sys.stderr)
        return 1
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(_ROOT)}: {len(text)} bytes")
    return 0


def newest(module: str) -> dict[str, str]:
    """The last pin of the module."""
    return [each for each in pinned() if each["module"] == module][-1]


def downloaded(source: dict[str, str]) -> Path:
    """The folder of the module as Go's checksum database knows it and as it is pinned; Refusal where it cannot be had.
    Needs Go, and the network for a module that is not in Go's cache."""
    name = f"{source['module']}@{source['version']}"
    with tempfile.TemporaryDirectory() as outside:  # where no go.mod has a say
        command = ["go", "mod", "download", "-json", name]
        try:
            run = subprocess.run(command, cwd=outside, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise Refusal("go is not on the PATH: install it to regenerate the files") from None
    answer = json.loads(run.stdout or "{}")
    if run.returncode or "Dir" not in answer:
        reason = " ".join((answer.get("Error") or run.stderr or "go mod download failed").split())
        raise Refusal(f"{name}: {reason.removeprefix(name + ': ')}")
    if answer["Sum"] != source["sum"]:
        raise Refusal(f"{name}: its sum is {answer['Sum']}, {PINS.name} pins {source['sum']}")
    return Path(answer["Dir"])
