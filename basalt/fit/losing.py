"""The verdicts after something has failed: a node, a HyperNode, or any one domain of a tier."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from basalt.fit import beside, reading, verdicts
from basalt.fit.verdicts import State, Verdict
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
    tiers = {each.name: each for each in index.hyper_nodes if tier in (str(each.tier), each.tier_name)}
    if not tiers:
        known = dict.fromkeys(each.tier_name or str(each.tier) for each in index.hyper_nodes if each.tier is not None)
        raise Unknown(tier, list(known))
    before = {each.job.key: each for each in without(index, frozenset(), snapshot)}
    for name in sorted(tiers):
        for after in without(index, index.hyper_nodes.nodes_below[name], snapshot):
            earlier = before[after.job.key]
            if is_worse(after.state, earlier.state):
                yield Fall(name, earlier, after)
