"""The inventory that an environment keeps: of each node what Basalt reads, and nothing else."""

import json
from collections.abc import Iterable
from typing import Any

from basalt.loading.nodes import Node


def text(nodes: Iterable[Node]) -> str:
    """A NodeList as kubectl prints it, less what no rule reads: images, addresses, annotations and the times of the
    conditions change every minute, and are nine tenths of it. By name, so that two of them can be compared."""
    items = [_item(node) for node in sorted(nodes, key=lambda node: node.name)]
    return json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": items}, indent=1) + "\n"


def _item(node: Node) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if node.spec.unschedulable:
        spec["unschedulable"] = True
    if node.spec.taints:
        spec["taints"] = [{"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
                          for taint in node.spec.taints]  # fmt: skip
    conditions = [
        {"type": each.type, "status": each.status} for each in node.status.conditions or () if each.type == "Ready"
    ]
    status: dict[str, Any] = {"allocatable": dict(sorted(node.allocatable.items()))}
    if conditions:
        status["conditions"] = conditions
    metadata: dict[str, Any] = {"name": node.name}
    if node.labels:
        metadata["labels"] = dict(sorted(node.labels.items()))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        **({"spec": spec} if spec else {}),
        "status": status,
    }
