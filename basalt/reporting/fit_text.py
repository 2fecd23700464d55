"""Verdicts as people read them: one line a job, its reason and its way out under it."""

from collections.abc import Iterable, Mapping, Sequence

from basalt.fit.beside import Beside
from basalt.fit.losing import Fall
from basalt.fit.surviving import Survival
from basalt.fit.verdicts import State, Verdict, summary
from basalt.names import counted
from basalt.reporting.text import Paint, printable

COLOURS = {State.FITS: "32", State.CONTENDED: "33", State.NEVER: "31", State.UNKNOWN: "36"}
_NODES = 8  # shown of a placement
_RUNNING = 10  # shown of what runs now


def report(
    verdicts: Sequence[Verdict],
    survivals: Iterable[Survival],
    paint: Paint,
    *,
    quiet: bool,
    now: Beside | None = None,
) -> str:
    """A line for each job; under it the reason and the way out, and whether it survives what it must; now is what runs,
    where that is known."""
    survived = {each.job.key: each.text for each in survivals}
    lines: list[str] = []
    for verdict in verdicts:
        lines.extend(_lines(verdict, paint, now))
        if (text := survived.get(verdict.job.key)) is not None:
            lines.append(f"  {printable(text)}")
    if not quiet:
        lines += _running(now, paint) if now is not None else []
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


def _running(now: Beside, paint: Paint) -> list[str]:
    """What runs now: what Volcano has placed one by one, the rest as a sum."""
    placed = [each for each in now.places if each.group.queue is not None]
    others = [each.group.nodes for each in now.places if each.group.queue is None]
    lines = [f"{paint.bold('runs now')}: {_pods(each.group.nodes for each in now.places)}"]
    for each in placed[:_RUNNING]:
        where = f" in {each.domain}" if each.domain else ""
        what = f"{each.group.key}: {_pods([each.group.nodes])}{where}: {_shown(each.group.nodes)}"
        lines.append(f"  {printable(f'{what} (queue {each.group.queue})')}")
    if len(placed) > _RUNNING:
        rest = [each.group.nodes for each in placed[_RUNNING:]]
        lines.append(f"  and {len(rest)} more: {_pods(rest)}")
    if others:
        lines.append(f"  in no queue: {_pods(others)}")
    return lines


def _pods(groups: Iterable[Mapping[str, int]]) -> str:
    every = list(groups)
    nodes = {node for each in every for node in each}
    pods = counted(sum(sum(each.values()) for each in every), "pod")
    return f"{pods} on {counted(len(nodes), 'node')}" if nodes else "nothing"


def _lines(verdict: Verdict, paint: Paint, now: Beside | None) -> list[str]:
    job = verdict.job
    of = (
        f"{job.gang.minimum} of {counted(job.pods, 'pod')}" if job.gang.minimum < job.pods else counted(job.pods, "pod")
    )
    name = paint.bold(printable(f"{job.key.kind} {job.key}"))
    runs = "runs now, " if now is not None and job.key in now.kept else ""
    state = paint(verdict.state.value, "1", COLOURS[verdict.state])
    lines = [f"{name} {state}: {runs}{printable(_what(verdict, of))}"]
    if now is not None and job.key in now.moved:
        lines.append(f"  runs now, and is judged as if it did not: {printable(now.moved[job.key])}")
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
    alone = "alone, it would run with " if verdict.state is State.CONTENDED else ""
    tight = "; tight: the scheduler may not find it" if verdict.tight else ""
    return f"{alone}{of}{where}: {_shown(verdict.placement)}{tight}"


def _shown(placement: Mapping[str, int]) -> str:
    nodes = [f"{node} {count}" for node, count in placement.items()]
    return ", ".join(nodes[:_NODES]) + (f" and {len(nodes) - _NODES} more nodes" if len(nodes) > _NODES else "")
