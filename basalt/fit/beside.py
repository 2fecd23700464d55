"""The verdicts beside what runs now: a gang that runs keeps its place, whatever its priority; the others get what is
left, and those which the empty cluster would hold wait for what runs."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, NamedTuple

from basalt import names
from basalt.fit import reading, running, verdicts
from basalt.fit.job import Job
from basalt.fit.problem import Counts, Domain, Gang, Key, Limit
from basalt.fit.reading import Read
from basalt.fit.reasons import Reason, why_never
from basalt.fit.running import Group, Now
from basalt.fit.verdicts import State, Verdict
from basalt.index import Index
from basalt.loading.snapshots import Snapshot
from basalt.names import counted
from basalt.quantities import Amount

_RULE = "gang-fits-beside-others"
_NAMED = 3  # of what a job waits for


class Place(NamedTuple):
    """What runs now under one name: its pods on each node, and the lowest HyperNode that holds them."""

    group: Group
    domain: str | None

    def as_json(self) -> dict[str, Any]:
        key, nodes = self.group.key, self.group.nodes
        return {
            "namespace": key.namespace,
            "name": key.name,
            "queue": self.group.queue,
            "pods": sum(nodes.values()),
            "domain": self.domain,
            "nodes": nodes,
        }


class Beside(NamedTuple):
    """The verdicts in their order; of the jobs that run now those that keep their places, and why others do not; and
    all that runs."""

    verdicts: tuple[Verdict, ...]
    kept: AbstractSet[Key]
    moved: Mapping[Key, str]
    places: tuple[Place, ...]


def judged(index: Index, snapshot: Snapshot, lost: AbstractSet[str] = frozenset()) -> Beside:
    """The verdicts on what is declared, on the nodes of the index that are not lost, beside what runs there."""
    empty = reading.read(index, lost)
    now = running.now(index, snapshot, empty, lost)
    waiting = tuple(job for job in empty.jobs if job.key not in now.kept)
    found = verdicts.verdicts(empty._replace(jobs=waiting, problem=now.beside))
    if now.held:
        found = list(_Waiting(index, empty, now).settled(found))
    by_key = {each.job.key: each for each in found}
    domains = _Domains(index)
    for job in empty.jobs:
        if job.key in now.kept:
            placement = _least(job.gang, now.kept[job.key])
            by_key[job.key] = Verdict(job, State.FITS, placement, domains.lowest(placement.keys()))
    places = tuple(Place(each, domains.lowest(each.nodes.keys())) for each in now.groups)
    return Beside(tuple(by_key[job.key] for job in empty.jobs), now.kept.keys(), now.moved, places)


def _least(gang: Gang, counts: Counts) -> dict[str, int]:
    """The pods of a minimum gang among those that run: on as few nodes as that is simple."""
    found: dict[str, int] = {}
    left = {each: count for each, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])) if count}
    wanted = [shape.need for shape in gang.shapes]
    spare = gang.minimum - sum(wanted)
    for is_needed in (True, False):
        for (index, node), count in left.items():
            taken = min(count, wanted[index] if is_needed else spare)
            if taken > 0:
                found[node] = found.get(node, 0) + taken
                left[index, node] -= taken
                wanted[index] -= taken
                spare -= 0 if is_needed else taken
    return dict(sorted(found.items()))


class _Domains:
    """The nodes under each HyperNode, those that take no new pods included."""

    def __init__(self, index: Index) -> None:
        self._holding: dict[str, list[Domain]] = {}
        for each in index.hyper_nodes:
            if each.tier is not None:
                domain = Domain(each.name, each.tier, index.hyper_nodes.nodes_below[each.name])
                for node in domain.nodes:
                    self._holding.setdefault(node, []).append(domain)

    def lowest(self, nodes: AbstractSet[str]) -> str | None:
        """The lowest HyperNode that holds them all."""
        holding = (each for each in self._holding.get(next(iter(nodes), ""), ()) if nodes <= each.nodes)
        lowest = min(holding, key=lambda each: (each.tier, len(each.nodes), each.name), default=None)
        return lowest.name if lowest else None


class _Waiting:
    """Tells what could never run from what only has to wait for what runs now."""

    def __init__(self, index: Index, empty: Read, now: Now) -> None:
        self._index = index
        self._empty = empty
        self._now = now
        self._shares: dict[tuple[Key, str], list[tuple[Amount, Group]]] = {}

    def settled(self, found: list[Verdict]) -> Iterator[Verdict]:
        """The verdicts in the room that is left, mended by those on the empty cluster."""
        states = (State.NEVER, State.UNKNOWN)
        blocked = tuple(each.job for each in found if each.state in states and not each.job.gap)
        alone = {each.job.key: each for each in verdicts.verdicts(self._empty._replace(jobs=blocked))}
        for each in found:
            yield self._mended(each, alone[each.job.key]) if each.job.key in alone else each

    def _mended(self, beside: Verdict, alone: Verdict) -> Verdict:
        if alone.state is State.UNKNOWN and alone.reason is not None and alone.reason.rule == _RULE:
            alone = verdicts.verdicts(self._empty._replace(jobs=(alone.job,)))[0]  # its rivals are not asked about
        if alone.state in (State.NEVER, State.UNKNOWN):
            return alone
        if beside.state is State.UNKNOWN:
            return beside
        assert beside.reason is not None
        return replace(alone, state=State.CONTENDED, reason=self._reason(alone.job, beside.reason))

    def _reason(self, job: Job, fact: Reason) -> Reason:
        """What there is too little of beside what runs, and who has it."""
        limit = self._limit(job, fact)
        blockers = self._standing(job.gang, fact.resource) if limit is None else self._takers(limit)
        most = [group for _, group in sorted(blockers, key=lambda each: (-each[0], each[1].key))]
        named = names.listed((_named(group) for group in most), _NAMED) or "what runs"
        message = f"waits for {named}, which {'runs' if len(most) == 1 else 'run'} now: {fact.message}"
        return Reason(_RULE, message, fact.resource, fact.needed, fact.available)

    def _limit(self, job: Job, fact: Reason) -> Limit | None:
        """The limit that the fact speaks of; None where it is about nodes."""
        for limit in self._now.beside.limits:
            if job.key in limit.costs and limit.resource == fact.resource:
                only = replace(self._empty.problem, limits=(limit,))
                if why_never(only, job.gang, "").message == fact.message:
                    return limit
        return None

    def _takers(self, limit: Limit) -> list[tuple[Amount, Group]]:
        asked = limit.of, limit.resource
        if asked not in self._shares:
            shares = ((running.share(self._index, group, limit), group) for group in self._now.held)
            self._shares[asked] = [(amount, group) for amount, group in shares if amount > 0]
        return self._shares[asked]

    def _standing(self, gang: Gang, resource: str | None) -> list[tuple[Amount, Group]]:
        """What stands on the nodes that the gang could use, by how much of the resource it has there."""
        domains = frozenset[str]().union(*(each.nodes for each in self._empty.problem.allowed(gang.tier)))
        reach = domains.intersection(frozenset[str]().union(*(shape.nodes for shape in gang.shapes)))
        found = []
        for group in self._now.held:
            here = [each.requests for each in group.pods if each.node in reach]
            amount = sum((each.get(resource, 0) for each in here), start=0) if resource else len(here)
            if amount > 0:
                found.append((amount, group))
        return found


def _named(group: Group) -> str:
    return f"{group.key} ({counted(sum(group.nodes.values()), 'pod')})"
