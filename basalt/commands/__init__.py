"""The commands of the command line, a module each: its options in, what it prints and its exit code out."""

import argparse
import importlib
from collections.abc import Callable

Command = Callable[[argparse.Namespace], int]


def _late(module: str, name: str = "") -> Command:
    """A command whose module is imported where it runs: some bring packages that compiling needs none of."""

    def run(options: argparse.Namespace) -> int:
        command: Command = getattr(importlib.import_module(f"basalt.commands.{module}"), name or module)
        return command(options)

    return run


COMMANDS: dict[str, Command] = {
    "check": _late("check"),
    "compile": _late("compile", "compile_"),
    "topology": _late("topology"),
    "explain": _late("explain"),
    "schema": _late("schema"),
    "completion": _late("completion"),
    "fmt": _late("fmt"),
    "fit": _late("fit"),
    "import": _late("import_"),
    "plan": _late("plan"),
    "report": _late("report"),
    "apply": _late("cluster", "apply"),
    "verify": _late("cluster", "verify"),
    "sandbox": _late("sandbox"),
    "init": _late("init"),
}
