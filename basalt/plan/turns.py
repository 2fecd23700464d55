"""The jobs whose verdicts turn."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from basalt.fit import verdicts
from basalt.fit.problem import Key
from basalt.fit.verdicts import State, Verdict
from basalt.index import Index


class Turn(NamedTuple):
    """One job and its verdict on both sides; None where it is not there."""

    key: Key
    before: Verdict | None
    after: Verdict | None

    @property
    def states(self) -> tuple[State | None, State | None]:
        before, after = (each.state if each is not None else None for each in (self.before, self.after))
        return before, after

    @property
    def reason(self) -> str:
        """Why it is so now; of a job that fits now, why it did not before."""
        if self.after is None:
            return "the job is removed"
        if self.after.reason is not None:
            return self.after.reason.message
        if self.before is None:
            return "the job is new"
        return f"before: {self.before.reason.message}" if self.before.reason else ""


def jobs(base: Index, head: Index) -> tuple[Turn, ...]:
    """Every job of either side, by namespace and name. Where one of the sides is not known as a whole, nothing is known
    of any."""
    if base.broken is not None or head.broken is not None:
        return ()
    before, after = _by_key(base), _by_key(head)
    return tuple(Turn(key, before.get(key), after.get(key)) for key in sorted({*before, *after}, key=_order))


def turned(every: Iterable[Turn]) -> tuple[Turn, ...]:
    return tuple(each for each in every if each.states[0] is not each.states[1])


def _by_key(index: Index) -> Mapping[Key, Verdict]:
    return {each.job.key: each for each in verdicts.of(index)}


def _order(key: Key) -> tuple[str, str, str]:
    return key.namespace, key.name, key.kind
