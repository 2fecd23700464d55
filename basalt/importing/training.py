"""Volcano's Jobs and CronJobs to TrainingJobs that might make them: proposals, of which the caller takes the first that
does. The inverse of modules/jobs. Pure.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt.gathering.documents import API_VERSION
from basalt.importing.roles import Unspeakable, common_volumes, role
from basalt.objects import MANAGED_BY, mapping, sequence
from basalt.plan.stored import LAST_APPLIED

_FRAMEWORKS = ("pytorch", "tensorflow", "mpi", "ray")
_COMMON = ("terminationGracePeriodSeconds", "serviceAccountName")
_CRON = ("timeZone", "concurrencyPolicy", "suspend", "startingDeadlineSeconds", "successfulJobsHistoryLimit",
         "failedJobsHistoryLimit")  # fmt: skip
_CRON_DEFAULTS = {"concurrencyPolicy": "Forbid", "suspend": False, "successfulJobsHistoryLimit": 3,
                  "failedJobsHistoryLimit": 1}  # fmt: skip
_RETRIES = 3
_UNITS = (("h", 3600), ("m", 60), ("s", 1))
Spec = dict[str, Any]


class Surroundings(NamedTuple):
    """What a job is proposed for: the Environment's tiers by number, the queue and priority of jobs that name none, and
    the flow that it is a step of."""

    tiers: Mapping[int, str]
    queue: str = "default"
    priority: str | None = None
    flow: Mapping[str, Any] | None = None


def proposals(value: Mapping[str, Any], around: Surroundings) -> Iterator[dict[str, Any]]:
    """TrainingJobs for a Job, CronJob or JobTemplate, the tersest first. Raises Unspeakable, with the reason, where
    there is none."""
    spec = mapping(value.get("spec"))
    is_cron = value.get("kind") == "CronJob"
    inner = mapping(mapping(spec.get("jobTemplate")).get("spec")) if is_cron else spec
    timing: Spec = {}
    if is_cron:
        cron = {field: spec[field] for field in _CRON if field in spec}
        timing = {"schedule": spec.get("schedule"), "cron": _cron({"concurrencyPolicy": "Allow", **cron})}
    elif around.flow is not None:
        timing = {"flow": around.flow}
    for proposed in _specs(inner, around):
        yield {
            "apiVersion": API_VERSION,
            "kind": "TrainingJob",
            "metadata": _metadata(mapping(value.get("metadata"))),
            "spec": {**proposed, **{field: part for field, part in timing.items() if part != {}}},
        }


def _cron(declared: Spec) -> Spec:
    """Without what Basalt's document says by default."""
    return {field: part for field, part in declared.items() if part != _CRON_DEFAULTS.get(field)}


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    found = {"name": metadata.get("name"), "namespace": metadata.get("namespace") or "default"}
    labels = {
        key: text for key, text in mapping(metadata.get("labels")).items() if (key, text) not in MANAGED_BY.items()
    }
    annotations = {key: text for key, text in mapping(metadata.get("annotations")).items() if key != LAST_APPLIED}
    return {**found, **({"labels": labels} if labels else {}), **({"annotations": annotations} if annotations else {})}


def _specs(spec: Mapping[str, Any], around: Surroundings) -> Iterator[Spec]:
    tasks = [mapping(each) for each in sequence(spec.get("tasks"))]
    if not tasks:
        raise Unspeakable("it has no tasks")
    for terse in (True, False):
        for framework, more in _frameworks(spec, tasks):
            yield from _with_roles({"framework": framework, **_head(spec, around)}, more, tasks, terse=terse)


def _frameworks(spec: Mapping[str, Any], tasks: list[Mapping[str, Any]]) -> Iterator[tuple[str, Spec]]:
    """What the plugins and the tasks' names say the job is, each with the fields of that framework alone."""
    plugins = mapping(spec.get("plugins"))
    for name in _FRAMEWORKS:
        if name in plugins:
            yield name, _of_mpi(plugins, tasks) if name == "mpi" else {}
    if spec.get("minSuccess") is not None and len(tasks) == 1:
        yield "pytorch", {"elastic": _elastic(spec, tasks[0])}
    if plugins.keys() & {"env", "svc"}:
        yield "index", {}
    if not plugins.keys() & set(_FRAMEWORKS):
        yield "plain", {}


def _elastic(spec: Mapping[str, Any], task: Mapping[str, Any]) -> Spec:
    found = {"min": spec["minSuccess"]}
    env = {each.get("name"): str(each.get("value")) for each in _environment(task)}
    most = env.get("PET_NNODES", "").partition(":")[2]
    if most.isdecimal() and int(most) != task.get("replicas"):
        found["max"] = int(most)
    restarts = env.get("PET_MAX_RESTARTS", "")
    return {**found, **({"maxRestarts": int(restarts)} if restarts.isdecimal() and restarts != "3" else {})}


def _environment(task: Mapping[str, Any], field: str = "containers") -> list[Mapping[str, Any]]:
    containers = sequence(_pod(task).get(field))
    return [mapping(each) for each in sequence(mapping(containers[0]).get("env"))] if containers else []


def _pod(task: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(task.get("template")).get("spec"))


def _of_mpi(plugins: Mapping[str, Any], tasks: list[Mapping[str, Any]]) -> Spec:
    """The port and the keys' folder from the plugins' flags, the slots from the container that writes the host file."""
    flags = " ".join(str(each) for name in ("mpi", "ssh") for each in sequence(plugins.get(name)))
    found: Spec = {}
    if (port := re.search(r"--port=([0-9]{1,5})\b", flags)) and port[1] != "22":
        found["port"] = int(port[1])
    if path := re.search(r"--ssh-key-file-path=(\S+)", flags):
        found["sshKeyFilePath"] = path[1]
    slots = [each.get("value") for task in tasks for each in _environment(task, "initContainers")
             if each.get("name") == "SLOTS"]  # fmt: skip
    workers = next((task for task in tasks if task.get("name") == "worker"), {})
    if slots and str(slots[0]).isdecimal() and str(slots[0]) != str(_gpus(workers)):
        found["slots"] = int(str(slots[0]))
    return {"mpi": found} if found else {}


def _gpus(task: Mapping[str, Any]) -> int:
    containers = sequence(_pod(task).get("containers"))
    limits = mapping(mapping(mapping(containers[0]).get("resources")).get("limits")) if containers else {}
    count = str(limits.get("nvidia.com/gpu", 1))
    return int(count) if count.isdecimal() else 1


def _head(spec: Mapping[str, Any], around: Surroundings) -> Spec:
    """What is said of the job as a whole."""
    queue = spec.get("queue") or "default"
    found: Spec = {} if queue == around.queue else {"queue": queue}
    if spec.get("priorityClassName") not in (None, "", around.priority):
        found["priority"] = spec["priorityClassName"]
    if spec.get("maxRetry") not in (None, 0, _RETRIES):
        found["retries"] = spec["maxRetry"]
    if (ttl := spec.get("ttlSecondsAfterFinished")) is not None:
        found["ttlAfterFinished"] = _duration(ttl)
    if (topology := spec.get("networkTopology")) is not None:
        found["topology"] = _topology(mapping(topology), around.tiers)
    return found


def _duration(seconds: Any) -> Any:
    if not isinstance(seconds, int) or seconds <= 0:
        return seconds
    unit, size = next(each for each in _UNITS if seconds % each[1] == 0)
    return f"{seconds // size}{unit}"


def _topology(topology: Mapping[str, Any], tiers: Mapping[int, str]) -> Spec:
    tier = topology.get("highestTierAllowed")
    named = topology.get("highestTierName")
    if tier is not None and named is None:
        named = tiers.get(tier, tier) if isinstance(tier, int) else tier
    return {"mode": topology.get("mode", "hard"), **({} if named is None else {"highestTier": named})}


def _with_roles(head: Spec, more: Spec, tasks: list[Mapping[str, Any]], *, terse: bool) -> Iterator[Spec]:
    """The spec with a role for each task; the master of a pytorch job first as one that is split from its workers."""
    volumes = common_volumes(tasks)
    roles = {str(task.get("name", f"default{at}")): role(task, head["framework"], terse=terse)
             for at, task in enumerate(tasks)}  # fmt: skip
    if len(roles) != len(tasks):
        raise Unspeakable("two of its tasks have one name")
    images = {each.get("image") for each in roles.values()}
    spec = {"framework": head["framework"]}
    if len(images) == 1 and None not in images:
        spec["image"] = next(iter(images))
        roles = {name: {key: part for key, part in each.items() if key != "image"} for name, each in roles.items()}
    if "elastic" in more:  # which is its workers' minAvailable
        roles = {
            name: {key: part for key, part in each.items() if key != "minAvailable"} for name, each in roles.items()
        }
    spec |= {**head, **more}
    common = _common(tasks, volumes)
    if joined := _joined(head["framework"], roles):
        yield {**spec, "roles": joined, **common}
    yield {**spec, "roles": roles, **common}


def _joined(framework: str, roles: Mapping[str, Spec]) -> dict[str, Spec] | None:
    """The workers with the master among them, where that is one of them."""
    if framework != "pytorch" or roles.keys() != {"master", "worker"} or [*roles] != ["master", "worker"]:
        return None
    master, worker = roles["master"], roles["worker"]
    if not all(isinstance(each["replicas"], int) for each in roles.values()) or master["replicas"] != 1:
        return None
    least = [each.get("minAvailable", each["replicas"]) for each in (master, worker)]
    together = {**worker, "replicas": 1 + worker["replicas"]}
    together.pop("minAvailable", None)
    minimum = sum(each for each in least if isinstance(each, int))
    if minimum != together["replicas"]:
        together["minAvailable"] = minimum
    return {"worker": together}


def _common(tasks: list[Mapping[str, Any]], volumes: list[Spec]) -> Spec:
    """What all pods have in common."""
    found: Spec = {"volumes": volumes} if volumes else {}
    for field in _COMMON:
        if field in (pod := _pod(tasks[0])):
            found[field] = pod[field]
    if secrets := sequence(_pod(tasks[0]).get("imagePullSecrets")):
        found["imagePullSecrets"] = [mapping(each).get("name") for each in secrets]
    return found
