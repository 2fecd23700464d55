"""What a container has at /dev/shm."""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import mapping, sequence
from basalt.pointers import Pointer
from basalt.views.containers import Container, Pod

PATH = "/dev/shm"  # noqa: S108  # a mount point in the pod


class Shared(NamedTuple):
    """A volume in memory, and the containers that have it at /dev/shm."""

    pointer: Pointer
    volume: Mapping[str, Any]
    containers: tuple[Container, ...]


def volumes(pod: Pod) -> Iterator[Shared]:
    """The emptyDirs in memory that some container has at /dev/shm."""
    for pointer, volume in pod.volumes:
        users = tuple(each for each in pod.containers if _mounted(each) == volume.get("name"))
        if users and is_in_memory(volume):
            yield Shared(pointer, volume, users)


def lacks(pod: Pod, container: Container) -> bool:
    """Whether /dev/shm is the 64 MiB that container runtimes give, or no memory at all."""
    name = _mounted(container)
    if name is None:
        return not pod.is_patch and pod.spec.get("hostIPC") is not True
    volume = next((each for _, each in pod.volumes if each.get("name") == name), None)
    if volume is None or not is_sized(volume):
        return False
    return not is_in_memory(volume)


def is_in_memory(volume: Mapping[str, Any]) -> bool:
    return mapping(volume.get("emptyDir")).get("medium") == "Memory"


def is_sized(volume: Mapping[str, Any]) -> bool:
    """Whether it is known where its data lie: in an emptyDir, or on a disk. A hostPath is the node's own memory where
    it is /dev/shm, and nobody knows what a driver gives."""
    kinds = {kind for kind, value in volume.items() if kind != "name" and value is not None}
    path = mapping(volume.get("hostPath")).get("path")
    is_of_host = isinstance(path, str) and posixpath.normpath(path).startswith(PATH)
    return "csi" not in kinds and "flexVolume" not in kinds and not is_of_host


def _mounted(container: Container) -> str | None:
    """The volume that the container has at /dev/shm."""
    for mount in map(mapping, sequence(container.value.get("volumeMounts"))):
        path, name = mount.get("mountPath"), mount.get("name")
        if isinstance(path, str) and isinstance(name, str) and posixpath.normpath(path) == PATH:
            return name
    return None
