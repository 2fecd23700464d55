"""The family Input: the texts and documents themselves."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from basalt import guardrail_schemas, names
from basalt.documents import Declaration, Document
from basalt.findings import Place, Problem, Severity
from basalt.index import Index
from basalt.loading import scalars
from basalt.objects import KubeObject, mapping
from basalt.pointers import Pointer
from basalt.rules.rule import Rule, noted

_SECRET_KEY = re.compile(
    r"(.*[-_.a-z])?(passw(or)?d|passphrase|token|private[-_]?key|client[-_]?secret|api[-_]?key|secret[-_]?key"
    r"|access[-_]?key|secret[-_]?access[-_]?key|bind[-_]?pw)",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REFERENCE = re.compile(r"\$[({A-Za-z_].*|/.*|\*+|<.*>|\{\{.*|(true|false|none|null)", re.IGNORECASE | re.DOTALL)
_KNOWN_SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\b(ghp|gho|ghs|ghr)_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{40,}"
    r"|\bhf_[A-Za-z0-9]{30,}\b|\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bglpat-[A-Za-z0-9_-]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
)
_NOT_DATA = ("kubernetes.io/service-account-token",)  # filled in by the cluster


def object_is_declared_once(index: Index) -> Iterator[Problem]:
    first: dict[tuple[str, str, str | None, str], KubeObject] = {}
    for declared in index.objects:
        ref = declared.ref
        key = (ref.group, ref.kind, ref.namespace, ref.name)
        if not ref.name:
            continue  # object-matches-schema speaks
        if key not in first:
            first[key] = declared
            continue
        other = first[key].position(())
        later = declared if declared.module is None else first[key]
        earlier = other if declared.module is None else declared.position(())
        message = f"{ref} is declared a second time; the other is at {earlier.file}:{earlier.line}"
        yield Problem(later, ("metadata", "name"), message, "keep one of them, or give one another name")
    yield from _nodes_once(index)


def _nodes_once(index: Index) -> Iterator[Problem]:
    for name, count in Counter(node.name for node in index.nodes).items():
        if count > 1:
            place = index.place_of(next(node for node in index.nodes if node.name == name))
            message = f"the node {name} is in the inventory {count} times"
            yield Problem(place, ("metadata", "name"), message, "keep one inventory of each node")


def scalar_is_unambiguous(index: Index) -> Iterator[Problem]:
    for text in index.texts:
        for entry in text.ambiguous:
            place = _text_place(Document(text.file, text.index, text.value), entry.pointer)
            what = "the key" if entry.is_key else "unquoted"
            message = f"{what} {entry.text}: {scalars.readings(entry.text)}"
            yield Problem(*place, message, f'write "{entry.text}" for the text, or the value plainly')


def _text_place(document: Document, pointer: Pointer) -> tuple[Document, Pointer]:
    """The item of a List that the pointer leads into, else the document itself."""
    value = document.value
    if pointer[:1] == ("items",) and len(pointer) > 1 and mapping(value).get("kind") in ("List", "NodeList"):
        item = value["items"][pointer[1]]
        return Document(document.file, document.index, item, pointer[:2]), pointer[2:]
    return document, pointer


def secret_is_not_literal(index: Index) -> Iterator[Problem]:
    for declaration in index.declarations:
        yield from _literals(declaration, declaration.value, ())
    for declared in index.objects:
        if declared.module is not None:
            continue  # the document it follows from is judged
        if declared.ref.kind == "Secret" and not declared.ref.group:
            yield from _secret_data(declared)
        else:
            yield from _literals(declared, declared.value, ())


def _secret_data(declared: KubeObject) -> Iterator[Problem]:
    if declared.value.get("type") in _NOT_DATA:
        return
    for field in ("data", "stringData"):
        if declared.value.get(field):
            message = f"a Secret with {field} in the repository"
            hint = (
                "keep the values in an external store and refer to them (ExternalSecret, SealedSecret, Pulumi secret)"
            )
            yield Problem(declared, (field,), message, hint)


def _literals(place: Place, value: Any, pointer: Pointer) -> Iterator[Problem]:
    """Secrets written out anywhere below the value. Iterative over an explicit stack: depth is the input's choice."""
    stack: list[tuple[Any, Pointer]] = [(value, pointer)]
    while stack:
        current, at = stack.pop()
        if isinstance(current, Mapping):
            if _is_env_entry(current) and _names_a_secret(current["name"]) and _is_literal(current.get("value")):
                yield _literal(place, (*at, "value"), str(current["name"]))
            stack.extend((child, (*at, key)) for key, child in current.items())
        elif isinstance(current, list):
            stack.extend((child, (*at, position)) for position, child in enumerate(current))
        elif isinstance(current, str):
            key = at[-1] if at else ""
            if _KNOWN_SECRET.search(current) or (
                isinstance(key, str) and _names_a_secret(key) and _is_literal(current)
            ):
                yield _literal(place, at, str(key))


def _is_env_entry(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("name"), str) and isinstance(value.get("value"), str)


def _names_a_secret(key: str) -> bool:
    return _SECRET_KEY.fullmatch(_CAMEL.sub("_", key)) is not None


def _is_literal(value: Any) -> bool:
    """Whether a text can be the secret itself; a reference, a path or a placeholder cannot."""
    return isinstance(value, str) and bool(value) and _REFERENCE.fullmatch(value) is None


def _literal(place: Place, pointer: Pointer, key: str) -> Problem:
    message = f"{key} is written out here; everyone who can read the repository has it"
    return Problem(
        place, pointer, message, "refer to a Secret (secretKeyRef, existingSecret) and replace the leaked value"
    )


def guardrail_is_sound(index: Index) -> Iterator[Problem]:
    for guardrail in index.declarations:
        if guardrail.kind == "Guardrail" and guardrail not in index.unusable:
            yield from _guardrail_faults(guardrail, index)


def _guardrail_faults(guardrail: Declaration, index: Index) -> Iterator[Problem]:
    if (fault := guardrail_schemas.fault(guardrail.spec.get("schema"))) is not None:
        yield Problem(guardrail, ("spec", "schema"), f"not a Cerberus schema: {fault}", "see docs.python-cerberus.org")
    kinds = mapping(guardrail.spec.get("match")).get("kinds") or []
    if not kinds:
        yield Problem(guardrail, ("spec", "match"), "matches no kind: kinds is empty", "add the kinds it is about")
    known = {*index.catalog.kind_names, *(declared.ref.kind for declared in index.objects)}
    for position, kind in enumerate(kinds):
        if kind not in known:
            hint = names.did_you_mean(kind, known, most=0)
            yield Problem(
                guardrail, ("spec", "match", "kinds", position), f"{kind} is no kind that is known here", hint
            )


def waiver_is_sound(_: Index) -> Iterator[Problem]:
    """Judged last, when it is known which waivers matched a finding: see judging."""
    return iter(())


RULES = (
    Rule("document-parses", Severity.ERROR, noted("document-parses")),
    Rule("keys-are-unique", Severity.ERROR, noted("keys-are-unique")),
    Rule("document-kind-is-known", Severity.ERROR, noted("document-kind-is-known")),
    Rule("document-matches-schema", Severity.ERROR, noted("document-matches-schema")),
    Rule("one-environment", Severity.ERROR, noted("one-environment")),
    Rule("object-is-declared-once", Severity.ERROR, object_is_declared_once),
    Rule("extends-stays-inside", Severity.ERROR, noted("extends-stays-inside")),
    Rule("input-within-limits", Severity.ERROR, noted("input-within-limits")),
    Rule("scalar-is-unambiguous", Severity.WARNING, scalar_is_unambiguous),
    Rule("secret-is-not-literal", Severity.ERROR, secret_is_not_literal, is_private=True),
    Rule("waiver-is-sound", Severity.WARNING, waiver_is_sound),
    Rule("guardrail-is-sound", Severity.ERROR, guardrail_is_sound),
)
