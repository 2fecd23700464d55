"""Findings as people read them: path:line:column: where: what [rule], the line with a caret, and the way out."""

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from basalt.findings import Finding, Severity, Skipped, summary
from basalt.names import counted
from basalt.pointers import dotted

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}
_BOLD, _DIM, _GREEN = "1", "2", "32"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_LONGEST = 160

LineOf = Callable[[str, int], str]


class Paint:
    """Colour for a terminal, or none."""

    def __init__(self, is_on: bool) -> None:
        self.is_on = is_on

    def __call__(self, text: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.is_on and text else text

    def severity(self, text: str, severity: Severity) -> str:
        return self(text, _BOLD, _COLOURS[severity])

    def bold(self, text: str) -> str:
        return self(text, _BOLD)

    def dim(self, text: str) -> str:
        return self(text, _DIM)

    def good(self, text: str) -> str:
        return self(text, _BOLD, _GREEN)


def printable(text: str) -> str:
    r"""The text without what a terminal would obey: control characters and changes of direction become \\x1b."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\n", "\\n").replace("\t", "    "))


def argument(path: str) -> str:
    """The path as a command line takes it: one that begins with a dash would be an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def said(found: Finding) -> str:
    """What a finding says, with the object and the field that it is about."""
    where = " ".join(filter(None, (str(found.object) if found.object else "", dotted(found.pointer))))
    return f"{where}: {found.message}" if where else found.message


def finding(found: Finding, line_of: LineOf, paint: Paint) -> str:
    """One finding, three to four lines."""
    file, line, column = found.source
    place = paint.bold(printable(f"{file}:{line}:{column}:"))
    message = printable(said(found))
    label = f"{found.severity} " if found.severity is not Severity.ERROR else ""
    label = "waived " if found.waived else label
    lines = [
        f"{place} {paint.severity(label, found.severity)}{message} {paint.severity(f'[{found.rule}]', found.severity)}"
    ]
    excerpt = line_of(file, line) if found.shows_source else ""
    if excerpt.strip():
        lines.extend(_excerpt(excerpt, line, column, paint))
    if found.hint:
        lines.append(f"       {paint.dim('hint:')} {printable(found.hint)}")
    return "\n".join(lines)


def _excerpt(excerpt: str, line: int, column: int, paint: Paint) -> list[str]:
    """The source line and a caret below its column; a long line is cut around it."""
    start = max(0, column - _LONGEST // 2) if len(excerpt) > _LONGEST else 0
    shown = excerpt[start : start + _LONGEST]
    before = printable(shown[: column - 1 - start])
    return [f"{paint.dim(f'{line:5} |')} {printable(shown)}", f"{'':8}{'':{_width(before)}}{paint.good('^')}"]


def _width(text: str) -> int:
    """How many columns a terminal gives the text."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def report(
    findings: Sequence[Finding], skipped: Sequence[Skipped], line_of: LineOf, paint: Paint, *, quiet: bool = False
) -> str:
    """All findings and a closing line; with quiet only the findings."""
    parts = [finding(found, line_of, paint) for found in findings]
    if not quiet:
        parts.append(closing(findings, skipped, paint))
    return "\n".join(parts) + "\n" if parts else ""


def closing(findings: Sequence[Finding], skipped: Sequence[Skipped], paint: Paint) -> str:
    """2 errors, 1 warning; 7 rules skipped: no node inventory."""
    counts = summary(findings)
    words = [counted(counts[kind], kind) for kind in ("error", "warning") if counts[kind]]
    words += [f"{counts[kind]} {kind}" for kind in ("info", "waived") if counts[kind]]
    text = ", ".join(words) if words else paint.good("no findings")
    if skipped:
        reasons = "; ".join(_reasons(skipped))
        text += paint.dim(f"; {counted(len({each.rule for each in skipped}), 'rule')} not (wholly) judged: {reasons}")
    return text


def _reasons(skipped: Iterable[Skipped]) -> list[str]:
    """Each reason once, the most frequent first."""
    counts: dict[str, int] = {}
    for each in skipped:
        for reason in each.reason.split("; "):
            counts[reason] = counts.get(reason, 0) + 1
    ordered = sorted(counts, key=lambda reason: (-counts[reason], reason))
    return [
        printable(reason) for reason in (ordered if len(ordered) <= 6 else [*ordered[:5], f"{len(ordered) - 5} more"])
    ]
