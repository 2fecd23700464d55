"""`basalt plan`: what changes between two environments?"""

import argparse
import sys
from dataclasses import replace

from basalt.commands.printing import lines_of, paint, print_findings, write
from basalt.commands.reading import compiled_folder
from basalt.compiling import Compilation
from basalt.findings import Severity
from basalt.gathering import revisions
from basalt.gathering.folders import folder_of
from basalt.plan.comparing import Plan, State, compare
from basalt.reporting import json_format, plan_text

Options = argparse.Namespace


def plan(options: Options) -> int:
    base, head = side(options.base, options), side(options.head, options)
    found = replace(compare(base, head), base=options.base, head=options.head)  # as the command line names them
    if found.base_unknown is not None:
        part = "what it says there counts as absent, and no verdict of its is known"
        print(f"basalt: {options.base} is not known as a whole: {found.base_unknown}; {part}", file=sys.stderr)
    if options.format == "json":
        write(json_format.text(found.as_json()))
    else:
        write(plan_text.report(found, lines_of(base), lines_of(head), paint(options), quiet=options.quiet))
    if found.errors:
        errors = tuple(each for each in head.findings if each.severity is Severity.ERROR and not each.waived)
        print_findings(replace(head, findings=errors), options, to_stderr=True)
    return exit_code(found, options)


def exit_code(found: Plan, options: Options) -> int:
    failing = (State.BLOCKED, State.DISRUPTIVE) if options.strict else (State.BLOCKED,)
    return int(found.verdict in failing)


def side(argument: str, options: Options) -> Compilation:
    """What BASE or HEAD stands for: an environment, a folder or file, or any of these at a revision."""
    if not revisions.is_named(argument):
        return compiled_folder(folder_of(argument), options, needs_environment=False)
    with revisions.environment_at(argument) as folder:
        return compiled_folder(folder, options, needs_environment=False)
