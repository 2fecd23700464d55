"""HTML whose text is escaped unless it was built here: a tag takes strings as text and Markup as it is."""

import html
import re
from collections.abc import Iterable

from basalt.reporting.markdown_text import plain

_ATTRIBUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")


class Markup(str):
    """HTML that is known to be what was meant."""

    __slots__ = ()


def text(value: str) -> Markup:
    """Any text, as text; what is built already stays."""
    return value if isinstance(value, Markup) else Markup(html.escape(plain(value)))


def joined(parts: Iterable[str], between: str = "") -> Markup:
    return Markup(text(between).join(map(text, parts)))


def tag(name: str, *children: str, **attributes: str | None) -> Markup:
    """An element; class_ is the attribute class, aria_label is aria-label, and what is None is left out."""
    shown = []
    for key, value in attributes.items():
        written = key.rstrip("_").replace("_", "-")
        assert _ATTRIBUTE.fullmatch(written)
        if value is not None:
            shown.append(f' {written}="{text(value)}"')
    return Markup(f"<{name}{''.join(shown)}>{joined(children)}</{name}>")


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], **attributes: str | None) -> Markup:
    """A table whose cells hold what the rows hold; a row that is built already stays."""
    head = tag("thead", tag("tr", *(tag("th", column, scope="col") for column in columns)))
    body = (row if isinstance(row, Markup) else tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag("div", tag("table", head, tag("tbody", *body), **attributes), class_="scroll")
