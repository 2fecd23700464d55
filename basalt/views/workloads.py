"""Every job that somebody declared, wherever it stands: Volcano Jobs, and the templates inside CronJobs,
JobTemplates and JobFlows, which Volcano's webhooks do not check."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, get
from basalt.quantities import Resources, parse_map
from basalt.views.pod_templates import TEMPLATES
from basalt.views.queue_tree import DEFAULT
from basalt.views.queue_tree import GROUP as SCHEDULING
from basalt.views.requests import pod_requests

_BATCH = "batch.volcano.sh"
_FLOW = "flow.volcano.sh"
# What the job controller puts on every pod of a job (createJobPod in job_controller_util.go).
UNKNOWN_LABELS = dict.fromkeys(
    ("volcano.sh/job-name", "volcano.sh/job-namespace", "volcano.sh/queue-name", "volcano.sh/task-index",
     "volcano.sh/task-spec"), ""
)  # fmt: skip
FRAMEWORK_PLUGINS = frozenset({"mpi", "pytorch", "ray", "tensorflow"})
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
_ANNOTATIONS: Pointer = ("metadata", "annotations")
# Where the annotation with a queue's name is read (pg_controller_handler.go, mutate_podgroup.go).
_ANNOTATED = {
    ("", "Namespace"): _ANNOTATIONS,
    **{
        (group, kind): (*template, *_ANNOTATIONS)
        for (group, kind), template in TEMPLATES.items()
        if kind in ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job", "CronJob")
    },
}


@dataclass(frozen=True, eq=False)
class Task:
    """One task of a job, with the defaults that Volcano's webhook fills in; pod is its template's spec."""

    pointer: Pointer
    value: Mapping[str, Any]
    pod: Mapping[str, Any]

    @property
    def name(self) -> str:
        """`default<index>` where it has none."""
        name = self.value.get("name")
        return name if isinstance(name, str) and name else f"default{self.pointer[-1]}"

    @property
    def replicas(self) -> int | None:
        """0 where nothing is said; None where it is no number."""
        return _count(self.value.get("replicas"))

    @property
    def minimum(self) -> int | None:
        """How many of its pods a gang needs: minAvailable, else what its partitions need, else all of them; None where
        one of the numbers is none."""
        if self.value.get("minAvailable") is not None:
            return _count(self.value["minAvailable"])
        policy = mapping(self.value.get("partitionPolicy"))
        partitions, size = _count(policy.get("minPartitions")), _count(policy.get("partitionSize"))
        if partitions is None or size is None:
            return None
        return partitions * size if partitions > 0 else self.replicas

    @cached_property
    def requests(self) -> Resources:
        return pod_requests(self.pod)

    def containers(self) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
        """Its containers and then its init containers, each with the pointer to it."""
        for field in ("containers", "initContainers"):
            for index, container in enumerate(sequence(self.pod.get(field))):
                yield (*self.pod_pointer, field, index), mapping(container)

    @property
    def pod_pointer(self) -> Pointer:
        return (*self.pointer, "template", "spec")

    def pointer_of(self, resource: str) -> Pointer:
        """Where its first container that requests the resource says so; the task itself where it is overhead."""
        for pointer, container in self.containers():
            resources = mapping(container.get("resources"))
            for kind in ("requests", "limits"):
                if parse_map(resources.get(kind)).get(resource, 0) > 0:
                    return (*pointer, "resources", kind, resource)
        return self.pointer


@dataclass(frozen=True, eq=False)
class Workload:
    """One job spec: the object it stands in, the pointer to it there, and the spec itself.

    is_patch marks a JobFlow's patch: what it leaves out comes from the JobTemplate.
    """

    object: KubeObject
    pointer: Pointer
    spec: Mapping[str, Any]
    is_patch: bool = False

    @property
    def queue(self) -> str | None:
        """The queue it goes to: `default` where it names none, as Volcano's webhook fills in. None where that is not
        said here, because the name is no text or a patch leaves it to its JobTemplate."""
        return None if self.is_patch and not self.spec.get("queue") else _queue_of(self.spec)

    def pod_labels(self, task: Task) -> dict[str, Any]:
        """The labels of a task's pods; empty texts stand for values that only the cluster knows."""
        labels = mapping(mapping(mapping(task.value.get("template")).get("metadata")).get("labels"))
        is_job = self.object.ref.kind == "Job"
        known = {"job-name": self.object.name if is_job else "", "task-spec": task.value.get("name")}
        return {**labels, **UNKNOWN_LABELS, **{f"volcano.sh/{key}": value for key, value in known.items()}}

    @property
    def priority(self) -> str | None:
        priority = self.spec.get("priorityClassName")
        return priority if isinstance(priority, str) and priority else None

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(
            Task((*self.pointer, "tasks", index), mapping(task), mapping(get(task, ("template", "spec"), {})))
            for index, task in enumerate(sequence(self.spec.get("tasks")))
        )

    @property
    def replicas(self) -> int | None:
        """All pods of the job; None where some task's number is none."""
        return _total(task.replicas for task in self.tasks)

    @property
    def minimum(self) -> int | None:
        """How many pods the gang needs: minAvailable, else (also where it is 0) what the tasks need together."""
        own = _count(self.spec.get("minAvailable"))
        return _total(task.minimum for task in self.tasks) if own == 0 else own

    @cached_property
    def plugins(self) -> Mapping[str, list[str]]:
        """The job plugins with their arguments, those included that Volcano's webhook adds: svc for a framework's
        plugin, ssh for mpi (patchDefaultPlugins in mutate_job.go)."""
        declared = {name: strings(flags) for name, flags in mapping(self.spec.get("plugins")).items()}
        needed = [*(["svc"] if FRAMEWORK_PLUGINS & declared.keys() else []), *(["ssh"] if "mpi" in declared else [])]
        return declared | {name: [] for name in needed if name not in declared}


class Destination(NamedTuple):
    """One place that says which queue jobs go to; the pointer leads to the whole spec where that is left unsaid."""

    object: KubeObject
    pointer: Pointer
    queue: str


def destinations(objects: Iterable[KubeObject]) -> Iterator[Destination]:
    """Every place that sends jobs to a queue: jobs, PodGroups, and the annotation that pods of other controllers, or
    whole Namespaces, carry."""
    for declared in objects:
        for workload in _job_specs(declared):
            if workload.queue is not None:
                yield _destination(declared, workload.pointer, workload.spec, workload.queue)
        if (declared.ref.group, declared.ref.kind) == (SCHEDULING, "PodGroup"):
            if (queue := _queue_of(declared.spec)) is not None:
                yield _destination(declared, ("spec",), declared.spec, queue)
        elif (pointer := _ANNOTATED.get((declared.ref.group, declared.ref.kind))) is not None:
            queue = get(declared.value, (*pointer, QUEUE_NAME))
            if isinstance(queue, str) and queue:
                yield Destination(declared, (*pointer, QUEUE_NAME), queue)


class QueueDemand(NamedTuple):
    """What goes to one queue: the resources that it requests, each with the place that says so."""

    object: KubeObject
    queue: str
    requests: Mapping[str, Pointer]


def queue_demands(objects: Iterable[KubeObject]) -> Iterator[QueueDemand]:
    """The demands of jobs and PodGroups."""
    for declared in objects:
        for workload in _job_specs(declared):
            if workload.queue is not None:
                yield QueueDemand(declared, workload.queue, dict(_requested(workload)))
        is_group = (declared.ref.group, declared.ref.kind) == (SCHEDULING, "PodGroup")
        if is_group and (queue := _queue_of(declared.spec)) is not None:
            yield QueueDemand(declared, queue, dict(_minimum(declared)))


def _requested(workload: Workload) -> Iterator[tuple[str, Pointer]]:
    """By the first task that requests it."""
    seen: set[str] = set()
    for task in workload.tasks:
        found = {resource for resource, amount in task.requests.items() if amount > 0} - seen
        seen |= found
        yield from ((resource, task.pointer_of(resource)) for resource in found)


def _minimum(group: KubeObject) -> Iterator[tuple[str, Pointer]]:
    """minResources speaks as quotas do, where the job controller wrote it."""
    for key, amount in parse_map(group.spec.get("minResources")).items():
        if amount > 0 and key != "pods" and not key.startswith(("limits.", "count/")):
            yield key.removeprefix("requests."), ("spec", "minResources", key)


def _count(value: Any) -> int | None:
    """A number of pods, 0 where nothing is said; None where it is no number, which object-matches-schema tells."""
    if value is None:
        return 0
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _total(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _destination(declared: KubeObject, at: Pointer, spec: Mapping[str, Any], queue: str) -> Destination:
    return Destination(declared, (*at, "queue") if spec.get("queue") else at, queue)


def _queue_of(spec: Mapping[str, Any]) -> str | None:
    queue = spec.get("queue") or DEFAULT
    return queue if isinstance(queue, str) else None


def workloads(objects: Iterable[KubeObject]) -> Iterator[Workload]:
    """The job specs in the objects, in their order."""
    for declared in objects:
        yield from _job_specs(declared)


def _job_specs(declared: KubeObject) -> Iterator[Workload]:
    group, kind = declared.ref.group, declared.ref.kind
    if (group, kind) in ((_BATCH, "Job"), (_FLOW, "JobTemplate")):
        yield Workload(declared, ("spec",), declared.spec)
    elif (group, kind) == (_BATCH, "CronJob"):
        template = mapping(declared.spec.get("jobTemplate"))
        yield Workload(declared, ("spec", "jobTemplate", "spec"), mapping(template.get("spec")))
    elif (group, kind) == (_FLOW, "JobFlow"):
        yield from _patches(declared)


def _patches(declared: KubeObject) -> Iterator[Workload]:
    for index, value in enumerate(sequence(declared.spec.get("flows"))):
        patch = mapping(mapping(value).get("patch")).get("jobSpec")
        if isinstance(patch, Mapping):
            yield Workload(declared, ("spec", "flows", index, "patch", "jobSpec"), patch, is_patch=True)
