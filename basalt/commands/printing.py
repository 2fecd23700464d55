"""What a command shows of a compilation, in which colours, and its exit code."""

import argparse
import os
import sys
from collections.abc import Callable

from basalt.compiling import Compilation
from basalt.findings import fails
from basalt.reporting import json_format, text

Options = argparse.Namespace


def exit_code(compilation: Compilation, options: Options) -> int:
    return int(fails(compilation.findings, strict=options.strict))


def print_findings(compilation: Compilation, options: Options, *, to_stderr: bool = False) -> None:
    stream = sys.stderr if to_stderr else sys.stdout
    if options.format == "json" and not to_stderr:
        found = json_format.report(compilation.name, compilation.findings, compilation.skipped)
        write(json_format.text(found))
        return
    lines = lines_of(compilation)
    colours = paint(options, to_stderr=to_stderr)
    shown = text.report(compilation.findings, compilation.skipped, lines, colours, quiet=options.quiet or to_stderr)
    stream.write(shown)


def lines_of(compilation: Compilation) -> Callable[[str, int], str]:
    files = {file.name: file for file in compilation.files}
    return lambda name, line: files[name].line(line) if name in files else ""


def paint(options: Options, *, to_stderr: bool = False) -> text.Paint:
    stream = sys.stderr if to_stderr else sys.stdout
    wanted = not options.no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return text.Paint(wanted and stream.isatty())


def write(shown: str) -> None:
    sys.stdout.write(shown)
