"""A task of a Volcano Job to the role of a TrainingJob that might make it. Pure."""

from collections.abc import Mapping
from typing import Any

from basalt.objects import mapping, sequence, strings
from basalt.pointers import get

_SHARED_MEMORY, _CHECKPOINT, _HOSTFILE = "shared-memory", "checkpoint", "hostfile"
_OWN = (_SHARED_MEMORY, _CHECKPOINT, _HOSTFILE)
_CHECKPOINTS = "/checkpoints"
_POD_SECURITY = ("runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup", "supplementalGroups")
_CONTAINER_SECURITY = ("allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities")
_SPREADS = {
    "requiredDuringSchedulingIgnoredDuringExecution": "required",
    "preferredDuringSchedulingIgnoredDuringExecution": "preferred",
}
_RAY_PORTS = ("gcs", "dashboard", "client-server")
# What modules/jobs adds to a container by itself.
_ADDED = {
    "tensorflow": ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
    "mpi": ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
    "ray": ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"),
    "pytorch": ("PET_NNODES", "PET_MAX_RESTARTS", "PET_RDZV_BACKEND", "PET_RDZV_ID", "PET_RDZV_ENDPOINT",
                "PET_NPROC_PER_NODE"),
}  # fmt: skip
Role = dict[str, Any]


class Unspeakable(Exception):
    """No document says what the object says; the message is the reason."""


def role(task: Mapping[str, Any], framework: str, *, terse: bool) -> Role:
    """The role; terse leaves out what the framework adds by itself."""
    pod = mapping(get(task, ("template", "spec")))
    container = _container(task, pod)
    found: Role = {"replicas": task.get("replicas", 1)}
    if task.get("minAvailable") not in (None, found["replicas"]) and "partitionPolicy" not in task:
        found["minAvailable"] = task["minAvailable"]
    found |= {key: container[key] for key in ("image", "command", "args") if key in container}
    added = _ADDED.get(framework, ()) if terse else ()
    if env := {name: text for name, text in _environment(container).items() if name not in added}:
        found["env"] = env
    resources = mapping(container.get("resources"))
    if amounts := resources.get("limits") or resources.get("requests"):
        found["resources"] = amounts
    found |= _volumes(pod, container)
    ports = [each for each in sequence(container.get("ports"))
             if not (terse and framework == "ray" and mapping(each).get("name") in _RAY_PORTS)]  # fmt: skip
    found |= {"ports": ports} if ports else {}
    return {**found, **_placement(task, pod, framework), **_security(pod, container)}


def _container(task: Mapping[str, Any], pod: Mapping[str, Any]) -> Mapping[str, Any]:
    containers = sequence(pod.get("containers"))
    if len(containers) != 1:
        raise Unspeakable(f"its task {task.get('name')} has {len(containers)} containers, a role makes one")
    return mapping(containers[0])


def _environment(container: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in map(mapping, sequence(container.get("env"))):
        if "valueFrom" in each or each.get("name") in found:
            raise Unspeakable(f"its variable {each.get('name')} is no plain text")
        found[str(each.get("name"))] = each.get("value", "")
    return found


def _volumes(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Role:
    """The role's own: its shared memory and its checkpoints."""
    by_name = {each.get("name"): each for each in map(mapping, sequence(pod.get("volumes")))}
    mounts = {each.get("name"): each for each in map(mapping, sequence(container.get("volumeMounts")))}
    found: Role = {}
    if (size := get(by_name.get(_SHARED_MEMORY), ("emptyDir", "sizeLimit"))) is not None:
        found["sharedMemory"] = size
    if (claim := get(by_name.get(_CHECKPOINT), ("persistentVolumeClaim", "claimName"))) is not None:
        mount = mapping(mounts.get(_CHECKPOINT))
        found["checkpoint"] = {"claim": claim}
        if mount.get("mountPath") != _CHECKPOINTS:
            found["checkpoint"]["mountPath"] = mount.get("mountPath")
        found["checkpoint"] |= {"subPath": mount["subPath"]} if "subPath" in mount else {}
    return found


def common_volumes(tasks: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The job's volumes, which all of its pods mount."""
    every = [_shared(task) for task in tasks]
    if any(each != every[0] for each in every):
        raise Unspeakable("its tasks mount different volumes")
    return every[0]


def _shared(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    pod = mapping(get(task, ("template", "spec")))
    mounts = {
        each.get("name"): each for each in map(mapping, sequence(mapping(_container(task, pod)).get("volumeMounts")))
    }
    found = []
    for volume in map(mapping, sequence(pod.get("volumes"))):
        name = volume.get("name")
        is_claimed = name == _CHECKPOINT and "persistentVolumeClaim" in volume
        if name in _OWN and (is_claimed or "emptyDir" in volume):
            continue
        if name not in mounts:
            raise Unspeakable(f"its volume {name} is mounted nowhere")
        found.append({"name": name, **_mount(mounts[name]), **_source(volume)})
    return found


def _mount(mount: Mapping[str, Any]) -> dict[str, Any]:
    return {key: mount[key] for key in ("mountPath", "subPath", "readOnly") if mount.get(key)}


def _source(volume: Mapping[str, Any]) -> dict[str, Any]:
    if (claim := get(volume, ("persistentVolumeClaim", "claimName"))) is not None:
        return {"claim": claim}
    if "emptyDir" in volume:
        return {"emptyDir": volume["emptyDir"] or {}}
    if (spec := get(volume, ("ephemeral", "volumeClaimTemplate", "spec"))) is not None:
        amounts = mapping(get(spec, ("resources", "requests")))
        own = {key: mapping(spec)[key] for key in ("accessModes", "storageClassName") if key in mapping(spec)}
        return {"ephemeral": {"storage": amounts.get("storage"), **own}}
    kind = next((key for key in volume if key != "name"), "nothing")
    raise Unspeakable(f"its volume {volume.get('name')} comes from {kind}")


def _placement(task: Mapping[str, Any], pod: Mapping[str, Any], framework: str) -> Role:
    found: Role = {field: pod[field] for field in ("nodeSelector", "tolerations") if pod.get(field)}
    spread = [word for field, word in _SPREADS.items() if get(pod, ("affinity", "podAntiAffinity", field))]
    if spread:
        found["spread"] = spread[0]
    elif framework == "tensorflow" and task.get("name") == "ps":
        found["spread"] = "none"
    if "topologyPolicy" in task:
        found["numa"] = task["topologyPolicy"]
    if isinstance(policy := task.get("partitionPolicy"), Mapping):
        found["partitions"] = {"count": policy.get("totalPartitions"), "size": policy.get("partitionSize"),
                               "min": policy.get("minPartitions", 0)}  # fmt: skip
        tier = get(policy, ("networkTopology", "highestTierAllowed"))
        found["partitions"] |= {} if tier is None else {"highestTier": tier}
        if task.get("minAvailable") is not None:
            found["minAvailable"] = task["minAvailable"]
    return found


def _security(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Role:
    """The capabilities are a map of lists; anything else is no role's."""
    of_pod, of_container = mapping(pod.get("securityContext")), mapping(container.get("securityContext"))
    found = {field: of_pod[field] for field in _POD_SECURITY if field in of_pod}
    found |= {field: of_container[field] for field in _CONTAINER_SECURITY if field in of_container}
    if "capabilities" in found:
        found["capabilities"] = {key: strings(names) for key, names in mapping(found["capabilities"]).items()}
    return {"securityContext": found} if found else {}
