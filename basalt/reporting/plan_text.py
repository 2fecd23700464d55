"""A plan as people read it: the verdict, what it means for scheduling, then the objects."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from basalt.cluster.comparing import Change
from basalt.findings import Finding
from basalt.names import counted, listed
from basalt.objects import KubeObject
from basalt.plan.comparing import Plan, State, counts, shown_values
from basalt.plan.objects import Changed
from basalt.plan.turns import Turn
from basalt.pointers import dotted
from basalt.reporting import text
from basalt.reporting.fit_text import COLOURS as VERDICTS
from basalt.reporting.text import LineOf, Paint, printable

_COLOURS = {State.NONE: "32", State.SAFE: "32", State.DISRUPTIVE: "33", State.BLOCKED: "31"}
_ADDED, _CHANGED, _REPLACED, _REMOVED = "32", "33", "35", "31"
_CHANGES = 12  # shown of one object
_PAIRS = 12  # shown of a list of preemption
_LONGEST = 60  # characters of a value


def report(plan: Plan, of_base: LineOf, of_head: LineOf, paint: Paint, *, quiet: bool) -> str:
    """The verdict, then a section for each thing that differs; of_base and of_head give the lines of their files."""
    sections = (
        ("verdicts", _turns(plan, paint)),
        ("entitlements", _moves(plan)),
        ("preemption", _edges(plan)),
        ("domains", _domains(plan)),
        ("risks", _risks(plan, of_base, of_head, paint)),
        ("objects", _objects(plan, paint)),
    )
    lines = [f"{paint(plan.verdict.value, '1', _COLOURS[plan.verdict])}: {printable(_summary(plan))}"]
    for title, section in sections:
        found = list(section)
        lines += [f"{paint.bold(title)}:", *found] if found else []
    if not quiet and plan.verdict is not State.NONE and plan.head_unknown is None:
        words = ", ".join(f"{count} {what}" for what, count in counts(plan).items() if count)
        lines.append(f"objects: {words}" if words else "no object changes")
    return "".join(f"{line}\n" for line in lines)


def _summary(plan: Plan) -> str:
    step = f"{plan.base} -> {plan.head}"
    if plan.head_unknown is not None:
        return f"{step}: {plan.head} is not known as a whole: {plan.head_unknown}"
    if plan.verdict is State.NONE:
        return f"{step}: nothing changes"
    errors = f"{plan.head} has {counted(len(plan.errors), 'error')}" if plan.errors else ""
    open_risks = [each for each in plan.risks if not each.waived]
    rules = listed(f"{rule} {count}" for rule, count in _by_rule(open_risks).items())
    risks = f"{counted(len(open_risks), 'risk')} ({rules})" if open_risks else "no risks"
    return f"{step}: {', '.join(filter(None, (errors, risks)))}"


def _by_rule(risks: Iterable[Finding]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in risks:
        found[each.rule] = found.get(each.rule, 0) + 1
    return dict(sorted(found.items()))


def _turns(plan: Plan, paint: Paint) -> Iterator[str]:
    for each in plan.jobs:
        states = " -> ".join(paint(state.value, "1", VERDICTS[state]) if state else "absent" for state in each.states)
        reason = printable(f": {each.reason}") if each.reason else ""
        yield f"  {printable(_job(each))} {states}{reason}"


def _job(each: Turn) -> str:
    return f"{each.key.kind} {each.key}"


def _moves(plan: Plan) -> Iterator[str]:
    for each in plan.queues:
        before, after = (shown or "unset" for shown in each.shown)
        yield printable(f"  queue {each.queue} {each.field} {each.resource}: {before} -> {after}")


def _edges(plan: Plan) -> Iterator[str]:
    for pairs, words in ((plan.preemption.new, "may evict"), (plan.preemption.gone, "may no longer evict")):
        for one, other in pairs[:_PAIRS]:
            yield printable(f"  pods of {one} {words} those of {other}")
        if len(pairs) > _PAIRS:
            yield f"  and {len(pairs) - _PAIRS} more pairs of classes whose pods {words} one another"


def _domains(plan: Plan) -> Iterator[str]:
    for each in plan.domains:
        tier = f" ({each.tier})" if each.tier is not None else ""
        yield printable(f"  {each.name}{tier}: {each.before} -> {counted(each.after, 'node')}")


def _risks(plan: Plan, of_base: LineOf, of_head: LineOf, paint: Paint) -> Iterator[str]:
    removed = {each.ref for each in plan.objects.removed}
    for each in plan.risks:
        line_of = of_base if each.object in removed else of_head
        yield from text.finding(each, line_of, paint).split("\n")


def _objects(plan: Plan, paint: Paint) -> Iterator[str]:
    yield from (_object("+", each, paint, _ADDED) for each in plan.objects.added)
    for each in plan.objects.changed:
        yield _object("~", each.head, paint, _CHANGED)
        yield from _changes(each)
    for each in plan.objects.replaced:
        yield f"{_object('-/+', each.head, paint, _REPLACED)}, replaced"
        yield from _changes(each)
    yield from (_object("-", each, paint, _REMOVED) for each in plan.objects.removed)


def _object(sign: str, declared: KubeObject, paint: Paint, colour: str) -> str:
    return f"  {paint(sign, '1', colour)} {printable(str(declared.ref))}"


def _changes(each: Changed) -> Iterator[str]:
    refused = set(map(_at, each.refused))
    for change in each.changes[:_CHANGES]:
        before, after = map(_value, shown_values(each, change))
        why = " (not in place)" if _at(change) in refused else ""
        yield printable(f"      {dotted(change.pointer)}: {before} -> {after}{why}")
    if len(each.changes) > _CHANGES:
        yield f"      and {len(each.changes) - _CHANGES} more"


def _at(change: Change) -> tuple[str | int, ...]:
    return change.pointer


def _value(value: Any) -> str:
    if value is None:
        return "unset"
    shown = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
