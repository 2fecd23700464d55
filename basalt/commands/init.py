"""`basalt init`: a new environment, proposed from what the cluster's nodes tell."""

import argparse
import os
import re
from pathlib import Path
from typing import NamedTuple

from basalt import names
from basalt.commands.printing import exit_code, paint, print_findings, write
from basalt.compiling import Compilation, compile_gathered
from basalt.findings import Problem, Severity
from basalt.fit import verdicts
from basalt.fit.verdicts import State, Verdict
from basalt.gathering import folders, node_documents
from basalt.gathering.documents import Document
from basalt.loading import files
from basalt.loading.nodes import Node, is_list
from basalt.loading.sources import Misuse, SourceFile
from basalt.proposing import documents
from basalt.proposing.proposal import Proposal, propose
from basalt.rendering import switch
from basalt.rendering.layout import Output
from basalt.reporting import init_text, json_format, schema_files

Options = argparse.Namespace
_WAY_OUT = "give what `kubectl get nodes -o json` prints"


def init(options: Options) -> int:
    folder = _folder(options.folder)
    switch.refuse_full(folder)
    nodes: tuple[Node, ...] = ()
    text = b""
    if options.nodes is not None:
        file = files.argument(options.nodes)
        given = _inventory(file)
        if any(each.severity is Severity.ERROR for each in given.findings):
            print_findings(given, argparse.Namespace(**{**vars(options), "quiet": True}))  # nothing else was judged
            return 1
        nodes, text = given.index.nodes, bytes(file.data)
    new = made(folder, propose(_name(folder), nodes, text))
    if code := exit_code(new.compilation, options):
        print_findings(new.compilation, options)
        return code
    switch.create(folder, new.outputs)
    _print(new, folder, options)
    return 0


def _folder(name: str) -> Path:
    if not name or "\0" in name:
        raise Misuse("name the folder of the new environment")
    return Path(name)


def _name(folder: Path) -> str:
    """The environment is called like its folder, as far as that makes a name."""
    name = re.sub(r"[^a-z0-9]+", "-", Path(os.path.abspath(folder)).name.lower())
    return name.strip("-")[: names.LABEL_LENGTH].strip("-") or "environment"


def _inventory(file: SourceFile) -> Compilation:
    """The nodes of the file and what is wrong with them; whatever else it holds is passed over."""
    gathered = folders.of_files([file])
    gathered.declarations = gathered.manifests = gathered.chart_values = ()
    gathered.environment = None
    if not gathered.all_nodes and not gathered.reading.faults and not gathered.problems and not _is_empty_list(file):
        place = Document(file, 0, None)
        gathered.problems.append(("document-kind-is-known", Problem(place, (), "no Node in this file", _WAY_OUT)))
    gathered.problems.extend(node_documents.names_in_inventory(file))  # what is proposed would repeat them
    return compile_gathered(gathered, file.path)


def _is_empty_list(file: SourceFile) -> bool:
    """Whether it is what kubectl prints of a cluster without nodes."""
    if file.inventory is not None:
        return True
    values = [parsed.value for parsed in file.parse()]
    return (
        len(values) == 1 and isinstance(values[0], dict) and is_list(values[0].get("apiVersion"), values[0].get("kind"))
    )


class Made(NamedTuple):
    proposal: Proposal
    verdict: Verdict | None
    compilation: Compilation
    outputs: tuple[Output, ...]


def made(folder: Path, proposal: Proposal) -> Made:
    """The documents, judged as they will be; without a job where there is none that fits now."""
    outputs = _outputs(proposal)
    texts = [
        SourceFile(folder / each.path, os.fsencode(folder / each.path).decode("utf-8", "replace"), each.content)
        for each in outputs
        if not each.path.startswith(".")
    ]
    compilation = compile_gathered(folders.of_files(texts), folder, needs_environment=True)
    if proposal.gang is None or compilation.index.broken is not None:
        return Made(proposal, None, compilation, outputs)
    verdict = next(iter(verdicts.of(compilation.index)), None)
    if verdict is None or verdict.state is not State.FITS:
        why = verdict.reason.message if verdict is not None and verdict.reason is not None else "no verdict"
        return made(folder, proposal._replace(gang=None, no_gang=why))
    return Made(proposal, verdict, compilation, outputs)


def _outputs(proposal: Proposal) -> tuple[Output, ...]:
    """The files of the folder; the Environment, without which the others are none, comes last."""
    schemas = {f"{documents.SCHEMAS}/{name}": text for name, text in schema_files.files().items()}
    texts = documents.files(proposal)
    ordered = {**schemas, **{path: texts[path] for path in sorted(texts, key=lambda path: path == "environment.yaml")}}
    return tuple(Output(path, text.encode()) for path, text in ordered.items())


def _print(new: Made, folder: Path, options: Options) -> None:
    paths = sorted(each.path for each in new.outputs if not each.path.startswith("."))
    if options.format == "json":
        found = json_format.report(new.compilation.name, new.compilation.findings, new.compilation.skipped)
        write(json_format.text({**found, **init_text.as_json(new.proposal, new.verdict, str(folder), paths)}))
        return
    if not options.quiet:
        write(init_text.report(new.proposal, new.verdict, str(folder), paths, paint(options)))
    print_findings(new.compilation, options)
