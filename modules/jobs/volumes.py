"""What a pod mounts: the job's volumes, the role's checkpoints, and its shared memory."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.pointers import Pointer
from modules.jobs.context import Volume

CHECKPOINT = "checkpoint"
SHARED_MEMORY = "shared-memory"
CHECKPOINT_PATH = "/checkpoints"
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108  # a mount point in the pod
_WRITABLE = "ReadWriteOnce"  # of a volume that one pod has for itself


def volumes(spec: Mapping[str, Any], name: str) -> Iterator[Volume]:
    """All volumes of a role's pods, the job's first."""
    role, at = spec["roles"][name], ("spec", "roles", name)
    for index, declared in enumerate(spec.get("volumes", ())):
        yield _volume(declared, ("spec", "volumes", index))
    if "checkpoint" in role:
        yield _checkpoint(role["checkpoint"], (*at, "checkpoint"))
    if "sharedMemory" in role:
        memory = {"emptyDir": {"medium": "Memory", "sizeLimit": role["sharedMemory"]}}
        mount = {"name": SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH}
        origin = (*at, "sharedMemory")
        yield Volume(memory, mount, origin, {("emptyDir", "sizeLimit"): origin})


def _volume(declared: Mapping[str, Any], at: Pointer) -> Volume:
    mount = _mount(declared["name"], declared["mountPath"], declared)
    if "emptyDir" in declared:
        return Volume({"emptyDir": dict(declared["emptyDir"])}, mount, at, {("emptyDir",): (*at, "emptyDir")})
    if "ephemeral" in declared:
        return _ephemeral(declared["ephemeral"], mount, at)
    return _claim(declared, mount, at)


def _claim(declared: Mapping[str, Any], mount: dict[str, Any], at: Pointer) -> Volume:
    claim = {"claimName": declared["claim"], **({"readOnly": True} if declared.get("readOnly") else {})}
    origins: dict[Pointer, Pointer] = {("persistentVolumeClaim", "claimName"): (*at, "claim")}
    return Volume({"persistentVolumeClaim": claim}, mount, at, origins)


def _ephemeral(declared: Mapping[str, Any], mount: dict[str, Any], at: Pointer) -> Volume:
    """A claim that comes and goes with the pod."""
    spec: dict[str, Any] = {
        "accessModes": list(declared.get("accessModes", [_WRITABLE])),
        "resources": {"requests": {"storage": declared["storage"]}},
    }
    if "storageClassName" in declared:
        spec["storageClassName"] = declared["storageClassName"]
    origin: Pointer = (*at, "ephemeral")
    template: Pointer = ("ephemeral", "volumeClaimTemplate", "spec")
    origins: dict[Pointer, Pointer] = {
        ("ephemeral",): origin,
        template: origin,
        (*template, "resources"): origin,
        (*template, "resources", "requests"): origin,
    }
    return Volume({"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}, mount, at, origins)


def _checkpoint(declared: Mapping[str, Any], at: Pointer) -> Volume:
    mount = _mount(CHECKPOINT, declared.get("mountPath", CHECKPOINT_PATH), declared)
    return _claim(declared, mount, at)


def _mount(name: str, path: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": name, "mountPath": path}
    if "subPath" in declared:
        mount["subPath"] = declared["subPath"]
    return {**mount, "readOnly": True} if declared.get("readOnly") else mount
