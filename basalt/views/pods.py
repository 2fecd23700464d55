"""Pods wherever they stand: on their own, and in the templates of whatever makes pods."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import KubeObject
from basalt.pointers import Pointer, get
from basalt.views.pod_templates import TEMPLATES
from basalt.views.workloads import workloads


class PodSpec(NamedTuple):
    """One pod's spec, or a template's: the object it stands in, the pointer to it there, and the spec itself."""

    object: KubeObject
    pointer: Pointer
    spec: Mapping[str, Any]


def pods(objects: Iterable[KubeObject]) -> Iterator[PodSpec]:
    """The pods of the objects, in their order; those of Volcano's jobs are the tasks' templates."""
    for declared in objects:
        template = TEMPLATES.get((declared.ref.group, declared.ref.kind))
        if template is not None:
            pointer = (*template, "spec")
            spec = get(declared.value, pointer)
            if isinstance(spec, Mapping):
                yield PodSpec(declared, pointer, spec)
            continue
        for workload in workloads((declared,)):
            for task in workload.tasks:
                yield PodSpec(declared, task.pod_pointer, task.pod)
