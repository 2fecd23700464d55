"""Writes the lists of pages that are told by the pages themselves: docs/how-to/README.md and docs/decisions/README.md:
`make docs`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_HOW_TO = """# How to

Each page is one task from beginning to end. Its commands are run by a test, and what it shows is what they print.
"""
_DECISIONS = """# Decisions

Why things are as they are: context, decision, consequences, a page each.
"""
_FIRST = "from-racks-to-a-first-gang.md"


def lists() -> dict[Path, str]:
    """The text of each list by its file."""
    return {
        DOCS / "how-to" / "README.md": _list(_HOW_TO, DOCS / "how-to"),
        DOCS / "decisions" / "README.md": _list(_DECISIONS, DOCS / "decisions"),
    }


def _list(about: str, folder: Path) -> str:
    pages = sorted(folder.glob("*.md"), key=lambda page: (page.name != _FIRST, page.name))
    rows = [f"- [{_title(page)}]({page.name})" for page in pages if page.name != "README.md"]
    return "\n".join([about, *rows, ""])


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def main() -> int:
    for file, text in lists().items():
        file.write_text(text, encoding="utf-8")
        print(file.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
