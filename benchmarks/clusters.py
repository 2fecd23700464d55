"""Environments to give verdicts on: an inventory, teams with queues and quotas, and training jobs of several shapes.
The same for the same sizes on every machine, and without findings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks import inventory

_TEAMS = 20
_TIERS = [{"name": tier, "label": f"example.com/{tier}"} for tier in ("rack", "leaf", "spine")]


def role(gpus: int, replicas: int, *, cpu: int = 16, least: int | None = None) -> dict[str, Any]:
    """So many pods that are alike; memory goes with the CPUs."""
    resources = {"cpu": cpu, "memory": f"{8 * cpu}Gi", **({"nvidia.com/gpu": gpus} if gpus else {})}
    minimum = {} if least is None else {"minAvailable": least}
    shared = {"sharedMemory": "16Gi"} if gpus > 1 else {}
    return {"replicas": replicas, **minimum, "command": ["python", "train.py"], "resources": resources, **shared}


# Framework, highest tier, roles: what people submit, with room to spare. 27 GPUs each in the mean.
EVERYDAY = (
    ("pytorch", "rack", {"worker": role(8, 2)}),
    ("plain", "leaf", {"worker": role(4, 8, least=6)}),
    ("tensorflow", None, {"ps": role(0, 2), "worker": role(2, 4)}),
    ("index", None, {"worker": role(1, 16, cpu=8, least=1)}),
    ("plain", "spine", {"launcher": role(0, 1), "worker": role(8, 8)}),
)
# Pods that no node takes a whole number of without loss: what is packed quickly wastes what the last jobs need.
AWKWARD = (
    ("plain", "leaf", {"large": role(5, 2, cpu=90), "small": role(3, 2, cpu=40)}),
    ("plain", "rack", {"worker": role(3, 3, cpu=60)}),
    ("plain", "leaf", {"large": role(6, 2, cpu=110), "small": role(2, 2, cpu=70)}),
)
Kind = tuple[str, str | None, dict[str, dict[str, Any]]]


def gpus(kinds: Sequence[Kind], jobs: int) -> int:
    """How many GPUs so many jobs of these kinds in turn ask for."""
    return sum(
        role["replicas"] * role["resources"].get("nvidia.com/gpu", 0)
        for number in range(jobs)
        for role in kinds[number % len(kinds)][2].values()
    )


def write(folder: Path, nodes: int, jobs: int, kinds: Sequence[Kind] = EVERYDAY) -> None:
    """An environment of so many nodes, and of so many jobs of these kinds in turn."""
    folder.mkdir(exist_ok=True)
    if not (folder / "nodes.json").exists():  # by far the largest: written once where only the jobs change
        inventory.write(folder / "nodes.json", nodes)
    documents = [
        environment(nodes),
        *(team(number, nodes) for number in range(_TEAMS)),
        *(job(number, *kinds[number % len(kinds)]) for number in range(jobs)),
    ]
    with (folder / "environment.yaml").open("w", encoding="utf-8") as file:
        yaml.dump_all(documents, file, Dumper=yaml.CSafeDumper, sort_keys=False)


def environment(nodes: int) -> dict[str, Any]:
    amounts = _amounts(nodes)
    priorities = {"low": {"value": 1000, "default": True}, "high": {"value": 1_000_000}}
    spec = {
        "topology": {"tiers": _TIERS},
        "priorities": priorities,
        "queues": {"research": {"capability": amounts, "deserved": amounts}},
    }
    return _document("Environment", {"name": "bench"}, spec)


def team(number: int, nodes: int) -> dict[str, Any]:
    """A team that may use all nodes when nobody else does."""
    deserved = {name: amount // _TEAMS for name, amount in _amounts(nodes).items()}
    namespace = {"quota": _amounts(nodes), "defaults": {"cpu": 1, "memory": "2Gi"}}
    queue = {"parent": "research", "deserved": deserved, "capability": _amounts(nodes)}
    spec = {
        "access": {"edit": [f"team-{number}"]},
        "namespaces": {f"team-{number}": namespace},
        "queue": queue,
        "priorities": ["low", "high"],
    }
    return _document("Team", {"name": f"team-{number}"}, spec)


def job(number: int, framework: str, tier: str | None, roles: dict[str, dict[str, Any]]) -> dict[str, Any]:
    spec = {
        "framework": framework,
        "image": f"registry.example.com/team/train:1.{number}.0",
        "priority": "high" if number % 3 == 0 else "low",
        "roles": roles,
        **({"topology": {"mode": "hard", "highestTier": tier}} if tier else {}),
        "volumes": [{"name": "checkpoints", "mountPath": "/checkpoints", "claim": f"train-{number}"}],
        "ttlAfterFinished": "24h",
    }
    return _document("TrainingJob", {"name": f"train-{number}", "namespace": f"team-{number % _TEAMS}"}, spec)


def _amounts(nodes: int) -> dict[str, int]:
    """A little less than what so many nodes offer."""
    return {"cpu": 180 * nodes, "memory": 1900 * 2**30 * nodes, "nvidia.com/gpu": 8 * nodes}


def _document(kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "basalt.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
