"""Volcano Jobs from TrainingJobs, with every default written out that Volcano's mutating webhook would fill in.

Source of the defaults: pkg/webhooks/admission/jobs/mutate/mutate_job.go.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt.gathering.documents import merge
from basalt.objects import MANAGED_BY, Manifest
from basalt.pointers import Pointer, get
from basalt.quantities import as_written

API_VERSION = "batch.volcano.sh/v1alpha1"
SCHEDULER = "volcano"
QUEUE = "default"
_RETRIES = 3
_NEEDING_SVC = {"tensorflow", "mpi", "pytorch", "ray"}
_SHARED_MEMORY = "shared-memory"
_DURATION = re.compile(r"([0-9]+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

# svc comes with every framework that Volcano's webhook adds it to, ssh with mpi; index reads VC_TASK_INDEX (env) and
# VC_WORKER_NUM (svc).
_PLUGINS: dict[str, dict[str, list[str]]] = {
    "pytorch": {"env": [], "pytorch": ["--master=master", "--worker=worker", "--port=23456"], "svc": []},
    "tensorflow": {"env": [], "svc": [], "tensorflow": []},
    "mpi": {"env": [], "mpi": ["--master=master", "--worker=worker", "--port=22"], "ssh": [], "svc": []},
    "ray": {"ray": [], "svc": []},
    "index": {"env": [], "svc": []},
    "plain": {},
}


class Context(NamedTuple):
    """What a job takes from its surroundings where it says nothing itself; None leaves the field out."""

    queue: str
    priority: str | None
    tiers: Mapping[str, int]  # a tier's name to its number


class _Task(NamedTuple):
    name: str
    role: str  # the role it was written as: a pytorch master may come out of `worker`
    replicas: int
    minimum: int


def seconds(duration: str | int) -> int | None:
    """How many seconds "24h", "90m", "1h30m" or 3600 is; None where it is no duration."""
    if isinstance(duration, int):
        return duration
    parts = _DURATION.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)


def job(metadata: Mapping[str, Any], spec: Mapping[str, Any], context: Context) -> Manifest:
    """The Job, the patch applied last."""
    tasks = list(_tasks(spec))
    job_spec: dict[str, Any] = {
        "schedulerName": SCHEDULER,
        "queue": spec.get("queue", context.queue),
        "minAvailable": sum(task.minimum for task in tasks),
        "maxRetry": spec.get("retries", _RETRIES),
    }
    if (priority := spec.get("priority", context.priority)) is not None:
        job_spec["priorityClassName"] = priority
    if (ttl := seconds(spec.get("ttlAfterFinished", ""))) is not None:
        job_spec["ttlSecondsAfterFinished"] = ttl
    if (topology := _network_topology(spec.get("topology"), context.tiers)) is not None:
        job_spec["networkTopology"] = topology
    if plugins := _PLUGINS[spec["framework"]]:
        job_spec["plugins"] = {name: list(arguments) for name, arguments in plugins.items()}
    job_spec["policies"] = _policies(spec["framework"])
    job_spec["tasks"] = [_task(task, spec, spec["roles"][task.role]) for task in tasks]
    value = {
        "apiVersion": API_VERSION,
        "kind": "Job",
        "metadata": _metadata(metadata),
        "spec": job_spec,
    }
    patch = spec.get("patch") or {}
    return Manifest(_filled(merge(value, patch)), _with_patch(_origins(tasks, spec), patch))


def _filled(value: dict[str, Any]) -> dict[str, Any]:
    """The Job with what Volcano's webhook and the CRD's schema would still fill in, where a patch left it out. What has
    the wrong type is left as it is."""
    spec = value.get("spec")
    if not isinstance(spec, Mapping):
        return value
    filled = dict(spec)
    for field, default in (("schedulerName", SCHEDULER), ("queue", QUEUE), ("maxRetry", _RETRIES)):
        filled[field] = filled.get(field) or default
    if isinstance(spec.get("tasks"), list):
        filled["tasks"] = [_filled_task(index, task) for index, task in enumerate(spec["tasks"])]
    if not filled.get("minAvailable"):
        minimums = [task.get("minAvailable") for task in filled.get("tasks") or () if isinstance(task, Mapping)]
        filled["minAvailable"] = sum(minimum for minimum in minimums if isinstance(minimum, int))
    if isinstance(plugins := spec.get("plugins"), Mapping):
        needed = [*(["svc"] if _NEEDING_SVC & plugins.keys() else []), *(["ssh"] if "mpi" in plugins else [])]
        filled["plugins"] = {**plugins, **{name: [] for name in needed if name not in plugins}}
    return {**value, "spec": _with_mode(filled)}


def _filled_task(index: int, task: Any) -> Any:
    if not isinstance(task, Mapping):
        return task
    filled = {**task, "name": task.get("name") or f"default{index}", "maxRetry": task.get("maxRetry") or _RETRIES}
    if isinstance(policy := task.get("partitionPolicy"), Mapping):
        filled["partitionPolicy"] = _with_mode({"minPartitions": 0, **policy})
    if task.get("minAvailable") is None:
        filled["minAvailable"] = _minimum_of_partitions(filled.get("partitionPolicy")) or _replicas(task)
    pod = get(task, ("template", "spec"))
    if isinstance(pod, Mapping) and pod.get("hostNetwork") is True and not pod.get("dnsPolicy"):
        filled["template"] = {**task["template"], "spec": {**pod, "dnsPolicy": "ClusterFirstWithHostNet"}}
    return filled


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


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "labels": {**MANAGED_BY, **metadata.get("labels", {})},
    }
    kept = {key: text for key, text in metadata.get("annotations", {}).items() if not key.startswith("basalt.dev/")}
    return {**found, "annotations": kept} if kept else found


def _tasks(spec: Mapping[str, Any]) -> Iterator[_Task]:
    """A task for each role; a pytorch job without `master` has one split from `worker`, which Volcano's plugin asks
    for."""
    roles: Mapping[str, Mapping[str, Any]] = spec["roles"]
    splits = spec["framework"] == "pytorch" and "master" not in roles and roles.get("worker", {}).get("replicas", 0) > 0
    for name, role in roles.items():
        replicas = role["replicas"]
        minimum = role.get("minAvailable", replicas)
        if splits and name == "worker" and replicas > 1:
            yield _Task("master", "worker", 1, min(minimum, 1))
            yield _Task("worker", "worker", replicas - 1, max(minimum - 1, 0))
        else:
            yield _Task("master" if splits and name == "worker" else name, name, replicas, minimum)


def _network_topology(topology: Mapping[str, Any] | None, tiers: Mapping[str, int]) -> dict[str, Any] | None:
    """The tier by number, which every Volcano since 1.12 reads; by name where the tree has no such tier, so that
    topology-tier-exists names it."""
    if topology is None:
        return None
    found: dict[str, Any] = {"mode": topology.get("mode", "hard")}
    tier = topology.get("highestTier")
    if isinstance(tier, str):
        found |= {"highestTierAllowed": tiers[tier]} if tier in tiers else {"highestTierName": tier}
    elif tier is not None:
        found["highestTierAllowed"] = tier
    return found


def _policies(framework: str) -> list[dict[str, Any]]:
    """What happens when a pod is lost: ranks that talk to each other start again together, others alone."""
    action = "RestartPod" if framework in ("index", "plain") else "RestartJob"
    return [{"event": "PodEvicted", "action": action}, {"event": "PodFailed", "action": action}]


def _task(task: _Task, spec: Mapping[str, Any], role: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": task.name,
        "replicas": task.replicas,
        "minAvailable": task.minimum,
        "maxRetry": _RETRIES,
        "template": {"spec": _pod(spec, role)},
    }


def _pod(spec: Mapping[str, Any], role: Mapping[str, Any]) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = []
    for volume in spec.get("volumes", ()):
        claim = {"claimName": volume["claim"], **({"readOnly": True} if volume.get("readOnly") else {})}
        volumes.append({"name": volume["name"], "persistentVolumeClaim": claim})
    if "sharedMemory" in role:
        memory = {"medium": "Memory", "sizeLimit": role["sharedMemory"]}
        volumes.append({"name": _SHARED_MEMORY, "emptyDir": memory})
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [_container(spec, role)]}
    pod |= {key: role[key] for key in ("nodeSelector", "tolerations") if role.get(key)}
    return {**pod, "volumes": volumes} if volumes else pod


def _container(spec: Mapping[str, Any], role: Mapping[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main"}
    if image := role.get("image", spec.get("image")):
        container["image"] = image
    container |= {key: list(role[key]) for key in ("command", "args") if key in role}
    if role.get("env"):
        container["env"] = [{"name": name, "value": value} for name, value in role["env"].items()]
    if role.get("resources"):
        container["resources"] = {kind: as_written(role["resources"]) for kind in ("requests", "limits")}
    mounts = [_mount(volume) for volume in spec.get("volumes", ())]
    if "sharedMemory" in role:
        mounts.append({"name": _SHARED_MEMORY, "mountPath": "/dev/shm"})  # noqa: S108  # a mount point in the pod
    return {**container, "volumeMounts": mounts} if mounts else container


def _mount(volume: Mapping[str, Any]) -> dict[str, Any]:
    mount = {"name": volume["name"], "mountPath": volume["mountPath"]}
    return {**mount, "readOnly": True} if volume.get("readOnly") else mount


def _origins(tasks: list[_Task], spec: Mapping[str, Any]) -> dict[Pointer, Pointer]:
    at: Pointer = ("spec",)
    found: dict[Pointer, Pointer] = {
        (): (),
        at: at,
        (*at, "priorityClassName"): (*at, "priority"),
        (*at, "maxRetry"): (*at, "retries"),
        (*at, "ttlSecondsAfterFinished"): (*at, "ttlAfterFinished"),
        (*at, "networkTopology"): (*at, "topology"),
        (*at, "networkTopology", "highestTierAllowed"): (*at, "topology", "highestTier"),
        (*at, "networkTopology", "highestTierName"): (*at, "topology", "highestTier"),
        (*at, "minAvailable"): (*at, "roles"),
        (*at, "plugins"): (*at, "framework"),
        (*at, "policies"): (*at, "framework"),
        (*at, "tasks"): (*at, "roles"),
    }
    for index, task in enumerate(tasks):
        found |= _task_origins((*at, "tasks", index), (*at, "roles", task.role), spec, spec["roles"][task.role])
    return found


def _task_origins(
    task: Pointer, role: Pointer, spec: Mapping[str, Any], declared: Mapping[str, Any]
) -> dict[Pointer, Pointer]:
    pod = (*task, "template", "spec")
    container = (*pod, "containers", 0)
    found: dict[Pointer, Pointer] = {task: role, (*task, "template"): role, pod: role, container: role}
    found[(*container, "image")] = (*role, "image") if "image" in declared else ("spec", "image")
    for kind in ("requests", "limits"):
        found[(*container, "resources", kind)] = (*role, "resources")
    for index, name in enumerate(declared.get("env", ())):
        found[(*container, "env", index)] = (*role, "env", name)
        found[(*container, "env", index, "value")] = (*role, "env", name)
    for index, _ in enumerate(spec.get("volumes", ())):
        found[(*pod, "volumes", index)] = ("spec", "volumes", index)
        found[(*pod, "volumes", index, "persistentVolumeClaim", "claimName")] = ("spec", "volumes", index, "claim")
        found[(*container, "volumeMounts", index)] = ("spec", "volumes", index)
    shared = (*pod, "volumes", len(spec.get("volumes", ())))
    return found | {shared: (*role, "sharedMemory"), (*shared, "emptyDir", "sizeLimit"): (*role, "sharedMemory")}


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
