"""Which PriorityClasses may evict which."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from basalt.index import Index
from basalt.views.scheduler_configuration import PREEMPTING

Pair = tuple[str, str]  # pods of the first may evict those of the second
_NEVER = "Never"


class Edges(NamedTuple):
    """The pairs that come, and those that go, sorted."""

    new: tuple[Pair, ...] = ()
    gone: tuple[Pair, ...] = ()


class _Class(NamedTuple):
    value: int
    may_evict: bool


def edges(base: Index, head: Index) -> Edges:
    """What may evict what on one side only. Where nothing says how the scheduler is configured it preempts nothing:
    neither Volcano's own default nor its chart's does."""
    before, after = _classes(base), _classes(head)
    moved = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return Edges(_only(after, before, moved), _only(before, after, moved))


def _classes(index: Index) -> Mapping[str, _Class]:
    """The classes by name; none where no action preempts."""
    if index.scheduler is None or not index.scheduler.has_action(*PREEMPTING):
        return {}
    found = {each.name: _class(each.value) for each in index.of_kind("PriorityClass")}
    return {name: each for name, each in found.items() if each is not None}


def _class(given: Mapping[str, Any]) -> _Class | None:
    """None where the value is no number."""
    value = given.get("value")
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return _Class(value, given.get("preemptionPolicy") != _NEVER)


def _only(those: Mapping[str, _Class], others: Mapping[str, _Class], moved: set[str]) -> tuple[Pair, ...]:
    """The pairs that those classes make and the others do not: in each, one class has moved."""
    found = {
        pair
        for name in moved & those.keys()
        for other in those
        for pair in ((name, other), (other, name))
        if _evicts(those, pair) and not _evicts(others, pair)
    }
    return tuple(sorted(found))


def _evicts(classes: Mapping[str, _Class], pair: Pair) -> bool:
    one, other = (classes.get(name) for name in pair)
    return one is not None and other is not None and one.may_evict and one.value > other.value
