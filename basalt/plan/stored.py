"""What a cluster makes of an object when it takes it, as far as two spellings of one object differ by it: the defaults
of Volcano's webhooks and of the API server, and what tools keep in it for themselves. Pure.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from basalt.findings import Ref
from basalt.objects import MANAGED_BY, mapping
from modules.jobs import filled

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_QUEUE_DEFAULTS = {"weight": 1, "reclaimable": True, "dequeueStrategy": "traverse"}
_PRIORITY_DEFAULTS = {"globalDefault": False, "preemptionPolicy": "PreemptLowerPriority"}
_CRON_DEFAULTS = {
    "concurrencyPolicy": "Allow",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}
_ROOT = "root"


def stored(value: Mapping[str, Any], ref: Ref) -> Mapping[str, Any]:
    """The object with its defaults, without the label that says that Basalt manages it and without kubectl's note of
    what was applied last. Pointers into the result are pointers into the object, but for members of HyperNodes."""
    found = {**value, "metadata": _metadata(value.get("metadata"))} if "metadata" in value else dict(value)
    fill = _FILLED.get((ref.group, ref.kind))
    return fill(found) if fill else found


def _metadata(metadata: Any) -> Any:
    if not isinstance(metadata, Mapping):
        return metadata
    found = dict(metadata)
    for field, own in (("labels", MANAGED_BY), ("annotations", {LAST_APPLIED: None})):
        kept = {key: text for key, text in mapping(found.pop(field, None)).items() if not _is_own(own, key, text)}
        found |= {field: kept} if kept else {}
    return found


def _is_own(own: Mapping[str, Any], key: str, text: Any) -> bool:
    return key in own and own[key] in (None, text)


def _queue(value: dict[str, Any]) -> dict[str, Any]:
    spec = {key: each for key, each in mapping(value.get("spec")).items() if each not in (None, {})}
    if spec.get("guarantee") == {"resource": {}}:
        del spec["guarantee"]
    if mapping(value.get("metadata")).get("name") != _ROOT:
        spec["parent"] = spec.get("parent") or _ROOT
    return {**value, "spec": {**_QUEUE_DEFAULTS, **spec}}


def _priority_class(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, **{key: each for key, each in _PRIORITY_DEFAULTS.items() if value.get(key) is None}}


def _hyper_node(value: dict[str, Any]) -> dict[str, Any]:
    """With its members in one order: they are a set."""
    spec = mapping(value.get("spec"))
    members = spec.get("members")
    if not isinstance(members, list):
        return value
    return {**value, "spec": {**spec, "members": sorted(members, key=lambda each: json.dumps(each, sort_keys=True))}}


def _job(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "spec": _job_spec(value["spec"])} if "spec" in value else value


def _job_spec(spec: Any) -> Any:
    found = filled(spec)
    if not isinstance(found, Mapping) or not isinstance(found.get("tasks"), list):
        return found
    return {**found, "tasks": [_task(each) for each in found["tasks"]]}


def _task(task: Any) -> Any:
    """The task without empty metadata of its pods, which tools write and no server keeps."""
    template = mapping(mapping(task).get("template"))
    if "metadata" not in template or any(each is not None for each in mapping(template["metadata"]).values()):
        return task
    return {**task, "template": {key: each for key, each in template.items() if key != "metadata"}}


def _cron_job(value: dict[str, Any]) -> dict[str, Any]:
    spec = value.get("spec")
    template = mapping(mapping(spec).get("jobTemplate"))
    if not template:
        return value
    made = {**template, "spec": _job_spec(template.get("spec"))}
    metadata = _metadata(made.pop("metadata", None))
    made |= {"metadata": metadata} if metadata else {}
    return {**value, "spec": {**_CRON_DEFAULTS, **mapping(spec), "jobTemplate": made}}


_FILLED: Mapping[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("scheduling.volcano.sh", "Queue"): _queue,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("topology.volcano.sh", "HyperNode"): _hyper_node,
    ("batch.volcano.sh", "Job"): _job,
    ("batch.volcano.sh", "CronJob"): _cron_job,
    ("flow.volcano.sh", "JobTemplate"): _job,
}
