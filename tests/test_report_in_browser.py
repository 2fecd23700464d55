"""The report's page in a real browser: what it shows is what its facts say."""

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from basalt.compiling import compile_folder
from basalt.reporting import report_facts, report_html
from tests.test_readme import ROOT
from tests.test_report import Page

pytestmark = pytest.mark.slow
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, _NAMES)), None)


class Shown(Page):
    """The elements with the text in each."""

    def __init__(self, text: str) -> None:
        self.texts: list[str] = []
        super().__init__(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if self.texts:
            self.texts[-1] += data

    def of(self, name: str) -> list[str]:
        """The texts of the elements of a class."""
        pairs = zip(self.elements, self.texts, strict=True)
        return [text for (_, attributes), text in pairs if name in (attributes.get("class") or "").split()]


def browse(folder: Path, page: str, *options: str) -> str:
    assert BROWSER is not None
    (folder / "report.html").write_text(page, encoding="utf-8")
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        *options,
    ]
    address = (folder / "report.html").as_uri()
    done = subprocess.run([*command, address], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
@pytest.mark.parametrize("environment", ["seed", "prod"])
def test_the_page_shows_its_facts(environment: str, tmp_path: Path) -> None:
    facts: dict[str, Any] = report_facts.facts(compile_folder(ROOT / "stacks" / environment), None)

    shown = Shown(browse(tmp_path, report_html.report(facts), "--dump-dom"))

    embedded = json.loads(shown.embedded)
    assert embedded == json.loads(json.dumps(facts))
    units = embedded["occupancy"]["units"]
    names = Counter(text for text in shown.of("name"))
    assert all(names[unit["name"]] == 1 for unit in units)
    assert len([each for _, each in shown.elements if "unit" in (each.get("class") or "").split()]) == len(units)
    free = [unit["free"].get("nvidia.com/gpu") for unit in units if "nvidia.com/gpu" in unit["offers"]]
    left = Counter(text.split(" ")[0] for text in shown.of("left") if " gpu free" in text)
    assert left == Counter(free)
    chips = Counter(attributes.get("id") for _, attributes in shown.elements)
    placed = [job for job in embedded["jobs"] if job["verdict"] == "fits"]
    assert [chips[f"gang-{number}"] for number in range(1, len(placed) + 1)] == [1] * len(placed)
    assert any(text.startswith(f": {report_facts.headline(facts)}") for text in shown.texts)


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
@pytest.mark.parametrize(("scheme", "options"), [("light", []), ("dark", ["--blink-settings=preferredColorScheme=0"])])
def test_the_page_has_the_colours_that_are_asked_for(scheme: str, options: list[str], tmp_path: Path) -> None:
    """By a page of its own around the style: the report runs no script."""
    page = report_html.report(report_facts.facts(compile_folder(ROOT / "stacks" / "seed"), None))
    style = page.partition("<style>")[2].partition("</style>")[0]
    told = "document.title = getComputedStyle(document.body).backgroundColor"
    body = f"<main>a</main><script>{told}</script>"
    probe = f"<!DOCTYPE html><html><head><style>{style}</style></head><body>{body}</body></html>"

    title = browse(tmp_path, probe, *options, "--dump-dom").partition("<title>")[2].partition("</title>")[0]

    brightness = sum(int(each) for each in title.removeprefix("rgb(").rstrip(")").split(", "))
    assert (brightness > 3 * 128) is (scheme == "light")
