"""The network topology that jobs ask for, wherever they say so, and the tiers that there are to ask for."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, get
from basalt.quantities import Resources, parse_map
from basalt.views.hyper_nodes import HyperNodes
from basalt.views.pod_templates import TEMPLATES
from basalt.views.queue_tree import GROUP as SCHEDULING
from basalt.views.requests import pod_requests
from basalt.views.workloads import Task, Workload

_NAMES_A_GROUP = "scheduling.k8s.io/group-name"  # such a pod gets no PodGroup of its own
_ATOI = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)  # what Go's strconv.Atoi reads, but for the last of 64 bits
# The metadata of the pods that a PodGroup is made for (buildPodGroupFromPod in pg_controller_handler.go).
_PODS: Mapping[tuple[str, str], Pointer] = {
    kind: (*template, "metadata") for kind, template in TEMPLATES.items() if kind != ("", "PodTemplate")
}


class _Keys(NamedTuple):
    """How a constraint's parts are called; name is empty where a tier cannot be named."""

    mode: str
    number: str
    name: str


_FIELDS = _Keys("mode", "highestTierAllowed", "highestTierName")
_ANNOTATIONS = _Keys("volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier", "")


@dataclass(frozen=True, eq=False)
class Constraint:
    """One networkTopology, or the annotations that stand for one; at is where the map stands that holds its parts.

    mode is None where it cannot be read, number where none is given or it cannot be read.
    """

    at: Pointer
    value: Mapping[str, Any]
    keys: _Keys
    mode: str | None
    number: int | None
    name: str | None

    @property
    def is_hard(self) -> bool:
        return self.mode == "hard"

    @property
    def is_annotated(self) -> bool:
        return self.keys is _ANNOTATIONS

    @property
    def says_a_tier(self) -> bool:
        """Whether a tier is given, be it one that cannot be read."""
        return any(self.value.get(key) not in (None, "") for key in (self.keys.number, self.keys.name))

    @property
    def at_mode(self) -> Pointer:
        return self._at(self.keys.mode)

    @property
    def at_number(self) -> Pointer:
        return self._at(self.keys.number)

    @property
    def at_name(self) -> Pointer:
        return self._at(self.keys.name)

    @property
    def at_tier(self) -> Pointer:
        return self.at_number if self.number is not None else self.at_name

    def _at(self, key: str) -> Pointer:
        """Where the part stands; where it is left out the whole, or the annotation that there is."""
        there = [each for each in (key, self.keys.number) if each in self.value and (each == key or self.is_annotated)]
        return (*self.at, *there[:1])


class Pods(NamedTuple):
    """Pods of one template: what a message calls them, and their spec."""

    name: str
    pointer: Pointer
    spec: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ConstrainedJob:
    """A job, or something like one, that says how close together its pods run: all of them (whole), or those of one
    partition or sub-group (parts). pods are the templates of those pods, where they stand here; requests is what each
    of them asks for."""

    object: KubeObject
    whole: Constraint | None
    parts: Sequence[Constraint]
    pods: Sequence[Pods] = ()
    requests: Sequence[Resources] = ()
    is_patch: bool = False

    @property
    def constraints(self) -> Iterator[Constraint]:
        if self.whole is not None:
            yield self.whole
        yield from self.parts

    @property
    def first(self) -> Constraint:
        return next(self.constraints)


def constrained_jobs(objects: Iterable[KubeObject], workloads: Iterable[Workload]) -> Iterator[ConstrainedJob]:
    """The workloads, the PodGroups, and the pods of other controllers that have some network topology."""
    for workload in workloads:
        yield from _of_workload(workload)
    for declared in objects:
        kind = (declared.ref.group, declared.ref.kind)
        if kind == (SCHEDULING, "PodGroup"):
            yield from _of_group(declared)
        elif (at := _PODS.get(kind)) is not None:
            yield from _of_pods(declared, at)


def _of_workload(workload: Workload) -> Iterator[ConstrainedJob]:
    whole = _constraint(workload.spec.get("networkTopology"), (*workload.pointer, "networkTopology"))
    own = [(task, of_partitions(task)) for task in workload.tasks]
    parts = [part for _, part in own if part is not None]
    if whole is not None or parts:
        tasks = [task for task, part in own if whole is not None or part is not None]
        running = [task for task in tasks if task.replicas != 0]
        pods = [Pods(f"task {task.name}", task.pod_pointer, task.pod) for task in running]
        requests = [task.requests for task in running]
        yield ConstrainedJob(workload.object, whole, parts, pods, requests, workload.is_patch)


def of_partitions(task: Task) -> Constraint | None:
    """How close together the pods of one partition of the task run."""
    policy = mapping(task.value.get("partitionPolicy"))
    return _constraint(policy.get("networkTopology"), (*task.pointer, "partitionPolicy", "networkTopology"))


def _of_group(group: KubeObject) -> Iterator[ConstrainedJob]:
    whole = _constraint(group.spec.get("networkTopology"), ("spec", "networkTopology"))
    policies = enumerate(map(mapping, sequence(group.spec.get("subGroupPolicy"))))
    at: Pointer = ("spec", "subGroupPolicy")
    found = (_constraint(each.get("networkTopology"), (*at, index, "networkTopology")) for index, each in policies)
    parts = [part for part in found if part is not None]
    if whole is not None or parts:
        minimum = parse_map(group.spec.get("minResources")).items()
        requests = {key.removeprefix("requests."): amount for key, amount in minimum if not key.startswith("limits.")}
        yield ConstrainedJob(group, whole, parts, requests=[requests] if requests else [])


def _of_pods(declared: KubeObject, at: Pointer) -> Iterator[ConstrainedJob]:
    annotations = mapping(get(declared.value, (*at, "annotations")))
    mode, tier = annotations.get(_ANNOTATIONS.mode), annotations.get(_ANNOTATIONS.number)
    given = [each for each in (mode, tier) if each is not None]
    if not given or annotations.get(_NAMES_A_GROUP) or not all(isinstance(each, str) for each in given):
        return
    # Any other mode, and none, counts as hard; a tier that is no number as none (parseNetworkTopologyFromPod).
    mode = "soft" if str(mode).lower() == "soft" else "hard"
    number = int(tier) if tier is not None and _ATOI.fullmatch(tier) else None
    constraint = Constraint((*at, "annotations"), annotations, _ANNOTATIONS, mode, number, None)
    pointer = (*at[:-1], "spec")
    spec = mapping(get(declared.value, pointer))
    yield ConstrainedJob(declared, constraint, (), [Pods("the pod", pointer, spec)], [pod_requests(spec)])


def _constraint(value: Any, at: Pointer) -> Constraint | None:
    if not isinstance(value, Mapping):
        return None
    mode, number, name = (value.get(key) for key in _FIELDS)
    mode = "hard" if mode is None else mode  # as the CRD's schema fills in
    return Constraint(
        at,
        value,
        _FIELDS,
        mode if mode in ("hard", "soft") else None,
        number if isinstance(number, int) and not isinstance(number, bool) else None,
        name if isinstance(name, str) and name else None,
    )


class Tiers:
    """The tiers by number and by name."""

    def __init__(self, tiers: Iterable[tuple[int, str | None]]) -> None:
        self.numbers: dict[int, str | None] = {}
        self.names: dict[str, set[int]] = {}
        for number, name in tiers:
            self.numbers[number] = self.numbers.get(number) or name
            if name is not None:
                self.names.setdefault(name, set()).add(number)

    def __bool__(self) -> bool:
        return bool(self.numbers)

    @property
    def lowest(self) -> int:
        return min(self.numbers)

    @property
    def highest(self) -> int:
        return max(self.numbers)

    def number_of(self, constraint: Constraint) -> int | None:
        """The highest tier that a constraint allows: Volcano takes the number where both are given. None where none
        is, or the name stands for no tier, or for several."""
        if constraint.number is not None or constraint.name is None:
            return constraint.number
        numbers = self.names.get(constraint.name, set())
        return min(numbers) if len(numbers) == 1 else None

    def show(self, number: int) -> str:
        """3 (spine)."""
        name = self.numbers.get(number)
        return f"{number} ({name})" if name else str(number)


def tiers_of(hyper_nodes: HyperNodes, topology: Mapping[str, Any]) -> Tiers | None:
    """The tiers of the HyperNodes, and those that an Environment's spec.topology declares, which may have no nodes
    yet; None where some HyperNode's cannot be read."""
    if any(each.tier is None for each in hyper_nodes):
        return None
    declared = ((number, mapping(tier).get("name")) for number, tier in enumerate(sequence(topology.get("tiers")), 1))
    made = ((each.tier, each.tier_name) for each in hyper_nodes if each.tier is not None)
    return Tiers([*((number, name if isinstance(name, str) else None) for number, name in declared), *made])


def defaulted_namespaces(limit_ranges: Iterable[KubeObject]) -> frozenset[str | None]:
    """The namespaces whose LimitRanges give requests to containers that have none: a default, or a bound, which
    becomes one.

    Source: SetDefaults_LimitRangeItem in k8s.io/kubernetes/pkg/apis/core/v1/defaults.go.
    """
    giving = ("default", "defaultRequest", "min", "max")
    return frozenset(
        declared.ref.namespace
        for declared in limit_ranges
        for limit in map(mapping, sequence(declared.spec.get("limits")))
        if limit.get("type") == "Container" and any(mapping(limit.get(field)) for field in giving)
    )
