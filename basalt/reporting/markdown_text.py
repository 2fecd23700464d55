"""Text that may hold anything as Markdown that holds only text: on GitHub and GitLab, in tables and in HTML.

Characters become references to themselves, which no Markdown takes for structure, also inside HTML, where a backslash
would be shown. References to people, issues and addresses are found in the rendered text, so there a space without
width (outside code, where nobody looks for them) keeps the sign from its name.
"""

import re

from basalt.reporting.text import printable

_STRUCTURE = re.compile(r"[\\`*_\[\]<>&|~#]")
_REFERENCE = re.compile(r"(?<=[@#!$~%])(?=\w)|(?<=GH-)(?=\d)|(?<=:)(?=//|[\w+-]+:)|(?<=www)(?=\.)", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_WIDTH = "\u200b"  # what printable leaves none of
_MARKER = re.compile(r"[^A-Za-z0-9._/-]|-(?=-)")
_LONGEST = 600


def plain(text: str, most: int = _LONGEST) -> str:
    """The text for one line of a report: what a terminal would obey is spelt out, what is too long is cut."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return printable(_SURROGATE.sub("\ufffd", cut))


def prose(text: str, most: int = _LONGEST) -> str:
    """Any text, to stand in a line of Markdown."""
    kept = _REFERENCE.sub(_NO_WIDTH, plain(text, most))
    return _quoted(kept).replace(_NO_WIDTH, "&#8203;")


def code(text: str, most: int = _LONGEST) -> str:
    """Any text, to stand there as a name."""
    return f"<code>{_quoted(plain(text, most))}</code>" if text else ""


def _quoted(text: str) -> str:
    return _STRUCTURE.sub(lambda found: f"&#{ord(found[0])};", text)


def marker(name: str) -> str:
    """The line by which a comment is found again: what would end it early is spelt out."""
    kept = _MARKER.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), name)
    return f"<!-- basalt report: {kept} -->"
