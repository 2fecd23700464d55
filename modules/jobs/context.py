"""What a job takes from its surroundings, and the pieces that its pods are put together from."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from basalt.pointers import Pointer

RESTRICTED = "restricted"


class Context(NamedTuple):
    """What a job takes from its surroundings where it says nothing itself; None leaves the field out."""

    queue: str
    priority: str | None
    tiers: Mapping[str, int]  # a tier's name to its number
    security: str = "privileged"  # the Pod Security level of the namespace
    rdma_resource: str | None = None  # what the nodes' RDMA devices are requested by
    is_memlock_raised: bool = False  # pods may pin memory without the capability IPC_LOCK


class Variable(NamedTuple):
    """An environment variable that Basalt adds, and the value of the document that it follows from."""

    name: str
    value: str
    origin: Pointer


class Volume(NamedTuple):
    """A volume and its mount, the value of the document that both follow from, and those that parts of the volume
    do."""

    source: Mapping[str, Any]  # the volume without its name
    mount: Mapping[str, Any]  # name, mountPath, readOnly, subPath
    origin: Pointer
    parts: Mapping[Pointer, Pointer]


class Built(NamedTuple):
    """A piece of a manifest, and where its values follow from: pointers into the piece."""

    value: dict[str, Any]
    origins: Mapping[Pointer, Pointer]


def moved(origins: Mapping[Pointer, Pointer], at: Iterable[str | int]) -> dict[Pointer, Pointer]:
    """The origins of a piece that stands at the given place of a larger one."""
    prefix = tuple(at)
    return {(*prefix, *pointer): origin for pointer, origin in origins.items()}
