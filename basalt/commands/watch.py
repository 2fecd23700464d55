"""`basalt check --watch`: the findings again whenever an input file changes, until Ctrl-C."""

import argparse
import gc
import os
import sys
import time
from collections.abc import Collection
from pathlib import Path

from basalt import names, own_modules
from basalt.commands.printing import lines_of, paint
from basalt.commands.reading import compiled_folder, memory_of
from basalt.compiling import Compilation
from basalt.gathering.folders import folder_of, project_of
from basalt.loading.sources import Misuse
from basalt.loading.stamps import Stamps, changes, stamps
from basalt.reporting import text

Options = argparse.Namespace
_PAUSE = 0.3  # seconds between two looks, and at least
_SHARE = 25  # times as long as a look takes: 4 % of a processor
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"


def watch(options: Options) -> int:
    """Never returns: Ctrl-C ends it, or misuse before the first findings."""
    if options.format != "text":
        raise Misuse("--watch shows text; leave out --format")
    folder = folder_of(options.environment).resolve()
    roots: Collection[Path] = {folder}
    code: Collection[Path] = ()
    where, known = Path(os.path.relpath(folder)), memory_of(options)
    changed: list[str] = []
    is_first = True
    while True:
        seen = stamps(roots, code)  # before they are read, so that no change is missed
        try:
            compilation = compiled_folder(where, options, needs_environment=False, known=known)
            if (read := (_roots(folder, compilation), _code(folder, compilation, options))) != (roots, code):
                roots, code = read
                continue
            _show(compilation, changed, options)
        except Misuse as misuse:  # the folder may be back in a moment
            if is_first:
                raise
            _say(str(misuse), changed)
        is_first = False
        gc.collect()  # the run is one of many, and no garbage is collected while one runs
        changed = _changed(seen, roots, code)


def _roots(folder: Path, compilation: Compilation) -> set[Path]:
    """The folders that were read, and the files of the project's own modules."""
    return {folder, *compilation.folders, *(each.path for each in compilation.files if each.path.suffix == ".py")}


def _code(folder: Path, compilation: Compilation, options: Options) -> tuple[Path, ...]:
    """The folder of the project's own modules, where the Environment names some and they may run."""
    environment = compilation.index.environment
    if not options.modules or environment is None or not environment.spec.get("modules"):
        return ()
    return (project_of(folder) / own_modules.FOLDER,)


def _changed(seen: Stamps, roots: Collection[Path], code: Collection[Path]) -> list[str]:
    """Waits until something differs, and says what."""
    while True:
        begin = time.monotonic()
        if found := changes(seen, stamps(roots, code)):
            return found
        time.sleep(max(_PAUSE, _SHARE * (time.monotonic() - begin)))


def _show(compilation: Compilation, changed: list[str], options: Options) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(_CLEAR)
    sys.stdout.write(text.report(compilation.findings, (), lines_of(compilation), paint(options), quiet=True))
    sys.stdout.flush()
    closing = text.closing(compilation.findings, (), paint(options, to_stderr=True))
    _say(f"{closing}; watching {names.counted(len(compilation.files), 'file')}", changed)


def _say(what: str, changed: list[str]) -> None:
    """One line, with the time of day and what it follows from."""
    told = text.printable(names.listed([os.path.relpath(each) for each in changed], most=3))
    because = f"; changed: {told}" if changed else ""
    print(f"{time.strftime('%H:%M:%S')} {' '.join(what.split())}{because}", file=sys.stderr, flush=True)
