"""Pods wherever they stand: on their own, and in the templates of whatever makes pods."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import KubeObject
from basalt.pointers import Pointer, get
from basalt.views.workloads import workloads

_TEMPLATE: Pointer = ("spec", "template", "spec")
_SPECS: Mapping[tuple[str, str], Pointer] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
    ("batch", "Job"): _TEMPLATE,
}


class PodSpec(NamedTuple):
    """One pod's spec, or a template's: the object it stands in, the pointer to it there, and the spec itself."""

    object: KubeObject
    pointer: Pointer
    spec: Mapping[str, Any]


def pods(objects: Iterable[KubeObject]) -> Iterator[PodSpec]:
    """The pods of the objects, in their order; those of Volcano's jobs are the tasks' templates."""
    for declared in objects:
        pointer = _SPECS.get((declared.ref.group, declared.ref.kind))
        if pointer is not None:
            spec = get(declared.value, pointer)
            if isinstance(spec, Mapping):
                yield PodSpec(declared, pointer, spec)
            continue
        for workload in workloads((declared,)):
            for task in workload.tasks:
                yield PodSpec(declared, task.pod_pointer, task.pod)
