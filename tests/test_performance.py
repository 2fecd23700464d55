"""docs/performance.md is what its figures make of it, and what is measured is worth measuring."""

import copy
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basalt.compiling import compile_folder
from basalt.fit import verdicts as fit
from basalt.fit.verdicts import State
from benchmarks import clusters, page, plot, verdicts
from benchmarks.performance import SECTIONS
from benchmarks.plot import Bars, Plot

NOT_CURRENT = "run `python -m benchmarks.performance --no-measuring` and read the difference"
WRITTEN = page.files(SECTIONS)
IMAGES = [path for path in WRITTEN if path.endswith(".svg")]


@pytest.mark.parametrize("path", WRITTEN)
def test_page_and_its_plots_are_what_their_figures_make_of_them(path: str) -> None:
    assert (page.DOCS / path).read_text(encoding="utf-8") == WRITTEN[path], NOT_CURRENT


def test_page_shows_every_plot_that_is_there() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", WRITTEN["performance.md"])
    there = [f"performance/{file.name}" for file in (page.DOCS / "performance").glob("*.svg")]

    assert sorted(shown) == sorted(there) == sorted(IMAGES)


@pytest.mark.parametrize("path", IMAGES)
def test_plot_is_xml_with_a_title_and_no_background(path: str) -> None:
    root = ET.fromstring(WRITTEN[path])
    parts = {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in root.iter()}

    assert {"title", "path", "text"} <= parts
    assert "rect" not in parts


def test_plot_has_a_mark_for_every_point_and_names_are_escaped() -> None:
    root = ET.fromstring(plot.svg(Plot("a < b & c", "nodes", "s", [(1, 0.5), (2, 1), (30, 7)])))

    assert len(root.findall("{*}circle")) == 3
    assert root.findtext("{*}title") == "a < b & c"


def test_bars_stand_on_steps_of_ten_and_the_first_has_its_own_colour() -> None:
    root = ET.fromstring(plot.svg(Bars("a & b", "s", [("own", 2), ("other", 20), ("third", 2000)])))
    bars = [path for path in root.findall("{*}path") if path.get("stroke-width", "") > "1"]
    lengths = [float(end) - float(start) for start, end in
               (re.findall(r"M([\d.]+) .*H([\d.]+)", path.get("d", ""))[0] for path in bars)]  # fmt: skip

    assert len(bars) == 3
    assert (lengths[2] - lengths[1]) == pytest.approx(2 * (lengths[1] - lengths[0]), abs=0.2)
    assert [path.get("stroke") == bars[0].get("stroke") for path in bars] == [True, False, False]


@given(st.floats(1e-3, 1e9))
def test_ticks_begin_at_nothing_and_end_just_above_the_highest_value(highest: float) -> None:
    found = plot.ticks(highest)

    assert found[0] == 0
    assert found == sorted(set(found))
    assert highest * 0.99 <= found[-1] <= highest * 1.6
    assert 3 <= len(found) <= 8


def _dearer(series: str, factor: float) -> dict[str, Any]:
    figures = copy.deepcopy(dict(page.kept(verdicts.SECTION)))
    before, last = figures[series][-2:]
    last["cpu"] = before["cpu"] * last[series] / before[series] * factor
    return figures


@pytest.mark.parametrize("series", ["nodes", "jobs"])
def test_aim_is_missed_where_cost_grows_faster_than_the_input(series: str) -> None:
    assert [each for each in verdicts.missed(_dearer(series, 1.1)) if f"a {series[:-1]} costs more" in each]
    assert not [each for each in verdicts.missed(_dearer(series, 0.9)) if f"a {series[:-1]} costs more" in each]


@pytest.mark.parametrize(("field", "value"), [("cpu", verdicts.AIM_CPU), ("mib", verdicts.AIM_MIB)])
def test_aim_is_missed_above_its_bound(field: str, value: float) -> None:
    figures = copy.deepcopy(dict(page.kept(verdicts.SECTION)))
    aimed = next(each for each in figures["jobs"] if each["jobs"] == verdicts.AIM_AT)

    def own() -> list[str]:
        return [each for each in verdicts.missed(figures) if each.startswith(f"{verdicts.AIM_AT} jobs")]

    aimed.update(cpu=verdicts.AIM_CPU, mib=verdicts.AIM_MIB)
    assert own() == []
    aimed[field] = value + 1
    assert len(own()) == 1


def test_environments_that_are_measured_have_no_findings_and_jobs_that_fit(tmp_path: Path) -> None:
    """Else it would be the finding of errors that is measured, or jobs whose verdict is quick."""
    clusters.write(tmp_path / "bench", nodes=512, jobs=len(clusters.EVERYDAY))

    compilation = compile_folder(tmp_path / "bench", needs_environment=True)

    assert list(compilation.findings) == []
    assert [each.state for each in fit.of(compilation.index)] == [State.FITS] * len(clusters.EVERYDAY)
