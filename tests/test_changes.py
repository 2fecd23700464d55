"""`basalt-check`: which environments changed files belong to, and the hook of pre-commit that runs it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
HOOK = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]
DOCUMENT = "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def entry() -> list[str]:
    """The hook's entry, as pip installs it."""
    scripts = re.search(rf'^{HOOK["entry"]} = "([a-z.]+):main"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert scripts is not None
    return [sys.executable, "-m", scripts[1]]


def run(project: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [*entry(), *arguments]
    return subprocess.run(command, cwd=project, input=stdin, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """dev and prod extend base; broken stands alone, and has an error; notes is no environment."""
    (tmp_path / "Pulumi.yaml").touch()
    specs = {"base": "{}", "dev": "{extends: [../base]}", "prod": "{extends: [../base]}"}
    for name, spec in {**specs, "broken": "{queues: {vision: {parent: reserch}}}"}.items():
        (tmp_path / "stacks" / name / "more").mkdir(parents=True)
        (tmp_path / "stacks" / name / "environment.yaml").write_text(DOCUMENT.format(name=name, spec=spec))
    (tmp_path / "stacks" / "notes").mkdir()
    (tmp_path / "stacks" / "notes" / "values.yaml").write_text("a: b\n")
    return tmp_path


AFFECTED: tuple[tuple[str, list[str]], ...] = (
    ("stacks/dev/environment.yaml", ["dev"]),
    ("stacks/base/environment.yaml", ["base", "dev", "prod"]),
    ("stacks/prod/more/gone.json", ["prod"]),  # files that were deleted count
    ("stacks/Pulumi.prod.yaml", ["prod"]),
    ("stacks/prod/README.md", []),
    ("stacks/production/environment.yaml", []),
    ("stacks/notes/values.yaml", []),
    ("other/stacks/dev/environment.yaml", []),
)


@pytest.mark.parametrize(("file", "names"), AFFECTED)
def test_file_belongs_to_the_environments_that_read_it(file: str, names: list[str], project: Path) -> None:
    done = run(project, "--list", "--format", "json", file)

    assert (done.returncode, json.loads(done.stdout)) == (0, [f"stacks/{name}" for name in names])


@pytest.mark.parametrize("end", ["\n", "\0"])
def test_names_come_from_stdin(end: str, project: Path) -> None:
    done = run(project, "--list", "-", stdin=f"stacks/dev/environment.yaml{end}stacks/prod/more/a b.yaml{end}")

    assert done.stdout.split() == ["stacks/dev", "stacks/prod"]


def test_hook_is_silent_about_what_did_not_change(project: Path) -> None:
    done = run(project, *HOOK.get("args", ()), "stacks/dev/environment.yaml", "stacks/Pulumi.prod.yaml")

    assert done.returncode == 0
    assert "reserch" not in done.stdout


@pytest.mark.parametrize(
    "text", [b"a: [b\n", b"\xff\xfe", b"apiVersion: basalt.dev/v1alpha1\nkind: Enviroment\nmetadata: {name: dev}\n"]
)
def test_hook_fails_where_the_environment_itself_cannot_be_read(text: bytes, project: Path) -> None:
    (project / "stacks" / "dev" / "environment.yaml").write_bytes(text)

    done = run(project, *HOOK.get("args", ()), "stacks/dev/environment.yaml")

    assert done.returncode == 1
    assert "stacks/dev/environment.yaml:" in done.stdout


def test_hook_fails_with_the_findings_of_what_changed(project: Path) -> None:
    done = run(project, *HOOK.get("args", ()), "stacks/dev/environment.yaml", "stacks/broken/environment.yaml")

    assert done.returncode == 1
    assert "[queue-parent-exists]" in done.stdout
    assert done.stdout.count("stacks/broken/environment.yaml:") == 1


def test_hook_is_given_what_documents_are_written_in() -> None:
    assert HOOK["language"] == "python"
    assert [each for each in ("a.yaml", "a.yml", "a.json", "a.py", "a.md") if re.search(HOOK["files"], each)] == [
        "a.yaml",
        "a.yml",
        "a.json",
    ]


def test_folder_that_does_not_exist_is_misuse(tmp_path: Path) -> None:
    done = run(tmp_path, "stacks/dev/environment.yaml")

    assert (done.returncode, done.stderr) == (
        2,
        "basalt-check: no folder stacks; --under names the one that environments are in\n",
    )
