"""A site's own policies: Guardrail documents, Cerberus schemas that matching objects must satisfy."""

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from basalt import guardrail_schemas
from basalt.documents import Declaration
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import KubeObject, mapping, strings
from basalt.pointers import Pointer
from basalt.rules.rule import Rule, noted


def rule_names(index: Index) -> list[str]:
    return [_rule_name(guardrail) for guardrail in _guardrails(index)]


def _rule_name(guardrail: Declaration) -> str:
    return f"guardrail/{guardrail.name}"


def _guardrails(index: Index) -> Iterator[Declaration]:
    return (each for each in index.declarations if each.kind == "Guardrail" and each not in index.unusable)


def violations(index: Index) -> Iterator[tuple[Rule, Problem]]:
    """What the objects break of each Guardrail that is sound."""
    for guardrail in _guardrails(index):
        if guardrail_schemas.fault(guardrail.spec.get("schema")) is None:
            severity = Severity(guardrail.spec.get("severity", "error"))
            rule = Rule(_rule_name(guardrail), severity, noted(_rule_name(guardrail)))
            for declared in index.objects:
                if matches(guardrail, declared):
                    yield from ((rule, problem) for problem in _broken(guardrail, declared))


def matches(guardrail: Declaration, declared: KubeObject) -> bool:
    match = mapping(guardrail.spec.get("match"))
    if declared.ref.kind not in strings(match.get("kinds")):
        return False
    namespaces = strings(match.get("namespaces"))
    namespace = declared.ref.namespace or ""
    return not namespaces or any(fnmatch.fnmatchcase(namespace, glob) for glob in namespaces)


def _broken(guardrail: Declaration, declared: KubeObject) -> Iterator[Problem]:
    validator = guardrail_schemas.validator(guardrail.spec.get("schema"))
    if validator.validate(declared.value, normalize=False):
        return
    message = guardrail.spec.get("message") or f"breaks the guardrail {guardrail.name}"
    for pointer, fact in _errors(validator.errors, ()):
        yield Problem(declared, pointer, f"{message}: {fact}", f"see the Guardrail {guardrail.name}")


def _errors(errors: Any, pointer: Pointer) -> Iterator[tuple[Pointer, str]]:
    """Cerberus's nested errors, {field: [text | {nested}]}, each with the pointer to its value."""
    for field, found in errors.items():
        for each in found:
            if isinstance(each, Mapping):
                yield from _errors(each, (*pointer, field))
            else:
                yield (*pointer, field), str(each)
