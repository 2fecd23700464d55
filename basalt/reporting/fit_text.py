"""Verdicts as people read them: one line a job, its reason and its way out under it."""

from collections.abc import Iterable, Sequence

from basalt.fit.losing import Fall
from basalt.fit.surviving import Survival
from basalt.fit.verdicts import State, Verdict, summary
from basalt.names import counted
from basalt.reporting.text import Paint, printable

_COLOURS = {State.FITS: "32", State.CONTENDED: "33", State.NEVER: "31", State.UNKNOWN: "36"}
_NODES = 8  # shown of a placement


def report(verdicts: Sequence[Verdict], survivals: Iterable[Survival], paint: Paint, *, quiet: bool) -> str:
    """A line for each job; under it the reason and the way out, and whether it survives what it must."""
    survived = {each.job.key: each.text for each in survivals}
    lines: list[str] = []
    for verdict in verdicts:
        lines.extend(_lines(verdict, paint))
        if (text := survived.get(verdict.job.key)) is not None:
            lines.append(f"  {printable(text)}")
    if not quiet:
        counts = summary(verdicts)
        found = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        lines.append(f"{counted(len(verdicts), 'job')}: {found}" if verdicts else "no jobs")
    return "".join(f"{line}\n" for line in lines)


def falls(found: Sequence[Fall], tier: str, paint: Paint) -> str:
    """The jobs that do not stand the loss of some domain, each with its reason."""
    lines = []
    for each in found:
        what = f"{each.before.state} -> {each.after.state}"
        reason = each.after.reason.message if each.after.reason else ""
        lines.append(
            f"without {paint.bold(printable(each.domain))}: {printable(f'{each.after.job.key} {what}: {reason}')}"
        )
    lines.append(f"{counted(len(found), 'verdict')} worse without any one domain of tier {printable(tier)}")
    return "".join(f"{line}\n" for line in lines)


def _lines(verdict: Verdict, paint: Paint) -> list[str]:
    job = verdict.job
    of = (
        f"{job.gang.minimum} of {counted(job.pods, 'pod')}" if job.gang.minimum < job.pods else counted(job.pods, "pod")
    )
    name = paint.bold(printable(f"{job.key.kind} {job.key}"))
    lines = [f"{name} {paint(verdict.state.value, '1', _COLOURS[verdict.state])}: {printable(_what(verdict, of))}"]
    if verdict.reason is not None and verdict.state is not State.UNKNOWN:
        lines.append(f"  {printable(verdict.reason.message)} {paint.dim(f'[{verdict.reason.rule}]')}")
    if verdict.change:
        lines.append(f"  hint: {printable(verdict.change)}")
    return lines


def _what(verdict: Verdict, of: str) -> str:
    match verdict.state:
        case State.NEVER:
            return f"{of} must start together, and cannot"
        case State.UNKNOWN:
            assert verdict.reason is not None
            return verdict.reason.message
    where = f" in {verdict.domain}" if verdict.domain else ""
    nodes = [f"{node} {count}" for node, count in verdict.placement.items()]
    shown = ", ".join(nodes[:_NODES]) + (f" and {len(nodes) - _NODES} more nodes" if len(nodes) > _NODES else "")
    alone = "alone, it would run with " if verdict.state is State.CONTENDED else ""
    tight = "; tight: the scheduler may not find it" if verdict.tight else ""
    return f"{alone}{of}{where}: {shown}{tight}"
