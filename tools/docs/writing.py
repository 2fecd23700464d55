"""Puts generated pages into their folder."""

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def write(folder: Path, pages: Mapping[str, str]) -> int:
    """Makes the folder hold these pages, by their names, and no others; gives the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{folder.relative_to(ROOT)}: {len(pages)} files")
    return 0
