"""The cases of the rules: tests/cases/<rule>.yaml, read and run. See CONTRIBUTING.md for their form."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from basalt.compiling import Compilation, compile_folder
from basalt.findings import Finding
from basalt.plan.comparing import compare
from basalt.pointers import render

FOLDER = Path(__file__).resolve().parent / "cases"


@dataclass(frozen=True)
class Case:
    """One input, and what its rule says about it. also: the other rules that speak, whatever they say."""

    rule: str
    name: str
    files: dict[str, str]
    findings: list[dict[str, str]]
    also: list[str]
    base: dict[str, str] | None = None  # what the files change, where the rule judges plans

    @property
    def id(self) -> str:
        return f"{self.rule}: {self.name}"


def read(rule: str) -> list[Case]:
    text = yaml.load((FOLDER / f"{rule}.yaml").read_bytes(), yaml.CSafeLoader)
    assert text.keys() == {"rule", "accepted", "rejected"}, f"{rule}.yaml has rule, accepted, rejected"
    assert text["rule"] == rule
    return [_case(rule, case) for verdict in ("accepted", "rejected") for case in text[verdict]]


def _case(rule: str, case: dict[str, Any]) -> Case:
    unknown = case.keys() - {"name", "files", "findings", "also", "base"}
    assert not unknown, f"{rule}: {unknown}"
    base = _files(case["base"]) if "base" in case else None
    return Case(rule, case["name"], _files(case["files"]), case.get("findings", []), case.get("also", []), base)


def _files(given: Any) -> dict[str, str]:
    return given if isinstance(given, dict) else {"input.yaml": given}


def run(case: Case, folder: Path, monkeypatch: Any) -> Compilation:
    """Compiles the case's files, as a folder called `case` in the folder, which stands for the project."""
    return _compiled(case.files, folder, monkeypatch)


def risks(case: Case, folder: Path, monkeypatch: Any) -> tuple[Finding, ...]:
    """What the rules say about the step from the case's base to its files."""
    (folder / "base").mkdir()
    (folder / "head").mkdir()
    base = _compiled(case.base or {}, folder / "base", monkeypatch)
    return compare(base, _compiled(case.files, folder / "head", monkeypatch)).risks


def _compiled(files: dict[str, str], folder: Path, monkeypatch: Any) -> Compilation:
    (folder / "Pulumi.yaml").touch()
    for name, text in files.items():
        path = folder / "case" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder / "case")
    return compile_folder(Path(os.curdir))


def shown(found: Finding) -> dict[str, str]:
    """A finding as cases spell it."""
    text = {
        "at": f"{found.source.file}:{found.source.line}",
        "object": str(found.object) if found.object else "",
        "pointer": render(found.pointer),
        "message": found.message,
        "hint": found.hint,
    }
    return {key: value for key, value in text.items() if value}
