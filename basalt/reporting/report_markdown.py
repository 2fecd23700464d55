"""The report as a comment of a pull request: a hidden marker, the verdict in one line, then what may be folded away.

Nothing in it depends on the time or the compiler's version, so that a comment changes only where the facts do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.names import counted
from basalt.reporting.markdown_text import code, marker, prose
from basalt.reporting.report_facts import (
    edges,
    headline,
    in_order_of_concern,
    in_order_of_severity,
    is_worse,
    job_name,
    largest,
    nodes_each,
    object_name,
    turn,
    turns,
)

LIMIT = 65_536  # of a comment on GitHub, in characters; kept in bytes, which are never fewer
_SIGNS = {"passes": "✅", "none": "✅", "safe": "✅", "disruptive": "⚠️", "fails": "❌", "blocked": "❌"}
_SEVERITIES = {"error": "❌ error", "warning": "⚠️ warning", "info": "info"}
_STATES = {"fits": "✅ fits", "contended": "⏳ contended", "never": "❌ never", "unknown": "❔ unknown"}
_NODES = 6  # of a placement

Facts = Mapping[str, Any]


class Section(NamedTuple):
    """One table: its title, what its columns are called, its rows, whether it is shown unfolded."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    is_open: bool = False


def report(facts: Facts) -> str:
    """The comment. Where it would be too long, the least important rows are left out, and counted."""
    head = f"{marker(facts['environment'])}\n{_headline(facts)}\n"
    sections = [section for section in _sections(facts) if section.rows]
    return head + "".join(_fitting(sections, LIMIT - _size(head)))


def _headline(facts: Facts) -> str:
    verdict = facts["verdict"]
    against = f" against {code(facts['base'], 100)}" if facts["base"] is not None else ""
    return f"### {_SIGNS[verdict]} {code(facts['environment'], 100)}{against}: **{verdict}**: {prose(headline(facts))}"


def _fitting(sections: Sequence[Section], room: int) -> list[str]:
    """The sections in their order, cut from the end of the last one on until they fit."""
    keep = [len(section.rows) for section in sections]
    size = sum(_size(_shown(section, number)) for section, number in zip(sections, keep, strict=True))
    for place in reversed(range(len(sections))):
        section = sections[place]
        note = _size(_shown(section, 0))  # never smaller than what title, note and folds need besides rows
        while keep[place] and size > room - note:
            keep[place] -= 1
            size -= _size(section.rows[keep[place]]) + 1
    return [_shown(section, number) for section, number in zip(sections, keep, strict=True)]


def _size(text: str) -> int:
    return len(text.encode())


def _shown(section: Section, number: int) -> str:
    """The section with its first so many rows."""
    left = len(section.rows) - number
    table = [f"| {' | '.join(section.columns)} |", "|---" * len(section.columns) + "|", *section.rows[:number]]
    lines = [
        *(table if number else []),
        *(["", f"{counted(left, 'row')} left out: too long for a comment"] * bool(left)),
    ]
    if section.is_open:
        return "\n".join(["", f"#### {section.title}", "", *lines, ""])
    return "\n".join(["", f"<details><summary>{section.title}</summary>", "", *lines, "", "</details>", ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _sections(facts: Facts) -> Iterator[Section]:
    """All of them, the most important first."""
    plan = facts["plan"]
    if plan is not None:
        yield from _changes(plan)
    yield _findings(facts["findings"])
    yield _jobs(facts["jobs"])
    if plan is not None:
        yield _objects(plan["objects"])
    yield from _surroundings(facts)


def _changes(plan: Facts) -> Iterator[Section]:
    """What the change means for scheduling."""
    turned = turns(plan)
    worse = sum(map(is_worse, turned))
    title = f"Verdicts that turn: {len(turned)}" + (f", {worse} for the worse" if worse else "")
    rows = tuple(_row(code(job_name(job)), _turn(job), prose(job.get("reason") or "")) for job in turned)
    yield Section(title, ("job", "verdict", "why"), rows, is_open=True)
    yield Section(f"Risks: {len(plan['risks'])}", *_of_findings(plan["risks"]), is_open=True)
    replaced = plan["objects"]["replace"]
    rows = tuple(_row(code(object_name(each)), _pointers(each)) for each in replaced)
    yield Section(f"Replaced, not updated: {len(replaced)}", ("object", "because of"), rows, is_open=True)
    rows = tuple(
        _row(
            code(each["name"]),
            code(each["field"]),
            code(each["resource"]),
            _amount(each["before"]),
            _amount(each["after"]),
        )
        for each in plan["queues"]
    )
    yield Section(
        f"Entitlements that move: {len(rows)}", ("queue", "field", "resource", "before", "after"), rows, is_open=True
    )
    rows = tuple(_row(state, code(high), code(low)) for state, high, low in edges(plan))
    yield Section(f"Preemption: {len(rows)}", ("", "a pod of", "may evict one of"), rows, is_open=True)
    rows = tuple(
        _row(code(each["name"]), code(str(each["tier"] or "")), _amount(each["before"]), _amount(each["after"]))
        for each in plan["domains"]
    )
    yield Section(f"Domains that change: {len(rows)}", ("domain", "tier", "nodes before", "after"), rows, is_open=True)


def _turn(job: Facts) -> str:
    return f"**{prose(turn(job))}**" if is_worse(job) else prose(turn(job))


def _amount(value: Any) -> str:
    return "none" if value is None else code(str(value), 100)


def _pointers(changed: Facts) -> str:
    pointers = [code(each["pointer"] or "/", 100) for each in changed.get("changes", ())]
    return ", ".join(pointers[:_NODES]) + (f" and {len(pointers) - _NODES} more" if len(pointers) > _NODES else "")


def _of_findings(findings: Sequence[Facts]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns and rows."""
    return ("severity", "where", "what", "rule"), tuple(map(_finding, in_order_of_severity(findings)))


def _finding(found: Facts) -> str:
    severity = "waived" if found["waived"] else _SEVERITIES[found["severity"]]
    source = found["source"]
    about = [code(object_name(found["object"]))] if found["object"] else []
    about += [code(found["pointer"])] if found["pointer"] else []
    what = ": ".join(filter(None, (" ".join(about), prose(found["message"]))))
    hint = f"<br>hint: {prose(found['hint'])}" if found["hint"] else ""
    return _row(severity, code(f"{source['file']}:{source['line']}", 200), what + hint, code(found["rule"]))


def _findings(findings: Sequence[Facts]) -> Section:
    is_open = any(found["severity"] == "error" and not found["waived"] for found in findings)
    return Section(f"Findings: {len(findings)}", *_of_findings(findings), is_open=is_open)


def _jobs(jobs: Sequence[Facts]) -> Section:
    rows = tuple(_row(*_job(job)) for job in in_order_of_concern(jobs))
    return Section(f"Jobs: {len(jobs)}", ("verdict", "job", "queue", "gang", "where, or why not"), rows)


def _job(job: Facts) -> Iterator[str]:
    yield _STATES[job["verdict"]] + (" (tight)" if job["tight"] else "")
    yield f"{job['kind']} {code(job_name(job))}"
    yield code(job["queue"] or "")
    yield f"{job['minAvailable']} of {counted(job['pods'], 'pod')}"
    yield why_or_where(job, code, prose)


def why_or_where(job: Facts, name: Callable[[str], str], words: Callable[[str], str]) -> str:
    """The place of a job that fits; for others the reason and the way out."""
    if job["verdict"] == "fits":
        nodes = [f"{node} {count}" for node, count in job["placement"].items()]
        rest = f" and {len(nodes) - _NODES} more nodes" if len(nodes) > _NODES else ""
        where = f"{name(job['domain'])}: " if job["domain"] else ""
        return f"{where}{words(', '.join(nodes[:_NODES]) + rest)}"
    hint = f"<br>hint: {words(job['change'])}" if job["change"] else ""
    return words(job["reason"]["message"]) + hint if job["reason"] else ""


def _objects(objects: Facts) -> Section:
    """What is added, changed and removed; replacements stand above."""
    rows = [(what, each) for what in ("remove", "change", "add") for each in objects[what]]
    counts = ", ".join(f"{len(objects[what])} {done}" for what, done in _DONE.items() if objects[what])
    shown = tuple(_row(_DONE[what], code(object_name(each)), _difference(each)) for what, each in rows)
    return Section(f"Objects: {counts or 'no change'}", ("", "object", "what"), shown)


_DONE = {"add": "added", "change": "changed", "replace": "replaced", "remove": "removed"}


def _difference(changed: Facts) -> str:
    """The first few values that differ."""
    found = [
        f"{code(each['pointer'] or '/', 100)}: {_amount(each['before'])} → {_amount(each['after'])}"
        for each in changed.get("changes", ())
    ]
    return "<br>".join([*found[:_NODES], *([f"and {len(found) - _NODES} more"] * (len(found) > _NODES))])


def _surroundings(facts: Facts) -> Iterator[Section]:
    """The topology, what was compiled, what was not judged."""
    topology = facts["topology"]
    nodes = "no node inventory" if topology["nodes"] is None else counted(topology["nodes"], "node")
    yield Section(
        f"Topology: {nodes}", ("tier", "domains", "nodes each", "largest gang"), tuple(_tiers(topology["tiers"]))
    )
    counts = facts["objects"]
    rows = tuple(_row(code(kind), str(count)) for kind, count in sorted(counts.items()))
    yield Section(f"Compiled: {counted(sum(counts.values()), 'object')}", ("kind", "objects"), rows)
    rows = tuple(_row(code(each["rule"]), prose(each["reason"])) for each in facts["skipped"])
    yield Section(f"Not, or not wholly, judged: {counted(len(rows), 'rule')}", ("rule", "why"), rows)


def _tiers(tiers: Iterable[Facts]) -> Iterator[str]:
    for tier in tiers:
        name = " ".join(filter(None, (str(tier["tier"]), tier["name"])))
        yield _row(code(name), str(tier["domains"]), nodes_each(tier), prose(largest(tier)))
