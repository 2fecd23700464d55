"""From two compilations to the plan: all that differs, the risks, and one word for it."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from basalt import judging
from basalt.cluster.comparing import Change
from basalt.compiling import Compilation
from basalt.findings import Finding, Severity, fails
from basalt.objects import KubeObject
from basalt.plan.domains import Resized
from basalt.plan.entitlements import Move
from basalt.plan.objects import Changed, Difference
from basalt.plan.pair import Pair
from basalt.plan.preemption import Edges
from basalt.plan.turns import Turn
from basalt.pointers import Pointer, render
from basalt.reporting import json_format
from basalt.views import sensitive

_HIDDEN = "***"


class State(enum.StrEnum):
    """What a plan comes to, from the mildest to the worst."""

    NONE = "none"
    SAFE = "safe"
    DISRUPTIVE = "disruptive"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class Plan:
    """What changes from the base to the head. errors are those of the head, which alone block it. unknown is why the
    base, or the head, is not known as a whole, None where it is; of a head that is not nothing else is told."""

    base: str
    head: str
    objects: Difference = field(default_factory=Difference)
    jobs: tuple[Turn, ...] = ()
    queues: tuple[Move, ...] = ()
    preemption: Edges = field(default_factory=Edges)
    domains: tuple[Resized, ...] = ()
    risks: tuple[Finding, ...] = ()
    errors: tuple[Finding, ...] = ()
    base_unknown: str | None = None
    head_unknown: str | None = None

    @property
    def verdict(self) -> State:
        if self.errors or fails(self.risks, strict=False):
            return State.BLOCKED
        if fails(self.risks, strict=True):
            return State.DISRUPTIVE
        parts = (*self.objects, self.jobs, self.queues, *self.preemption, self.domains, self.risks, self.base_unknown)
        return State.SAFE if any(parts) else State.NONE

    def as_json(self) -> dict[str, Any]:
        """The form that the contract gives it."""
        return {
            "base": self.base,
            "head": self.head,
            "verdict": self.verdict.value,
            "objects": {
                "add": [json_format.ref(each.ref) for each in self.objects.added],
                "change": [_changed(each) for each in self.objects.changed],
                "replace": [_changed(each) for each in self.objects.replaced],
                "remove": [json_format.ref(each.ref) for each in self.objects.removed],
            },
            "jobs": [_turn(each) for each in self.jobs],
            "queues": [_move(each) for each in self.queues],
            "preemption": {name: [list(pair) for pair in pairs] for name, pairs in self.preemption._asdict().items()},
            "domains": [each._asdict() for each in self.domains],
            "risks": [json_format.finding(each) for each in self.risks],
        }


def compare(base: Compilation, head: Compilation) -> Plan:
    """The plan that leads from the base to the head. A base that cannot be read as a whole counts with what could be
    read of it; of such a head only its errors are told."""
    errors = tuple(each for each in head.findings if each.severity is Severity.ERROR and not each.waived)
    if head.index.broken is not None:
        return Plan(base.name, head.name, errors=errors, head_unknown=head.index.broken)
    pair = Pair(base.index, head.index)
    return Plan(
        base.name,
        head.name,
        pair.objects,
        pair.turned,
        pair.moves,
        pair.preemption,
        pair.resized,
        judging.risks(pair),
        errors,
        base.index.broken,
    )


def shown_values(each: Changed, change: Change) -> tuple[Any, Any]:
    """The values before and after, without what may be a secret."""
    return _shown(each.base, change.pointer, change.before), _shown(each.head, change.pointer, change.after)


def _shown(declared: KubeObject, pointer: Pointer, value: Any) -> Any:
    if value is not None and (sensitive.is_at(declared.value, pointer) or sensitive.is_secret(declared.value)):
        return _HIDDEN
    return _without_secrets(declared.value, pointer, value)


def _without_secrets(whole: Any, at: Pointer, value: Any) -> Any:
    """The value with every secret in it hidden: by the names around it, and by its form."""
    if isinstance(value, Mapping):
        return {key: _without_secrets(whole, (*at, key), child) for key, child in value.items()}
    if isinstance(value, list):
        return [_without_secrets(whole, (*at, index), child) for index, child in enumerate(value)]
    if value is not None and sensitive.is_at(whole, at) and sensitive.is_literal(value):
        return _HIDDEN
    if not isinstance(value, str):
        return value
    return "\n".join(_HIDDEN if sensitive.is_in_line(line) else line for line in value.split("\n"))


def _changed(each: Changed) -> dict[str, Any]:
    return {**json_format.ref(each.head.ref), "changes": [_change(each, change) for change in each.changes]}


def _change(each: Changed, change: Change) -> dict[str, Any]:
    before, after = shown_values(each, change)
    return {"pointer": render(change.pointer), "before": before, "after": after}


def _turn(each: Turn) -> dict[str, Any]:
    before, after = each.states
    return {
        "namespace": each.key.namespace,
        "name": each.key.name,
        "before": before and before.value,
        "after": after and after.value,
        "reason": each.reason,
    }


def _move(each: Move) -> dict[str, Any]:
    before, after = each.shown
    return {"name": each.queue, "resource": each.resource, "field": each.field, "before": before, "after": after}


def counts(plan: Plan) -> Mapping[str, int]:
    """How many objects come, change, are replaced and go."""
    parts: Sequence[tuple[str, Sequence[Any]]] = (
        ("added", plan.objects.added),
        ("changed", plan.objects.changed),
        ("replaced", plan.objects.replaced),
        ("removed", plan.objects.removed),
    )
    return {name: len(part) for name, part in parts}
