"""Volcano Queues from spec.queues, and from each team's own queue."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.objects import MANAGED_BY, Manifest
from basalt.pointers import Pointer
from basalt.quantities import as_written

API_VERSION = "scheduling.volcano.sh/v1beta1"
ROOT = "root"
DEFAULT = "default"  # the queue that Volcano's webhook fills in
_PLAIN_FIELDS = ("priority", "dequeueStrategy")


def queues(declared: Mapping[str, Mapping[str, Any]]) -> Iterator[Manifest]:
    """A Queue for each entry of spec.queues."""
    for name, spec in declared.items():
        yield queue(name, spec, ("spec", "queues", name))


def queue(name: str, declared: Mapping[str, Any], at: Pointer) -> Manifest:
    """The Queue, with what Volcano's webhook and controller would fill in: parent, weight and reclaimable."""
    spec: dict[str, Any] = {} if name == ROOT else {"parent": declared.get("parent", ROOT)}
    for field in ("capability", "deserved"):
        if declared.get(field):
            spec[field] = as_written(declared[field])
    if declared.get("guarantee"):
        spec["guarantee"] = {"resource": as_written(declared["guarantee"])}
    spec["weight"] = declared.get("weight", 1)
    spec["reclaimable"] = declared.get("reclaimable", True)
    spec |= {field: declared[field] for field in _PLAIN_FIELDS if field in declared}
    value = {
        "apiVersion": API_VERSION,
        "kind": "Queue",
        "metadata": {"name": name, "labels": MANAGED_BY},
        "spec": spec,
    }
    return Manifest(value, {(): at, ("spec",): at, ("spec", "guarantee", "resource"): (*at, "guarantee")})
