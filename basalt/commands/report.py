"""`basalt report`: what a reviewer of a pull request has to know."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from basalt.commands import plan as step
from basalt.commands.printing import exit_code, write
from basalt.commands.reading import compiled
from basalt.compiling import Compilation
from basalt.loading.replacing import replaced
from basalt.loading.sources import Misuse
from basalt.plan.comparing import Plan, compare
from basalt.reporting import json_format, report_facts, report_html, report_markdown, sarif

Options = argparse.Namespace


def report(options: Options) -> int:
    base = step.side(options.base, options) if options.base is not None else None
    head = compiled(options, needs_environment=False)
    plan = None if base is None else replace(compare(base, head), base=options.base, head=options.environment)
    text = _text(head, plan, options.format)
    if options.output is None:
        write(text)
    else:
        _replace(Path(options.output), text)
    code = exit_code(head, options)
    return code if plan is None else max(code, step.exit_code(plan, options))


def _text(head: Compilation, plan: Plan | None, form: str) -> str:
    if form == "sarif":
        risks = plan.risks if plan is not None else ()
        return sarif.text(sarif.report(head.name, (*head.findings, *risks), head.skipped))
    facts: Mapping[str, Any] = report_facts.facts(head, None if plan is None else plan.as_json())
    if form == "json":
        return json_format.text(facts)
    return report_html.report(facts) if form == "html" else report_markdown.report(facts)


def _replace(file: Path, text: str) -> None:
    """Writes the file as a whole: one that is there stays as it is until the new one is complete. A link stays a link,
    and a device or a pipe what it is."""
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            file.write_text(text, encoding="utf-8")
            return
        with replaced(Path(os.path.realpath(file)), mode=0o666) as stream:
            stream.write(text.encode("utf-8"))
    except OSError as error:
        raise Misuse(f"cannot write {file}: {error.strerror}") from None
