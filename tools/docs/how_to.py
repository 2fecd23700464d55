"""Runs the pages of docs/how-to and writes what their commands print: `make docs`. A page is written by hand, but for
the outputs; a test compares these with what comes out now.

A page begins in a project that has the environments of stacks/. Its blocks are taken from top to bottom:

    ```yaml title="stacks/seed/teams.yaml"     a new file, or one that is replaced
    ```diff title="stacks/seed/teams.yaml"     a change: the lines that begin with a space or - stand in the
                                               file once, and give way to those with a space or +
    ```console                                 commands, each after "$ ", and what they print
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # so that the checkout's own compiler runs, installed or not

from tools.docs.checkout import Checkout  # noqa: E402  # the path comes first

FOLDER = ROOT / "docs" / "how-to"
# Those that are run here; the others have tests of their own.
PAGES = (
    "adding-a-team.md",
    "failure-drill.md",
    "from-racks-to-a-first-gang.md",
    "moving-from-helm-values.md",
    "sharing-gpus.md",
    "upgrading-volcano.md",
)
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def rendered(page: str, checkout: Checkout) -> str:
    """The page with what its commands print in the checkout."""

    def block(match: re.Match[str]) -> str:
        language, title, body = match.groups()
        if language == "console":
            return f"```console\n{''.join(_console(body, checkout))}```"
        if language == "diff" and title:
            checkout.change(title, _side(body, " -"), _side(body, " +"))
        elif title:
            path = checkout.folder / title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        return match[0]

    return _BLOCK.sub(block, page)


def _console(body: str, checkout: Checkout) -> Iterator[str]:
    for line in body.splitlines():
        if line.startswith("$ "):
            printed = checkout.run(line.removeprefix("$ "))
            yield f"{line}\n" + (f"{printed}\n" if printed else "")


def _side(body: str, marks: str) -> str:
    """The lines of a difference that begin with one of the marks, without it."""
    return "".join(f"{line[1:]}\n" for line in body.splitlines() if (line or " ")[0] in marks)


def text(name: str) -> str:
    """What the page says when it is run now."""
    with tempfile.TemporaryDirectory() as folder:
        return rendered((FOLDER / name).read_text(encoding="utf-8"), Checkout(Path(folder)))


def main() -> None:
    for name in PAGES:
        (FOLDER / name).write_text(text(name), encoding="utf-8")
    print(f"{FOLDER.relative_to(ROOT)}: {len(PAGES)} pages run")


if __name__ == "__main__":
    main()
