"""A site's own policies: Guardrail documents, Cerberus schemas that matching objects must satisfy."""

import fnmatch
from collections.abc import Iterable, Iterator

from basalt.api import guardrail_schemas
from basalt.findings import Problem, Severity
from basalt.gathering.documents import Declaration
from basalt.index import Index
from basalt.objects import KubeObject, mapping, strings
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
        if not guardrail_schemas.faults(guardrail.spec.get("schema")):
            severity = Severity(guardrail.spec.get("severity", "error"))
            rule = Rule(_rule_name(guardrail), severity, noted(_rule_name(guardrail)))
            yield from ((rule, problem) for problem in _broken(guardrail, _judged(guardrail, index)))


def _judged(guardrail: Declaration, index: Index) -> Iterable[KubeObject]:
    kinds = strings(mapping(guardrail.spec.get("match")).get("kinds"))
    return index.objects if "HyperNode" in kinds else index.others


def matches(guardrail: Declaration, declared: KubeObject) -> bool:
    match = mapping(guardrail.spec.get("match"))
    if declared.ref.kind not in strings(match.get("kinds")):
        return False
    namespaces = strings(match.get("namespaces"))
    namespace = declared.ref.namespace or ""
    return not namespaces or any(fnmatch.fnmatchcase(namespace, glob) for glob in namespaces)


def _broken(guardrail: Declaration, objects: Iterable[KubeObject]) -> Iterator[Problem]:
    validator = guardrail_schemas.validator(guardrail.spec.get("schema"))
    demand = guardrail.spec.get("message")
    for declared in objects:
        if matches(guardrail, declared):
            for pointer, fact in guardrail_schemas.breaches(validator, declared.value):
                message = f"{demand}: {fact}" if demand else fact
                yield Problem(declared, pointer, message, f"see the Guardrail {guardrail.name}")
