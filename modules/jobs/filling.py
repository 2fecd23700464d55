"""What Volcano's mutating webhook and the CRD's schema fill in, where a patch left it out.

Source: pkg/webhooks/admission/jobs/mutate/mutate_job.go.
"""

from collections.abc import Mapping
from typing import Any

from basalt.pointers import get

SCHEDULER = "volcano"
QUEUE = "default"
RETRIES = 3
_NEEDING_SVC = {"tensorflow", "mpi", "pytorch", "ray"}


def filled(spec: Any) -> Any:
    """The job's spec with the defaults. What has the wrong type is left as it is."""
    if not isinstance(spec, Mapping):
        return spec
    found = dict(spec)
    for field, default in (("schedulerName", SCHEDULER), ("queue", QUEUE), ("maxRetry", RETRIES)):
        found[field] = found.get(field) or default
    if isinstance(spec.get("tasks"), list):
        found["tasks"] = [_task(index, task) for index, task in enumerate(spec["tasks"])]
    if not found.get("minAvailable"):
        minimums = [task.get("minAvailable") for task in found.get("tasks") or () if isinstance(task, Mapping)]
        found["minAvailable"] = sum(minimum for minimum in minimums if isinstance(minimum, int))
    if isinstance(plugins := spec.get("plugins"), Mapping):
        needed = [*(["svc"] if _NEEDING_SVC & plugins.keys() else []), *(["ssh"] if "mpi" in plugins else [])]
        found["plugins"] = {**plugins, **{name: [] for name in needed if name not in plugins}}
    return _with_mode(found)


def _task(index: int, task: Any) -> Any:
    if not isinstance(task, Mapping):
        return task
    found = {**task, "name": task.get("name") or f"default{index}", "maxRetry": task.get("maxRetry") or RETRIES}
    if isinstance(policy := task.get("partitionPolicy"), Mapping):
        found["partitionPolicy"] = _with_mode({"minPartitions": 0, **policy})
    if task.get("minAvailable") is None:
        found["minAvailable"] = _minimum_of_partitions(found.get("partitionPolicy")) or _replicas(task)
    pod = get(task, ("template", "spec"))
    if isinstance(pod, Mapping) and pod.get("hostNetwork") is True and not pod.get("dnsPolicy"):
        found["template"] = {**task["template"], "spec": {**pod, "dnsPolicy": "ClusterFirstWithHostNet"}}
    return found


def _replicas(task: Mapping[str, Any]) -> int:
    replicas = task.get("replicas")
    return replicas if isinstance(replicas, int) else 0


def _minimum_of_partitions(policy: Any) -> int:
    least, size = (get(policy, (field,)) for field in ("minPartitions", "partitionSize"))
    return least * size if isinstance(least, int) and isinstance(size, int) else 0


def _with_mode(value: dict[str, Any]) -> dict[str, Any]:
    """The map, its networkTopology with the mode that the CRD's schema fills in."""
    topology = value.get("networkTopology")
    return {**value, "networkTopology": {"mode": "hard", **topology}} if isinstance(topology, Mapping) else value
