"""Verdicts against the real scheduler: many small clusters in one sandbox, kept apart by node selectors."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from basalt.cluster import connection
from basalt.cluster.connection import Cluster
from basalt.compiling import compile_folder
from basalt.findings import Ref
from basalt.fit import reading, verdicts
from basalt.fit.verdicts import State
from tests.sandbox.conftest import Home, eventually

pytestmark = pytest.mark.slow

CASES = 40
JOB = ("batch.volcano.sh/v1alpha1", "Job")
NODE = ("v1", "Node")
HYPER_NODE = ("topology.volcano.sh/v1alpha1", "HyperNode")


class Case(NamedTuple):
    """A small cluster and the job that wants to run there."""

    nodes: list[dict[str, Any]]
    hyper_nodes: list[dict[str, Any]]
    job: dict[str, Any]


def case(number: int) -> Case:
    """Two to four racks of one to four nodes, and a gang of pods that are alike, which asks for a tier or not."""
    draw = random.Random(number)
    prefix, label = f"c{number}", {"case": f"c{number}"}
    nodes, hyper_nodes = [], []
    for rack in range(draw.randint(2, 4)):
        names = [f"{prefix}-r{rack}-n{each}" for each in range(draw.randint(1, 4))]
        for name in names:
            amounts = {"cpu": str(draw.choice([4, 8, 12])), "memory": "64Gi", "pods": "110",
                       "nvidia.com/gpu": str(draw.choice([2, 4, 8]))}  # fmt: skip
            status = {"allocatable": amounts, "capacity": amounts}
            taints = [{"key": "closed", "effect": "NoSchedule"}] if draw.random() < 0.1 else []
            metadata = {"name": name, "labels": label, "annotations": {"sandbox.basalt.dev/kubelet": "kwok"}}
            nodes.append({"apiVersion": NODE[0], "kind": NODE[1], "metadata": metadata,
                          "spec": {"taints": taints} if taints else {}, "status": status})  # fmt: skip
        hyper_nodes.append(hyper_node(f"{prefix}-r{rack}", 1, "Node", names))
    racks = [each["metadata"]["name"] for each in hyper_nodes]
    hyper_nodes.append(hyper_node(f"{prefix}-top", 2, "HyperNode", racks))
    requests = {"cpu": str(draw.randint(1, 6)), "memory": "1Gi", "nvidia.com/gpu": str(draw.choice([1, 2, 4]))}
    container = {
        "name": "a",
        "image": "registry.example.com/a:1",
        "resources": {"requests": requests, "limits": requests},
    }
    pods = draw.randint(1, 10)
    task = {"name": "w", "replicas": pods, "minAvailable": pods,
            "template": {"spec": {"containers": [container], "nodeSelector": label}}}  # fmt: skip
    spec: dict[str, Any] = {"schedulerName": "volcano", "queue": "default", "minAvailable": pods, "tasks": [task]}
    if tier := draw.choice([0, 1, 1, 2]):
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    job = {"apiVersion": JOB[0], "kind": JOB[1], "metadata": {"name": prefix, "namespace": "default"}, "spec": spec}
    return Case(nodes, hyper_nodes, job)


def hyper_node(name: str, tier: int, kind: str, members: list[str]) -> dict[str, Any]:
    found = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    return {"apiVersion": HYPER_NODE[0], "kind": HYPER_NODE[1], "metadata": {"name": name},
            "spec": {"tier": tier, "members": found}}  # fmt: skip


@pytest.fixture
def cluster(home: Home) -> Iterator[Cluster]:
    """A sandbox with the nodes of all cases, under Basalt's own default configuration of Volcano 1.14."""
    folder = home.project / "stacks" / "cases"
    folder.mkdir()
    environment = {"apiVersion": "basalt.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "cases"},
                   "spec": {"kubernetes": {"version": "1.34"}, "volcano": {"version": "1.14.1"}}}  # fmt: skip
    every = [environment, *(node for number in range(CASES) for node in case(number).nodes)]
    (folder / "all.yaml").write_text(yaml.safe_dump_all(every))
    started = home.run("sandbox", "up", "cases", "--format", "json")
    assert started.returncode == 0, started.stderr
    found = connection.connect(str(home.state / "basalt" / "sandboxes" / "cases" / "kubeconfig"))
    yield found
    found.close()
    assert home.run("sandbox", "down").returncode == 0


def judged(folder: Path, wanted: Case) -> State:
    (folder / "case.yaml").write_text(yaml.safe_dump_all([*wanted.nodes, *wanted.hyper_nodes, wanted.job]))
    (verdict,) = verdicts.verdicts(reading.read(compile_folder(folder).index))
    return verdict.state


def states(cluster: Cluster) -> dict[str, str]:
    """What became of each job: running, or told that it cannot be placed."""
    jobs = {each["metadata"]["uid"]: each["metadata"]["name"] for each in cluster.list(*JOB, "default")}
    found = {}
    for group in cluster.list("scheduling.volcano.sh/v1beta1", "PodGroup", "default"):
        name = jobs[group["metadata"]["ownerReferences"][0]["uid"]]
        conditions = group.get("status", {}).get("conditions") or []
        if group.get("status", {}).get("phase") == "Running":
            found[name] = "running"
        elif any(each["type"] == "Unschedulable" for each in conditions):
            found[name] = "unschedulable"
    return found


def test_the_scheduler_runs_what_fits_and_nothing_that_never_does(cluster: Cluster, tmp_path: Path) -> None:
    cases = {f"c{number}": case(number) for number in range(CASES)}
    expected = {}
    for name, each in cases.items():
        (tmp_path / name).mkdir()
        expected[name] = judged(tmp_path / name, each)
    assert {State.FITS, State.NEVER} == set(expected.values())

    for each in cases.values():
        for value in each.hyper_nodes:
            cluster.apply(value, Ref(*HYPER_NODE, None, value["metadata"]["name"]), "test")
    for each in cases.values():
        cluster.apply(each.job, Ref(*JOB, "default", each.job["metadata"]["name"]), "test")
    eventually(lambda: states(cluster).keys() == cases.keys())
    running = {name for name, state in expected.items() if state is State.FITS}
    eventually(lambda: {name for name, state in states(cluster).items() if state == "running"} >= running)

    assert {name for name, state in states(cluster).items() if state == "running"} == running
