"""What a Basalt document breaks of its own form: its JSON Schema, and the few texts a schema cannot judge."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt import patterns
from basalt.api import versions
from basalt.api.schemas import document_shape, show
from basalt.findings import Problem
from basalt.gathering import training_job_checks
from basalt.gathering.documents import Declaration
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer


class Checked(NamedTuple):
    """A document's faults; it is unusable where more than an unknown field is wrong."""

    problems: tuple[Problem, ...]
    is_unusable: bool


def check(declaration: Declaration) -> Checked:
    texts = list(_TEXTS.get(declaration.kind, _nothing)(declaration))
    told = {problem.pointer for problem in texts}
    faults = [
        fault for fault in document_shape(declaration.kind).faults(declaration.value) if fault.pointer not in told
    ]
    problems = [Problem(declaration, fault.pointer, fault.message, fault.hint) for fault in faults]
    is_unusable = bool(texts) or any(fault.field is None or fault.missing is not None for fault in faults)
    return Checked((*problems, *texts), is_unusable=is_unusable)


def _nothing(_: Declaration) -> Iterator[Problem]:
    return iter(())


def _environment(declaration: Declaration) -> Iterator[Problem]:
    spec = declaration.spec
    for product in ("kubernetes", "volcano"):
        text = mapping(spec.get(product)).get("version")
        known = versions.known(product)
        if isinstance(text, str) and text and versions.parse(text) not in known:
            shown = ", ".join(map(str, known))
            message = f"{show(text)} is no version of {product.title()} that Basalt knows"
            yield Problem(declaration, ("spec", product, "version"), message, f"known: {shown}")
    for index, tier in enumerate(map(mapping, sequence(mapping(spec.get("topology")).get("tiers")))):
        yield from _tier(declaration, tier, ("spec", "topology", "tiers", index))


def _tier(declaration: Declaration, tier: Mapping[str, Any], at: Pointer) -> Iterator[Problem]:
    pattern, template = tier.get("pattern"), tier.get("nameTemplate")
    if isinstance(pattern, str) and (fault := patterns.fault(pattern)):
        message = f"{show(pattern)} is no RE2 expression: {fault.replace('invalid', 'bad')}"
        yield Problem(declaration, (*at, "pattern"), message, "write Go's syntax, the first group is the domain's name")
    rest = template.replace("{tier}", "").replace("{domain}", "") if isinstance(template, str) else ""
    if "{" in rest or "}" in rest:
        message = f"{show(template)} has braces around something else"
        yield Problem(declaration, (*at, "nameTemplate"), message, "only {tier} and {domain} are filled in")


_TEXTS = {"Environment": _environment, "TrainingJob": training_job_checks.check}
