"""What a Basalt document breaks of its own form: its JSON Schema, and the few texts a schema cannot judge."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt import patterns, versions
from basalt.documents import Declaration
from basalt.findings import Problem
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer
from basalt.schemas import document_shape
from modules.jobs import seconds


class Checked(NamedTuple):
    """A document's faults; it is unusable where more than an unknown field is wrong."""

    problems: tuple[Problem, ...]
    is_unusable: bool


def check(declaration: Declaration) -> Checked:
    faults = list(document_shape(declaration.kind).faults(declaration.value))
    problems = [Problem(declaration, fault.pointer, fault.message, fault.hint) for fault in faults]
    if any(fault.field is None for fault in faults):
        return Checked(tuple(problems), is_unusable=True)
    texts = list(_TEXTS.get(declaration.kind, _nothing)(declaration))
    return Checked((*problems, *texts), is_unusable=bool(texts))


def _nothing(_: Declaration) -> Iterator[Problem]:
    return iter(())


def _environment(declaration: Declaration) -> Iterator[Problem]:
    spec = declaration.spec
    for product in ("kubernetes", "volcano"):
        text = mapping(spec.get(product)).get("version")
        known = versions.known(product)
        if text is not None and versions.parse(str(text)) not in known:
            shown = ", ".join(map(str, known))
            message = f"{text} is no version of {product.title()} that Basalt knows"
            yield Problem(declaration, ("spec", product, "version"), message, f"known: {shown}")
    for index, tier in enumerate(map(mapping, sequence(mapping(spec.get("topology")).get("tiers")))):
        yield from _tier(declaration, tier, ("spec", "topology", "tiers", index))


def _tier(declaration: Declaration, tier: Mapping[str, Any], at: Pointer) -> Iterator[Problem]:
    if "pattern" in tier and (fault := patterns.fault(tier["pattern"])):
        message = f"{tier['pattern']} is not an RE2 expression: {fault}"
        yield Problem(declaration, (*at, "pattern"), message, "write Go's syntax, the first group is the domain's name")
    rest = tier.get("nameTemplate", "").replace("{tier}", "").replace("{domain}", "")
    if "{" in rest or "}" in rest:
        message = f"{tier['nameTemplate']} has braces around something else"
        yield Problem(declaration, (*at, "nameTemplate"), message, "only {tier} and {domain} are filled in")


def _training_job(declaration: Declaration) -> Iterator[Problem]:
    ttl = declaration.spec.get("ttlAfterFinished")
    if ttl is not None and seconds(ttl) is None:
        message = f"{ttl} is not a duration"
        yield Problem(declaration, ("spec", "ttlAfterFinished"), message, "write 24h, 90m, 1h30m or seconds")
    if "image" not in declaration.spec:
        for name, role in declaration.spec["roles"].items():
            if "image" not in role:
                message = f"image is missing: neither the job nor its role {name} names one"
                yield Problem(declaration, ("spec", "roles", name), message, "add spec.image")


_TEXTS = {"Environment": _environment, "TrainingJob": _training_job}
