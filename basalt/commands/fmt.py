"""`basalt fmt`: documents and manifests in one style, in place; nothing of what they say changes."""

import argparse
import contextlib
import difflib
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from basalt.commands.printing import paint, write
from basalt.findings import Finding, Severity
from basalt.formatting import formatting
from basalt.gathering.folders import folder_of
from basalt.loading import files
from basalt.loading.limits import Fault
from basalt.loading.replacing import replaced
from basalt.loading.sources import Misuse, SourceFile
from basalt.names import counted
from basalt.reporting import json_format, text

Options = argparse.Namespace
_STDIN = "-"


class _Formatted(NamedTuple):
    """A file and its text in the one style. result is None where it is left as it is: finding says what is wrong with
    it, refusal why it was not possible; a file of JSON has neither."""

    file: SourceFile
    result: str | None = None
    finding: Finding | None = None
    refusal: str = ""
    line_number: int = 1  # of the refusal

    @property
    def is_changed(self) -> bool:
        return self.result is not None and self.result.encode("utf-8") != self.file.data

    def line(self, _: str, number: int) -> str:
        return self.file.line(number)

    @property
    def has_failed(self) -> bool:
        return self.finding is not None or bool(self.refusal)


def fmt(options: Options) -> int:
    """Exit code 1 where a file cannot be formatted or, with --check or --diff, would change."""
    is_kept = options.check or options.diff
    if _STDIN in options.paths:
        done = [_formatted(_stdin(options))]
        if not is_kept and options.format == "text" and done[0].result is not None:
            write(done[0].result)
            return 0
    else:
        done = [_formatted(file) for file in _files(options.paths)]
        for each in done:
            if each.is_changed and not is_kept:
                _replace(each)
    if options.format == "json":
        write(json_format.text(_as_json(done)))
    else:
        _print(done, options)
    return int(any(each.has_failed or (is_kept and each.is_changed) for each in done))


def _stdin(options: Options) -> SourceFile:
    if len(options.paths) > 1:
        raise Misuse("- stands for stdin, and excludes other paths")
    return SourceFile(Path("stdin.yaml"), "stdin", files.stdin())


def _files(paths: Iterable[str]) -> Iterator[SourceFile]:
    """The files that are meant, each once. In folders JSON is left alone: programs write it."""
    found: dict[str, Path] = {}
    for path in paths:
        root = folder_of(path)
        if not (root.is_dir() or root.is_file()):
            raise Misuse(f"{path} is neither a folder nor a regular file; - formats stdin to stdout")
        if os.path.exists(root / files.STAMP):
            raise Misuse(f"{path} is what `basalt compile` wrote; format what it was made of")
        for each in files.discover(root):
            if each == root or each.suffix != ".json":
                found.setdefault(os.path.realpath(each), each)
    yield from map(files.source, found.values())


def _formatted(file: SourceFile) -> _Formatted:
    try:
        if not file.data and file.name != "stdin":
            files.load(file)
        text = files.decoded(file)
        return _Formatted(file) if file.holds_json else _Formatted(file, formatting.formatted(text))
    except formatting.Refusal as refusal:
        return _Formatted(file, refusal=str(refusal), line_number=refusal.line)
    except Fault as fault:
        place = file.source(fault.mark)
        return _Formatted(
            file, finding=Finding(fault.rule, Severity.ERROR, fault.message, fault.hint, None, fault.pointer, place)
        )


def _replace(done: _Formatted) -> None:
    """Writes the file as a whole, and keeps its mode; a link stays a link. What somebody saved meanwhile stays, too."""
    assert done.result is not None
    target = Path(os.path.realpath(done.file.path))
    try:
        with replaced(target) as stream:
            stream.write(done.result.encode("utf-8"))
            _keep_owner(stream.fileno(), target.stat())
            if target.read_bytes() != done.file.data:
                raise Misuse(f"{done.file.name} was changed by somebody else meanwhile; run it again")
    except OSError as error:
        raise Misuse(f"cannot write {done.file.name}: {error.strerror}") from None


def _keep_owner(descriptor: int, status: os.stat_result) -> None:
    """Gives the file the owner, where this user may, and the mode of the one it replaces."""
    with contextlib.suppress(PermissionError):
        os.chown(descriptor, status.st_uid, status.st_gid)
    os.chmod(descriptor, stat.S_IMODE(status.st_mode))


def _as_json(done: Iterable[_Formatted]) -> dict[str, Any]:
    every = [*done]
    return {
        "files": [{"file": each.file.name, "state": _state(each), "reason": each.refusal or None} for each in every],
        "findings": [json_format.finding(each.finding) for each in every if each.finding is not None],
        "summary": {
            state: sum(_state(each) == state for each in every) for state in ("changed", "unchanged", "failed")
        },
    }


def _state(done: _Formatted) -> str:
    return "failed" if done.has_failed else "changed" if done.is_changed else "unchanged"


def _print(done: list[_Formatted], options: Options) -> None:
    is_kept = options.check or options.diff
    for each in done:
        if each.finding is not None:
            print(text.finding(each.finding, each.line, paint(options, to_stderr=True)), file=sys.stderr)
        elif each.refusal:
            place = f"{text.printable(each.file.name)}:{each.line_number}"
            print(f"{place}: the file is left as it is: {each.refusal}", file=sys.stderr)
        elif each.is_changed and options.diff:
            write(_diff(each))
        elif each.is_changed and options.check:
            write(f"would reformat: {text.printable(each.file.name)}\n")
    if not options.quiet:
        print(_closing(done, is_kept=is_kept), file=sys.stderr if options.diff else sys.stdout)


def _diff(done: _Formatted) -> str:
    """Without what a terminal would obey, or what would turn the lines of a review around."""
    name = text.printable(done.file.name)
    before, after = bytes(done.file.data).decode("utf-8"), done.result or ""
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), name, name, lineterm="")
    return "".join(f"{text.printable(line)}\n" for line in lines)


def _closing(done: list[_Formatted], *, is_kept: bool) -> str:
    """2 files reformatted, 5 files left unchanged."""
    count = Counter(map(_state, done))
    would = "would be " if is_kept else ""
    parts = [f"{counted(count['changed'], 'file')} {would}reformatted"] if count["changed"] else []
    if count["unchanged"]:
        parts.append(f"{counted(count['unchanged'], 'file')} {'already formatted' if is_kept else 'left unchanged'}")
    if count["failed"]:
        parts.append(f"{counted(count['failed'], 'file')} cannot be formatted")
    return ", ".join(parts) or "no files"
