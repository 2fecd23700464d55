"""Findings as the contract's JSON."""

import json
import re
from collections.abc import Sequence
from typing import Any

from basalt.findings import Finding, Ref, Skipped, summary
from basalt.pointers import render

_OBEYED = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")  # JSON itself escapes the rest


def report(environment: str, findings: Sequence[Finding], skipped: Sequence[Skipped]) -> dict[str, Any]:
    return {
        "environment": environment,
        "findings": [finding(found) for found in findings],
        "skipped": [{"rule": each.rule, "reason": each.reason} for each in skipped],
        "summary": summary(findings),
    }


def finding(found: Finding) -> dict[str, Any]:
    return {
        "rule": found.rule,
        "severity": found.severity.value,
        "waived": found.waived,
        "message": found.message,
        "hint": found.hint,
        "object": ref(found.object) if found.object else None,
        "pointer": render(found.pointer),
        "source": {"file": found.source.file, "line": found.source.line, "column": found.source.column},
    }


def ref(found: Ref) -> dict[str, Any]:
    return {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "namespace": found.namespace,
        "name": found.name,
    }


def text(value: Any) -> str:
    """The value as JSON; what a terminal would obey, or what turns the reading direction, is escaped."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, indent=2, ensure_ascii=False)) + "\n"
