"""The command `basalt`: arguments, exit codes, and what happens when something goes wrong."""

import argparse
import errno
import gc
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from basalt import __version__

_ANYTHING = "an environment, a folder of plain manifests, or a file"
CLEAN, FINDINGS, MISUSE, BUG, INTERRUPTED = 0, 1, 2, 3, 130


class Parser(argparse.ArgumentParser):
    """A parser whose misuse is one line on stderr, with the nearest word that is known."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but what a command does not know is misuse of that command."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            options = [name for action in self._actions for name in action.option_strings]
            self.error(f"unrecognized arguments: {' '.join(rest)}{_meant(rest[0].partition('=')[0], options)}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = _meant(str(value), map(str, action.choices), most=20)
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def error(self, message: str) -> NoReturn:
        self.exit(MISUSE, f"{self.prog}: {_printable(message)} (see {self.prog} --help)\n")


def _meant(word: str, known: Iterable[str], most: int = 0) -> str:
    from basalt import names  # late: most command lines are right

    hint = names.did_you_mean(word, known, most=most)
    return f"; {hint}" if hint else ""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="basalt",
        description="Compiles the declaration of a GPU training platform into Kubernetes manifests, and proves first "
        "that Volcano will do what it says.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"basalt {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    common, for_check = _common("text", "json"), _common("text", "json", "sarif", "github")
    of_command = {"check": for_check, "report": _common("markdown", "html", "sarif", "json")}

    def add(
        name: str, summary: str, *, environment: str = "an environment's folder, or its name under stacks/"
    ) -> Parser:
        parents = [of_command.get(name, common)]
        command = commands.add_parser(name, help=summary, description=summary, parents=parents, allow_abbrev=False)
        if environment or name in ("plan", "explain"):
            _add_modules(command)
        if environment:
            command.add_argument("environment", metavar="ENV", help=environment)
        return command

    check = add("check", "findings only", environment=_ANYTHING)
    check.add_argument("--no-cache", action="store_true", help="take nothing from earlier runs on a large inventory")
    check.add_argument("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")
    compile_command = add("compile", "findings; where there is no error, writes the manifests")
    compile_command.add_argument("-o", "--output", metavar="DIR", help="default build/<env>; - for one YAML stream")
    topology = add("topology", "the tree of domains, and per tier the largest gang each resource allows")
    topology.add_argument(
        "--shape", metavar="REQUESTS", help="also the largest gang of pods that request cpu=16,memory=128Gi,..."
    )
    _add_fit(add("fit", "a verdict for every job, with its placement or its reason", environment=_ANYTHING))
    _add_plan(add)
    _add_report(add("report", "the report for a pull request: findings, verdicts, topology, what a change means",
                    environment=_ANYTHING))  # fmt: skip
    explain = add("explain", "a rule's page, or where an object or one of its fields came from", environment="")
    explain.add_argument("subject", nargs="+", metavar="RULE | ENV KIND/[NAMESPACE/]NAME [POINTER]")
    _add_beginnings(add)
    _add_aids(add)
    _add_cluster_commands(add)
    _add_sandbox(commands, common)
    return parser


def _add_schema(schema: Parser) -> None:
    schema.add_argument("kind", metavar="KIND", nargs="?", help="Environment, Team, TrainingJob or Guardrail")
    schema.add_argument("--all", action="store_true", help="of every kind, a file each")
    schema.add_argument("-o", "--output", metavar="DIR", help="where --all writes them; default .schemas")


def _add_modules(command: Parser) -> None:
    text = "run the project's own modules/: code, so only where you trust the project"
    command.add_argument("--modules", action="store_true", help=text)


def _add_fit(fit: Parser) -> None:
    fit.add_argument("--lose", metavar="NAME", action="append", help="a node or HyperNode that has failed; repeatable")
    fit.add_argument(
        "--lose-any", metavar="TIER", help="what becomes of the jobs when any one domain of the tier fails"
    )
    fit.add_argument(
        "--snapshot",
        metavar="FILE",
        help="beside what runs now: what `kubectl get nodes,pods,podgroups -A -o json` prints (- for stdin); its nodes "
        "stand for the declared ones, and jobs that run keep their places",
    )
    fit.add_argument("--job", metavar="NAMESPACE/NAME", help="of this job only; the others still take their room")


def _add_aids(add: Callable[..., Parser]) -> None:
    """What helps with writing documents."""
    _add_fmt(add("fmt", "formats YAML in place: values and comments stay what they are", environment=""))
    _add_schema(add("schema", "the JSON Schema of a document, for editors", environment=""))
    completion = add("completion", "the script that makes a shell complete basalt's words", environment="")
    completion.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _add_fmt(fmt: Parser) -> None:
    fmt.add_argument("paths", nargs="+", metavar="PATH", help="an environment, a folder, a file; - for stdin to stdout")
    fmt.add_argument("--check", action="store_true", help="change nothing; exit with 1 where a file would change")
    fmt.add_argument("--diff", action="store_true", help="change nothing; show what would change, and exit as --check")


def _add_beginnings(add: Callable[..., Parser]) -> None:
    """What makes a new environment."""
    _add_init(add("init", "a new environment, its topology proposed from the nodes' own labels", environment=""))
    summary = "plain manifests to a new environment, which compiles to the same objects"
    _add_import(add("import", summary, environment=""))


def _add_init(init: Parser) -> None:
    init.add_argument("folder", metavar="DIR", help="the folder of the new environment: not there yet, or empty")
    init.add_argument(
        "--nodes",
        metavar="FILE",
        help="what `kubectl get nodes -o json` or yaml prints (- for stdin); without it, documents to fill in",
    )


def _add_plan(add: Callable[..., Parser]) -> None:
    plan = add("plan", "what changes between two environments in terms of scheduling, and its risks", environment="")
    side = f"{_ANYTHING}; or REV:ENV, one at a revision of the git repository"
    plan.add_argument("base", metavar="BASE", help=side)
    plan.add_argument("head", metavar="HEAD", help="the same, with the change made")


def _add_import(command: Parser) -> None:
    command.add_argument(
        "folder", metavar="DIR", help="a folder of plain manifests, one file, or - for stdin (kubectl get ... -o yaml)"
    )
    command.add_argument(
        "-o", "--output", metavar="OUT", help="the new environment's folder; default stacks/<name of DIR>"
    )


def _add_report(report: Parser) -> None:
    report.add_argument("--base", metavar="BASE", help="what the change is made to: as for plan, also REV:ENV")
    report.add_argument("-o", "--output", metavar="FILE", help="default: stdout")


def _add_cluster_commands(add: Callable[[str, str], Parser]) -> None:
    apply = add("apply", "applies the environment to the cluster of the kubeconfig, phase by phase")
    verify = add("verify", "compares the environment with the cluster of the kubeconfig")
    for command in (apply, verify):
        command.add_argument("--kubeconfig", metavar="FILE", help="default $KUBECONFIG, else ~/.kube/config")
        command.add_argument("--context", metavar="NAME", help="default: the kubeconfig's current context")
    apply.add_argument("-y", "--yes", action="store_true", help="do not ask before applying")
    apply.add_argument("--force-conflicts", action="store_true", help="take over the fields that other managers own")
    apply.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=300, help="how long each phase may take; default 300"
    )


def _add_sandbox(commands: Any, common: Parser) -> None:
    summary = "a control plane with Volcano on this machine, with the environment's nodes"
    sandbox = commands.add_parser("sandbox", help=summary, description=summary, allow_abbrev=False)
    actions = sandbox.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)

    def add(name: str, summary: str) -> Parser:
        found: Parser = actions.add_parser(
            name, help=summary, description=summary, parents=[common], allow_abbrev=False
        )
        return found

    up = add("up", "starts a sandbox; it stays until it is taken down")
    up.add_argument("environment", metavar="ENV", help="an environment, or a folder of plain manifests")
    _add_modules(up)
    up.add_argument("--name", help="default: the environment's name")
    up.add_argument("--foreground", action="store_true", help="stay until Ctrl-C, and take it down then")
    down = add("down", "stops a sandbox and removes everything of it")
    down.add_argument("name", metavar="NAME", nargs="?", help="of the sandbox; default: the only one")
    down.add_argument("--all", action="store_true", help="every sandbox of this user")
    status = add("status", "the sandboxes of this user, and where their gangs run")
    status.add_argument("name", metavar="NAME", nargs="?", help="of the sandbox; default: all of them")


def seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e9:
        raise ValueError
    return seconds


def _common(*formats: str) -> Parser:
    """The options that every command has."""
    common = Parser(add_help=False, allow_abbrev=False)
    common.add_argument("--quiet", action="store_true", help="print findings and results only")
    common.add_argument("--no-color", action="store_true", help="no colour; NO_COLOR does the same")
    common.add_argument("--strict", action="store_true", help="let any finding fail, warnings too")
    common.add_argument("--format", choices=formats, default=formats[0], help=f"default: {formats[0]}")
    return common


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code. Never raises."""
    gc.disable()  # a run builds one large graph of values, drops none of it, and ends
    try:
        parser = _parser()
        options = parser.parse_args(arguments)
        options.parser = parser  # completion is written from it
        from basalt import commands  # after the arguments: --version and --help need none of it

        code = commands.COMMANDS[options.command](options)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else MISUSE
    except BrokenPipeError:  # of a command that only reads; apply sees to it itself
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's own flush fails
        return CLEAN
    except KeyboardInterrupt:
        print("basalt: interrupted", file=sys.stderr)
        if threading.active_count() > 1:  # requests that nobody waits for any more would hold the interpreter
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        return INTERRUPTED
    except Exception as error:
        return _failed(error)


def _printable(message: str) -> str:
    """The message without what a terminal would obey: it may name what the command line or a file says."""
    from basalt.reporting.text import printable

    return printable(message)


def _failed(error: Exception) -> int:
    from basalt.loading.sources import Misuse

    if isinstance(error, Misuse):
        print(f"basalt: {_printable(' '.join(str(error).split()))}", file=sys.stderr)
        return MISUSE
    if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EBADF):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter's own flush fails
        print(f"basalt: cannot write the output: {error.strerror}", file=sys.stderr)
        return MISUSE
    traceback.print_exc()
    print("basalt: this is a bug in Basalt; please report it with the lines above", file=sys.stderr)
    return BUG


if __name__ == "__main__":
    sys.exit(main())
