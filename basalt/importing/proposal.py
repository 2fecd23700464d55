"""A proposed environment: the documents, as values, and what they would make. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from basalt import deriving
from basalt.api.kinds import Catalog
from basalt.api.schemas import show
from basalt.cluster.comparing import Change
from basalt.findings import Problem, Ref
from basalt.gathering import document_checks
from basalt.gathering.documents import API_VERSION, Declaration, Document
from basalt.loading.nodes import Node
from basalt.loading.sources import SourceFile
from basalt.objects import KubeObject
from basalt.plan.objects import stored_changes
from basalt.pointers import dotted
from basalt.views import sensitive

_NOWHERE = SourceFile(Path("proposal.yaml"), "proposal.yaml", b"")
Identity = tuple[str, str, str, str]  # API group, kind, namespace, name
Part = tuple[str, ...]  # a part of the proposal that may be taken back: ("queues", name), ("Team", name), ...
_LONGEST = 60  # characters of a value
JobKey = tuple[str, str]  # namespace, name


def identity(ref: Ref) -> Identity:
    return ref.group, ref.kind, ref.namespace or "default", ref.name


@dataclass(frozen=True)
class Proposal:
    """Documents as values: the Environment's spec, the Teams' specs by name, whole TrainingJobs."""

    name: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    teams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    jobs: Mapping[JobKey, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, Any]:
        spec = {key: part for key, part in self.spec.items() if part}
        return _document("Environment", self.name, spec)

    def values(self) -> Iterator[dict[str, Any]]:
        yield self.environment
        yield from (_document("Team", name, spec) for name, spec in self.teams.items())
        yield from map(dict, self.jobs.values())

    def without(self, part: Part) -> "Proposal":
        if part[0] == "Team":
            return replace(self, teams={name: each for name, each in self.teams.items() if name != part[1]})
        if part[0] == "Teams":
            return replace(self, teams={})
        if part[0] == "TrainingJob":
            return replace(self, jobs={key: each for key, each in self.jobs.items() if key != part[1:]})
        kept = {key: each for key, each in self.spec.items() if key != part[0]}
        if len(part) > 1:
            kept[part[0]] = {key: each for key, each in self.spec[part[0]].items() if key != part[1]}
        return replace(self, spec=kept)


def _document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


class Fault(NamedTuple):
    """A part of a proposal that must not stay, and why."""

    part: Part
    reason: str
    of: Identity | None = None  # the object that the part does not make, None where it is the part's own form


class Made(NamedTuple):
    """What a proposal makes: the objects that are exactly those wanted, those that nobody had, and the faults."""

    covered: dict[Identity, Part]
    added: list[KubeObject]
    faults: list[Fault]


class Wanted(NamedTuple):
    """What is there: the objects, of which only those of one identity may be made, the nodes, and what is known of the
    kinds."""

    objects: Mapping[Identity, KubeObject]
    nodes: tuple[Node, ...]
    catalog: Catalog


def made(proposal: Proposal, wanted: Wanted) -> Made:
    """Compiles the proposal, and compares."""
    declarations = tuple(map(declared, proposal.values()))
    if faults := [each for declaration in declarations for each in _form(declaration)]:
        return Made({}, [], faults)
    found = Made({}, [], [])
    derived = deriving.derive(declarations[0], declarations, lambda: wanted.nodes)
    for each in chain(derived, deriving.derive_hyper_nodes(declarations[0], wanted.nodes)):
        key, part = identity(each.ref), _part(each)
        there = wanted.objects.get(key)
        difference = differs(each, there, wanted.catalog) if there is not None else None
        if there is not None and difference is None:
            found.covered[key] = part
        elif part == ("scheduler",) and there is None:
            found.added.append(each)
        elif part == ("scheduler",):
            if "scheduler" in proposal.spec.get("volcano", {}) and each.ref.kind == "ConfigMap":
                found.faults.append(Fault(("volcano", "scheduler"), difference or "", key))
        else:
            found.faults.append(Fault(part, difference or f"{each.ref} would be new", key if there else None))
    return found


def declared(value: Mapping[str, Any]) -> Declaration:
    document = dict(value)
    return Declaration(document, (Document(_NOWHERE, 0, document),))


def form_faults(value: Mapping[str, Any]) -> list[Fault]:
    """What is wrong with a document by itself."""
    return list(_form(declared(value)))


def differs(generated: KubeObject, there: KubeObject, catalog: Catalog) -> str | None:
    """What the object says that the generated one does not, in a few words; None where they are the same."""
    changes = stored_changes(there.value, generated.value, there.ref, catalog)
    if not changes:
        return None
    more = f", and {len(changes) - 1} more" if len(changes) > 1 else ""
    first = next((each for each in changes if "tasks" in each.pointer), changes[0])  # a patch may say the others
    return f"{_told(_innermost(first), there)}{more}"


def _innermost(change: Change) -> Change:
    """The first value of a map that is only on one side."""
    pointer, before, after = change
    for value, other in ((before, after), (after, before)):
        if isinstance(value, Mapping) and value and other is None:
            key, inner = next(iter(value.items()))
            deeper = Change((*pointer, key), inner, None) if value is before else Change((*pointer, key), None, inner)
            return _innermost(deeper)
    return change


def _told(change: Change, there: KubeObject) -> str:
    at, is_secret = dotted(change.pointer), sensitive.is_at(there.value, change.pointer)
    before, after = ("***" if is_secret else _shown(each) for each in (change.before, change.after))
    if change.after is None:
        return f"{at}: {before} has no place in a document"
    if change.before is None:
        return f"a document adds {at}: {after}"
    return f"{at} is {before}, a document makes it {after}"


def _shown(value: Any) -> str:
    text = str(show(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _form(declaration: Declaration) -> Iterator[Fault]:
    """What is wrong with the document itself, by the part that is to blame."""
    for problem in document_checks.check(declaration).problems:
        yield Fault(_blamed(declaration, problem), _said(problem))


def _said(problem: Problem) -> str:
    return f"{dotted(problem.pointer)}: {problem.message}"


def _blamed(declaration: Declaration, problem: Problem) -> Part:
    if declaration.kind == "Environment":
        steps = tuple(map(str, problem.pointer[1:3]))
        return steps if steps[:1] != ("topology",) else steps[:1]
    return _whole(declaration)


def _whole(declaration: Declaration) -> Part:
    ref = declaration.ref
    if ref is None or declaration.kind == "Team":
        return ("Team", declaration.name)
    return ("TrainingJob", ref.namespace or "", ref.name)


def _part(generated: KubeObject) -> Part:
    """The part of the proposal that an object follows from."""
    written = generated.written
    if isinstance(written, Declaration) and written.kind != "Environment":
        return _whole(written)
    if generated.module in ("queues", "priorities"):
        return (generated.module, generated.name)
    return {"topology": ("topology",), "tenancy": ("Teams",)}.get(str(generated.module), ("scheduler",))
