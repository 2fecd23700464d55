"""The family Priorities: PriorityClasses, and what training jobs make of them."""

from collections.abc import Iterator
from typing import Any

from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import KubeObject
from basalt.rules.rule import Rule

_HIGHEST = 1_000_000_000  # HighestUserDefinablePriority in k8s.io/kubernetes/pkg/apis/scheduling/types.go
_SYSTEM = ("system-cluster-critical", "system-node-critical")


def _value(declared: KubeObject) -> int | None:
    value = declared.value.get("value")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def priority_within_range(index: Index) -> Iterator[Problem]:
    for declared in index.of_kind("PriorityClass"):
        if declared.name in _SYSTEM:
            continue
        value = _value(declared)
        if declared.name.startswith("system-"):
            message = f"{declared.name} begins with system-, which Kubernetes keeps for its own classes"
            hint = f"name it {declared.name.removeprefix('system-') or 'otherwise'}"
            yield Problem(declared, ("metadata", "name"), message, hint)
        if value is not None and value > _HIGHEST:
            message = f"{value} is above {_HIGHEST}, the highest value for other than Kubernetes' own classes"
            yield Problem(declared, ("value",), message, f"lower it to {_HIGHEST} or less")


def priority_has_one_default(index: Index) -> Iterator[Problem]:
    defaults = [each for each in index.of_kind("PriorityClass") if each.value.get("globalDefault") is True]
    for declared in defaults[1:]:
        message = f"{declared.name} is a default beside {defaults[0].name}; one class at most is"
        yield Problem(declared, ("globalDefault",), message, "let one of them be the default")


def priority_values_differ(index: Index) -> Iterator[Problem]:
    first: dict[int, KubeObject] = {}
    for declared in index.of_kind("PriorityClass"):
        value = _value(declared)
        if value is not None and first.setdefault(value, declared).name != declared.name:
            message = f"{declared.name} and {first[value].name} share the value {value}: neither goes before the other"
            yield Problem(declared, ("value",), message, "give them different values")


def default_priority_is_low(index: Index) -> Iterator[Problem]:
    classes = {each.name: each for each in index.of_kind("PriorityClass")}
    values = {name: value for name in _used(index) & classes.keys() if (value := _value(classes[name])) is not None}
    for declared in classes.values():
        default = _value(declared)
        if declared.value.get("globalDefault") is not True or default is None:
            continue
        lowest = min(values, key=lambda name: (values[name], name), default=declared.name)
        if default > values.get(lowest, default):
            message = f"the default {declared.name} ({default}) goes before {lowest} ({values[lowest]}), which jobs use"
            hint = f"make a class of {values[lowest]} or less the default, so that pods without a class wait for jobs"
            yield Problem(declared, ("globalDefault",), message, hint)


def _used(index: Index) -> set[str]:
    """The classes that jobs, their pods, and PodGroups name."""
    named: set[Any] = {workload.priority for workload in index.workloads}
    tasks = (task for workload in index.workloads for task in workload.tasks)
    pods = (task.pod.get("priorityClassName") for task in tasks)
    groups = (group.spec.get("priorityClassName") for group in index.of_kind("PodGroup"))
    return {name for name in (*named, *pods, *groups) if isinstance(name, str)}


RULES = (
    Rule("priority-within-range", Severity.ERROR, priority_within_range),
    Rule("priority-has-one-default", Severity.ERROR, priority_has_one_default),
    Rule("priority-values-differ", Severity.WARNING, priority_values_differ),
    Rule("default-priority-is-low", Severity.WARNING, default_priority_is_low, needs=(Fact.PRIORITIES,)),
)
