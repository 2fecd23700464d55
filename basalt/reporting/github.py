"""Findings as workflow commands of GitHub Actions, which shows them beside the changed lines.

Source: escapeData and escapeProperty in packages/core/src/command.ts of actions/toolkit.
"""

from collections.abc import Sequence
from pathlib import PurePath

from basalt.findings import Finding, Severity
from basalt.reporting.text import printable, said

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def report(findings: Sequence[Finding]) -> str:
    return "".join(map(_command, findings))


def _command(found: Finding) -> str:
    """One line; a waived finding is a notice, whatever its severity."""
    file, line, column = found.source
    title = f"{found.rule} (waived)" if found.waived else found.rule
    message = printable(said(found))
    hint = f"\nhint: {printable(found.hint)}" if found.hint else ""
    properties = {"file": PurePath(file).as_posix(), "line": line, "col": column, "title": title}
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{'notice' if found.waived else _COMMANDS[found.severity]} {shown}::{_data(message + hint)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Line ends first, while they can be told from what a terminal would obey."""
    return printable(_data(text)).replace(":", "%3A").replace(",", "%2C")
