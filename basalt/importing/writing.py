"""The texts of the documents, with the comments that led to what they say. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from basalt.api import versions
from basalt.importing.proposal import Part, Proposal
from basalt.rendering import yaml_writer
from basalt.rendering.layout import Output

_SECTION = re.compile(r"  ([a-z]+):")
_ENTRY = re.compile(r"    (?! |- )(.+):( .*)?")
Comments = Mapping[Part, list[str]]


def documents(proposal: Proposal, comments: Comments, source: str) -> list[Output]:
    """The files of the documents: the Environment's, the Teams', and one for the jobs of each namespace."""
    found = {"environment.yaml": _environment(proposal, comments, source)}
    teams = [value for value in proposal.values() if value["kind"] == "Team"]
    if teams:
        found["teams.yaml"] = "---\n".join(_commented(each, comments.get(("Team", _name(each)), [])) for each in teams)
    for namespace in sorted({key[0] for key in proposal.jobs}):
        jobs = [(key, dict(value)) for key, value in proposal.jobs.items() if key[0] == namespace]
        texts = [_commented(value, comments.get(("TrainingJob", *key), [])) for key, value in jobs]
        found[f"jobs/{namespace}.yaml"] = "---\n".join(texts)
    return [Output(path, text.encode()) for path, text in found.items()]


def _name(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


def _commented(document: Mapping[str, Any], comments: list[str]) -> str:
    return "".join(f"{line}\n" for line in comments) + yaml_writer.document(document)


def _environment(proposal: Proposal, comments: Comments, source: str) -> str:
    """The Environment, with the comments of each entry above it."""
    head = [f"# What basalt import found in {source}."]
    missing = [name for name in ("kubernetes", "volcano") if "version" not in proposal.spec.get(name, {})]
    if missing:
        head.append("# Nothing there says which version runs, so the newest known counts; say it under spec:")
        head += [f'#   {name}: {{version: "{versions.newest(name)}"}}' for name in missing]
    lines: list[str] = []
    section = ""
    for line in yaml_writer.document(proposal.environment).split("\n"):
        if found := _SECTION.fullmatch(line):
            section = found[1]
        elif (entry := _ENTRY.fullmatch(line)) and section in ("queues", "priorities"):
            name = next((each for each in proposal.spec[section] if yaml_writer.text(each) == entry[1]), "")
            lines += [f"    {comment}" for comment in comments.get((section, name), [])]
        lines.append(line)
    return "\n".join([*head, *lines])
