"""The report as one page that needs nothing else: no network, no scripts, its facts embedded as JSON.

The page's own Content-Security-Policy allows its style sheet, by its digest, and nothing more.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from basalt.names import counted, listed
from basalt.quantities import parse, show
from basalt.reporting.markup import Markup, joined, table, tag
from basalt.reporting.report_drawing import Gang, drawing, numbered
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
from basalt.reporting.report_style import STYLE

_ROWS = 1000  # of a table; the rest is counted
_NODES = 8  # of a placement
_CHANGES = 8  # of one object
_LONGEST = 1000  # text in the embedded facts
_TONES = {
    "passes": "good", "none": "good", "safe": "good", "disruptive": "mild", "fails": "bad", "blocked": "bad",
    "fits": "good", "contended": "mild", "unknown": "mild", "never": "bad",
    "error": "bad", "warning": "mild",
}  # fmt: skip

Facts = Mapping[str, Any]


def report(facts: Facts) -> str:
    """The page."""
    title = f"basalt report: {facts['environment']}"
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        tag("title", title),
        Markup(f"<style>{STYLE}</style>"),
    ]
    body = tag("body", tag("main", *_sections(facts)), _embedded(facts))
    return f'<!DOCTYPE html>\n<html lang="en">{tag("head", *head)}{body}</html>\n'


def _embedded(facts: Facts) -> Markup:
    """The facts as data: no text in them ends the element early."""
    written = json.dumps(_trimmed(facts), separators=(",", ":"))
    for letter in "<>&":
        written = written.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(f'<script type="application/json" id="basalt-report">{written}</script>')


def _trimmed(value: Any) -> Any:
    """The value with long texts and lists cut, as the page shows them."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
    if isinstance(value, Mapping):
        return {key: _trimmed(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_trimmed(each) for each in value[: 2 * _ROWS]]
    return value


def _sections(facts: Facts) -> Iterator[Markup]:
    plan = facts["plan"]
    gangs = numbered(facts["jobs"])
    yield _top(facts)
    yield _counts(facts)
    if plan is not None:
        yield from _changes(plan)
    yield _topology(facts)
    yield _section("jobs", f"Jobs: {len(facts['jobs'])}", _jobs(facts, gangs))
    yield _section("findings", f"Findings: {len(facts['findings'])}", _findings(facts["findings"]))
    if plan is not None:
        yield _objects(plan["objects"])
    yield _compiled(facts["objects"])
    yield _skipped(facts["skipped"])


def _section(name: str, title: str, *inner: str) -> Markup:
    return tag("section", tag("h2", title), *inner, id=name)


def _top(facts: Facts) -> Markup:
    verdict, base = facts["verdict"], facts["base"]
    against = [tag("span", "against ", tag("code", base), class_="lead")] if base is not None else []
    line = tag("strong", verdict, id="verdict")
    return tag(
        "header",
        tag(
            "div", tag("h1", facts["environment"]), *against, tag("span", "basalt report", class_="lead"), class_="top"
        ),
        tag("p", line, tag("span", f": {headline(facts)}"), class_=f"verdict {_TONES[verdict]}"),
    )


def _counts(facts: Facts) -> Markup:
    """The numbers that a reader looks for first."""
    found, states = facts["summary"], facts["verdicts"]
    shown = [(str(found["error"]), "errors", "bad"), (str(found["warning"]), "warnings", "mild")]
    shown += [(str(states[state]), state, _TONES[state]) for state in states if states[state] or state == "fits"]
    nodes = facts["topology"]["nodes"]
    shown += [(str(nodes), "nodes", "")] if nodes is not None else []
    shown += [(f"{free} of {offers}", f"{resource} free", "") for resource, free, offers in _accelerators(facts)]
    cards = (
        tag("li", tag("b", number, class_=tone if tone != "good" and number != "0" else None), what)
        for number, what, tone in shown
    )
    return tag("ul", *cards, class_="counts")


def _accelerators(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """What all drawn units offer and have left, but for CPU."""
    units = facts["occupancy"]["units"]
    for resource in sorted({name for unit in units for name in unit["offers"]} - {"cpu"}):
        free, offers = (sum(parse(unit[what].get(resource, "0")) or 0 for unit in units) for what in ("free", "offers"))
        yield resource, show(free, resource), show(offers, resource)


def _changes(plan: Facts) -> Iterator[Markup]:
    """What the change means for scheduling; what does not change is left out."""
    parts: list[Markup] = []
    turned = turns(plan)
    rows: Iterable[Iterable[str]] = (
        (tag("code", job_name(job)), _turn(job), job.get("reason") or "") for job in turned
    )
    parts += _listed(f"Verdicts that turn: {len(turned)}", ("job", "verdict", "why"), rows)
    parts += _listed_findings(f"Risks: {len(plan['risks'])}", plan["risks"])
    replaced = plan["objects"]["replace"]
    rows = ((tag("code", object_name(each)), _pointers(each)) for each in replaced)
    parts += _listed(f"Replaced, not updated: {len(replaced)}", ("object", "because of"), rows)
    fields = ("name", "field", "resource", "before", "after")
    rows = ([_amount(each[field]) for field in fields] for each in plan["queues"])
    parts += _listed(f"Entitlements that move: {len(plan['queues'])}", ("queue", *fields[1:]), rows)
    found = edges(plan)
    rows = ((state, tag("code", high), tag("code", low)) for state, high, low in found)
    parts += _listed(f"Preemption: {len(found)}", ("", "a pod of", "may evict one of"), rows)
    rows = ([_amount(each[field]) for field in ("name", "tier", "before", "after")] for each in plan["domains"])
    parts += _listed(f"Domains that change: {len(plan['domains'])}", ("domain", "tier", "nodes before", "after"), rows)
    yield _section("changes", "What the change means", *(parts or [tag("p", "Nothing changes for scheduling.")]))


def _listed(title: str, columns: Sequence[str], rows: Iterable[Iterable[str]]) -> list[Markup]:
    """A heading and a table, where there is anything in it."""
    shown = [*rows]
    return [tag("h3", title), _table(columns, shown)] if shown else []


def _table(columns: Sequence[str], rows: Sequence[Iterable[str]]) -> Markup:
    left = len(rows) - _ROWS
    rest = [tag("p", f"and {left} more", class_="note")] if left > 0 else []
    return joined([table(columns, rows[:_ROWS]), *rest])


def _listed_findings(title: str, findings: Sequence[Facts]) -> list[Markup]:
    return [tag("h3", title), _findings(findings)] if findings else []


def _turn(job: Facts) -> Markup:
    return tag("span", turn(job), class_="bad" if is_worse(job) else "good")


def _amount(value: Any) -> Markup:
    return tag("span", "none", class_="lead") if value is None else tag("code", str(value))


def _pointers(changed: Facts) -> Markup:
    pointers = [each["pointer"] or "/" for each in changed.get("changes", ())]
    return tag("code", listed(pointers, _CHANGES)) if pointers else Markup()


def _findings(findings: Sequence[Facts]) -> Markup:
    if not findings:
        return tag("p", "No findings.", class_="lead")
    return _table(("severity", "what", "rule"), [_finding(found) for found in in_order_of_severity(findings)])


def _finding(found: Facts) -> Markup:
    severity = "waived" if found["waived"] else found["severity"]
    source, about = found["source"], found["object"]
    where = " ".join(filter(None, (object_name(about) if about else "", found["pointer"])))
    what = [tag("code", where), ": "] if where else []
    hint = [tag("small", f"hint: {found['hint']}")] if found["hint"] else []
    place = tag("small", tag("code", f"{source['file']}:{source['line']}"))
    return tag(
        "tr",
        tag("td", severity, class_=f"state {_TONES.get(severity, '')}".strip()),
        tag("td", *what, found["message"], *hint, place),
        tag("td", tag("code", found["rule"])),
    )


def _topology(facts: Facts) -> Markup:
    topology, occupancy, plan = facts["topology"], facts["occupancy"], facts["plan"]
    if topology["nodes"] is None:
        return _section("topology", "Topology", tag("p", "No node inventory.", class_="lead"))
    each = "a node" if occupancy["drawn"] == "nodes" else "a domain: there are too many nodes to draw one by one"
    words = (
        f"The smallest boxes are {each}. A cell is one GPU, with the number of the gang that takes it; an empty cell "
        "is free. Shown are the minimum gangs of the jobs that fit, all at once."
    )
    shrunk = {changed["name"]: changed for changed in plan["domains"]} if plan is not None else {}
    rows = [_tier(tier) for tier in topology["tiers"]]
    tiers = table(("tier", "domains", "nodes each", "largest gang"), rows) if rows else Markup()
    return _section(
        "topology", f"Topology: {counted(topology['nodes'], 'node')}", tag("p", words, class_="note"),
        drawing(topology, occupancy, facts["jobs"], shrunk), tag("details", tag("summary", "Tiers"), tiers),
    )  # fmt: skip


def _tier(tier: Facts) -> list[str]:
    name = " ".join(filter(None, (str(tier["tier"]), tier["name"])))
    return [name, str(tier["domains"]), nodes_each(tier), largest(tier)]


def _jobs(facts: Facts, gangs: Mapping[str, Gang]) -> Markup:
    if facts["broken"] is not None:
        return tag("p", f"Not judged: {facts['broken']}.", class_="lead")
    if not facts["jobs"]:
        return tag("p", "No jobs.", class_="lead")
    rows = [_job(job, gangs) for job in in_order_of_concern(facts["jobs"])]
    return _table(("gang", "job", "verdict", "queue", "pods", "where, or why not"), rows)


def _job(job: Facts, gangs: Mapping[str, Gang]) -> Markup:
    gang = gangs.get(f"{job['kind']}/{job_name(job)}")
    state = job["verdict"] + (" (tight)" if job["tight"] else "")
    return tag(
        "tr",
        tag("td", gang.chip() if gang else ""),
        tag("td", tag("code", job_name(job)), tag("small", job["kind"])),
        tag("td", state, class_=f"state {_TONES[job['verdict']]}"),
        tag("td", tag("code", job["queue"] or "")),
        tag("td", f"{job['minAvailable']} of {job['pods']}"),
        tag("td", *_why_or_where(job)),
        id=f"gang-{gang.number}" if gang else None,
    )


def _why_or_where(job: Facts) -> Iterator[str]:
    if job["verdict"] == "fits":
        nodes = [f"{node} {count}" for node, count in job["placement"].items()]
        yield tag("code", job["domain"]) if job["domain"] else ""
        yield tag("small", listed(nodes, _NODES))
        return
    yield job["reason"]["message"] if job["reason"] else ""
    yield tag("small", f"hint: {job['change']}") if job["change"] else ""


def _objects(objects: Facts) -> Markup:
    rows = [(done, each) for what, done in _DONE.items() for each in objects[what]]
    counts = ", ".join(f"{len(objects[what])} {done}" for what, done in _DONE.items() if objects[what])
    shown = [(done, tag("code", object_name(each)), _difference(each)) for done, each in rows]
    inner = _table(("", "object", "what"), shown) if shown else Markup()
    return tag("details", tag("summary", f"Objects: {counts or 'no change'}"), inner, id="objects")


_DONE = {"remove": "removed", "replace": "replaced", "change": "changed", "add": "added"}


def _difference(changed: Facts) -> Markup:
    """The first few values that differ."""
    found = [
        tag("div", tag("code", each["pointer"] or "/"), ": ", _amount(each["before"]), " → ", _amount(each["after"]))
        for each in changed.get("changes", ())
    ]
    rest = [tag("div", f"and {len(found) - _CHANGES} more")] if len(found) > _CHANGES else []
    return joined([*found[:_CHANGES], *rest])


def _compiled(counts: Mapping[str, int]) -> Markup:
    title = f"Compiled: {counted(sum(counts.values()), 'object')}"
    rows = [(kind, str(count)) for kind, count in sorted(counts.items())]
    return tag("details", tag("summary", title), _table(("kind", "objects"), rows))


def _skipped(skipped: Sequence[Facts]) -> Markup:
    if not skipped:
        return Markup()
    rows = [(tag("code", each["rule"]), each["reason"]) for each in skipped]
    title = f"Not, or not wholly, judged: {counted(len(rows), 'rule')}"
    return tag("details", tag("summary", title), _table(("rule", "why"), rows))
