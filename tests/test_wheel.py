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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files as pip lays them out, apart from this checkout."""
    folder: Path = tmp_path_factory.mktemp("wheel")
    _wheel(folder / "sources", "1700000000")
    (wheel,) = (folder / "sources" / "dist").glob("*.whl")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        "site",
        str(wheel),
    ]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    shutil.rmtree(folder / "sources")
    return folder / "site"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that holds an environment, and nothing else of Basalt's."""
    shutil.copytree(ROOT / "stacks", tmp_path / "stacks")
    return tmp_path


def _run(site: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(site / "bin" / "basalt"), *arguments]
    surroundings = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=surroundings, timeout=120, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["check", "seed"], "no findings"),
        (["check", "prod"], "no findings"),
        (["compile", "prod"], "written: build/prod"),
        (["fit", "seed"], "vision-train/allreduce"),
        (["topology", "seed"], "rack"),
        (["report", "seed"], "seed"),
        (["explain", "queue-exists"], "# queue-exists"),
        (["explain", "seed", "queue/vision"], "Queue/vision"),
        (["schema", "Environment"], '"title": "Environment"'),
        (["schema", "--all"], "written: .schemas"),
        (["fmt", "--check", "stacks"], "already formatted"),
        (["completion", "bash"], "complete -F _basalt basalt"),
        (["sandbox", "status"], ""),
    ],
    ids=" ".join,
)
def test_commands_work_in_a_folder_that_holds_only_stacks(
    installed: Path, project: Path, arguments: list[str], shown: str
) -> None:
    done = _run(installed, project, *arguments)

    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout


@pytest.mark.slow
def test_the_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    code = "import basalt, modules, pulumi_basalt; print(basalt.__file__, modules.__file__, pulumi_basalt.__file__)"
    surroundings = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=surroundings, check=True
    )

    assert all(each.startswith(str(installed)) for each in done.stdout.split())


@pytest.mark.slow
def test_a_projects_own_modules_stand_beside_those_of_the_wheel(installed: Path, project: Path) -> None:
    (project / "Pulumi.yaml").touch()
    (project / "modules").mkdir()
    (project / "modules" / "own.py").write_text(
        "def manifests(declared, platform):\n"
        '    metadata = {"name": "own", "namespace": "vision-train"}\n'
        '    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": declared}\n'
    )
    file = project / "stacks" / "seed" / "environment.yaml"
    file.write_text(file.read_text() + "  modules: {own: {a: b}}\n")

    done = _run(installed, project, "compile", "seed", "--modules")

    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "build" / "seed" / "70-manifests" / "vision-train" / "configmap-own.yaml").exists()
