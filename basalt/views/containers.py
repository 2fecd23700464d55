"""Pods and their containers, wherever they stand, with what each container asks for and is told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from basalt.findings import Problem
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, get
from basalt.quantities import Resources, parse_map
from basalt.views import pods
from basalt.views.requests import container_requests, pod_requests
from basalt.views.workloads import Task, Workload

_VOLCANO = ("batch.volcano.sh", "flow.volcano.sh")
_GROUP_NAME = "scheduling.k8s.io/group-name"  # KubeGroupNameAnnotationKey: the PodGroup that a pod belongs to
_COUNTS: Mapping[str, Pointer] = {  # how many pods a controller makes; none are made where that is 0
    "Deployment": ("spec", "replicas"),
    "Job": ("spec", "parallelism"),
    "ReplicaSet": ("spec", "replicas"),
    "ReplicationController": ("spec", "replicas"),
    "StatefulSet": ("spec", "replicas"),
}


@dataclass(frozen=True, eq=False)
class Container:
    """One container, or one that starts before the others; is_patch where a JobTemplate may say the rest."""

    object: KubeObject
    pointer: Pointer
    value: Mapping[str, Any]
    is_patch: bool = False

    @property
    def name(self) -> str:
        return str(self.value.get("name") or self.pointer[-1])

    @property
    def is_init(self) -> bool:
        return self.pointer[-2] == "initContainers"

    @cached_property
    def requests(self) -> Resources:
        """What it requests; a limit without a request counts as one."""
        return container_requests(self.value)

    @cached_property
    def limits(self) -> Resources:
        return parse_map(mapping(self.value.get("resources")).get("limits"))

    @property
    def has_claims(self) -> bool:
        """Whether it gets devices by ResourceClaims, which are not counted here."""
        return bool(sequence(mapping(self.value.get("resources")).get("claims")))

    @property
    def is_privileged(self) -> bool:
        return mapping(self.value.get("securityContext")).get("privileged") is True

    @property
    def environment(self) -> Iterator[tuple[str, Pointer, str | None]]:
        """Its variables in order: the name, where it stands, and the value where it is written out."""
        for index, each in enumerate(map(mapping, sequence(self.value.get("env")))):
            name, value = each.get("name"), each.get("value")
            if isinstance(name, str):
                yield name, (*self.pointer, "env", index), value if isinstance(value, str) else None

    @property
    def words(self) -> Iterator[tuple[Pointer, str]]:
        """The texts of its command and then of its arguments, each with the pointer to it."""
        for field in ("command", "args"):
            for index, text in enumerate(sequence(self.value.get(field))):
                if isinstance(text, str):
                    yield (*self.pointer, field, index), text

    @property
    def command(self) -> str:
        return " ".join((*strings(self.value.get("command")), *strings(self.value.get("args"))))

    def place_of(self, resource: str) -> Pointer:
        """Where it says how much of the resource it wants."""
        for kind in ("requests", "limits"):
            if resource in mapping(mapping(self.value.get("resources")).get(kind)):
                return (*self.pointer, "resources", kind, resource)
        return self.pointer


@dataclass(frozen=True, eq=False)
class Pod:
    """One pod, or a template: task and job are those of a Volcano job, None elsewhere."""

    object: KubeObject
    pointer: Pointer
    spec: Mapping[str, Any]
    task: Task | None = None
    job: Workload | None = None

    @property
    def is_patch(self) -> bool:
        return self.job is not None and self.job.is_patch

    @property
    def group(self) -> str | None:
        """The PodGroup that it names, for Volcano to place it with."""
        name = get(self.object.value, (*self.pointer[:-1], "metadata", "annotations", _GROUP_NAME))
        return name if isinstance(name, str) and name else None

    @property
    def is_unwanted(self) -> bool:
        """Whether a task has no replicas."""
        if self.task is None or (self.is_patch and self.task.value.get("replicas") is None):
            return False
        return self.task.replicas == 0

    @property
    def is_idle(self) -> bool:
        """Whether no pod will ever be placed: none is wanted, or somebody has placed it already."""
        if self.spec.get("nodeName"):
            return True
        if self.task is not None:
            return self.is_unwanted
        if self.object.ref.kind == "DaemonSet":  # a daemon on no node is none too few
            return True
        count = get(self.object.value, _COUNTS.get(self.object.ref.kind, ("",)))
        return count == 0 or get(self.object.value, ("status", "phase")) in ("Succeeded", "Failed")

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """Its containers and then its init containers."""
        return tuple(
            Container(self.object, (*self.pointer, field, index), mapping(value), self.is_patch)
            for field in ("containers", "initContainers")
            for index, value in enumerate(sequence(self.spec.get(field)))
        )

    @cached_property
    def requests(self) -> Resources:
        found = pod_requests(self.spec) if self.task is None else self.task.requests
        return {resource: amount for resource, amount in found.items() if amount > 0}

    def place_of(self, resource: str) -> Pointer:
        """Where its first container that asks for the resource says so; the whole spec where it is overhead."""
        return next((each.place_of(resource) for each in self.containers if each.requests.get(resource)), self.pointer)

    @property
    def volumes(self) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
        for index, volume in enumerate(sequence(self.spec.get("volumes"))):
            yield (*self.pointer, "volumes", index), mapping(volume)


def of_jobs(workloads: Iterable[Workload]) -> Iterator[Pod]:
    """The pods of Volcano's jobs, and of the templates of such."""
    for job in workloads:
        for task in job.tasks:
            yield Pod(job.object, task.pod_pointer, task.pod, task, job)


def everywhere(workloads: Iterable[Workload], objects: Iterable[KubeObject]) -> Iterator[Pod]:
    """The pods of Volcano's jobs, and then those of all others."""
    yield from of_jobs(workloads)
    for each in pods.pods(declared for declared in objects if declared.ref.group not in _VOLCANO):
        yield Pod(*each)


def placed_by(schedulers: Sequence[str], every: Iterable[Pod]) -> Iterator[Pod]:
    """The pods that Volcano places: those of its jobs, and all that name one of its schedulers or a PodGroup."""
    for pod in every:
        if pod.job is not None or pod.spec.get("schedulerName") in schedulers or pod.group:
            yield pod


def once(problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems, one for each value that somebody wrote: two tasks may come from one role of a declaration."""
    seen = set()
    for problem in problems:
        place = problem.place
        at = place.origin(problem.pointer) if isinstance(place, KubeObject) else problem.pointer
        if (id(place), at) not in seen:
            seen.add((id(place), at))
            yield problem
