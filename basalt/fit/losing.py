"""The verdicts after something has failed: a node, a HyperNode, or any one domain of a tier."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from basalt.fit import beside, reading, verdicts
from basalt.fit.problem import Gang
from basalt.fit.refitting import Alone, Loss, Together, losses
from basalt.fit.verdicts import Solved, State, Verdict
from basalt.index import Index
from basalt.loading.snapshots import Snapshot

_ORDER = (State.FITS, State.CONTENDED, State.UNKNOWN, State.NEVER)


def is_worse(after: State, before: State) -> bool:
    return _ORDER.index(after) > _ORDER.index(before)


class Unknown(Exception):
    """A name that stands for nothing; known are those that do."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.known = known


class Fall(NamedTuple):
    """A job whose verdict gets worse when the domain fails."""

    domain: str
    before: Verdict
    after: Verdict


def nodes_of(index: Index, lost: Iterable[str]) -> frozenset[str]:
    """The nodes that are gone with these nodes and HyperNodes."""
    below = index.hyper_nodes.nodes_below
    single = {node.name for node in index.nodes}
    found: set[str] = set()
    for name in lost:
        if name not in below and name not in single:
            raise Unknown(name, sorted([*below, *single]))
        found |= below.get(name, frozenset()) | ({name} & single)
    return frozenset(found)


def without(index: Index, lost: frozenset[str], snapshot: Snapshot | None = None) -> Sequence[Verdict]:
    """The verdicts on what is left, beside what runs there where that is known."""
    if snapshot is not None:
        return beside.judged(index, snapshot, lost).verdicts
    return verdicts.verdicts(reading.read(index, lost)) if lost else verdicts.of(index)


def falls(index: Index, tier: str, snapshot: Snapshot | None = None) -> Iterator[Fall]:
    """For each domain of the tier, by name or number, the jobs that get a worse verdict without it."""
    domains = domains_of(index, tier)
    if not domains:
        raise Unknown(tier, tiers_of(index))
    solved = verdicts.solved(index)
    start = without(index, frozenset(), snapshot) if snapshot is not None else solved.verdicts
    before = {each.job.key: each for each in start}
    quick = _Quick(solved)
    for loss in losses(index, solved.read.problem, domains):
        for after in () if snapshot is None and quick.keeps(loss) else without(index, loss.nodes, snapshot):
            earlier = before[after.job.key]
            if is_worse(after.state, earlier.state):
                yield Fall(loss.domain, earlier, after)


def tiers_of(index: Index) -> list[str]:
    """The tiers that have a domain: their names, numbers where they have none."""
    known = (each.tier_name or str(each.tier) for each in index.hyper_nodes if each.tier is not None)
    return list(dict.fromkeys(known))


def domains_of(index: Index, tier: str) -> list[str]:
    """The HyperNodes of the tier that has the name or number."""
    named = index.job_tiers.names.get(tier, ()) if index.job_tiers else ()
    return sorted(
        each.name for each in index.hyper_nodes if tier in (str(each.tier), each.tier_name) or each.tier in named
    )


class _Quick:
    """Whether no verdict is worse after a loss, where that is seen quickly.

    What fits stays so where all of it is placed again; what waits for it does, as long as it would run alone; and what
    never runs does not run on less. Where it was not known whether a job fits, nothing is seen quickly.
    """

    def __init__(self, solved: Solved) -> None:
        def gangs(state: State) -> list[Gang]:
            return [each.job.gang for each in solved.verdicts if each.state is state]

        problem = solved.read.problem
        self._is_open = any(each.state is State.UNKNOWN and not each.job.gap for each in solved.verdicts)
        self._together = Together(problem, gangs(State.FITS), solved.placement)
        self._alone = Alone(problem, gangs(State.CONTENDED))

    def keeps(self, loss: Loss) -> bool:
        return not self._is_open and self._together.withstand(loss) and self._alone.withstand(loss)
