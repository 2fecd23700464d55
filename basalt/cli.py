"""The command `basalt`: arguments, exit codes, and what happens when something goes wrong."""

import argparse
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from basalt import __version__

CLEAN, FINDINGS, MISUSE, BUG, INTERRUPTED = 0, 1, 2, 3, 130


class _Parser(argparse.ArgumentParser):
    """A parser whose misuse is one line on stderr."""

    def error(self, message: str) -> NoReturn:
        self.exit(MISUSE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="basalt",
        description="Compiles the declaration of a GPU training platform into Kubernetes manifests, and proves first "
        "that Volcano will do what it says.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"basalt {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    common, for_check = _common("text", "json"), _common("text", "json", "sarif", "github")

    def add(
        name: str, summary: str, *, environment: str = "an environment's folder, or its name under stacks/"
    ) -> _Parser:
        options = for_check if name == "check" else common
        command = commands.add_parser(name, help=summary, description=summary, parents=[options], allow_abbrev=False)
        if environment:
            command.add_argument("environment", metavar="ENV", help=environment)
        return command

    add("check", "findings only", environment="an environment, a folder of plain manifests, or a file")
    compile_command = add("compile", "findings; where there is no error, writes the manifests")
    compile_command.add_argument("-o", "--output", metavar="DIR", help="default build/<env>; - for one YAML stream")
    add("topology", "the tree of domains, and per tier the largest gang each resource allows")
    explain = add("explain", "a rule's page, or where an object or one of its fields came from", environment="")
    explain.add_argument("subject", nargs="+", metavar="RULE | ENV KIND/[NAMESPACE/]NAME [POINTER]")
    schema = add("schema", "the JSON Schema of a document, for editors", environment="")
    schema.add_argument("kind", metavar="KIND", help="Environment, Team, TrainingJob or Guardrail")
    return parser


def _common(*formats: str) -> _Parser:
    """The options that every command has."""
    common = _Parser(add_help=False, allow_abbrev=False)
    common.add_argument("--quiet", action="store_true", help="print findings and results only")
    common.add_argument("--no-color", action="store_true", help="no colour; NO_COLOR does the same")
    common.add_argument("--strict", action="store_true", help="let any finding fail, warnings too")
    common.add_argument("--format", choices=formats, default="text", help="default: text")
    return common


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code. Never raises."""
    gc.disable()  # a run builds one large graph of values, drops none of it, and ends
    try:
        options = _parser().parse_args(arguments)
        from basalt import commands  # after the arguments: --version and --help need none of it

        code = commands.COMMANDS[options.command](options)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else MISUSE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's own flush fails
        return CLEAN
    except KeyboardInterrupt:
        print("basalt: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    from basalt.loading.files import Misuse

    if isinstance(error, Misuse):
        print(f"basalt: {' '.join(str(error).split())}", file=sys.stderr)
        return MISUSE
    traceback.print_exc()
    print("basalt: this is a bug in Basalt; please report it with the lines above", file=sys.stderr)
    return BUG


if __name__ == "__main__":
    sys.exit(main())
