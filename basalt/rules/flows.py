"""What starts jobs, and what jobs refer to: cron schedules, flows, templates, priorities."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt import names
from basalt.api import cron
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import KubeObject
from basalt.pointers import Pointer
from basalt.rules.bounds import joined
from basalt.rules.rule import Rule
from basalt.views.flows import Flow, circles, flows
from basalt.views.pods import pods

# SystemPriorityClasses in k8s.io/kubernetes/pkg/apis/scheduling/v1/helpers.go; the API server makes them.
_SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")

# The API server reads the schedules of its own kind as Volcano's webhook does: validateScheduleFormat and
# validateTimeZone in k8s.io/kubernetes/pkg/apis/batch/validation/validation.go.
_CRON_JOBS = frozenset({("batch.volcano.sh", "CronJob"), ("batch", "CronJob")})


def cron_schedule_is_valid(index: Index) -> Iterator[Problem]:
    judged = (("schedule", cron.schedule_fault), ("timeZone", cron.zone_fault))
    for declared in (each for each in index.others if (each.ref.group, each.ref.kind) in _CRON_JOBS):
        for field, judge in judged:
            value = declared.spec.get(field)
            if isinstance(value, str) and (fault := judge(value)):
                yield Problem(declared, ("spec", field), *fault)


def flow_is_a_dag(index: Index) -> Iterator[Problem]:
    for declared in index.of_kind("JobFlow"):
        steps = list(flows(declared))
        yield from _named_twice(declared, steps)
        yield from _undefined(declared, steps)
        yield from _circular(declared, steps)


def _named_twice(declared: KubeObject, steps: Iterable[Flow]) -> Iterator[Problem]:
    seen: set[str] = set()
    for flow in steps:
        if flow.name in seen:
            message = f"another flow is named {flow.name}: both would make one job, and the JobFlow never succeeds"
            yield Problem(declared, (*flow.pointer, "name"), message, "name another JobTemplate, or take the flow out")
        seen.add(flow.name)


def _undefined(declared: KubeObject, steps: list[Flow]) -> Iterator[Problem]:
    known = {flow.name for flow in steps}
    for flow in steps:
        for pointer, target in flow.targets:
            if target not in known:
                hint = names.did_you_mean(target, known - {flow.name}, otherwise="name a flow of this JobFlow")
                yield Problem(declared, pointer, f"depends on {target}, which is no flow of this JobFlow", hint)


def _circular(declared: KubeObject, steps: list[Flow]) -> Iterator[Problem]:
    for circle in circles(steps):
        first, *others = circle
        if others:
            shown = joined([*(flow.name for flow in circle), first.name], " -> ")
            message, hint = f"the flows wait for each other: {shown}", "take one of these dependencies out"
            yield Problem(declared, first.pointer_of(others[0].name), message, hint)
        else:
            message = f"{first.name} waits for itself"
            yield Problem(declared, first.pointer_of(first.name), message, "take it out of its own targets")


def flow_template_exists(index: Index) -> Iterator[Problem]:
    templates: dict[str, set[str | None]] = {}
    for template in index.of_kind("JobTemplate"):
        templates.setdefault(template.name, set()).add(template.ref.namespace)
    for declared in index.of_kind("JobFlow"):
        namespace = declared.ref.namespace
        seen: set[str] = set()
        for flow in flows(declared):
            found = templates.get(flow.name, set())
            if not _share(namespace, found) and flow.name not in seen:
                seen.add(flow.name)
                message = f"the JobTemplate {flow.name} is not declared" + (f" in {namespace}" if namespace else "")
                yield Problem(
                    declared, (*flow.pointer, "name"), message, _template_hint(flow.name, namespace, templates)
                )


def _share(namespace: str | None, others: set[str | None]) -> bool:
    """Whether one of them is the namespace, or may be: kubectl decides where none is said."""
    return bool(others) and (namespace is None or bool(others & {namespace, None}))


def _template_hint(name: str, namespace: str | None, templates: Mapping[str, set[str | None]]) -> str:
    if elsewhere := templates.get(name):
        there = names.listed(sorted(filter(None, elsewhere)))
        return f"a JobFlow takes the templates of its own namespace; there is one in {there}"
    near = [other for other, found in templates.items() if _share(namespace, found)]
    return names.did_you_mean(name, near, otherwise="declare it")


def priority_exists(index: Index) -> Iterator[Problem]:
    declared = {each.name for each in index.of_kind("PriorityClass")}
    known = declared | {*_SYSTEM_PRIORITIES}
    hints: dict[str, str] = {}
    for each, pointer, spec in _with_priority(index):
        name = spec.get("priorityClassName")
        if isinstance(name, str) and name and name not in known:
            if name not in hints:
                proposed = known if name.startswith("system-") else declared
                hints[name] = names.did_you_mean(name, proposed, otherwise="declare it")
            message = f"the PriorityClass {name} is not declared"
            yield Problem(each, (*pointer, "priorityClassName"), message, hints[name])


def _with_priority(index: Index) -> Iterator[tuple[KubeObject, Pointer, Mapping[str, Any]]]:
    """Everything that may name a class: jobs, PodGroups, and pods wherever they stand."""
    for workload in index.workloads:
        yield workload.object, workload.pointer, workload.spec
    for group in index.of_kind("PodGroup"):
        yield group, ("spec",), group.spec
    yield from pods(index.others)


RULES: tuple[Rule, ...] = (
    Rule("cron-schedule-is-valid", Severity.ERROR, cron_schedule_is_valid),
    Rule("flow-is-a-dag", Severity.ERROR, flow_is_a_dag),
    Rule("flow-template-exists", Severity.ERROR, flow_template_exists, needs=(Fact.JOB_TEMPLATES,)),
    Rule("priority-exists", Severity.ERROR, priority_exists, needs=(Fact.PRIORITIES,)),
)
