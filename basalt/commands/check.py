"""`basalt check`: findings only, for people, programs, code scanning and pull requests."""

import argparse

from basalt.commands.printing import exit_code, print_findings, write
from basalt.commands.reading import compiled, memory_of
from basalt.reporting import github, sarif

Options = argparse.Namespace


def check(options: Options) -> int:
    if options.watch:
        from basalt.commands.watch import watch  # late: few do

        return watch(options)
    compilation = compiled(options, needs_environment=False, known=memory_of(options))
    if options.format == "sarif":
        found = sarif.report(compilation.name, compilation.findings, compilation.skipped)
        write(sarif.text(found))
    elif options.format == "github":
        write(github.report(compilation.findings))
    else:
        print_findings(compilation, options)
    return exit_code(compilation, options)
