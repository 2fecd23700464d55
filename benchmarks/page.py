"""docs/performance.md, from the figures that were measured: a section for each benchmark, with its tables and plots.

The figures of a section are kept beside the plots as JSON. So one section can be measured anew without the others, and
a test can tell whether the page is what its figures make of it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.plot import Bars, Plot, svg

DOCS = Path(__file__).resolve().parent.parent / "docs"
_HEAD = """# Performance

Written by `make performance` from what it measured; the figures themselves are under [performance](performance). Two
cores, shared with other work, Python 3.11. Every figure is the median over fresh processes, from the start of the
interpreter to its end; CPU is user and system time, and memory the peak, as the operating system accounts them. Look at
the ratios within a table: the seconds are this machine's, and those on the wall depend on what else it was doing.
"""

Figures = Mapping[str, Any]


class Section(NamedTuple):
    """One benchmark: measured takes an empty folder and gives figures that JSON holds; text and plots come from these,
    and nothing else. Plots are by their name; in the text, `{name}` stands for the picture. missed are the aims that
    the figures miss."""

    name: str
    title: str
    measured: Callable[[Path], Figures]
    text: Callable[[Figures], str]
    plots: Callable[[Figures], Mapping[str, Plot | Bars]]
    missed: Callable[[Figures], Sequence[str]]


def kept(section: Section) -> Figures:
    """The figures as they were last measured."""
    found: Figures = json.loads(_figures_of(section).read_text(encoding="utf-8"))
    return found


def keep(section: Section, figures: Figures) -> None:
    _figures_of(section).parent.mkdir(exist_ok=True)
    _figures_of(section).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def files(sections: Sequence[Section]) -> dict[str, str]:
    """The page and its pictures, by their paths under docs/."""
    found, parts = {}, [_HEAD]
    for section in sections:
        figures = kept(section)
        pictures = {}
        for name, plot in section.plots(figures).items():
            path = f"performance/{section.name}-{name}.svg"
            found[path] = svg(plot)
            pictures[name] = f"![{plot.title}]({path})"
        parts.append(f"## {section.title}\n\n{section.text(figures).format_map(pictures).strip()}\n")
    return {"performance.md": "\n".join(parts), **found}


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, named: int = 0) -> str:
    """Columns of numbers, but for the first ones, which are names."""
    lines = [heads, ["---"] * named + ["---:"] * (len(heads) - named), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _figures_of(section: Section) -> Path:
    return DOCS / "performance" / f"{section.name}.json"
