"""Nodes as clusters of every label dialect have them, for the tests of `basalt init`."""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from basalt.loading.nodes import Condition, Metadata, Node, Spec, Status, Taint

Spelling = Callable[[int, tuple[int, ...]], str]  # the level and the path to it: the label's value


def node(
    name: str, labels: Mapping[str, str] = {}, *, gpus: int = 8, taints: tuple[Taint, ...] = (), ready: bool = True
) -> Node:
    amounts: dict[str, str | int | float] = {"cpu": "95500m", "memory": "1000Gi", "pods": "110"}
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    status = Status(amounts, conditions=(Condition("Ready", str(ready)),))
    return Node(Metadata(name, {"kubernetes.io/hostname": name, **labels}), spec=Spec(taints=taints), status=status)


def hashed(level: int, path: tuple[int, ...]) -> str:
    """An id as clouds make them."""
    return "nn-" + hashlib.sha256(repr((level, path)).encode()).hexdigest()[:17]


def spelt(before: str) -> Spelling:
    """An id that names its whole path: sw1-0-2."""
    return lambda level, path: f"{before}{level}-" + "-".join(map(str, path))


def tree(labels: Sequence[str], fans: Sequence[int], value: Spelling = hashed) -> list[Node]:
    """A tree of nodes: the labels from the widest to the narrowest; fans say how many of each there are in the one
    above, the last how many nodes."""
    return [
        node("n" + "-".join(map(str, path)), {key: value(at, path[: at + 1]) for at, key in enumerate(labels)})
        for path in itertools.product(*map(range, fans))
    ]


def relabelled(nodes: Iterable[Node], labels: Callable[[Node], Mapping[str, str]], *, gpus: int = 8) -> list[Node]:
    """The nodes with further labels."""
    return [node(each.name, {**each.labels, **labels(each)}, gpus=gpus) for each in nodes]


def as_json(nodes: Iterable[Node], **beside: Any) -> str:
    """As kubectl prints them; beside is added to each."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": each.name, "labels": each.labels, "annotations": {"csi.volume/nodeid": "{}"}},
            "spec": {"taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in each.spec.taints or ()]},
            "status": {
                "allocatable": each.allocatable,
                "conditions": [
                    {"type": "Ready", "status": c.status, "reason": "r"} for c in each.status.conditions or ()
                ],
                "nodeInfo": {"kubeletVersion": "v1.33.4"},
                "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
                **beside,
            },
        }
        for each in nodes
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=4)
