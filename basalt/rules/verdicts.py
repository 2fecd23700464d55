"""The verdicts of `basalt fit` as findings: which gangs will never start, and which only when others have ended."""

from collections.abc import Iterator

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.fit import surviving, verdicts
from basalt.fit.surviving import Survival
from basalt.fit.verdicts import State
from basalt.index import Index
from basalt.rules.rule import Rule
from basalt.views import survival

_OWN = "gang-fits-a-domain"


def gang_fits_a_domain(index: Index) -> Iterator[Problem]:
    for verdict in verdicts.of(index):
        if verdict.state is State.NEVER and verdict.reason is not None and verdict.reason.rule == _OWN:
            hint = verdict.change or "add nodes, or ask for less"
            yield Problem(verdict.job.object, verdict.job.size, verdict.reason.message, hint)
    for found in surviving.of(index):
        if found.falls:
            yield Problem(found.job.object, survival.AT, found.text, _rescue(found))


def _rescue(found: Survival) -> str:
    """The way out for a job that does not survive what it must."""
    domain, after = found.falls[0]
    field = "topology.survive" if found.job.object.module else survival.AT[-1]
    if after.state is State.CONTENDED:
        return f"give it a higher priority, make room for all of them, or take {field} out"
    return f"without {domain} it would take: {after.change or 'more nodes, or smaller requests'}; or take {field} out"


def gang_fits_beside_others(index: Index) -> Iterator[Problem]:
    for verdict in verdicts.of(index):
        if verdict.state is State.CONTENDED and verdict.reason is not None:
            hint = "let it wait, give it a higher priority, or make room for all of them"
            yield Problem(verdict.job.object, verdict.job.size, verdict.reason.message, hint)


def gang_packs_loosely(index: Index) -> Iterator[Problem]:
    for verdict in verdicts.of(index):
        if verdict.tight:
            placed = names.listed(f"{node} {count}" for node, count in verdict.placement.items())
            pods = names.counted(verdict.job.gang.minimum, "pod")
            message = f"its {pods} fit ({placed}), but Volcano, which takes one pod after the other, may not find how"
            hint = verdict.change or "let their requests divide a node, make them alike, or leave more room"
            yield Problem(verdict.job.object, verdict.job.size, message, hint)


RULES: tuple[Rule, ...] = (
    Rule(_OWN, Severity.ERROR, gang_fits_a_domain, needs=(Fact.NODES,), follows=True),
    Rule("gang-fits-beside-others", Severity.WARNING, gang_fits_beside_others, needs=(Fact.NODES,), follows=True),
    Rule("gang-packs-loosely", Severity.WARNING, gang_packs_loosely, needs=(Fact.NODES, Fact.SCHEDULER), follows=True),
)
