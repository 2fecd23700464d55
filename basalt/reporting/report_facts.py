"""The facts of a report as one JSON document; the pages show these and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

from basalt import occupancy, tree
from basalt.compiling import Compilation
from basalt.findings import Finding, fails
from basalt.fit import verdicts
from basalt.names import counted, listed
from basalt.quantities import parse, show_rounded
from basalt.rendering import layout
from basalt.reporting import json_format
from basalt.rules.placement import is_accelerator

Json = dict[str, Any]
PASSES, FAILS = "passes", "fails"  # without a base; with one, the verdict is the plan's
_WORSE = ("fits", "contended", "unknown", "never")  # from good to bad
_SHOWN = 3  # names in the line of the verdict


def facts(compilation: Compilation, plan: Mapping[str, Any] | None) -> Json:
    """What `report --format json` prints. plan is what `plan --format json` prints, None without a base."""
    index = compilation.index
    judged = verdicts.of(index) if index.broken is None else ()
    drawn = tree.draw(index)
    found = json_format.report(compilation.name, compilation.findings, compilation.skipped)
    return {
        "environment": found.pop("environment"),
        "base": plan["base"] if plan is not None else None,
        "verdict": _verdict(compilation.findings, plan),
        **found,
        "broken": index.broken,
        "jobs": [each.as_json() for each in judged],
        "verdicts": verdicts.summary(judged),
        "topology": drawn.as_json(),
        "occupancy": occupancy.occupancy(index, drawn, judged).as_json(),
        "objects": layout.counts(layout.in_apply_order(compilation.objects)),
        "plan": dict(plan) if plan is not None else None,
    }


def _verdict(findings: Sequence[Finding], plan: Mapping[str, Any] | None) -> str:
    if plan is not None:
        return str(plan["verdict"])
    return FAILS if fails(findings, strict=False) else PASSES


def headline(shown: Mapping[str, Any]) -> str:
    """What the verdict rests on, in one line: jobs that turn, objects that are replaced, findings, all verdicts."""
    plan = shown["plan"]
    parts = _changes(plan) if plan is not None else []
    counts = shown["summary"]
    parts += [counted(counts[severity], severity) for severity in ("error", "warning") if counts[severity]]
    parts += [] if counts["error"] or counts["warning"] else ["no errors and no warnings"]
    if shown["broken"] is not None:
        parts.append(f"jobs not judged: {shown['broken']}")
    else:
        states = ", ".join(f"{count} {state}" for state, count in shown["verdicts"].items() if count)
        parts.append(f"{counted(len(shown['jobs']), 'job')}: {states}" if shown["jobs"] else "no jobs")
    return "; ".join(parts)


def _changes(plan: Mapping[str, Any]) -> list[str]:
    turned = turns(plan)
    worse = [each for each in turned if is_worse(each)]
    named = listed((f"{job_name(each)} {turn(each)}" for each in worse), _SHOWN)
    parts = [f"{counted(len(worse), 'verdict')} worse ({named})"] if worse else []
    others = len(turned) - len(worse)
    parts += [f"{counted(others, 'other verdict')} changed"] if others else []
    parts += [counted(len(plan["risks"]), "risk")] if plan["risks"] else []
    replaced = len(plan["objects"]["replace"])
    parts += [f"{counted(replaced, 'object')} replaced"] if replaced else []
    every = sum(map(len, plan["objects"].values()))
    return parts or [f"{counted(every, 'object')} changed, no verdict" if every else f"no change from {plan['base']}"]


def turns(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The jobs whose verdict is another one, those that get worse first."""
    changed = [each for each in plan["jobs"] if each.get("before") != each.get("after")]
    return sorted(changed, key=lambda each: not is_worse(each))


def turn(job: Mapping[str, Any]) -> str:
    return f"{job.get('before') or 'absent'} → {job.get('after') or 'absent'}"


def job_name(job: Mapping[str, Any]) -> str:
    return f"{job['namespace']}/{job['name']}"


def is_worse(job: Mapping[str, Any]) -> bool:
    before, after = job.get("before"), job.get("after")
    if before is None:
        return after in ("contended", "unknown", "never")
    return after is not None and _WORSE.index(after) > _WORSE.index(before)


def edges(plan: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What changes about preemption: new or gone, the class that may evict, the class of the evicted."""
    return [(state, str(high), str(low)) for state in ("new", "gone") for high, low in plan["preemption"][state]]


def largest(tier: Mapping[str, Any]) -> str:
    """The largest gang that any domain of the tier holds, by accelerators, CPU and memory."""
    amounts = {resource: parse(found["amount"]) or 0 for resource, found in tier["largest"].items()}
    chosen = [name for name in sorted(amounts, key=lambda name: (not is_accelerator(name), name)) if amounts[name]]
    shown = (name for name in chosen if is_accelerator(name) or name in ("cpu", "memory"))
    return ", ".join(f"{show_rounded(amounts[name], name)} {name}" for name in shown)


def nodes_each(tier: Mapping[str, Any]) -> str:
    few, many = tier["nodes"]["min"], tier["nodes"]["max"]
    return str(few) if few == many else f"{few}-{many}"


def in_order_of_severity(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    order = ("error", "warning", "info")
    return sorted(findings, key=lambda found: (found["waived"], order.index(found["severity"])))


def in_order_of_concern(jobs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The jobs, those that do not run first."""
    return sorted(jobs, key=lambda job: ("never", "unknown", "contended", "fits").index(job["verdict"]))


def object_name(ref: Mapping[str, Any]) -> str:
    return "/".join(str(part) for part in (ref["kind"], ref.get("namespace"), ref["name"]) if part)
