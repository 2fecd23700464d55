"""A mass mistake as one finding: what a wrong tool did to thousands of objects is said once."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from basalt import names
from basalt.findings import Problem

MANY = 20  # findings of a rule: above that the first speaks for all, since the mistake is one
_LISTED = 6


def bounded(problems: Iterable[Problem], finish: Callable[[Problem], Problem] | None = None) -> Iterator[Problem]:
    """The problems; of more than MANY only the first, which counts the rest. A place with a waiver speaks itself.

    finish adds what costs too much to be made for thousands.
    """
    every = list(problems)
    alike = [problem for problem in every if problem.place.waiver is None] if len(every) > MANY else []
    shown = [problem for problem in every if problem.place.waiver is not None] + alike[:1] if alike else every
    for problem in shown:
        finished = problem if finish is None else finish(problem)
        is_first = bool(alike) and problem is alike[0]
        yield finished._replace(message=finished.message + _more(alike[1:])) if is_first else finished


def _more(alike: list[Problem]) -> str:
    others = dict.fromkeys(problem.place.ref.name for problem in alike if problem.place.ref)
    return f"; and {len(alike)} more like it: {names.listed(others)}" if alike else ""


def joined(every: Sequence[str], between: str) -> str:
    """The names with the words between them; where they are many, the first of them by commas."""
    return between.join(every) if len(every) <= _LISTED else names.listed(every, _LISTED)
