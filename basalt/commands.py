"""What each command does that needs no cluster: compile, then print or write."""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from basalt import completion, explaining, explaining_groups, names, tree
from basalt.api.schemas import ROOT as SCHEMAS
from basalt.compiling import Compilation, compile_folder
from basalt.findings import fails
from basalt.fit import shapes
from basalt.fit.shapes import Fitting
from basalt.gathering.documents import KINDS
from basalt.gathering.folders import folder_of, project_of
from basalt.loading import memory
from basalt.loading.memory import Memory
from basalt.loading.sources import Misuse
from basalt.quantities import Resources
from basalt.rendering import layout, switch
from basalt.reporting import github, json_format, sarif, schema_files, shape_text, text, tree_text
from basalt.rules import FAMILIES, RULES

Options = argparse.Namespace


def check(options: Options) -> int:
    if options.watch:
        return _late("basalt.watch_commands", "watch")(options)
    compilation = compiled(options, needs_environment=False, known=memory_of(options))
    if options.format == "sarif":
        found = sarif.report(compilation.name, compilation.findings, compilation.skipped)
        write(sarif.text(found))
    elif options.format == "github":
        write(github.report(compilation.findings))
    else:
        print_findings(compilation, options)
    return exit_code(compilation, options)


def memory_of(options: Options) -> Memory:
    return memory.NOTHING if options.no_cache else memory.of_user()


def compile_(options: Options) -> int:
    compilation = compiled(options)
    if fails(compilation.findings, strict=options.strict):
        print_findings(compilation, options, to_stderr=options.output == "-" and options.format == "text")
        return 1
    if options.output == "-":
        print_findings(compilation, options, to_stderr=True)
        sys.stdout.write(layout.stream(compilation.objects))
        return 0
    folder = Path(options.output) if options.output else Path("build", compilation.name)
    root = str(project_of(folder_of(options.environment)))
    largest = layout.ARGO_CD_FOLDER if compilation.engine == "argocd" else None
    files = layout.render(
        compilation.objects, compilation.files, compilation.name, root, largest=largest, schemas=_schemas(compilation)
    )
    _refuse_inside_input(folder, folder_of(options.environment))
    is_written = switch.replace(folder, files)
    _print_compiled(compilation, options, folder, is_written=is_written)
    return 0


def _schemas(compilation: Compilation) -> dict[str, str]:
    """The digest of each file of schemas that the compilation rests on: a millisecond, where one of all of the
    compiler's own files would be twenty."""
    found = compilation.index.catalog.schema_files()
    return {path.relative_to(SCHEMAS).as_posix(): layout.digest(path.read_bytes()) for path in found}


def _refuse_inside_input(folder: Path, root: Path) -> None:
    if root.resolve().is_relative_to(folder.resolve()):
        raise Misuse(f"{folder} holds the environment itself; choose another -o")


def topology(options: Options) -> int:
    shape = None if options.shape is None else shapes.parse_shape(options.shape)
    compilation = compiled(options)
    drawn = tree.draw(compilation.index)
    fitting = None if shape is None else _fitting(compilation, shape)
    if options.format == "json":
        found = json_format.report(compilation.name, compilation.findings, compilation.skipped)
        shaped = {} if shape is None else {"shape": fitting.as_json() if fitting else None}
        write(json_format.text({**found, **drawn.as_json(), **shaped}))
    elif compilation.has_environment:
        write(tree_text.tree(compilation.name, drawn, paint(options)))
        if fitting is not None:
            write(shape_text.report(fitting, paint(options)))
    code = exit_code(compilation, options)
    if code:
        print_findings(compilation, options, to_stderr=True)
    return code


def _fitting(compilation: Compilation, shape: Resources) -> Fitting | None:
    """None where nothing is known for sure, since a document cannot be read."""
    return None if compilation.index.broken is not None else shapes.fitting(compilation.index, shape)


def explain(options: Options) -> int:
    subject: list[str] = options.subject
    if len(subject) > 3:
        raise Misuse("explain takes RULE, or ENV KIND/[NAMESPACE/]NAME [POINTER]")
    if len(subject) == 1:
        return _explain_rule(subject[0], options)
    compilation = compile_folder(folder_of(subject[0]), needs_environment=True, runs_modules=options.modules)
    if not compilation.has_environment:
        print_findings(compilation, options, to_stderr=True)
        return 1
    if explaining_groups.is_group(subject[1]) and len(subject) == 2:
        access = explaining_groups.explain(compilation.index, subject[1])
        write(json_format.text(access.as_json()) if options.format == "json" else explaining_groups.text(access))
        return 0
    found = explaining.explain(compilation.index, *subject[1:])
    write(json_format.text(found.as_json()) if options.format == "json" else explaining.text(found))
    return 0


def _explain_rule(name: str, options: Options) -> int:
    if name not in RULES:
        hint = names.did_you_mean(name, RULES, most=0, otherwise="see docs/rules")
        if "/" in name or os.path.exists(name):
            hint = "to explain an object: basalt explain ENV KIND/[NAMESPACE/]NAME"
        raise Misuse(f"no rule {name}; {hint}")
    rule = RULES[name]
    family = next(family for family, rules in FAMILIES.items() if rule in rules)
    if options.format == "json":
        page = {"rule": name, "severity": rule.severity.value, "family": family, "page": rule.page}
        write(json_format.text(page))
    else:
        write(f"{rule.page.rstrip()}\n\n({rule.severity.value}, family {family})\n")
    return 0


def schema(options: Options) -> int:
    if options.all == (options.kind is not None):
        raise Misuse(f"name a kind ({', '.join(KINDS)}), or give --all")
    if options.output == "":
        raise Misuse("-o is empty; name a folder")
    if options.all:
        return _write_schemas(Path(options.output or schema_files.FOLDER), options)
    if options.output is not None:
        raise Misuse("-o is where --all writes; the schema of one kind goes to stdout")
    kinds = {kind.casefold(): kind for kind in KINDS}
    kind = kinds.get(options.kind.casefold())
    if kind is None:
        raise Misuse(f"no document kind {options.kind}; {names.did_you_mean(options.kind, KINDS)}")
    write(schema_files.text(kind))
    return 0


def _write_schemas(folder: Path, options: Options) -> int:
    files = schema_files.files()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(folder, files)
    except OSError as error:
        raise Misuse(f"cannot write {error.filename2 or folder}: {error.strerror}") from None
    if options.format == "json":
        write(json_format.text({"output": str(folder), "files": [*files]}))
    elif not options.quiet:
        write(f"written: {folder}: {', '.join(files)}\n")
    return 0


def _write_whole(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes the files beside their places, and moves them there when all are complete: a link is replaced, and where
    the disk is full what was there stays."""
    partial = {name: folder / f".basalt-schema-{os.getpid()}-{name}" for name in texts}
    begun: list[Path] = []
    try:
        for name, path in partial.items():
            with open(path, "x", encoding="utf-8") as stream:
                begun.append(path)
                stream.write(texts[name])
        for name, path in partial.items():
            os.replace(path, folder / name)
    finally:
        for path in begun:
            path.unlink(missing_ok=True)


def completion_(options: Options) -> int:
    write(completion.script(options.shell, completion.commands(options.parser, sorted(RULES), KINDS)))
    return 0


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


def _print_compiled(compilation: Compilation, options: Options, folder: Path, *, is_written: bool) -> None:
    counts = layout.counts(layout.in_apply_order(compilation.objects))
    withheld = [str(each.ref) for each in compilation.objects if layout.is_withheld(each)]
    if options.format == "json":
        found = json_format.report(compilation.name, compilation.findings, compilation.skipped)
        done = {"output": str(folder), "written": is_written, "withheld": withheld, "objects": counts}
        write(json_format.text({**found, **done}))
        return
    print_findings(compilation, options)
    if not options.quiet:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        if withheld:
            write(f"not written, because it holds secret values: {', '.join(withheld)}\n")
        state = "written" if is_written else "unchanged"
        write(f"{sum(counts.values())} objects: {kinds}\n{state}: {folder}\n")


def lines_of(compilation: Compilation) -> Callable[[str, int], str]:
    files = {file.name: file for file in compilation.files}
    return lambda name, line: files[name].line(line) if name in files else ""


def paint(options: Options, *, to_stderr: bool = False) -> text.Paint:
    stream = sys.stderr if to_stderr else sys.stdout
    wanted = not options.no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return text.Paint(wanted and stream.isatty())


def write(shown: str) -> None:
    sys.stdout.write(shown)


def _late(module: str, name: str) -> Callable[[Options], int]:
    """A command whose module is imported where it runs: it brings packages that compiling needs none of."""

    def run(options: Options) -> int:
        command: Callable[[Options], int] = getattr(importlib.import_module(module), name)
        return command(options)

    return run


COMMANDS: dict[str, Callable[[Any], int]] = {
    "check": check,
    "compile": compile_,
    "topology": topology,
    "explain": explain,
    "schema": schema,
    "completion": completion_,
    "fmt": _late("basalt.fmt_commands", "fmt"),
    "fit": _late("basalt.fit_commands", "fit"),
    "import": _late("basalt.import_commands", "import_"),
    "plan": _late("basalt.plan_commands", "plan"),
    "report": _late("basalt.report_commands", "report"),
    "apply": _late("basalt.cluster_commands", "apply"),
    "verify": _late("basalt.cluster_commands", "verify"),
    "sandbox": _late("basalt.sandbox_commands", "sandbox"),
    "init": _late("basalt.init_commands", "init"),
}
