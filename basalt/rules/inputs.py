"""The family Input: the texts and documents themselves."""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from basalt import names
from basalt.api import guardrail_schemas
from basalt.api.schemas import show
from basalt.findings import Place, Problem, Severity
from basalt.gathering.documents import KINDS, Declaration
from basalt.gathering.expanding import item_at
from basalt.index import Index
from basalt.loading import scalars
from basalt.loading.inventories import nearest
from basalt.loading.marks import Mark
from basalt.objects import KubeObject, mapping, strings
from basalt.pointers import Pointer, get
from basalt.rules.rule import Rule, Scope, noted
from basalt.views import embedding, sensitive

_STORE = "keep the values in an external store and refer to them (ExternalSecret, SealedSecret, Pulumi secret)"
_REFER = "refer to a Secret (secretKeyRef, existingSecret) and replace the leaked value"
_BECOMES = dict.fromkeys(KINDS, "a guardrail judges objects: a TrainingJob becomes a Job, a Team a Namespace and more")
_MISSPELT = 0.85  # CronJb is as near to CronJob; TrainJob is not
_LONGEST = 40  # characters of a scalar that a hint repeats
_CODE = tuple(".py .js .ts .go .rb .lua .pl .java .c .cpp .h .rs .php .groovy .scala .r .jl .md .html .css".split())
_HINT = re.compile("passw|passphrase|pwd|token|secret|key|bindpw|://", re.IGNORECASE)  # worth parsing the text


def object_is_declared_once(index: Index) -> Iterator[Problem]:
    yield from noted("object-is-declared-once")(index)  # nodes
    first: dict[tuple[str, str, str | None, str], KubeObject] = {}
    for declared in index.objects:
        ref = declared.ref
        if not ref.name:
            continue  # name-is-valid speaks
        key = (ref.group, ref.kind, ref.namespace if _is_namespaced(index, declared) else None, ref.name)
        if key not in first:
            first[key] = declared
            continue
        if declared.module and first[key].module and ref.kind == "Namespace":
            continue  # namespace-is-not-system speaks
        earlier = first[key].position(())
        message = f"{ref} is declared again; the first is at {earlier}"
        yield Problem(declared, ("metadata", "name"), message, "keep one of them, or give one another name")


def _is_namespaced(index: Index, declared: KubeObject) -> bool:
    """Whether the kind has namespaces; the API server drops the namespace of one that has none."""
    kind = index.catalog.find(*declared.ref[:2])
    return kind is None or kind.namespaced


def scalar_is_unambiguous(index: Index) -> Iterator[Problem]:
    for text in index.texts:
        for entry in text.ambiguous:
            document, pointer = item_at(text, entry.pointer)
            if sensitive.is_at(document.value, pointer):
                yield Problem(document, pointer, "unquoted, and readers of YAML differ on it", "put it in quotes")
                continue
            what, shown = "the key" if entry.is_key else "unquoted", show(entry.text)[1:-1]
            yield Problem(document, pointer, f"{what} {shown}: {scalars.readings(entry.text)}", _plain(entry.text))


def _plain(text: str) -> str:
    """How else an ambiguous scalar can be written: as the text, or as what kubectl reads."""
    if len(text) > _LONGEST:
        return "put it in quotes"
    meant = scalars.as_boolean(text)
    number = scalars.as_integer(text) if meant is None else None
    plain = str(meant).lower() if meant is not None else number
    return f'write "{text}" for the text' + (
        f", {plain} for what kubectl reads" if str(plain) not in ("None", text) else ""
    )


def secret_is_not_literal(index: Index) -> Iterator[Problem]:
    for declaration in index.declarations:
        yield from _literals(declaration, declaration.value)
    for declared in index.without_nodes:
        if declared.module is not None:
            continue  # the document it follows from is judged
        if declared.ref.kind == "Secret" and not declared.ref.group:
            yield from _secret_data(declared)
        else:
            yield from _literals(declared, declared.value)
            yield from _embedded(declared)


def _secret_data(declared: KubeObject) -> Iterator[Problem]:
    for field in ("data", "stringData"):
        if found := declared.value.get(field):
            keys = f" ({names.listed(found)})" if isinstance(found, Mapping) else ""
            message = f"a Secret with {field}{keys} in the repository"
            yield Problem(declared, (field,), message, _STORE)


def _literals(place: Place, value: Any) -> Iterator[Problem]:
    for found in sensitive.literals(value):
        yield _literal(place, found.pointer, found.what)


def _literal(place: Place, pointer: Pointer, what: str) -> Problem:
    return Problem(place, pointer, f"{what} is written out here; everyone who can read the repository has it", _REFER)


def _embedded(declared: KubeObject) -> Iterator[Problem]:
    """The secrets in configurations that stand as texts in the object: Dex's in a ConfigMap."""
    for field in ("data", "stringData", "binaryData"):
        for key, text in mapping(declared.value.get(field)).items():
            if isinstance(text, str) and "\n" in text and _HINT.search(text):
                yield from _in_text(declared, (field, key))


def _in_text(declared: KubeObject, pointer: Pointer) -> Iterator[Problem]:
    text = embedding.text_at(declared, pointer)
    if text is None:
        return
    told, has_structure = set(), True
    for embedded in embedding.every(text):
        if isinstance(embedded, embedding.Unreadable) or not isinstance(embedded.value, Mapping | list):
            has_structure = False
            continue
        for found in sensitive.literals(embedded.value):
            if sensitive.kind_of(str(get(embedded.value, found.pointer))) is None:  # else told of the whole text
                told.add(nearest(embedded.marks, found.pointer).line)
                yield _literal(embedded.place(found.pointer), pointer, found.what)
    if not has_structure:
        yield from _in_lines(text, told)


def _in_lines(text: embedding.Text, told: Collection[int]) -> Iterator[Problem]:
    """The secrets in a text that is no YAML, or a scalar of it: a template, a script, an INI file."""
    *_, name = text.pointer
    first = text.value[:_LONGEST].partition("\n")[0]
    is_code = str(name).lower().endswith(_CODE) or (first.startswith("#!") and not first.endswith("sh"))
    for number, key in sensitive.in_lines(text.value, is_code=is_code):
        if number + 1 not in told:
            yield _literal(text.spot(Mark(number + 1, 1)), text.pointer, key)


def guardrail_is_sound(index: Index) -> Iterator[Problem]:
    for guardrail in index.declarations:
        if guardrail.kind == "Guardrail" and guardrail not in index.unusable:
            yield from _guardrail_faults(guardrail, index)


def _guardrail_faults(guardrail: Declaration, index: Index) -> Iterator[Problem]:
    for pointer, fact in guardrail_schemas.faults(guardrail.spec.get("schema")):
        message = f"no schema of Cerberus: {fact}"
        yield Problem(guardrail, ("spec", "schema", *pointer), message, "see docs.python-cerberus.org")
    kinds = strings(mapping(guardrail.spec.get("match")).get("kinds"))
    if not kinds:
        yield Problem(guardrail, ("spec", "match"), "matches no kind: kinds is empty", "add the kinds it is about")
    known = {*index.catalog.kind_names, *(declared.ref.kind for declared in index.without_nodes)}
    matches_some = bool(known & set(kinds))
    for position, kind in enumerate(kinds):
        if kind not in known and (not matches_some or _is_misspelt(kind, known)):
            hint = _BECOMES.get(kind) or names.did_you_mean(kind, known, most=0)
            at = ("spec", "match", "kinds", position)
            yield Problem(guardrail, at, f"matches no kind: {kind} is none that is known here", hint)


def _is_misspelt(kind: str, known: set[str]) -> bool:
    """Whether the kind is so near to a known one that it can hardly be a kind of its own."""
    near = names.nearest(kind, known)
    return near is not None and SequenceMatcher(None, kind.casefold(), near.casefold()).ratio() > _MISSPELT


def waiver_is_sound(_: Index) -> Iterator[Problem]:
    """Judged last, when it is known which waivers matched a finding: see judging."""
    return iter(())


RULES = (
    Rule("document-parses", Severity.ERROR, noted("document-parses")),
    Rule("keys-are-unique", Severity.ERROR, noted("keys-are-unique")),
    Rule("document-kind-is-known", Severity.ERROR, noted("document-kind-is-known")),
    Rule("document-matches-schema", Severity.ERROR, noted("document-matches-schema")),
    Rule("one-environment", Severity.ERROR, noted("one-environment")),
    Rule("object-is-declared-once", Severity.ERROR, object_is_declared_once, scope=Scope.APART),
    Rule("extends-stays-inside", Severity.ERROR, noted("extends-stays-inside")),
    Rule("input-within-limits", Severity.ERROR, noted("input-within-limits")),
    Rule("scalar-is-unambiguous", Severity.WARNING, scalar_is_unambiguous),
    Rule("secret-is-not-literal", Severity.ERROR, secret_is_not_literal, is_private=True),
    Rule("waiver-is-sound", Severity.WARNING, waiver_is_sound),
    Rule("guardrail-is-sound", Severity.ERROR, guardrail_is_sound),
)
