"""Findings as SARIF 2.1.0, the form that code scanning services read.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os.html. Braces in messages
stay single, against its 3.11.5: what reads SARIF shows a text without arguments as it is.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from basalt import __version__
from basalt.findings import Finding, Severity, Skipped, Source
from basalt.pointers import render
from basalt.reporting.text import said
from basalt.rules import FAMILIES, RULES
from basalt.rules.rule import Rule

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://basalt.dev"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_LINK = re.compile(r"\[(?=[^\]]*\]\()")
_FINGERPRINT = "objectAndPointer/v1"

Json = dict[str, Any]


def report(name: str, findings: Sequence[Finding], skipped: Sequence[Skipped]) -> Json:
    """One run."""
    rules = [
        *(_descriptor(rule, family) for family, rules in FAMILIES.items() for rule in rules),
        *_guardrails(findings),
    ]
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "Basalt", "version": __version__, "informationUri": _HOME, "rules": rules}},
        "automationDetails": {"id": f"basalt/{name}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notification(each, index) for each in skipped],
            }
        ],
        "results": [
            {**_result(found, index), "partialFingerprints": {_FINGERPRINT: fingerprint}}
            for found, fingerprint in zip(findings, _fingerprints(findings), strict=True)
        ],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def text(value: Json) -> str:
    """In ASCII, so that no terminal obeys what a name holds."""
    return json.dumps(value, indent=2) + "\n"


def _descriptor(rule: Rule, family: str) -> Json:
    page = rule.page
    found = page.partition("## What it finds\n")[2].partition("\n## ")[0]
    return {
        "id": rule.name,
        "shortDescription": {"text": _paragraph(page.partition("\n")[2])},
        "fullDescription": {"text": _paragraph(found)},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [family]},
    }


def _paragraph(markdown: str) -> str:
    return " ".join(markdown.strip().partition("\n\n")[0].split())


def _guardrails(findings: Sequence[Finding]) -> list[Json]:
    """The rules that have no page."""
    severities = {found.rule: found.severity for found in findings if found.rule not in RULES}
    return [
        {
            "id": rule,
            "shortDescription": {"text": "A Guardrail of this site."},
            "defaultConfiguration": {"level": _LEVELS[severity]},
            "properties": {"tags": ["Guardrails"]},
        }
        for rule, severity in severities.items()
    ]


def _notification(skipped: Skipped, index: Mapping[str, int]) -> Json:
    rule = {"id": skipped.rule, "index": index[skipped.rule]}
    message = f"{skipped.rule} is not, or not wholly, judged: {skipped.reason}"
    return {"level": "note", "message": {"text": _plain(message)}, "associatedRule": rule}


def _result(found: Finding, index: Mapping[str, int]) -> Json:
    hint = f"\nhint: {found.hint}" if found.hint else ""
    return {
        "ruleId": found.rule,
        "ruleIndex": index[found.rule],
        "level": _LEVELS[found.severity],
        "message": {"text": _plain(said(found) + hint)},
        "locations": [_location(found)],
        "suppressions": [{"kind": "inSource", "justification": found.reason}] if found.waived else [],
    }


def _plain(message: str) -> str:
    """The message without what would be a link."""
    return _LINK.sub(r"\\[", message)


def _location(found: Finding) -> Json:
    source = found.source
    place = {
        "artifactLocation": {"uri": _uri(source)},
        "region": {"startLine": source.line, "startColumn": source.column},
    }
    return {"physicalLocation": place, "logicalLocations": _logical(found)}


def _uri(source: Source) -> str:
    path = PurePath(source.file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _logical(found: Finding) -> list[Json]:
    """The object, and the value in it."""
    places: list[Json] = []
    if found.object:
        version, kind, namespace, name = found.object
        full = "/".join(filter(None, (version, kind, namespace, name)))
        places.append({"name": name, "fullyQualifiedName": full, "kind": "object"})
    if found.pointer:
        places.append({"name": str(found.pointer[-1]), "fullyQualifiedName": render(found.pointer), "kind": "value"})
    return places


def _fingerprints(findings: Sequence[Finding]) -> list[str]:
    """For each finding what stays the same while lines move and amounts change: rule, file, object and pointer; of
    those that share all four the how-manieth it is."""
    seen: dict[tuple[object, ...], int] = {}
    shown: list[str] = []
    for found in findings:
        key = (found.rule, found.source.file, str(found.object), render(found.pointer))
        seen[key] = seen.get(key, 0) + 1
        shown.append(hashlib.sha256(json.dumps([*key, seen[key]]).encode()).hexdigest())
    return shown
