"""What MkDocs asks while it builds the site (`hooks` in mkdocs.yml). The pages of docs/ are written for the repository:
where one links to a file or folder that is no page, the site gets a page that shows it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_SHOWN = "source"  # the folder of the site for what lies elsewhere
_FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
_LONGEST = 600  # lines of a file that are shown
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml", ".sh": "sh"}


def on_config(config: Any) -> Any:
    """The nav with the pages of each folder that it names."""
    config.nav = [_expanded(entry) for entry in config.nav]
    return config


def on_files(files: Any, config: Any) -> Any:
    """The files of the site, and a page for each other one that a page links to."""
    waiting = [DOCS / file.src_uri for file in files if file.src_uri.endswith(".md")]
    while waiting:
        for target in _elsewhere(waiting.pop()):
            uri = _uri(target)
            if files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, content=_page(target)))
                if target.suffix == ".md":
                    waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text, with its links to other files leading to the pages that show them."""
    own = page.file.src_uri
    origin = ROOT / own.removeprefix(f"{_SHOWN}/") if own.startswith(f"{_SHOWN}/") else DOCS / own

    def link(match: re.Match[str]) -> str:
        target = _target(origin, match[1])
        if target is None:
            return match[0]
        return os.path.relpath(_uri(target), Path(own).parent) + (match[2] or "")

    return _outside_of_code(markdown, lambda text: _LINK.sub(link, text))


def _expanded(entry: Any) -> Any:
    """An entry of the nav: a page, or a title with a page, a list or a folder."""
    if isinstance(entry, str):
        return entry
    ((title, value),) = entry.items()
    if isinstance(value, str) and value.endswith("/"):
        return {title: list(_pages(DOCS / value))}
    return {title: [_expanded(each) for each in value] if isinstance(value, list) else value}


def _pages(folder: Path) -> Iterator[Any]:
    """The folder's README.md, and the other pages in the order in which it links to them, under its headings."""
    readme = folder / "README.md"
    name = folder.relative_to(DOCS).as_posix()
    yield f"{name}/README.md"
    told = set()
    title, group = "", list[str]()
    for line in [*readme.read_text(encoding="utf-8").splitlines(), "## "]:
        if line.startswith("## "):
            yield from ([{title: group}] if title and group else group)
            title, group = line.removeprefix("## "), []
        for found in re.findall(r"\]\(([\w-]+\.md)\)", line):
            if found not in told and (folder / found).exists():
                told.add(found)
                group.append(f"{name}/{found}")
    yield from (f"{name}/{each.name}" for each in sorted(folder.glob("*.md")) if each.name not in {*told, "README.md"})


def _elsewhere(page: Path) -> Iterator[Path]:
    """What the page links to that is no page of docs/."""
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found = (_target(page, match[1]) for match in _LINK.finditer(prose))
    yield from (target for target in found if target and _is_elsewhere(target))


def _target(page: Path, link: str) -> Path | None:
    """The file or folder that the link of the page leads to; None where MkDocs knows it, or nobody does."""
    target = Path(os.path.normpath(page.parent / link))
    if not target.exists() or ROOT not in target.parents:
        return None
    return target if _is_elsewhere(target) or not page.is_relative_to(DOCS) else None


def _is_elsewhere(target: Path) -> bool:
    is_of_docs = target.is_relative_to(DOCS) and target.suffix in (".md", ".svg", ".png")
    return not is_of_docs


def _uri(target: Path) -> str:
    """Where the site shows it."""
    if not _is_elsewhere(target):
        return target.relative_to(DOCS).as_posix()
    parts = (part.lstrip(".") for part in target.relative_to(ROOT).parts)  # MkDocs hides what begins with a dot
    name = "/".join((_SHOWN, *parts))
    return name if target.suffix == ".md" else f"{name}.md"


def _page(target: Path) -> str:
    if target.suffix == ".md":
        return target.read_text(encoding="utf-8")
    title = f"# `{target.relative_to(ROOT).as_posix()}`\n"
    files = sorted(each for each in target.rglob("*") if each.is_file()) if target.is_dir() else [target]
    shown = (_code(file, target) for file in files if "__pycache__" not in file.parts)
    return "\n".join([title, *shown])


def _code(file: Path, of: Path) -> str:
    lines = file.read_text(encoding="utf-8").splitlines()
    more = [f"({len(lines) - _LONGEST} more lines)\n"] if len(lines) > _LONGEST else []
    heading = [f"## `{file.relative_to(of).as_posix()}`\n"] if file != of else []
    code = [f"````{_LANGUAGES.get(file.suffix, 'text')}", *lines[:_LONGEST], "````\n"]
    return "\n".join([*heading, *code, *more])


def _outside_of_code(text: str, change: Any) -> str:
    """The text, changed but for its fenced blocks."""
    parts, at = list[str](), 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, change(text[at:])])
