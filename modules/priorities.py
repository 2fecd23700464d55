"""PriorityClasses from spec.priorities."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.objects import MANAGED_BY, Manifest


def priority_classes(priorities: Mapping[str, Mapping[str, Any]]) -> Iterator[Manifest]:
    """A PriorityClass for each entry, with the defaults of the API written out."""
    for name, declared in priorities.items():
        value = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name, "labels": MANAGED_BY},
            "value": declared["value"],
            "globalDefault": declared.get("default", False),
            "preemptionPolicy": declared.get("preemption", "PreemptLowerPriority"),
        }
        if "description" in declared:
            value["description"] = declared["description"]
        at = ("spec", "priorities", name)
        yield Manifest(
            value,
            {
                (): at,
                ("globalDefault",): (*at, "default"),
                ("preemptionPolicy",): (*at, "preemption"),
            },
        )
