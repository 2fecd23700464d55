"""What the shells offer, asked of the shells themselves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from basalt.commands import COMMANDS
from basalt.gathering.documents import KINDS
from basalt.rules import RULES
from tests.test_cli import ROOT, basalt

_BASH = r"""
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_basalt
printf '%s\n' "${COMPREPLY[@]}"
"""
_ZSH = r"""
compdef() { : }
compadd() { shift; printf '%s\n' "$@" }
_files() { : }
source "$1"; shift
words=("$@") CURRENT=$#
_basalt
"""

# What stands on the line, the last word being written, and what must be offered for it.
OFFERED: dict[str, tuple[list[str], set[str]]] = {
    "commands": ([""], set(COMMANDS)),
    "a command": (["che"], {"check"}),
    "commands of a command": (["sandbox", ""], {"up", "down", "status"}),
    "environments": (["check", ""], {"seed", "prod", "stacks"}),
    "an environment": (["compile", "--strict", "se"], {"seed"}),
    "both sides": (["plan", "seed", "pr"], {"prod"}),
    "options": (["fit", "--lose"], {"--lose", "--lose-any"}),
    "an option of a command of a command": (["sandbox", "up", "--fore"], {"--foreground"}),
    "words of an option": (["check", "--format", "sa"], {"sarif"}),
    "words of an option behind its sign": (["check", "--format", "=", "sa"], {"sarif"}),
    "after the words of an option": (["check", "--format", "sarif", "se"], {"seed"}),
    "any number of paths": (["fmt", "seed", "pr"], {"prod"}),
    "rules": (["explain", "queue-"], {each for each in RULES if each.startswith("queue-")}),
    "kinds": (["schema", "T"], {"Team", "TrainingJob"}),
    "shells": (["completion", ""], {"bash", "zsh", "fish"}),
    "what nothing is known of": (["fit", "seed", "--job", ""], set()),
    "behind the last word": (["schema", "Team", ""], set()),
    "an environment's name in another place": (["check", "fit", "x"], set()),
}

_BESIDE = {"deep", "Pulumi.yaml", ".bash", ".zsh", ".fish"}  # files, which are offered for environments, too


def _shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on this machine")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("project")
    for name in ("seed", "prod", ".hidden"):
        (folder / "stacks" / name).mkdir(parents=True)
    (folder / "stacks" / "Pulumi.seed.yaml").touch()
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "Pulumi.yaml").touch()
    for shell in ("bash", "zsh", "fish"):
        (folder / f".{shell}").write_text(basalt("completion", shell, cwd=folder).stdout)
    return folder


def _asked(folder: Path, shell: str, script: str, words: list[str], within: str = ".") -> set[str]:
    command = [_shell(shell), "-c", script, shell, str(folder / f".{shell}"), "basalt", *words]
    done = subprocess.run(command, cwd=folder / within, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


@pytest.mark.parametrize(("words", "expected"), OFFERED.values(), ids=OFFERED)
def test_bash_offers(folder: Path, words: list[str], expected: set[str]) -> None:
    assert _asked(folder, "bash", _BASH, words) - _BESIDE == expected


@pytest.mark.parametrize(("words", "expected"), OFFERED.values(), ids=OFFERED)
def test_zsh_offers(folder: Path, words: list[str], expected: set[str]) -> None:
    assert _asked(folder, "zsh", _ZSH, words) >= expected - {"stacks"}  # zsh itself drops what does not begin so


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("basalt che", {"check"}),
        ("basalt sandbox ", {"up", "down", "status"}),
        ("basalt check se", {"seed"}),
        ("basalt check --format sa", {"sarif"}),
        ("basalt schema T", {"Team", "TrainingJob"}),
    ],
)
def test_fish_offers(folder: Path, line: str, expected: set[str]) -> None:
    script = 'source .fish; complete -C "$argv[1]"'
    command = [_shell("fish"), "--no-config", "-c", script, line]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)

    assert {each.partition("\t")[0] for each in done.stdout.split("\n")} >= expected


_NAMES = ["a b", "$(touch PWNED)", "`touch PWNED`", "*", "it's", 'a"b', "a\\b", "${HOME}", "; touch PWNED", "~", "-n"]


def _named(folder: Path) -> Path:
    """A project whose environments have names that a shell would obey."""
    for name in (*_NAMES, "two\nlines"):
        (folder / "stacks" / name).mkdir(parents=True)
    (folder / "Pulumi.yaml").touch()
    (folder / ".bash").write_text(basalt("completion", "bash", cwd=folder).stdout)
    return folder


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain", ""], {*_NAMES}),
        (["explain", "$("], {"$(touch PWNED)"}),
        (["explain", "a\\ "], {"a b"}),
        (["explain", "'a "], {"a b"}),
        (["check", "../stacks/a "], {"../stacks/a b"}),
    ],
)
def test_names_are_offered_as_they_are_and_nothing_in_them_runs(
    tmp_path: Path, words: list[str], expected: set[str]
) -> None:
    folder = _named(tmp_path)
    command = [_shell("bash"), "-c", _BASH, "bash", str(folder / ".bash"), "basalt", *words]
    done = subprocess.run(
        command, cwd=folder / "stacks", capture_output=True, text=True, timeout=60, check=True,
        env={"PATH": os.environ["PATH"], "HOME": "/"},
    )  # fmt: skip

    assert (done.stderr, {line for line in done.stdout.split("\n") if line} - {*RULES}) == ("", expected)
    assert [*folder.rglob("PWNED")] == []


def test_environments_are_offered_from_anywhere_in_the_project(folder: Path) -> None:
    assert _asked(folder, "bash", _BASH, ["check", "se"], within="deep/er") == {"seed"}


def test_every_command_option_rule_and_kind_is_in_each_script(folder: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        text = (folder / f".{shell}").read_text()
        missing = [word for word in (*COMMANDS, *RULES, *KINDS, "watch", "lose-any") if word not in text]
        assert missing == []


def test_the_start_needs_nothing_of_it() -> None:
    code = "import sys, basalt.cli as c; c.main(['--version']); print([m for m in sys.modules if m[:7] == 'basalt.'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert done.stdout.split("\n")[1] == "['basalt.cli']"
