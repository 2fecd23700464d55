"""What must be true of an applied object before what comes after it can be applied. Pure."""

from collections.abc import Mapping
from typing import Any

from basalt.findings import Ref
from basalt.objects import mapping, sequence


def has_condition(live: Mapping[str, Any], kind: str) -> bool:
    """Whether the object's status has the condition, and it is True."""
    conditions = map(mapping, sequence(mapping(live.get("status")).get("conditions")))
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions)


def is_settled(ref: Ref, live: Mapping[str, Any]) -> bool:
    """Whether others can build on it: a definition serves, a namespace takes objects, a queue takes jobs,
    a job has its place in line."""
    status = mapping(live.get("status"))
    match ref.group, ref.kind:
        case "apiextensions.k8s.io", "CustomResourceDefinition":
            return has_condition(live, "Established")
        case "", "Namespace":
            return status.get("phase") == "Active"
        case "scheduling.volcano.sh", "Queue":
            return status.get("state") == "Open"
        case "batch.volcano.sh", "Job":  # then its PodGroup is there, and waits in line
            return bool(mapping(status.get("state")).get("phase"))
    return True


def is_hopeless(ref: Ref, live: Mapping[str, Any]) -> bool:
    """Whether waiting is in vain: somebody has closed the queue."""
    is_queue = (ref.group, ref.kind) == ("scheduling.volcano.sh", "Queue")
    return is_queue and mapping(live.get("status")).get("state") in ("Closed", "Closing")


WAITS_FOR = {"CustomResourceDefinition": "to be served", "Namespace": "to be active", "Queue": "to be Open",
             "Job": "to be taken up by Volcano's controllers"}  # fmt: skip
