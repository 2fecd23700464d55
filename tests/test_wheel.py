"""The wheel is the same, byte for byte, wherever and whenever it is built."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import ROOT

_SOURCES = ("basalt", "modules", "pulumi_basalt", "schemas", "tools", "pyproject.toml", "README.md", "LICENSE")

_LEFT_OUT = shutil.ignore_patterns("__pycache__")


def _wheel(root: Path, epoch: str) -> bytes:
    """The wheel built from a copy of the sources, all of whose files were just made."""
    root.mkdir()
    for name in _SOURCES:
        source = ROOT / name
        if source.is_file():
            shutil.copy(source, root / name)
        else:
            shutil.copytree(source, root / name, ignore=_LEFT_OUT, copy_function=shutil.copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", "dist", "."]
    subprocess.run(command, cwd=root, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": epoch}, timeout=300)
    (wheel,) = (root / "dist").glob("*.whl")
    return wheel.read_bytes()


@pytest.mark.slow
def test_two_builds_give_the_same_bytes(tmp_path: Path) -> None:
    assert _wheel(tmp_path / "one", "1700000000") == _wheel(tmp_path / "two", "1700000000")
