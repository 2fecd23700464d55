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
from basalt.fit import verdicts
from basalt.fit.verdicts import State, Verdict
from tests.sandbox.conftest import Home, eventually

pytestmark = pytest.mark.slow

CASES = (*range(40), 119, 313, 325, 391)  # the last four are tight
JOB = ("batch.volcano.sh/v1alpha1", "Job")
NODE = ("v1", "Node")
HYPER_NODE = ("topology.volcano.sh/v1alpha1", "HyperNode")
ENVIRONMENT = {"apiVersion": "basalt.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "cases"},
               "spec": {"kubernetes": {"version": "1.34"}, "volcano": {"version": "1.14.1"}}}  # fmt: skip


class Case(NamedTuple):
    """A small cluster and the job that wants to run there."""

    nodes: list[dict[str, Any]]
    hyper_nodes: list[dict[str, Any]]
    job: dict[str, Any]


def case(number: int) -> Case:
    """Two to four racks of one to four nodes, and a gang of one or two kinds of pods, which asks for a tier or not."""
    draw = random.Random(number)
    prefix, label = f"c{number}", {"case": f"c{number}"}
    nodes: list[dict[str, Any]] = []
    hyper_nodes = []
    for rack in range(draw.randint(2, 4)):
        names = [f"{prefix}-r{rack}-n{each}" for each in range(draw.randint(1, 4))]
        nodes.extend(node(name, label, draw) for name in names)
        hyper_nodes.append(hyper_node(f"{prefix}-r{rack}", 1, "Node", names))
    racks = [each["metadata"]["name"] for each in hyper_nodes]
    hyper_nodes.append(hyper_node(f"{prefix}-top", 2, "HyperNode", racks))
    tasks = [task(f"w{each}", label, draw) for each in range(1 + number % 2)]
    pods = sum(each["replicas"] for each in tasks)
    spec: dict[str, Any] = {"schedulerName": "volcano", "queue": "default", "minAvailable": pods, "tasks": tasks}
    if tier := draw.choice([0, 1, 1, 2]):
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    job = {"apiVersion": JOB[0], "kind": JOB[1], "metadata": {"name": prefix, "namespace": "default"}, "spec": spec}
    return Case(nodes, hyper_nodes, job)


def node(name: str, label: dict[str, str], draw: random.Random) -> dict[str, Any]:
    amounts = {"cpu": str(draw.choice([8, 16, 24])), "memory": "64Gi", "pods": "110",
               "nvidia.com/gpu": str(draw.choice([4, 8, 8]))}  # fmt: skip
    taints = [{"key": "closed", "effect": "NoSchedule"}] if draw.random() < 0.1 else []
    metadata = {"name": name, "labels": label, "annotations": {"sandbox.basalt.dev/kubelet": "kwok"}}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": NODE[0], "kind": NODE[1], "metadata": metadata, "spec": {"taints": taints} if taints else {},
            "status": status}  # fmt: skip


def task(name: str, label: dict[str, str], draw: random.Random) -> dict[str, Any]:
    requests = {"cpu": str(draw.randint(1, 14)), "memory": "1Gi", "nvidia.com/gpu": str(draw.randint(1, 6))}
    resources = {"requests": requests, "limits": requests}
    container = {"name": "a", "image": "registry.example.com/a:1", "resources": resources}
    pods = draw.randint(1, 5)
    return {"name": name, "replicas": pods, "minAvailable": pods,
            "template": {"spec": {"containers": [container], "nodeSelector": label}}}  # fmt: skip


def hyper_node(name: str, tier: int, kind: str, members: list[str]) -> dict[str, Any]:
    found = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    return {"apiVersion": HYPER_NODE[0], "kind": HYPER_NODE[1], "metadata": {"name": name},
            "spec": {"tier": tier, "members": found}}  # fmt: skip


@pytest.fixture
def cluster(home: Home) -> Iterator[Cluster]:
    """A sandbox with the nodes of all cases, under Basalt's own default configuration of Volcano 1.14."""
    folder = home.project / "stacks" / "cases"
    folder.mkdir()
    every = [ENVIRONMENT, *(node for number in CASES for node in case(number).nodes)]
    (folder / "all.yaml").write_text(yaml.safe_dump_all(every))
    started = home.run("sandbox", "up", "cases", "--format", "json")
    assert started.returncode == 0, started.stderr
    found = connection.connect(str(home.state / "basalt" / "sandboxes" / "cases" / "kubeconfig"))
    yield found
    found.close()
    assert home.run("sandbox", "down").returncode == 0


def judged(folder: Path, wanted: Case) -> Verdict:
    (folder / "case.yaml").write_text(yaml.safe_dump_all([ENVIRONMENT, *wanted.nodes, *wanted.hyper_nodes, wanted.job]))
    return verdicts.of(compile_folder(folder).index)[0]


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
    cases = {f"c{number}": case(number) for number in CASES}
    expected = {}
    for name, each in cases.items():
        (tmp_path / name).mkdir()
        expected[name] = judged(tmp_path / name, each)
    assert {State.FITS, State.NEVER} == {each.state for each in expected.values()}

    for each in cases.values():
        for value in each.hyper_nodes:
            cluster.apply(value, Ref(*HYPER_NODE, None, value["metadata"]["name"]), "test")
    for each in cases.values():
        cluster.apply(each.job, Ref(*JOB, "default", each.job["metadata"]["name"]), "test")
    eventually(lambda: states(cluster).keys() == cases.keys())
    sure = {name for name, each in expected.items() if each.state is State.FITS and not each.tight}
    eventually(lambda: {name for name, state in states(cluster).items() if state == "running"} >= sure)

    running = {name for name, state in states(cluster).items() if state == "running"}
    assert running - sure <= {name for name, each in expected.items() if each.tight}
