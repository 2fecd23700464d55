"""Index to findings: runs the rules, lets specific ones silence general ones, applies waivers, keeps secrets out of
what is shown, sorts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from basalt import guardrails, waivers
from basalt.findings import Finding, Place, Problem, Severity, Skipped, Source
from basalt.gathering import places
from basalt.gathering.places import Spot
from basalt.index import Index
from basalt.objects import KubeObject
from basalt.plan.pair import Pair
from basalt.pointers import get
from basalt.rules import FAMILIES, RULES
from basalt.rules.rule import Rule, Scope
from basalt.views import sensitive
from basalt.waivers import Waivers

# They speak of how a value is written, not of what it says.
_SILENCING_NOTHING = ("scalar-is-unambiguous", "secret-is-not-literal", waivers.RULE)
_OF_A_SECRET = re.compile(rb"""kind["']?\s*:\s*["']?Secret\b""")
Judged = tuple[Rule, Problem]
_ABOUT_PLANS = frozenset(rule.name for rule in RULES.values() if rule.on_plan is not None)
# What verdicts stand on.
_GROUND = frozenset(rule for family in ("Input", "Topology", "Queues") for rule in FAMILIES[family])


class Verdict(NamedTuple):
    """All findings in file order, and the rules that could not be judged."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    silent: frozenset[str] = frozenset()  # the rules that find nothing in nodes and HyperNodes by themselves


def judge(index: Index, silent: frozenset[str] = frozenset()) -> Verdict:
    """silent are rules known to find nothing in nodes and HyperNodes by themselves."""
    skipped = tuple(sorted(_skipped(index)))
    fabric = _Fabric(index, silent)
    judged = list(_once(_specific(list(_problems(index, fabric)))))
    found_waivers = _waivers(index)
    findings = [_finding(rule, problem, found_waivers.cover(problem.place, rule.name)) for rule, problem in judged]
    unjudged = {each.rule for each in skipped} | _ABOUT_PLANS
    for problem, reason in found_waivers.faults(unjudged, is_whole=index.broken is None):
        findings.append(_finding(RULES[waivers.RULE], problem, reason))
    return Verdict(tuple(sorted(findings, key=lambda found: found.order)), skipped, frozenset(fabric.silent))


def risks(pair: Pair) -> tuple[Finding, ...]:
    """What the rules say about the step from the base to the head. A document of the head waives what is said of it as
    it was in the base, too."""
    of_head = _waivers(pair.head)
    successors = {each.ref: each for each in pair.head.declarations}
    found = []
    for rule in RULES.values():
        for problem in rule.on_plan(pair) if rule.on_plan is not None else ():
            successor = successors.get(places.written(problem.place).ref)
            reasons = (of_head.cover(place, rule.name) for place in (problem.place, successor) if place is not None)
            found.append(_finding(rule, problem, next(filter(None, reasons), None)))
    return tuple(sorted(found, key=lambda each: each.order))


def _skipped(index: Index) -> Iterator[Skipped]:
    for rule in RULES.values():
        missing = [index.unknown[fact] for fact in (*rule.needs, *rule.partly_needs) if not index.knows(fact)]
        if missing:
            yield Skipped(rule.name, "; ".join(dict.fromkeys(missing)))
    yield from index.gaps


def _problems(index: Index, fabric: "_Fabric") -> Iterator[Judged]:
    """What the rules and guardrails say, without what only follows from errors that are told of anyway: where these are
    in what verdicts stand on, no verdict is even sought."""
    judgeable = [rule for rule in RULES.values() if all(index.knows(fact) for fact in rule.needs)]
    problems = [(rule, problem) for rule in judgeable if not rule.follows for problem in _check(rule, index, fabric)]
    problems.extend(guardrails.violations(index))
    yield from problems
    errors = [(rule, problem) for rule, problem in problems if rule.severity is Severity.ERROR]
    if any(rule in _GROUND for rule, _ in errors):
        return
    wrong = {problem.place.ref for _, problem in errors}
    for rule in judgeable:
        if rule.follows:
            yield from ((rule, problem) for problem in rule.check(index) if problem.place.ref not in wrong)


class _Fabric:
    """What rules say of nodes and HyperNodes by themselves."""

    def __init__(self, index: Index, silent: frozenset[str]) -> None:
        self._index = index
        self.silent = set(silent)

    def problems(self, rule: Rule) -> list[Problem]:
        found = [] if rule.name in self.silent else list(rule.check(self._index.fabric))
        if not found:
            self.silent.add(rule.name)
        return found


def _check(rule: Rule, index: Index, fabric: _Fabric) -> Iterator[Problem]:
    if rule.scope is not Scope.ALL:
        yield from fabric.problems(rule)
    if rule.scope is not Scope.FABRIC:
        yield from rule.check(index if rule.scope is Scope.ALL else index.beside_fabric)


def _specific(problems: Sequence[Judged]) -> Iterator[Judged]:
    """Without what a general rule says about a value that a specific one speaks about."""
    loud = [(rule, _key(problem)) for rule, problem in problems if _silences(rule)]
    spoken = {key for rule, key in loud if not rule.is_general}
    quantities = {key for rule, key in loud if rule.name == "quantity-is-valid"}
    for rule, problem in problems:
        silencing = spoken if rule.name == "quantity-is-valid" else spoken | quantities
        if not rule.is_general or _key(problem) not in silencing:
            yield rule, problem


def _silences(rule: Rule) -> bool:
    """Whether what the rule says stands for the general one's words: a warning does not stand for an error."""
    return rule.severity is Severity.ERROR and rule.name not in _SILENCING_NOTHING


def _key(problem: Problem) -> tuple[object, ...]:
    return (problem.place.ref or id(problem.place), problem.pointer)


def _once(problems: Iterable[Judged]) -> Iterator[Judged]:
    """Without what was said already of the same spot in a document: several objects may follow from it."""
    said: set[tuple[str, str, Source]] = set()
    for rule, problem in problems:
        if _is_generated(problem.place):
            what = (rule.name, problem.message, problem.place.position(problem.pointer))
            if what in said:
                continue
            said.add(what)
        yield rule, problem


def _is_generated(place: Place) -> bool:
    while isinstance(place, Spot):
        place = place.place
    return isinstance(place, KubeObject) and place.module is not None


def _waivers(index: Index) -> Waivers:
    raw = (declared for declared in index.without_nodes if declared.module is None)
    return Waivers([*index.declarations, *raw], {*RULES, *guardrails.rule_names(index)})


def _finding(rule: Rule, problem: Problem, reason: str | None) -> Finding:
    place, pointer, message, hint = problem
    source = place.position(pointer)
    value = places.value(place)
    secret = get(value, pointer) if sensitive.is_at(value, pointer) else None
    message = sensitive.hidden(message, secret)
    hint = sensitive.hidden(hint) if secret is None or rule.is_private else ""  # one may repeat the value in part
    shows = secret is None and not rule.is_private and not _may_show_a_secret(place, source)
    return Finding(rule.name, rule.severity, message, hint, place.ref, pointer, source, reason, shows)


def _may_show_a_secret(place: Place, source: Source) -> bool:
    """Whether the source line could hold a secret, be it another value's."""
    value, file = places.value(place), places.file(place, source.file)
    if sensitive.is_secret(value) or file is None or file.is_inventory:
        return sensitive.is_secret(value)
    is_unread = value is None and _OF_A_SECRET.search(file.data) is not None
    return is_unread or sensitive.is_in_line(file.line(source.line))
