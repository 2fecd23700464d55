"""Writes into docs/how-to/patterns.md what its commands print. Each section begins with the examples as they are."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "how-to" / "patterns.md"
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)
_CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def text(page: str, folder: Path) -> str:
    """The page with the outputs as they are now; the folder is an empty one to work in."""
    sections = _SECTION.split(page)
    return "".join(_section(section, folder / str(number)) for number, section in enumerate(sections))


def _section(section: str, folder: Path) -> str:
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "Pulumi.yaml").touch()
    return _CONSOLE.sub(lambda block: _shown(block[0], folder), section)


def _shown(block: str, folder: Path) -> str:
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{_printed(command, folder)}" for command in commands)


def _printed(command: str, folder: Path) -> str:
    words = command.split()
    run = [sys.executable, "-m", "basalt", *words[1:]] if words[0] == "basalt" else ["sh", "-c", command]
    return subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False).stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        FILE.write_text(text(FILE.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
    print(FILE.relative_to(ROOT))


if __name__ == "__main__":
    main()
