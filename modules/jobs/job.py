"""One TrainingJob as Volcano's Job, with every default written out that the mutating webhook would fill in; as a
CronJob where it has a schedule, as a JobTemplate where it belongs to a flow."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.gathering.documents import merge
from basalt.objects import MANAGED_BY, SURVIVE, Manifest
from basalt.pointers import Pointer
from modules.jobs import flows, plugins, pods, tasks
from modules.jobs.context import Built, Context, moved
from modules.jobs.durations import seconds
from modules.jobs.filling import RETRIES, SCHEDULER, filled
from modules.jobs.tasks import Task

API_VERSION = "batch.volcano.sh/v1alpha1"
_CRON_DEFAULTS = {
    "concurrencyPolicy": "Forbid",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}


def job(metadata: Mapping[str, Any], spec: Mapping[str, Any], context: Context) -> Manifest:
    """The Job, CronJob or JobTemplate, the patch applied last."""
    built = _job_spec(spec, context, _job_name(metadata, spec))
    if "schedule" in spec:
        made = _cron_job(metadata, spec, built)
        at: Pointer = ("spec", "jobTemplate", "spec")
    else:
        in_flow = flows.flow_of(metadata, spec) is not None
        version, kind = (flows.API_VERSION, "JobTemplate") if in_flow else (API_VERSION, "Job")
        value = {"apiVersion": version, "kind": kind, "metadata": _metadata(metadata, spec), "spec": built.value}
        made = Built(value, {(): (), **_annotated((), spec), **moved(built.origins, ("spec",))})
        at = ("spec",)
    patch = spec.get("patch") or {}
    return Manifest(_filled(merge(made.value, patch), at), _with_patch(made.origins, patch))


def _job_name(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    """What the Job will be called, after which its pods are; None where only the cluster will know."""
    if "schedule" in spec:
        return None
    name = str(metadata["name"])
    flow = flows.flow_of(metadata, spec)
    return f"{flow.name}-{name}" if flow is not None else name


def _job_spec(spec: Mapping[str, Any], context: Context, job_name: str | None) -> Built:
    every = list(tasks.tasks(spec))
    value: dict[str, Any] = {
        "schedulerName": SCHEDULER,
        "queue": spec.get("queue", context.queue),
        "minAvailable": sum(task.minimum for task in every),
        "maxRetry": spec.get("retries", RETRIES),
    }
    if "elastic" in spec:  # workers that never got a node would begin anew after the others' end
        value["minSuccess"] = spec["elastic"]["min"]
    if (priority := spec.get("priority", context.priority)) is not None:
        value["priorityClassName"] = priority
    if (ttl := seconds(spec.get("ttlAfterFinished", ""))) is not None:
        value["ttlSecondsAfterFinished"] = ttl
    if (topology := tasks.network_topology(spec.get("topology"), context.tiers)) is not None:
        value["networkTopology"] = topology
    if found := plugins.plugins(spec):
        value["plugins"] = found
    value["policies"] = tasks.policies(spec)
    built = [_task(task, spec, context, job_name) for task in every]
    value["tasks"] = [each.value for each in built]
    origins = _origins(spec)
    for index, each in enumerate(built):
        origins |= moved(each.origins, ("tasks", index))
    return Built(value, origins)


def _origins(spec: Mapping[str, Any]) -> dict[Pointer, Pointer]:
    at: Pointer = ("spec",)
    return {
        (): at,
        ("priorityClassName",): (*at, "priority"),
        ("maxRetry",): (*at, "retries"),
        ("ttlSecondsAfterFinished",): (*at, "ttlAfterFinished"),
        ("networkTopology",): (*at, "topology"),
        ("networkTopology", "highestTierAllowed"): (*at, "topology", "highestTier"),
        ("networkTopology", "highestTierName"): (*at, "topology", "highestTier"),
        ("minAvailable",): (*at, "elastic", "min") if "elastic" in spec else (*at, "roles"),
        ("minSuccess",): (*at, "elastic", "min"),
        ("plugins",): (*at, "framework"),
        **plugins.origins(spec),
        ("policies",): (*at, "framework"),
        ("tasks",): (*at, "roles"),
    }


def _task(task: Task, spec: Mapping[str, Any], context: Context, job_name: str | None) -> Built:
    role, at = spec["roles"][task.role], ("spec", "roles", task.role)
    pod = pods.template(task, spec, context, job_name)
    value: dict[str, Any] = {
        "name": task.name,
        "replicas": task.replicas,
        "minAvailable": task.minimum,
        "maxRetry": RETRIES,
    }
    origins: dict[Pointer, Pointer] = {(): at, ("minAvailable",): tasks.minimum_origin(spec, task.role)}
    if (policies := tasks.task_policies(task, spec)) != []:
        value["policies"] = policies
        origins[("policies",)] = ("spec", "framework")
    if "numa" in role:
        value["topologyPolicy"] = role["numa"]
        origins[("topologyPolicy",)] = (*at, "numa")
    if (partitions := tasks.partition_policy(task, role, context)) is not None:
        value["partitionPolicy"] = partitions.value
        origins |= moved(partitions.origins, ("partitionPolicy",))
    return Built({**value, "template": pod.value}, {**origins, **moved(pod.origins, ("template",))})


def _cron_job(metadata: Mapping[str, Any], spec: Mapping[str, Any], built: Built) -> Built:
    own = _metadata(metadata, spec)
    inner = {key: dict(own[key]) for key in ("labels", "annotations") if key in own}
    declared = spec.get("cron", {})
    value = {
        "apiVersion": API_VERSION,
        "kind": "CronJob",
        "metadata": own,
        "spec": {
            "schedule": spec["schedule"],
            **_CRON_DEFAULTS,
            **declared,
            "jobTemplate": {"metadata": inner, "spec": built.value},
        },
    }
    origins: dict[Pointer, Pointer] = {(): (), ("spec",): ("spec",), ("spec", "jobTemplate"): ("spec",)}
    for key in inner:
        origins[("spec", "jobTemplate", "metadata", key)] = ("metadata", key)
    origins |= {**_annotated((), spec), **_annotated(("spec", "jobTemplate"), spec)}
    origins |= {("spec", field): ("spec", "schedule") for field in _CRON_DEFAULTS}
    origins |= {("spec", field): ("spec", "cron", field) for field in declared}
    return Built(value, origins | moved(built.origins, ("spec", "jobTemplate", "spec")))


def _metadata(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "labels": {**MANAGED_BY, **metadata.get("labels", {})},
    }
    kept = {
        key: text
        for key, text in metadata.get("annotations", {}).items()
        if key == SURVIVE or not key.startswith("basalt.dev/")
    }
    if "survive" in spec.get("topology", {}):
        kept[SURVIVE] = str(spec["topology"]["survive"])
    return {**found, "annotations": kept} if kept else found


def _annotated(at: Pointer, spec: Mapping[str, Any]) -> dict[Pointer, Pointer]:
    """Where the annotations of the object, or of the template at the pointer, follow from the job's spec."""
    if "survive" not in spec.get("topology", {}):
        return {}
    return {(*at, "metadata", "annotations", SURVIVE): ("spec", "topology", "survive")}


def _filled(value: Any, at: Pointer) -> Any:
    """The object with the defaults of the job's spec, which stands at the given place."""
    if not at:
        return filled(value)
    first, rest = at[0], at[1:]
    if not isinstance(value, Mapping) or first not in value:
        return value
    return {**value, first: _filled(value[first], rest)}


def _with_patch(origins: Mapping[Pointer, Pointer], patch: Mapping[str, Any]) -> dict[Pointer, Pointer]:
    """The origins after the patch: nothing below a value that it sets follows from anything else."""
    patched = dict(_patched(patch, ())) if patch else {}
    kept = {at: origin for at, origin in origins.items() if not any(at[: len(each)] == each for each in patched)}
    return {**kept, **patched}


def _patched(patch: Any, pointer: Pointer) -> Iterator[tuple[Pointer, Pointer]]:
    """An origin for each value that the patch sets."""
    if isinstance(patch, Mapping) and patch:
        for key, value in patch.items():
            yield from _patched(value, (*pointer, key))
    else:
        yield pointer, ("spec", "patch", *pointer)
