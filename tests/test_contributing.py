"""What CONTRIBUTING.md says is true: its files and commands exist, and the rule of its example is one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_FOLDERS = (
    "basalt",
    "benchmarks",
    "docs",
    "modules",
    "policies",
    "pulumi_basalt",
    "schemas",
    "stacks",
    "tests",
    "tools",
)
_PATH = re.compile(rf"(?<![\w./])(?:{'|'.join(_FOLDERS)})/[\w./<>*-]*[\w>/]")
_TARGET = re.compile(r"`make ([a-z-]+)")
_FILE = re.compile(r"^(`{3,})(?:python|yaml|markdown|text) (\S+)( RULES)?\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_EXAMPLE = "job-retries-are-few"


def example() -> list[tuple[str, bool, str]]:
    """The files of the example: path, whether the text is a row of RULES, text."""
    return [(path, bool(is_row), text) for _, path, is_row, text in _FILE.findall(PAGE)]


def test_every_path_named_exists() -> None:
    named = {re.sub(r"<[^>]*>", "*", path) for path in _PATH.findall(PAGE)} - {path for path, _, _ in example()}

    assert len(named) > 20
    assert [path for path in sorted(named) if not any(ROOT.glob(path.rstrip("/")))] == []


def test_every_target_of_make_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert [target for target in _TARGET.findall(PAGE) if f"\n{target}: " not in makefile] == []


def test_every_test_named_exists() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_*.py"))

    assert [name for name in re.findall(r"`(test_\w+)`", PAGE) if f"def {name}(" not in tests] == []


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the example written into it."""
    folder = tmp_path_factory.mktemp("contributing")
    for name in ("basalt", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "data", "golden"))
    for name in ("modules", "schemas", "tools", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    for path, is_row, text in example():
        _write(folder / path, is_row, text)
    return folder


def _write(path: Path, is_row: bool, text: str) -> None:
    if path.suffix != ".py":
        path.write_text(text, encoding="utf-8")
        return
    head, separator, rows = path.read_text(encoding="utf-8").partition("\n\nRULES")
    whole = f"{head}{separator}{rows.rstrip().removesuffix(')')}{text})\n" if is_row else ""
    path.write_text(whole or f"{head.rstrip()}\n\n\n{text}{separator}{rows}", encoding="utf-8")


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_rule_of_the_example_says_what_its_cases_say(copy: Path) -> None:
    done = run(copy, "pytest", "-x", "tests/test_rules.py", "-k", _EXAMPLE)

    assert done.returncode == 0, done.stdout
    assert run(copy, "basalt", "explain", _EXAMPLE).stdout.startswith(f"# {_EXAMPLE}\n")


@pytest.mark.slow
def test_the_function_of_the_example_has_its_form(copy: Path) -> None:
    done = run(copy, "ruff", "check", "--no-cache", "basalt/rules/job_policies.py")
    formatted = run(copy, "ruff", "format", "--no-cache", "--check", "basalt/rules/job_policies.py")

    assert (done.returncode, formatted.returncode) == (0, 0), done.stdout + formatted.stdout


@pytest.mark.slow
def test_a_case_without_its_findings_is_told_what_to_paste(copy: Path, tmp_path: Path) -> None:
    shutil.copytree(copy, tmp_path / "copy", symlinks=True)
    cases = tmp_path / "copy" / "tests" / "cases" / f"{_EXAMPLE}.yaml"
    whole = cases.read_text(encoding="utf-8")
    before, findings = whole.split("    findings:\n")
    cases.write_text(before, encoding="utf-8")

    done = run(tmp_path / "copy", "pytest", "-x", "tests/test_rules.py", "-k", f"{_EXAMPLE} and exactly")

    told = "\n".join(line.removeprefix("E").removeprefix("  ") for line in done.stdout.split("\n"))
    missing = [line.strip() for line in findings.strip().split("\n") if line.strip() not in told]
    assert (done.returncode, missing) == (1, [])
