"""The tasks of a job by its roles, and what happens when pods of theirs end."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt.pointers import Pointer
from modules.jobs.context import Built, Context

_ALONE = ("index", "plain")  # pods that know nothing of each other
# The roles that end when the work is done, the first that a job has; others wait for ever: ps, sshd, ray's head.
_FINISHING = {"tensorflow": ("chief", "master", "worker"), "mpi": ("master",)}
_RAY_NODES = ("head", "worker")


class Task(NamedTuple):
    name: str
    role: str  # the role it was written as: a pytorch master may come out of `worker`
    replicas: int
    minimum: int


def tasks(spec: Mapping[str, Any]) -> Iterator[Task]:
    """A task for each role; a pytorch job without `master` has one split from `worker`, which Volcano's plugin asks
    for. An elastic one has no master, and of one in partitions no pod can be taken out."""
    roles: Mapping[str, Mapping[str, Any]] = spec["roles"]
    worker = roles.get("worker", {})
    needs_master = spec["framework"] == "pytorch" and "elastic" not in spec and "master" not in roles
    splits = needs_master and worker.get("replicas", 0) > 0 and "partitions" not in worker
    for name, role in roles.items():
        replicas = role["replicas"]
        minimum = role.get("minAvailable", _minimum(spec, name, replicas))
        if splits and name == "worker" and replicas > 1:
            yield Task("master", "worker", 1, min(minimum, 1))
            yield Task("worker", "worker", replicas - 1, max(minimum - 1, 0))
        else:
            yield Task("master" if splits and name == "worker" else name, name, replicas, minimum)


def _minimum(spec: Mapping[str, Any], name: str, replicas: int) -> int:
    """The role's minAvailable where it says none itself."""
    if "elastic" in spec and name == "worker":
        return int(spec["elastic"]["min"])
    partitions = spec["roles"][name].get("partitions", {})
    return int(partitions["min"] * partitions["size"]) if partitions.get("min") else replicas


def minimum_origin(spec: Mapping[str, Any], role: str) -> Pointer:
    """What the role's minAvailable follows from."""
    at: Pointer = ("spec", "roles", role)
    if "minAvailable" in spec["roles"][role]:
        return (*at, "minAvailable")
    if "elastic" in spec and role == "worker":
        return ("spec", "elastic", "min")
    return (*at, "partitions", "min") if spec["roles"][role].get("partitions", {}).get("min") else (*at, "minAvailable")


def partition_policy(task: Task, role: Mapping[str, Any], context: Context) -> Built | None:
    """The task's partitions, all of them needed where nothing else is said."""
    declared = role.get("partitions")
    if declared is None:
        return None
    size = declared["size"]
    least = declared.get("min", task.minimum // size if task.minimum % size == 0 else 0)
    at: Pointer = ("spec", "roles", task.role, "partitions")
    value = {"totalPartitions": declared["count"], "partitionSize": size, "minPartitions": least}
    origins: dict[Pointer, Pointer] = {
        (): at,
        ("totalPartitions",): (*at, "count"),
        ("partitionSize",): (*at, "size"),
        ("minPartitions",): (*at, "min"),
    }
    if "highestTier" in declared:
        tier = network_topology({"highestTier": declared["highestTier"]}, context.tiers)
        value["networkTopology"] = tier
        origins |= {("networkTopology",): at, **_tier_origins(("networkTopology",), at)}
    return Built(value, origins)


def _tier_origins(pointer: Pointer, at: Pointer) -> dict[Pointer, Pointer]:
    return {(*pointer, field): (*at, "highestTier") for field in ("highestTierAllowed", "highestTierName")}


def network_topology(topology: Mapping[str, Any] | None, tiers: Mapping[str, int]) -> dict[str, Any] | None:
    """The tier by number, which every Volcano since 1.12 reads; by name where the tree has no such tier, so that
    topology-tier-exists names it. None where nothing is said of how close together the pods run."""
    if topology is None or topology.keys() == {"survive"}:
        return None
    found: dict[str, Any] = {"mode": topology.get("mode", "hard")}
    tier = topology.get("highestTier")
    if isinstance(tier, str):
        found |= {"highestTierAllowed": tiers[tier]} if tier in tiers else {"highestTierName": tier}
    elif tier is not None:
        found["highestTierAllowed"] = tier
    return found


def policies(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What happens when a pod is lost: ranks that talk to each other start again together, others alone, and elastic
    ones go on with those that are left."""
    action = "RestartPod" if spec["framework"] in _ALONE or "elastic" in spec else "RestartJob"
    return [{"event": "PodEvicted", "action": action}, {"event": "PodFailed", "action": action}]


def task_policies(task: Task, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The end of the task that does the work is the end of the job, whatever its servers do."""
    framework, roles = spec["framework"], spec["roles"]
    finishing = next((name for name in _FINISHING.get(framework, ()) if name in roles), None)
    is_driver = framework == "ray" and task.name not in _RAY_NODES
    if task.name != finishing and not is_driver:
        return []
    return [{"event": "TaskCompleted", "action": "CompleteJob"}]
