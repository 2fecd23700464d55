"""What runs now, by a snapshot of the cluster: which declared gangs keep their places, and the room that is left beside
all that runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from basalt.facts import Fact
from basalt.fit import checking, reading
from basalt.fit.job import Job
from basalt.fit.problem import PODS, Counts, Key, Limit, Problem, Shape
from basalt.fit.queues import way_up
from basalt.fit.reading import Read, host_ports
from basalt.index import Index
from basalt.loading.nodes import Node, Spec
from basalt.loading.snapshots import Pod, Snapshot
from basalt.names import counted
from basalt.quantities import Amount, Resources, add, show
from basalt.views import quotas
from basalt.views.queue_tree import DEFAULT
from basalt.views.quotas import namespace_of
from basalt.views.requests import pod_requests

_JOB = "volcano.sh/job-name"
_TASK = "volcano.sh/task-spec"
_PARTITION = "volcano.sh/partition-id"
_GROUP = "scheduling.k8s.io/group-name"
_MADE = "podgroup-"  # begins the names of those that Volcano makes for pods without one


@dataclass(frozen=True, eq=False)
class Standing:
    """A pod that has not ended; node is None where it waits for one."""

    pod: Pod
    node: str | None

    @cached_property
    def requests(self) -> Resources:
        spec = self.spec
        return {**pod_requests(spec), PODS: 1, **host_ports(spec)}

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.pod.spec

    @property
    def is_staying(self) -> bool:
        return self.node is not None and self.pod.metadata.deletionTimestamp is None


@dataclass(frozen=True, eq=False)
class Group:
    """Pods that belong together, a job's or another controller's; queue is None where Volcano does not place them."""

    key: Key
    queue: str | None
    pods: tuple[Standing, ...]

    @cached_property
    def nodes(self) -> dict[str, int]:
        """How many of its pods stand on each node."""
        return dict(sorted(Counter(each.node for each in self.pods if each.node is not None).items()))


class Now(NamedTuple):
    """What runs now: all groups that have a place, by name; the places of the declared gangs that keep theirs, with
    all of their pods; why the others that run do not; and the problem that is left beside."""

    groups: tuple[Group, ...]
    kept: Mapping[Key, Counts]
    moved: Mapping[Key, str]
    held: tuple[Group, ...]  # those that keep their room: declared gangs that keep theirs, and all that is not declared
    beside: Problem


def cluster(index: Index, snapshot: Snapshot) -> Index:
    """What is declared, on the nodes of the snapshot; on its own where the snapshot has none."""
    return index.with_nodes(snapshot.nodes) if snapshot.nodes else index


def now(index: Index, snapshot: Snapshot, empty: Read, lost: AbstractSet[str] = frozenset()) -> Now:
    """What of the snapshot runs on the nodes that are not lost; index is on the snapshot's nodes, and empty what it
    reads as."""
    there = {node.name for node in index.nodes if node.name not in lost}
    groups = list(_groups(index, snapshot, there)) if index.knows(Fact.NODES) else []
    seats = _Seats(index, empty, lost)
    candidates = _candidates(empty.jobs, groups)
    own = {id(group) for group in candidates.values()}
    kept, moved = seats.taken(candidates, [each for each in groups if id(each) not in own])
    gone = {id(group) for key, group in candidates.items() if key not in kept}
    held = tuple(each for each in groups if id(each) not in gone)
    beside = _less(empty.problem, held, _Usage(index, held, kept)) if held else empty.problem
    placed = sorted((each for each in groups if each.nodes), key=lambda each: (*each.key[1:], each.key.kind))
    return Now(tuple(placed), kept, moved, held, beside)


# who runs


def _groups(index: Index, snapshot: Snapshot, there: AbstractSet[str]) -> Iterator[Group]:
    """The pods that have not ended by whose they are, without those of declared DaemonSets, which no node offers."""
    daemons = {(namespace_of(each), each.name) for each in index.of_kind("DaemonSet")}
    groups = {(each.metadata.namespace, each.metadata.name): each.spec.queue or DEFAULT for each in snapshot.groups}
    members: dict[Key, list[Standing]] = {}
    queue_of: dict[Key, str | None] = {}
    for pod in snapshot.pods:
        if pod.has_ended or (pod.node is not None and pod.node not in there):
            continue
        namespace, name = pod.metadata.namespace, pod.mark(_GROUP)
        key = _key(pod)
        if key.kind == "DaemonSet" and key[1:] in daemons:
            continue
        members.setdefault(key, []).append(Standing(pod, pod.node))
        queue = groups.get((namespace, name), DEFAULT) if name else None
        queue_of[key] = queue_of.get(key) or queue
    for key, pods in members.items():
        yield Group(key, queue_of[key], tuple(pods))


def _key(pod: Pod) -> Key:
    """Whose the pod is: its job's, its PodGroup's, its controller's, or its own."""
    namespace, owners = pod.metadata.namespace, pod.metadata.ownerReferences or ()
    if job := pod.mark(_JOB):
        return Key("Job", namespace, job)
    group = pod.mark(_GROUP) or ""
    if group and not group.startswith(_MADE):
        return Key("PodGroup", namespace, group)
    if owners and owners[0].kind != "Node":  # as those have which a kubelet starts by itself
        return Key(owners[0].kind, namespace, owners[0].name)
    return Key("Pod", namespace, pod.metadata.name)


def _candidates(jobs: Iterable[Job], groups: Iterable[Group]) -> dict[Key, Group]:
    """The declared jobs of which pods have a place; of a CronJob's jobs the one with most, or else the last."""
    running = {each.key: each for each in groups if each.nodes}
    of_cron: dict[Key, list[Group]] = {}
    for key, group in running.items():
        base, _, minutes = key.name.rpartition("-")
        if key.kind == "Job" and minutes.isdecimal():
            of_cron.setdefault(Key("CronJob", key.namespace, base), []).append(group)
    names = {job.key for job in jobs}
    found = {}
    for job in jobs:
        if job.key in running:
            found[job.key] = running[job.key]
        elif job.key.kind == "CronJob":
            own = [each for each in of_cron.get(job.key, ()) if each.key not in names]
            if own:
                found[job.key] = max(own, key=lambda each: (sum(each.nodes.values()), each.key.name))
    return found


# who keeps a place


class _Seats:
    """Holds the places of declared gangs against what is declared."""

    def __init__(self, index: Index, empty: Read, lost: AbstractSet[str]) -> None:
        self._index = index
        self._empty = empty
        self._lost = lost
        self._jobs = {job.key: job for job in empty.jobs}

    def taken(
        self, candidates: Mapping[Key, Group], others: Iterable[Group]
    ) -> tuple[dict[Key, Counts], dict[Key, str]]:
        """The places that hold together beside the others, those of the first jobs first; and what is wrong with the
        rest."""
        found: dict[Key, Counts] = {}
        moved: dict[Key, str] = {}
        for key, group in candidates.items():
            seated = _seated(self._jobs[key], group)
            if isinstance(seated, str):
                moved[key] = seated
            else:
                found[key] = seated
        more, surplus = tuple(others), self._surplus(found, candidates)
        usage = _Usage(self._index, more)
        if checking.fault(_less(self._empty.problem, more, usage, surplus), found) is None:
            return found, moved
        problem = _less(self._open(candidates[key] for key in found), more, usage, surplus)
        kept: dict[Key, Counts] = {}
        for key, counts in found.items():
            fault = checking.fault(problem, {**kept, key: counts})
            if fault is None:
                kept[key] = counts
            else:
                moved[key] = fault.removeprefix(f"{key}: ")
        return kept, moved

    def _open(self, groups: Iterable[Group]) -> Problem:
        """The problem in which nodes that are only closed to new pods hold those that they have."""
        standing = {node for group in groups for node in group.nodes}
        closed = (node.spec.unschedulable or node.spec.taints for node in self._index.nodes if node.name in standing)
        if not any(closed):
            return self._empty.problem
        nodes = [_opened(node) if node.name in standing else node for node in self._index.nodes]
        return reading.read(self._index.with_nodes(nodes), self._lost).problem

    def _surplus(self, found: Mapping[Key, Counts], candidates: Mapping[Key, Group]) -> dict[str, Resources]:
        """What the gangs' pods take on each node beyond what is declared of them."""
        surplus: dict[str, Resources] = {}
        for key, counts in found.items():
            for each in candidates[key].pods:
                if each.node is not None:
                    surplus[each.node] = add(surplus.get(each.node, {}), each.requests)
            shapes = self._jobs[key].gang.shapes
            for (index, node), count in counts.items():
                declared = {name: -amount * count for name, amount in shapes[index].requests.items()}
                surplus[node] = add(surplus[node], declared)
        return surplus


def _opened(node: Node) -> Node:
    """The node as its pods see it: cordons and taints of NoSchedule are for new ones."""
    taints = tuple(each for each in node.spec.taints or () if each.effect == "NoExecute")
    return msgspec.structs.replace(node, spec=Spec(taints=taints))


def _seated(job: Job, group: Group) -> Counts | str:
    """How many pods of each shape stand on each node; or why what runs is not what is declared."""
    if group.queue is not None and job.queue is not None and group.queue != job.queue:
        return f"it runs in queue {group.queue}, and {job.queue} is declared"
    staying = [each for each in group.pods if each.is_staying]
    if len(staying) < job.gang.minimum:
        return f"{len(staying)} of the {counted(job.gang.minimum, 'pod')} that it needs have a place"
    counts: Counter[tuple[int, str]] = Counter()
    placed = [0] * len(job.gang.shapes)
    for each in staying:
        index = _shape(job.gang.shapes, each, placed)
        if isinstance(index, str):
            return index
        if index is not None and each.node is not None:
            placed[index] += 1
            counts[index, each.node] += 1
    return counts


def _shape(shapes: tuple[Shape, ...], pod: Standing, placed: list[int]) -> int | str | None:
    """The shape that the pod is of; None where there are as many already, and the reason where there is none."""
    task, partition = pod.pod.mark(_TASK), pod.pod.mark(_PARTITION)
    names = (task, f"{task}, partition {partition}")
    own = [index for index, shape in enumerate(shapes) if task is None or shape.name in names]
    if not own:
        return f"its pods of {task} are not declared"
    lacks = [_lack(shapes[index], pod) for index in own]
    fitting = [index for index, lack in zip(own, lacks, strict=True) if not lack]
    if not fitting:
        return lacks[0]
    exact = [index for index in fitting if shapes[index].requests == pod.requests]
    return next((index for index in (*exact, *fitting) if placed[index] < shapes[index].replicas), None)


def _lack(shape: Shape, pod: Standing) -> str:
    """What is declared of the shape, and the pod does not have."""
    for name, amount in shape.requests.items():
        if (has := pod.requests.get(name, 0)) < amount:
            whose = f"its pods of {shape.name} have" if pod.pod.mark(_TASK) else "its pods have"
            return f"{whose} {show(has, name)} {name}, and {show(amount, name)} is declared"
    return ""


# the room beside


class _Usage:
    """What groups take of queues and quotas, and of these the declared jobs which some of them are."""

    def __init__(self, index: Index, groups: Iterable[Group], jobs: Iterable[Key] = ()) -> None:
        self._index = index
        configuration = index.scheduler
        self._is_hierarchical = configuration is None or configuration.plugin_has("capacity", "enableHierarchy")
        self._groups = tuple(groups)
        self._jobs = tuple(jobs)

    def of(self, limit: Limit) -> Amount:
        source = self._of_quota if limit.of.kind == "ResourceQuota" else self._of_queue
        whose = limit.of.namespace if limit.of.kind == "ResourceQuota" else limit.of.name
        besides = sum((limit.beside.get(key, 0) for key in self._jobs), start=Fraction(0))
        return source.get(whose, {}).get(limit.resource, 0) + besides

    @cached_property
    def _of_queue(self) -> dict[str, Resources]:
        """By queue, what stands on nodes from it and from those below it."""
        found: dict[str, Resources] = {}
        for group in self._groups:
            total = add(*(each.requests for each in group.pods if each.node is not None))
            for name in dict.fromkeys(self.queues(group.queue) if group.queue is not None else ()):
                found[name] = add(found.get(name, {}), total)
        return found

    def queues(self, name: str) -> Iterable[str]:
        """The queues whose limits hold for what runs in one."""
        return way_up(self._index.queues, name) if self._is_hierarchical else (name,)

    @cached_property
    def _of_quota(self) -> dict[str, Resources]:
        """By namespace with quotas; those that wait for a node count, too."""
        found: dict[str, Resources] = {}
        for group in self._groups:
            namespace = group.key.namespace
            if self._index.quotas.limits(namespace):
                found[namespace] = add(found.get(namespace, {}), *(quotas.usage(each.spec) for each in group.pods))
        return found


def _less(
    problem: Problem, groups: Iterable[Group], usage: _Usage, surplus: Mapping[str, Resources] | None = None
) -> Problem:
    """The problem without what the groups take of nodes, queues and quotas."""
    taken = dict(surplus or {})
    for group in groups:
        for each in group.pods:
            if each.node is not None:
                taken[each.node] = add(taken.get(each.node, {}), each.requests)
    free = dict(problem.free)
    for node in taken.keys() & free.keys():
        free[node] = {name: max(0, amount - taken[node].get(name, 0)) for name, amount in free[node].items()}
    limits = tuple(_lowered(limit, usage.of(limit)) for limit in problem.limits)
    return replace(problem, free=free, limits=limits)


def _lowered(limit: Limit, used: Amount) -> Limit:
    if not used:
        return limit
    joint = " and" if limit.note else " beside"
    note = f"{limit.note}{joint} {show(used, limit.resource)} that run now"
    return limit._replace(amount=max(0, limit.amount - used), note=note)


def share(index: Index, group: Group, limit: Limit) -> Amount:
    """How much of the limit the group takes."""
    return _Usage(index, (group,)).of(limit)
