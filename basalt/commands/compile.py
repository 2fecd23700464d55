"""`basalt compile`: findings, and where there is no error the manifests."""

import argparse
import sys
from pathlib import Path

from basalt.api.schemas import ROOT as SCHEMAS
from basalt.commands.printing import print_findings, write
from basalt.commands.reading import compiled
from basalt.compiling import Compilation
from basalt.findings import fails
from basalt.gathering.folders import folder_of, project_of
from basalt.loading.sources import Misuse
from basalt.rendering import layout, switch
from basalt.reporting import json_format

Options = argparse.Namespace


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
