"""From the index of an environment to the numbers of the problem: gangs in the order of their verdicts, what nodes have
left, and the limits that gangs share."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, NamedTuple

from basalt.facts import Fact
from basalt.fit import affinities, limits, pod_by_pod, sub_groups
from basalt.fit.affinities import Pods, Wishes
from basalt.fit.job import Job
from basalt.fit.packing import cheapest
from basalt.fit.plugins import Plugins
from basalt.fit.pod_by_pod import Scoring
from basalt.fit.problem import ENDLESS, PODS, Bond, Domain, Gang, Key, Problem, Shape, outermost
from basalt.index import Index
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import get
from basalt.quantities import Resources, add, parse_map
from basalt.views import network_topology, quotas
from basalt.views.gangs import Gang as DeclaredGang
from basalt.views.gangs import Priorities, gangs
from basalt.views.minimum_gang import minimum_gang
from basalt.views.network_topology import ConstrainedJob, Constraint
from basalt.views.node_fit import Fleet
from basalt.views.queue_tree import DEFAULT
from basalt.views.quotas import NO_DEFAULTS, admitted, namespace_of
from basalt.views.requests import pod_requests
from basalt.views.workloads import QUEUE_NAME, Task, Workload

_ON_EVERY_NODE = ("cpu", "memory", "ephemeral-storage", PODS)
_JOBS = ("Job", "CronJob")
_MOST_PARTITIONS = 10_000  # each is a shape of its own
_ENFORCING = {"network-topology-aware", "capacity"}
# What the DaemonSet controller tolerates for its pods (AddOrUpdateDaemonPodTolerations).
_DAEMONS_TOLERATE = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists"}
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
]


class Read(NamedTuple):
    """The jobs in the order of their verdicts, the problem that their gangs make, the weights of the scheduler where it
    is declared, and what the tiers are called."""

    jobs: tuple[Job, ...]
    problem: Problem
    scoring: Scoring | None
    tier_names: Mapping[int, str | None]


def read(index: Index, lost: AbstractSet[str] = frozenset()) -> Read:
    """What is declared, as a problem, on a cluster without the nodes that are lost. Without an inventory of nodes every
    job has a gap."""
    reader = _Reader(index, lost)
    jobs, wishes = reader.company(sorted(reader.jobs(), key=lambda each: each.order))
    if not index.knows(Fact.NODES):
        jobs = tuple(replace(job, gap="there is no node inventory") for job in jobs)
    found = tuple(limits.limits(index, jobs, reader.total, reader.plugins))
    gangs = tuple(job.gang for job in jobs)
    problem = Problem(reader.free, reader.domains, gangs, found, reader.offers, wishes.aparts)
    scoring = pod_by_pod.scoring(index.scheduler) if index.scheduler else None
    return Read(jobs, problem, scoring, index.job_tiers.numbers if index.job_tiers else {})


def asks(index: Index) -> bool:
    """Whether anything may be a job: where nothing is, the nodes need not be looked at."""
    return bool(index.workloads or index.pods or index.of_kind("PodGroup"))


class _Reader:
    def __init__(self, index: Index, lost: AbstractSet[str]) -> None:
        self._index = index
        self._fleet: Fleet = index.fleet
        self._names: dict[int, frozenset[str]] = {}
        self._defaults = quotas.defaults(index.of_kind("LimitRange"))
        self._priorities = Priorities(index.of_kind("PriorityClass"))
        self._constraints = {id(each.object): each for each in index.constrained_jobs}
        configuration = index.scheduler
        # Where nothing says how the scheduler is configured, it is taken to enforce what is declared.
        self.plugins = {plugin.name for plugin in configuration.plugins()} if configuration else _ENFORCING
        left = [node for node in index.nodes if node.name not in lost]
        self.total = add(*(index.offers[node.name] for node in left))
        takers = [node for node in left if node.takes_pods]
        self.offers = {node.name: index.offers[node.name] for node in takers}
        self.free = {node.name: self._free(node) for node in takers}
        open_ones = frozenset(self.free)
        self.domains = tuple(
            Domain(each.name, each.tier, index.hyper_nodes.nodes_below[each.name] & open_ones)
            for each in index.hyper_nodes
            if each.tier is not None
        )
        self._left = frozenset(node.name for node in left)
        self._extra = Plugins(configuration, index.queues, takers)
        self._pods: list[Pods] = []

    # nodes

    def _free(self, node: Node) -> Resources:
        """What the node offers less what the environment's own daemons request there."""
        offers = {**dict.fromkeys(_ON_EVERY_NODE, ENDLESS), **self.offers[node.name]}
        daemons = [add(requests, {PODS: 1}) for requests in self._daemons(node)]
        taken = add(*daemons)
        return {name: amount - taken.get(name, 0) for name, amount in offers.items()}

    def _daemons(self, node: Node) -> Iterator[Resources]:
        for each in self._index.of_kind("DaemonSet"):
            spec = mapping(get(each.value, ("spec", "template", "spec")))
            pod = {**spec, "tolerations": [*sequence(spec.get("tolerations")), *_DAEMONS_TOLERATE]}
            if node in self._fleet.selected(pod) and self._fleet.intolerable(node, pod) is None:
                yield pod_requests(self._admitted(each, spec))

    def _admitted(self, declared: KubeObject, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """The pod with the defaults that its namespace gives it."""
        return admitted(pod, self._defaults.get(namespace_of(declared), NO_DEFAULTS))

    # jobs

    def jobs(self) -> Iterator[Job]:
        for workload in self._index.workloads:
            if workload.object.ref.kind in _JOBS and (job := self._of_workload(workload)) is not None:
                yield job
        declared = self._index.of_kind("PodGroup")
        yield from map(self._of_group, gangs((), declared, self._index.others, self._priorities))
        yield from self._of_pods({(namespace_of(each), each.name) for each in declared})

    def _of_workload(self, workload: Workload) -> Job | None:
        gang = minimum_gang(workload)
        if gang is None:
            return None
        key = Key(workload.object.ref.kind, namespace_of(workload.object), workload.object.name)
        shapes: list[Shape] = []
        gaps, tasks = [], []
        for number, (task, part) in enumerate(zip(workload.tasks, gang.parts, strict=True)):
            pod = quotas.with_added(task.pod, quotas.added_container(workload, task))
            shape = self._shape(workload.object, task.name, part.replicas, part.need, pod, workload.queue)
            partitions = self._partitioned(task, shape)
            labels = workload.pod_labels(task)
            self._note(key, len(shapes), len(partitions), labels, task.pod if part.replicas else {})
            shapes.extend(partitions)
            tasks.extend([number] * len(partitions))
            annotations = mapping(get(task.value, ("template", "metadata", "annotations")))
            extra = self._extra.gap(shape.requests, annotations, task.value.get("topologyPolicy"))
            many = f"it takes up to {_MOST_PARTITIONS} partitions of a task" if _are_too_many(task) else ""
            gaps.append((_gap(task.pod) or many or extra) if part.replicas else "")
        constraint = self._constraints.get(id(workload.object))
        tier = self._tier(constraint)
        gaps.append(self._gap_of(constraint))
        priority = self._priorities.of(workload.priority) or 0
        found = Gang(key, gang.pods, tuple(shapes), tier, is_soft=_is_soft(constraint))
        return Job(
            key, workload.object, workload.pointer, workload.queue, priority, gang.total, found, self._tier_name(tier),
            next(filter(None, gaps), ""), tuple(tasks),
        )  # fmt: skip

    def _of_group(self, declared: DeclaredGang) -> Job:
        group = declared.object
        queue = str(group.spec.get("queue") or DEFAULT)
        shapes = tuple(
            self._shape(group, group.name, each.count, each.need, mapping(each.spec), queue) for each in declared.pods
        )
        gaps = ["nobody declares its pods" if each.spec is None else _gap(each.spec) for each in declared.pods]
        gaps.extend(self._extra.gap(each.requests, each.annotations) for each in declared.pods)
        gaps.append("it does not model minTaskMember" if group.spec.get("minTaskMember") else "")
        constraint = self._constraints.get(id(group))
        tier = self._tier(constraint)
        gaps.append(self._gap_of(constraint))
        key = Key("PodGroup", namespace_of(group), group.name)
        for number, each in enumerate(declared.pods):
            self._note(key, number, 1, mapping(each.labels), mapping(each.spec))
        bonds, shapes = self._sub_groups(constraint, declared, shapes, gaps)
        priority = self._priorities.of(group.spec.get("priorityClassName")) or 0
        gang = Gang(key, declared.minimum, shapes, tier, bonds, is_soft=_is_soft(constraint))
        gaps.append(_asked_beyond(group, gang))
        return Job(
            key, group, ("spec",), queue, priority, declared.size, gang, self._tier_name(tier),
            next(filter(None, gaps), ""),
        )  # fmt: skip

    def _sub_groups(
        self, job: ConstrainedJob | None, declared: DeclaredGang, shapes: tuple[Shape, ...], gaps: list[str]
    ) -> tuple[tuple[Bond, ...], tuple[Shape, ...]]:
        """The bonds of a PodGroup's sub-groups, and the shapes with what these need of them."""
        if job is None or not any(each.is_hard for each in job.parts):
            return (), shapes
        found = sub_groups.read(sequence(declared.object.spec.get("subGroupPolicy")), declared.pods)
        tiers = {each.at[:-1]: self._number(each) for each in job.parts}
        gaps.append(found.gap)
        needs = found.needs
        numbers = ((group, tiers.get(("spec", "subGroupPolicy", group.policy))) for group in found.groups)
        bonds = tuple(
            Bond(group.shapes, self._up_to(tier), f"sub-group {group.name}")
            for group, tier in numbers
            if tier is not None
        )
        return bonds, tuple(
            shape._replace(need=max(shape.need, need)) for shape, need in zip(shapes, needs, strict=True)
        )

    def _up_to(self, tier: int) -> tuple[Domain, ...]:
        return outermost(each for each in self.domains if each.tier <= tier)

    def _note(self, key: Key, first: int, slots: int, labels: Mapping[str, Any], pod: Mapping[str, Any]) -> None:
        """Keeps what the pods of some slots are, for what others ask of them."""
        for index in range(first, first + slots):
            self._pods.append(Pods((key, index), key.namespace, labels, pod))

    def company(self, jobs: Iterable[Job]) -> tuple[tuple[Job, ...], Wishes]:
        """The jobs with what their pods ask of each other."""
        declared = self._index.of_kind("Namespace")
        spaces = {each.name: {**each.labels, "kubernetes.io/metadata.name": each.name} for each in declared}
        wishes = affinities.wishes(self._pods, self._fleet, self._left, spaces)
        return tuple(self._wishing(job, wishes) for job in jobs), wishes

    def _wishing(self, job: Job, wishes: Wishes) -> Job:
        key = job.key
        bonds = (*job.gang.bonds, *wishes.bonds.get(key, ()))
        gang = job.gang._replace(bonds=bonds, spreads=wishes.spreads.get(key, ()))
        bar = limits.bar(self._index, job.queue)
        return replace(job, gang=gang, gap=job.gap or wishes.gaps.get(key, ""), bar=bar)

    def _of_pods(self, groups: AbstractSet[tuple[str, str]]) -> Iterator[Job]:
        """Single pods that are in none of the groups; those that Volcano places have a queue."""
        by_volcano = {id(pod.object) for pod in self._index.volcano_pods}
        for pod in self._index.pods:
            if pod.object.ref.kind != "Pod" or (namespace_of(pod.object), pod.group) in groups or pod.is_idle:
                continue
            key = Key("Pod", namespace_of(pod.object), pod.object.name)
            annotated = get(pod.object.value, ("metadata", "annotations", QUEUE_NAME))
            queue = str(annotated or DEFAULT) if id(pod.object) in by_volcano else None
            constraint = self._constraints.get(id(pod.object))
            tier = self._tier(constraint) if queue else None
            gang = Gang(key, 1, (self._shape(pod.object, key.name, 1, 1, pod.spec, queue),), tier)
            self._note(key, 0, 1, pod.object.labels, pod.spec)
            priority = self._priorities.of(pod.spec.get("priorityClassName")) or 0
            annotations = mapping(get(pod.object.value, ("metadata", "annotations")))
            extra = self._extra.gap(gang.shapes[0].requests, annotations) if queue else ""
            alone = f"nobody declares its PodGroup {pod.group}" if pod.group else ""
            gap = alone or self._gap_of(constraint) or _gap(pod.spec) or extra
            yield Job(key, pod.object, pod.pointer, queue, priority, 1, gang, self._tier_name(tier), gap)

    def _shape(
        self, declared: KubeObject, name: str, count: int, need: int, pod: Mapping[str, Any], queue: str | None
    ) -> Shape:
        wanted = {**pod_requests(self._admitted(declared, pod)), PODS: 1}
        ports = host_ports(pod)
        requests = {name: amount for name, amount in wanted.items() if amount > 0} | ports
        candidates = self._fleet.candidates(pod)  # kept there: its identity tells it
        if id(candidates) not in self._names:
            self._names[id(candidates)] = frozenset(node.name for node in candidates if node.name in self.free)
        nodes = self._names[id(candidates)]
        if queue and self._extra.are_choosy:
            nodes &= self._extra.open_to(queue)
        for port in ports:
            for node in self.free.values():
                node.setdefault(port, 1)
        return Shape(name, count, need, requests, nodes)

    def _partitioned(self, task: Task, shape: Shape) -> list[Shape]:
        """The shape, or one for each partition of the task where each has to keep together."""
        policy = mapping(task.value.get("partitionPolicy"))
        constraint = network_topology.of_partitions(task)
        tier = self._number(constraint) if constraint is not None else None
        size = policy.get("partitionSize")
        if tier is None or not isinstance(size, int) or size < 1 or _are_too_many(task):
            return [shape]
        count, needed = shape.replicas // size, shape.need // size
        return [
            shape._replace(name=f"{shape.name}, partition {number}", replicas=size, tier=tier,
                           need=size if number < needed else 0)
            for number in range(count)
        ]  # fmt: skip

    def _tier(self, job: ConstrainedJob | None) -> int | None:
        """The highest tier whose domains may hold all of the pods; None where Volcano does not enforce one."""
        return self._number(job.whole) if job is not None and job.whole is not None else None

    def _number(self, constraint: Constraint) -> int | None:
        tiers = self._index.job_tiers
        if not constraint.is_hard or not tiers or "network-topology-aware" not in self.plugins:
            return None
        number = tiers.number_of(constraint)
        return number if number is not None and number <= tiers.highest else None

    def _gap_of(self, job: ConstrainedJob | None) -> str:
        """What is missing to know what a hard topology means."""
        is_hard = job is not None and any(each.is_hard for each in job.constraints)
        return "there are no HyperNodes" if is_hard and not self._index.knows(Fact.HYPER_NODES) else ""

    def _tier_name(self, number: int | None) -> str | int | None:
        tiers = self._index.job_tiers
        return None if number is None or not tiers else tiers.numbers.get(number) or number


def host_ports(pod: Mapping[str, Any]) -> dict[str, int]:
    """The ports of the node that the pod takes: each node has one of each."""
    found = {}
    for container in map(mapping, sequence(pod.get("containers"))):
        for port in map(mapping, sequence(container.get("ports"))):
            number = port.get("hostPort") or (port.get("containerPort") if pod.get("hostNetwork") is True else None)
            if isinstance(number, int) and number > 0:
                found[f"host port {number}/{port.get('protocol') or 'TCP'}"] = 1
    return found


def _gap(pod: Mapping[str, Any]) -> str:
    """What the pod asks for that has no place in the problem."""
    fields = [name for name in ("resourceClaims", "schedulingGates", "nodeName") if pod.get(name)]
    return f"it does not model {fields[0]}" if fields else ""


def _are_too_many(task: Task) -> bool:
    size = mapping(task.value.get("partitionPolicy")).get("partitionSize")
    return isinstance(size, int) and size > 0 and (task.replicas or 0) // size > _MOST_PARTITIONS


def _asked_beyond(group: KubeObject, gang: Gang) -> str:
    """Whether the group asks for more than its pods do: Volcano lets it in only where that is free in its queue."""
    for name, amount in sorted(parse_map(group.spec.get("minResources")).items()):
        if amount > cheapest(gang, tuple(shape.requests.get(name, 0) for shape in gang.shapes)):
            return f"it does not model minResources beyond what the pods request, here of {name}"
    return ""


def _is_soft(job: ConstrainedJob | None) -> bool:
    return job is not None and job.whole is not None and job.whole.mode == "soft"
