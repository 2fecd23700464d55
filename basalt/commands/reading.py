"""What a command reads: the compilation that its options ask for."""

import argparse
import sys
from pathlib import Path

from basalt.commands.printing import print_findings
from basalt.compiling import Compilation, compile_folder
from basalt.findings import fails
from basalt.gathering.folders import folder_of
from basalt.loading import memory
from basalt.loading.memory import Memory

Options = argparse.Namespace


def memory_of(options: Options) -> Memory:
    return memory.NOTHING if options.no_cache else memory.of_user()


def compiled(options: Options, *, needs_environment: bool = True, known: Memory = memory.NOTHING) -> Compilation:
    folder = folder_of(options.environment)
    return compiled_folder(folder, options, needs_environment=needs_environment, known=known)


def compiled_folder(
    folder: Path, options: Options, *, needs_environment: bool, known: Memory = memory.NOTHING
) -> Compilation:
    """The compilation of a folder or file; on a terminal one sees that it is read."""
    if sys.stderr.isatty() and not options.quiet:
        print(f"\rreading {folder} ...", end="", file=sys.stderr, flush=True)
        try:
            return _compiled(folder, options, needs_environment, known)
        finally:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return _compiled(folder, options, needs_environment, known)


def _compiled(folder: Path, options: Options, needs_environment: bool, known: Memory) -> Compilation:
    return compile_folder(folder, needs_environment=needs_environment, runs_modules=options.modules, known=known)


def sound(options: Options, *, needs_environment: bool = True) -> Compilation | None:
    """The compilation where a cluster may be given it; None, with its findings shown, where they forbid that."""
    compilation = compiled(options, needs_environment=needs_environment)
    if not fails(compilation.findings, strict=options.strict):
        return compilation
    print_findings(compilation, options, to_stderr=options.format == "text")
    return None
