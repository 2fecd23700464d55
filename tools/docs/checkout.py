"""A project to show commands in, and what they print there."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PERSON = ("AUTHOR", "COMMITTER")


class Checkout:
    """A git repository with the environments of stacks/ on its branch main."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "stacks", folder / "stacks")
        (folder / "Pulumi.yaml").touch()
        (folder / ".gitignore").write_text("/build/\n/.schemas/\n", encoding="utf-8")
        self.run("git init --quiet --initial-branch main && git add --all")
        self.run("git commit --quiet --message seed")

    def run(self, command: str) -> str:
        """What the command, a line of bash, prints: to stdout, else to stderr."""
        own = f'basalt() {{ {shlex.quote(sys.executable)} -m basalt "$@"; }}\n'
        state = {"XDG_STATE_HOME": str(self.folder / ".git" / "state"), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        git = {f"GIT_{who}_{what}": "basalt@example.com" for who in _PERSON for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["bash", "-c", own + command],
            cwd=self.folder,
            env={**os.environ, **state, **git},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip("\n") or done.stderr.strip("\n")

    def change(self, file: str, old: str, new: str) -> None:
        """Replaces the one place where the file says old."""
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} says {text.count(old)} times: {old}"
        path.write_text(text.replace(old, new), encoding="utf-8")
