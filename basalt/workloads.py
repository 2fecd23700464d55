"""Every job that somebody declared, wherever it stands: Volcano Jobs, and the templates inside CronJobs,
JobTemplates and JobFlows, which Volcano's webhooks do not check."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.quantities import Resources, add, parse_map

_BATCH = "batch.volcano.sh"
_FLOW = "flow.volcano.sh"


class Task(NamedTuple):
    """One task of a job; pod is its template's spec."""

    pointer: Pointer
    value: Mapping[str, Any]
    pod: Mapping[str, Any]

    @property
    def requests(self) -> Resources:
        return pod_requests(self.pod)


class Workload(NamedTuple):
    """One job spec: the object it stands in, the pointer to it there, and the spec itself.

    is_patch marks a JobFlow's patch: what it leaves out comes from the JobTemplate.
    """

    object: KubeObject
    pointer: Pointer
    spec: Mapping[str, Any]
    is_patch: bool = False

    @property
    def queue(self) -> str | None:
        """The queue it names; Volcano takes `default` where there is none."""
        queue = self.spec.get("queue")
        return queue if isinstance(queue, str) and queue else None

    @property
    def priority(self) -> str | None:
        priority = self.spec.get("priorityClassName")
        return priority if isinstance(priority, str) and priority else None

    def tasks(self) -> Iterator[Task]:
        for index, value in enumerate(sequence(self.spec.get("tasks"))):
            task = mapping(value)
            pod = mapping(mapping(task.get("template")).get("spec"))
            yield Task((*self.pointer, "tasks", index), task, pod)


def workloads(objects: Iterable[KubeObject]) -> Iterator[Workload]:
    """The job specs in the objects, in their order."""
    for declared in objects:
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


def pod_requests(pod: Mapping[str, Any]) -> Resources:
    """What the scheduler counts for a pod: the sum over containers and sidecars, or the largest init container where
    that is more, plus overhead. A limit without a request counts as one.

    Source: PodRequests in k8s.io/component-helpers/resource/helpers.go.
    """
    total: Resources = {}
    sidecars: Resources = {}
    largest: Resources = {}
    for container in map(mapping, sequence(pod.get("initContainers"))):
        requests = container_requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, requests)
        largest = _larger(largest, add(sidecars, {} if container.get("restartPolicy") == "Always" else requests))
    for container in map(mapping, sequence(pod.get("containers"))):
        total = add(total, container_requests(container))
    return add(_larger(add(total, sidecars), largest), parse_map(pod.get("overhead")))


def container_requests(container: Mapping[str, Any]) -> Resources:
    resources = mapping(container.get("resources"))
    return {**parse_map(resources.get("limits")), **parse_map(resources.get("requests"))}


def _larger(one: Resources, other: Resources) -> Resources:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
