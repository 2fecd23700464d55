"""The command `basalt-check`: `basalt check` of the environments that changed files belong to."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from basalt import cli, names
from basalt.gathering.documents import GROUP
from basalt.gathering.folders import Gathered, gather
from basalt.loading.files import SUFFIXES
from basalt.loading.sources import Misuse

_STACK = "Pulumi."  # the settings of a stack, stacks/Pulumi.<environment>.yaml
_OUT_OF_SIGHT = "."


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks, or lists, the environments; the worst exit code of `basalt check`."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
        affected = list(changed(_named(options.files), environments(Path(options.under))))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else cli.MISUSE
    except Misuse as misuse:
        print(f"basalt-check: {' '.join(str(misuse).split())}", file=sys.stderr)
        return cli.MISUSE
    if options.list:
        names = [str(each) for each in affected]
        print(json.dumps(names) if options.format == "json" else "\n".join(names))
        return cli.CLEAN
    return max((_check(each, options) for each in affected), default=cli.CLEAN)


def _parser() -> argparse.ArgumentParser:
    summary = "Checks the environments that changed files belong to, those that extend a changed folder among them."
    parser = cli.Parser(prog="basalt-check", description=summary, allow_abbrev=False)
    parser.add_argument("files", nargs="*", metavar="FILE", help="a changed file; - reads names from stdin")
    parser.add_argument("--under", metavar="DIR", default="stacks", help="where environments are; default stacks")
    parser.add_argument("--list", action="store_true", help="only name the environments, one a line")
    parser.add_argument("--strict", action="store_true", help="let any finding fail, warnings too")
    parser.add_argument("--modules", action="store_true", help="as of check: run the project's own modules/")
    parser.add_argument("--format", choices=("text", "json", "sarif", "github"), default="text", help="as of check")
    return parser


def _check(environment: Path, options: argparse.Namespace) -> int:
    flags = ["--strict"] * options.strict + ["--modules"] * options.modules
    return cli.main(["check", *flags, "--format", options.format, "--", str(environment)])


def _named(files: Iterable[str]) -> Iterator[Path]:
    """The files; - stands for those that stdin names, as `git diff --name-only` writes them, with or without -z."""
    for name in files:
        if name == "-":
            text = sys.stdin.buffer.read()
            yield from (Path(os.fsdecode(each)) for each in text.split(b"\0" if b"\0" in text else b"\n") if each)
        else:
            yield Path(name)


def environments(under: Path) -> Iterator[Path]:
    """The folders that may be environments."""
    if not under.is_dir():
        beside = [each.name for each in under.parent.iterdir() if each.is_dir()] if under.parent.is_dir() else []
        hint = names.did_you_mean(under.name, beside, most=0)
        raise Misuse(f"no folder {under}; {hint or '--under names the one that environments are in'}")
    folders = sorted(each for each in under.iterdir() if each.is_dir() and not each.name.startswith(_OUT_OF_SIGHT))
    yield from folders


def changed(files: Iterable[Path], among: Iterable[Path]) -> Iterator[Path]:
    """The environments that one of the files belongs to: by its own folder, by one that it extends, or as the settings
    of its stack. The files need not exist any more."""
    paths = [each.resolve() for each in files if each.name.endswith(SUFFIXES)]
    for environment in among if paths else ():
        gathered = gather(environment)
        settings = {environment.resolve().parent / f"{_STACK}{environment.name}{end}" for end in SUFFIXES}
        is_touched = any(path in settings or not gathered.folders.isdisjoint(path.parents) for path in paths)
        if is_touched and (gathered.environment is not None or _may_hide_one(gathered)):
            yield environment


def _may_hide_one(gathered: Gathered) -> bool:
    """Whether what cannot be read, or has a kind that Basalt does not know, may be the folder's Environment."""
    refs = (problem.place.ref for rule, problem in gathered.problems if rule == "document-kind-is-known")
    meant = (ref is not None and (ref.group == GROUP or ref.kind == "Environment") for ref in refs)
    return bool(gathered.reading.faults) or any(meant)


if __name__ == "__main__":
    sys.exit(main())
