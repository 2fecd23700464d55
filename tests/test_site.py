"""The site of docs/ builds without a warning, its links lead somewhere, and it loads nothing from another host."""

import importlib.util
import os
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("material") is None, reason="mkdocs-material is not installed; `make site` does that"
    ),
]


class Page(HTMLParser):
    """What a page of the site has: anchors, links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in _LOADS and _LOADS[tag] in found and found.get("rel") != "canonical":
            self.loaded.append(found[_LOADS[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, and a test of its own: strict, no word on stderr."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@cache
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def pages(site: Path) -> list[Path]:
    return [path for path in site.rglob("*.html") if path.name != "404.html"]  # whose links begin at the server's root


def test_every_page_of_the_docs_is_in_it(site: Path) -> None:
    names = (path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md"))
    missing = [name for name in names if not (site / name.replace("README.html", "index.html")).exists()]

    assert missing == []


def test_every_link_leads_somewhere(site: Path) -> None:
    broken = [f"{path.relative_to(site)}: {link}" for path in pages(site) for link in page(path).links
              if not _leads_somewhere(path, link)]  # fmt: skip

    assert len(pages(site)) > 200
    assert broken == []


def _leads_somewhere(path: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return True  # not asked: the test needs no network
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not parts.scheme and target.exists():
        return not parts.fragment or target.suffix != ".html" or unquote(parts.fragment) in page(target).anchors
    return False


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loaded = {each for path in pages(site) for each in page(path).loaded}
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))

    assert [each for each in loaded if urlsplit(each).netloc] == []
    assert all(each in styles for each in (".md-typeset", "pre-wrap"))
    assert "@import" not in styles
    assert "url(http" not in styles.replace('"', "").replace("url(//", "url(http")


def test_what_lies_elsewhere_is_shown(site: Path) -> None:
    shown = (site / "source" / "stacks" / "prod" / "environment.yaml.html").read_text(encoding="utf-8")

    assert "dex.prod.example.com" in shown
    assert 'href="source/github/workflows/preview.yaml.html"' in (site / "ci.html").read_text(encoding="utf-8")
