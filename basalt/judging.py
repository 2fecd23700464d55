"""Index to findings: runs the rules, lets specific ones silence general ones, applies waivers, sorts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from basalt import guardrails, names
from basalt.documents import WAIVER
from basalt.findings import Finding, Place, Problem, Skipped
from basalt.index import Index
from basalt.rules import RULES
from basalt.rules.rule import Rule

_WAIVER_RULE = "waiver-is-sound"
Judged = tuple[Rule, Problem]


class Verdict(NamedTuple):
    """All findings in file order, and the rules that could not be judged."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]


def judge(index: Index) -> Verdict:
    skipped = list(_skipped(index))
    unjudged = {each.rule for each in skipped}
    problems = list(_problems(index))
    problems = list(_specific(problems))
    waivers = _Waivers(index)
    findings = [waivers.apply(rule, problem) for rule, problem in problems]
    if index.broken is None:
        findings.extend(waivers.unsound(unjudged))
    return Verdict(tuple(sorted(findings, key=lambda found: found.order)), tuple(sorted(skipped)))


def _skipped(index: Index) -> Iterator[Skipped]:
    for rule in RULES.values():
        missing = [index.unknown[fact] for fact in (*rule.needs, *rule.partly_needs) if not index.knows(fact)]
        if missing:
            yield Skipped(rule.name, "; ".join(dict.fromkeys(missing)))
    yield from index.gaps


def _problems(index: Index) -> Iterator[Judged]:
    for rule in RULES.values():
        if all(index.knows(fact) for fact in rule.needs):
            for problem in rule.check(index):
                yield rule, problem
    for rule, problem in guardrails.violations(index):
        yield rule, problem


def _specific(problems: Sequence[Judged]) -> Iterator[Judged]:
    """Without what a general rule says about a value that a specific one speaks about."""
    spoken = {_key(problem) for rule, problem in problems if not rule.is_general}
    quantities = {_key(problem) for rule, problem in problems if rule.name == "quantity-is-valid"}
    for rule, problem in problems:
        silencing = spoken if rule.name == "quantity-is-valid" else spoken | quantities
        if not rule.is_general or _key(problem) not in silencing:
            yield rule, problem


def _key(problem: Problem) -> tuple[object, ...]:
    return (problem.place.ref or id(problem.place), problem.pointer)


def finding(rule: Rule, problem: Problem) -> Finding:
    place, pointer, message, hint = problem
    source = place.position(pointer)
    return Finding(
        rule.name, rule.severity, message, hint, place.ref, pointer, source, shows_source=not rule.is_private
    )


class _Waiver:
    """One entry of a waiver annotation, and whether some finding matched it."""

    def __init__(self, text: str) -> None:
        rule, colon, reason = text.partition(":")
        self.rule = rule.strip()
        self.reason = reason.strip() if colon else ""
        self.is_used = False


class _Waivers:
    """The waivers of all documents."""

    def __init__(self, index: Index) -> None:
        self._entries: dict[str, tuple[Place, list[_Waiver]]] = {}
        self._known = {*RULES, *guardrails.rule_names(index)}
        raw = (declared for declared in index.objects if declared.module is None)
        places: list[Place] = [*index.declarations, *raw]
        for place in places:
            if place.waiver is not None:
                self._entries[self._document(place)] = (place, _parse(place.waiver))

    @staticmethod
    def _document(place: Place) -> str:
        return f"{place.position(())}"

    def apply(self, rule: Rule, problem: Problem) -> Finding:
        found = finding(rule, problem)
        if problem.place.waiver is None:
            return found
        _, entries = self._entries.get(self._document_of(problem.place), (None, []))
        for entry in entries:
            if entry.rule == rule.name and entry.reason:
                entry.is_used = True
                return found.as_waived()
        return found

    def _document_of(self, place: Place) -> str:
        return self._document(getattr(place, "written", place))

    def unsound(self, unjudged: set[str]) -> Iterator[Finding]:
        """Waivers without a reason, for an unknown rule, or that matched no finding."""
        rule = RULES[_WAIVER_RULE]
        for place, entries in self._entries.values():
            for entry in entries:
                fault = self._fault(entry, unjudged)
                if fault is not None:
                    yield finding(rule, Problem(place, ("metadata", "annotations", WAIVER), *fault))

    def _fault(self, entry: _Waiver, unjudged: set[str]) -> tuple[str, str] | None:
        if entry.rule not in self._known:
            shown = entry.rule or "nothing"
            return f"waives {shown}, which is not a rule", names.did_you_mean(entry.rule, self._known, most=0)
        if not entry.reason:
            return f"waives {entry.rule} without a reason", f'write "{entry.rule}: why this is right here"'
        if not entry.is_used and entry.rule not in unjudged:
            return f"waives {entry.rule}, which finds nothing here", "take the waiver out"
        return None


def _parse(text: str) -> list[_Waiver]:
    return [_Waiver(part) for part in text.split(";") if part.strip()]
