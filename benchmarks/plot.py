"""One series of points, or bars, as an SVG that reads on a light and on a dark page: no background, everything else in
mid-tones. The same bytes for the same values."""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 20, 34, 46  # room for the labels
_GREY, _BLUE = "#808080", "#3b82d0"  # both at least 3:1 on white and on GitHub's #0d1117

_BAR, _BAR_LEFT, _BAR_RIGHT = 24, 200, 60  # the height of a bar's row, room for its name and for its value


class Plot(NamedTuple):
    """What is measured against what: a title, the names of the axes, and points with rising x."""

    title: str
    across: str
    upward: str
    points: Sequence[tuple[float, float]]


class Bars(NamedTuple):
    """What is measured of whom: a title, the name of the axis, and the values, which are above 0; first is the one that
    all others are compared with."""

    title: str
    across: str
    values: Sequence[tuple[str, float]]


def svg(picture: Plot | Bars) -> str:
    """The picture, as text."""
    return _bars(picture) if isinstance(picture, Bars) else _line(picture)


def _bars(bars: Bars) -> str:
    """A bar for each value, on an axis where each step is ten times the one before."""
    low, high = (
        10.0 ** bound(log10(extreme(value for _, value in bars.values)))
        for bound, extreme in ((floor, min), (ceil, max))
    )
    height = _TOP + _BAR * len(bars.values) + _BOTTOM

    def at(value: float) -> float:
        return _BAR_LEFT + (_WIDTH - _BAR_RIGHT - _BAR_LEFT) * log10(value / low) / log10(high / low)

    rows = []
    for number, (name, value) in enumerate(bars.values):
        y, colour = _TOP + _BAR * (number + 0.5), _GREY if number else _BLUE
        rows.append(_text(_BAR_LEFT - 8, y + 4, "end", name))
        rows.append(
            f'<path d="M{_BAR_LEFT} {y:.1f}H{at(value):.1f}" stroke="{colour}" stroke-width="{_BAR * 0.6:.0f}"/>'
        )
        rows.append(_text(at(value) + 6, y + 4, "start", f"{value:,.3g}"))
    steps = [low * 10**step for step in range(round(log10(high / low)) + 1)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" {_look(height)}>',
            f"<title>{escape(bars.title)}</title>",
            _text(_WIDTH / 2, 18, "middle", bars.title, 'font-size="14"'),
            _text((_BAR_LEFT + _WIDTH - _BAR_RIGHT) / 2, height - 8, "middle", bars.across),
            *(f'<path d="M{at(x):.1f} {_TOP}V{height - _BOTTOM}" stroke="{_GREY}" stroke-width="0.3"/>' for x in steps),
            *(_text(at(x), height - _BOTTOM + 18, "middle", f"{x:,g}") for x in steps),
            *rows,
            "</svg>\n",
        ]
    )


def _line(plot: Plot) -> str:
    """Both axes begin at 0, so that proportional costs lie on a line through the corner."""
    xs, ys = ticks(max(x for x, _ in plot.points)), ticks(max(y for _, y in plot.points))
    places = [(_at(x, xs[-1], _LEFT, _WIDTH - _RIGHT), _at(y, ys[-1], _HEIGHT - _BOTTOM, _TOP)) for x, y in plot.points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" {_look(_HEIGHT)}>',
            f"<title>{escape(plot.title)}</title>",
            _text(_WIDTH / 2, 18, "middle", plot.title, 'font-size="14"'),
            _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, "middle", plot.across),
            _text(14, _HEIGHT / 2, "middle", plot.upward, f'transform="rotate(-90 14 {_HEIGHT // 2})"'),
            *(_upward_tick(y, ys[-1]) for y in ys),
            *(_across_tick(x, xs[-1]) for x in xs),
            f'<polyline points="{line}" fill="none" stroke="{_BLUE}" stroke-width="2"/>',
            *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_BLUE}"/>' for x, y in places),
            "</svg>\n",
        ]
    )


def ticks(highest: float) -> list[float]:
    """Round numbers from 0 to the first that is not below the highest value, about five of them."""
    rough = highest / 5
    unit = 10.0 ** floor(log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough * 0.999)
    return [round(number * step, 9) for number in range(ceil(highest / step * 0.999) + 1)]


def _at(value: float, highest: float, start: float, end: float) -> float:
    return start + (end - start) * value / highest


def _upward_tick(value: float, highest: float) -> str:
    y = _at(value, highest, _HEIGHT - _BOTTOM, _TOP)
    width = 1 if value == 0 else 0.3
    rule = f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_GREY}" stroke-width="{width}"/>'
    return rule + _text(_LEFT - 8, y + 4, "end", f"{value:,g}")


def _across_tick(value: float, highest: float) -> str:
    x = _at(value, highest, _LEFT, _WIDTH - _RIGHT)
    mark = f'<path d="M{x:.1f} {_HEIGHT - _BOTTOM}v4" stroke="{_GREY}"/>'
    return mark + _text(x, _HEIGHT - _BOTTOM + 18, "middle", f"{value:,g}")


def _look(height: int) -> str:
    return f'role="img" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12" fill="{_GREY}"'


def _text(x: float, y: float, anchor: str, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'.replace(" >", ">")
