"""What Basalt says about the resources of a stack. Pure but for the files that the configuration names.

A fact that the stack has nothing of is unknown, as in a folder of plain manifests. A value that only the update will
tell, or that is a secret, is unknown too: what is said does not depend on it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from basalt.compiling import compile_documents, compile_folder
from basalt.findings import Finding, Ref, Severity
from basalt.gathering.documents import API_VERSION, GROUP, Document
from basalt.gathering.expanding import expand
from basalt.loading.files import discover
from basalt.loading.sources import Misuse, SourceFile, TextDocument
from basalt.pointers import Pointer
from basalt.reporting import text
from policies import manifests, unknowns
from policies.manifests import Resource

_CONFIGURATION = "the policy pack's configuration"
_VERSIONS = ("kubernetes", "volcano")


class Config(NamedTuple):
    """What a stack does not tell by itself: the folder of the environment that it is, which tells all the rest, or
    files and folders with its nodes and with Guardrails, and versions."""

    environment: str = ""
    inventory: str = ""
    guardrails: str = ""
    kubernetes: str = ""
    volcano: str = ""


_NOTHING, _HERE = Config(), Path()


class Violation(NamedTuple):
    """A finding in the words of a policy; urn is "" where it is about no resource of the stack."""

    severity: Severity
    message: str
    urn: str


class _Declared(NamedTuple):
    """A resource as an object. named: how messages call it, where a finding about a file says path:line."""

    urn: str
    named: str
    value: dict[str, Any]
    unknown: tuple[Pointer, ...]

    @property
    def kind(self) -> tuple[str, str]:
        return self.value["apiVersion"].rpartition("/")[0], self.value["kind"]


def judge(resources: Iterable[Resource], config: Config = _NOTHING, root: Path = _HERE) -> list[Violation]:
    """Every violation that is not waived, those of the configuration's files first, then in the order of the resources.
    root: the folder that the configuration's paths begin at."""
    declared = [found for each in resources if (found := _declared(each)) is not None]
    try:
        ground = _ground(config, root)
        findings = _findings(declared, ground)
    except Misuse as misuse:
        return [Violation(Severity.ERROR, f"{misuse}; see {_CONFIGURATION}", "")]
    order = {each.urn: number for number, each in enumerate(declared, 1)}
    findings = sorted(findings, key=lambda found: order.get(found.source.file, 0))
    named = {each.urn: each.named for each in declared}
    return [_violation(each, named) for each in findings if not each.waived and _what(each) not in ground.waived]


def _declared(resource: Resource) -> _Declared | None:
    value = manifests.manifest(resource)
    if value is None or value["apiVersion"].startswith(f"{GROUP}/"):
        return None
    return _Declared(resource.urn, resource.name, value, tuple(unknowns.places(value)))


class _Ground(NamedTuple):
    """What the configuration adds: files, documents, and what the environment's own documents waive."""

    files: tuple[Path, ...]
    documents: tuple[Document, ...]
    waived: frozenset[tuple[str, Ref | None]]


def _what(found: Finding) -> tuple[str, Ref | None]:
    return found.rule, found.object


def _ground(config: Config, root: Path) -> _Ground:
    """Misuse where a path leads nowhere."""
    for path in filter(None, (config.environment, config.inventory, config.guardrails)):
        if not (root / path).exists():
            raise Misuse(f"no file or folder {root / path}")
    paths = [file for path in (config.inventory, config.guardrails) if path for file in discover(root / path)]
    waived: frozenset[tuple[str, Ref | None]] = frozenset()
    if config.environment:
        compilation = compile_folder(root / config.environment)
        paths = [*(file.path for file in compilation.files), *paths]
        waived = frozenset(_what(each) for each in compilation.findings if each.waived)
    return _Ground(tuple(dict.fromkeys(paths)), tuple(_versions(config)), waived)


def _findings(declared: Sequence[_Declared], ground: _Ground) -> Sequence[Finding]:
    """What holds whatever the unknown values will be. A kind is left out where others may depend on what is unknown of
    it: what a kind has of which there is no object is unknown, not absent. The rest is judged with several fillings."""

    def judged(values: Iterable[tuple[_Declared, dict[str, Any]]]) -> Sequence[Finding]:
        documents = [*ground.documents, *(each for pair in values for each in _documents(*pair))]
        return compile_documents("stack", documents, beside=ground.files, derives=False).findings

    partial = {each.kind for each in declared if any(not unknowns.is_own(each.value, at) for at in each.unknown)}
    left = [each for each in declared if each.kind not in partial]
    unknown = {each.urn: each.unknown for each in left if each.unknown}
    if not unknown:
        return judged((each, each.value) for each in left)
    first, *others = (judged((each, fill(each.value)) for each in left) for fill in unknowns.FILLINGS)
    common = frozenset.intersection(*(frozenset(map(_key, found)) for found in others))
    meant = (each for each in first if not any(_meet(at, each.pointer) for at in unknown.get(each.source.file, ())))
    return [each for each in meant if _key(each) in common]


def _key(found: Finding) -> tuple[object, ...]:
    return (found.rule, found.source.file, found.pointer, found.message)


def _meet(first: Pointer, second: Pointer) -> bool:
    """Whether one leads to the other, or to something around it."""
    length = min(len(first), len(second))
    return first[:length] == second[:length]


def _documents(declared: _Declared, value: dict[str, Any]) -> Iterator[Document]:
    """The object, or those of a list, with the resource in place of a file."""
    return expand(TextDocument(SourceFile(Path("resource"), declared.urn, b""), 0, value))


def _versions(config: Config) -> Iterator[Document]:
    """An Environment that tells the versions, where the configuration does."""
    spec = {product: {"version": version} for product in _VERSIONS if (version := getattr(config, product))}
    value = {"apiVersion": API_VERSION, "kind": "Environment", "metadata": {"name": "stack"}, "spec": spec}
    if spec:
        yield Document(SourceFile(Path("configuration"), _CONFIGURATION, b""), 0, value)


def _violation(found: Finding, named: Mapping[str, str]) -> Violation:
    is_of_resource = found.source.file in named
    hint = f"\nhint: {found.hint}" if found.hint else ""
    place = (
        "" if is_of_resource else f"{_CONFIGURATION}: " if found.source.file == _CONFIGURATION else f"{found.source}: "
    )
    message = f"{text.printable(f'{place}{text.said(found)} [{found.rule}]')}{hint}"
    for urn, name in named.items() if "urn:pulumi:" in message else ():
        message = message.replace(f"{urn}:1", name)
    return Violation(found.severity, message, found.source.file if is_of_resource else "")
