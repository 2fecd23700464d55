"""What the README says is true: its commands run, its links lead somewhere, its example is what one sees."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from basalt.commands import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CLUSTERS = re.compile(r"basalt (sandbox|apply|verify) ")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def commands() -> list[str]:
    lines = (line for block in _CONSOLE.findall(README) for line in block.split("\n"))
    return [line.removeprefix("$ ").partition("#")[0].strip() for line in lines if line.startswith("$ ")]


def test_the_first_two_commands_are_those_of_the_makefile() -> None:
    assert commands()[:2] == ["make demo", "make test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\ndemo: " in makefile
    assert "\ntest: " in makefile


# Those that need a cluster run in tests/sandbox.
@pytest.mark.parametrize("command", [each for each in commands() if "basalt" in each and not _CLUSTERS.search(each)])
def test_command_of_the_readme_runs(command: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "stacks", tmp_path / "stacks")
    shutil.copytree(ROOT / "docs" / "how-to", tmp_path / "docs" / "how-to")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    for each in ("init -q -b main", "add .", "-c user.name=a -c user.email=a commit -q -m all"):
        subprocess.run(["git", *each.split()], cwd=tmp_path, check=True)
    arguments = command.removeprefix(".venv/bin/basalt").split()

    done = subprocess.run(
        [sys.executable, "-m", "basalt", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"basalt {command} " in README


def test_every_part_of_the_compiler_is_in_the_tables() -> None:
    parts = [each for each in (ROOT / "basalt").iterdir() if not each.name.startswith("__")]
    named = [f"`basalt/{each.name}/`" if each.is_dir() else f"`basalt/{each.name}`" for each in parts]

    assert len(named) > 20
    assert [name for name in named if name not in README] == []


def test_the_finding_shown_is_the_one_that_one_sees(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "stacks" / "seed", tmp_path / "stacks" / "seed")
    teams = tmp_path / "stacks" / "seed" / "teams.yaml"
    teams.write_text(teams.read_text().replace("guarantee: {nvidia.com/gpu: 32}", "guarantee: {nvidia.com/gpu: 40}"))

    done = subprocess.run(
        [sys.executable, "-m", "basalt", "check", "seed", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"```text\n{done.stdout}```" in README


def anchors(page: Path) -> set[str]:
    """What GitHub calls the page's headings; two of one name are told apart by a number."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = [re.sub(r"\]\([^)]*\)", "", heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    slugs = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found]
    return {f"{slug}-{before}" if (before := slugs[:at].count(slug)) else slug for at, slug in enumerate(slugs)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_anchors_are_those_of_headings(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    broken = [(link, anchor) for link, anchor in links if anchor not in anchors(page.parent / link if link else page)]

    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]

    assert broken == []
