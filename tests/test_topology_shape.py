"""The largest gang of a shape: counted as verdicts count, in every tier and in the cluster."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.fit import reading, shapes
from basalt.fit.verdicts import State, verdicts
from basalt.loading.nodes import Condition, Metadata, Node, Spec, Status, Taint
from basalt.loading.sources import Misuse
from basalt.objects import KubeObject
from basalt.quantities import Resources
from tests.test_fit import ENVIRONMENT, RACK
from tests.test_fit import node as node_document
from tests.test_readme import ROOT
from tests.test_topology import index, written

TIERS = [{"name": "rack", "label": "rack"}, {"name": "leaf", "label": "leaf"}]


def raw(value: dict[str, Any]) -> KubeObject:
    return KubeObject(value, written(value))


def node(name: str, labels: dict[str, str], amounts: dict[str, int], state: str = "Ready") -> Node:
    """A node that is Ready, NotReady, Cordoned, or has a taint of the effect that the state names."""
    ready = Condition("Ready", "False" if state == "NotReady" else "True")
    taints = (Taint(state, "key"),) if state.startswith(("No", "Prefer")) and state != "NotReady" else None
    offers: dict[str, str | int | float] = {**amounts}
    return Node(
        Metadata(name, labels),
        spec=Spec(unschedulable=state == "Cordoned", taints=taints),
        status=Status(offers, conditions=(ready,)),
    )


def daemon(cpu: int) -> KubeObject:
    pod = {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}]}
    value = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "here"},
        "spec": {"template": {"spec": pod}},
    }
    return raw(value)


def gang(pods: int, shape: Resources, tier: int | None) -> KubeObject:
    """A Job of so many pods of the shape, which keeps to one domain up to the tier."""
    resources = {"limits": {name: int(amount) for name, amount in shape.items()}}
    pod = {"containers": [{"name": "a", "image": "a", "resources": resources}]}
    task = {"name": "w", "replicas": pods, "template": {"spec": pod}}
    topology = {} if tier is None else {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}
    value = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "here"},
        "spec": {"minAvailable": pods, "schedulerName": "volcano", "tasks": [task], **topology},
    }
    return raw(value)


STATES = ["Ready", "Ready", "Ready", "NotReady", "Cordoned", "NoSchedule", "NoExecute", "PreferNoSchedule"]


@st.composite
def fleets(draw: st.DrawFn) -> list[Node]:
    """Up to six nodes in up to three racks, some of which lie under a leaf."""
    found = []
    for number in range(draw(st.integers(1, 6))):
        labels = {"rack": f"r{number % 3}", **({} if number % 3 == 2 else {"leaf": f"l{number % 2}"})}
        amounts = {"cpu": draw(st.integers(0, 9)), "nvidia.com/gpu": draw(st.integers(0, 4))}
        pods = draw(st.integers(0, 4))
        found.append(node(f"n{number}", labels, {**amounts, "pods": pods}, draw(st.sampled_from(STATES))))
    return found


@given(fleets(), st.fixed_dictionaries({"cpu": st.integers(1, 4)}, optional={"nvidia.com/gpu": st.integers(1, 2)}),
       st.sampled_from([(), (daemon(1),)]))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_largest_gang_fits_and_one_pod_more_never_does(
    nodes: list[Node], shape: Resources, daemons: tuple[KubeObject, ...]
) -> None:
    def state(pods: int, tier: int | None) -> State:
        facts = index(nodes, [*daemons, gang(pods, shape, tier)], {"tiers": TIERS})
        [verdict] = verdicts(reading.read(facts))
        return verdict.state

    found = shapes.fitting(index(nodes, daemons, {"tiers": TIERS}), shape)

    assert found.cluster is not None
    assert (found.reason is None) == (found.cluster > 0)
    for pods, tier in [*((each.pods, each.tier) for each in found.tiers), (found.cluster, None)]:
        assert state(pods + 1, tier) is State.NEVER
        assert not pods or state(pods, tier) is State.FITS


READY = {"cpu": 8, "nvidia.com/gpu": 4, "pods": 110}


@pytest.mark.parametrize(
    ("nodes", "shape", "tiers", "cluster"),
    [
        ([node("a", {"rack": "r1"}, READY)], "cpu=2", {"rack": (4, "r1")}, 4),
        ([node("a", {"rack": "r1"}, READY)], "cpu=2,nvidia.com/gpu=2", {"rack": (2, "r1")}, 2),
        ([node("a", {"rack": "r1"}, READY)], "cpu=1500m", {"rack": (5, "r1")}, 5),
        ([node("a", {"rack": "r1"}, {**READY, "pods": 3})], "cpu=1", {"rack": (3, "r1")}, 3),
        ([node("a", {"rack": "r1"}, READY), node("b", {"rack": "r1"}, READY)], "cpu=5", {"rack": (2, "r1")}, 2),
        ([node("a", {"rack": "r2"}, READY), node("b", {"rack": "r1"}, READY)], "cpu=4", {"rack": (2, "r1")}, 4),
        ([node("a", {"rack": "r1"}, READY, "Cordoned"), node("b", {"rack": "r2"}, READY)], "cpu=8",
         {"rack": (1, "r2")}, 1),
        ([node("a", {"rack": "r1"}, READY, "NoSchedule")], "cpu=1", {"rack": (0, None)}, 0),
        # Tier 2 may be a rack that lies under no leaf.
        ([node("a", {"rack": "r1", "leaf": "l1"}, READY), *(node(each, {"rack": "r2"}, READY) for each in "bc")],
         "cpu=8", {"rack": (2, "r2"), "leaf": (2, "r2")}, 3),
        ([node("a", {"rack": "r1", "leaf": "l1"}, READY)], "cpu=8", {"rack": (1, "r1"), "leaf": (1, "l1")}, 1),
    ],
)  # fmt: skip
def test_gangs_of_shapes(nodes: list[Node], shape: str, tiers: dict[str, Any], cluster: int) -> None:
    found = shapes.fitting(index(nodes, (), {"tiers": TIERS}), shapes.parse_shape(shape))

    assert {each.name: (each.pods, each.domain) for each in found.tiers} == tiers
    assert found.cluster == cluster


def test_daemons_take_their_share_and_one_of_the_pods() -> None:
    one = node("a", {"rack": "r1"}, {"cpu": 4, "pods": 2})

    assert shapes.fitting(index([one], [daemon(1)], {"tiers": TIERS}), {"cpu": 2}).cluster == 1
    assert shapes.fitting(index([one], [daemon(1)], {"tiers": TIERS}), {"cpu": 1}).cluster == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a resource has no name in ''; write cpu=16,memory=128Gi,nvidia.com/gpu=8"),
        ("=3", "a resource has no name in '=3'; write cpu=16,memory=128Gi,nvidia.com/gpu=8"),
        ("cpu=1,", "a resource has no name in 'cpu=1,'; write cpu=16,memory=128Gi,nvidia.com/gpu=8"),
        ("cpu", "cpu has no amount; write cpu=8"),
        ("cpu=", "cpu has no amount; write cpu=8"),
        ("cpu=x", "cpu=x is no quantity; write it as Kubernetes does: 8, 500m, 128Gi"),
        ("memory=8GB", "memory=8GB is no quantity; write it as Kubernetes does: 8, 500m, 128Gi"),
        ("cpu=-1", "cpu=-1 is not above 0; write what one pod requests, or leave it out"),
        ("cpu=0", "cpu=0 is not above 0; write what one pod requests, or leave it out"),
        ("cpu=1,cpu=2", "cpu is given twice; keep one"),
        ("nvidia.com/gpu=0.5",
         "nvidia.com/gpu=0.5 is no whole number, and nvidia.com/gpu is counted in whole units"),
        ("pods=3", "pods is no request: every pod takes one; leave it out"),
    ],
)  # fmt: skip
def test_what_is_no_shape_says_why(text: str, said: str) -> None:
    with pytest.raises(Misuse) as raised:
        shapes.parse_shape(text)

    assert str(raised.value) == f"--shape: {said}"


# the command


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "basalt", "topology", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    (tmp_path / "all.yaml").write_text("---\n".join([ENVIRONMENT, *RACK, node_document("c", "r2", gpu=4)]))
    return tmp_path


def test_shape_stands_under_the_tree_which_stays_as_it_is(case: Path) -> None:
    plain, done = run(case, "."), run(case, ".", "--shape", "cpu=2, nvidia.com/gpu=2")

    assert (plain.returncode, done.returncode, done.stderr) == (0, 0, "")
    assert done.stdout == plain.stdout + (
        "\nlargest gang of pods that request 2 cpu, 2 nvidia.com/gpu\ntier 1 rack  8 pods in r1\nthe cluster  10 pods\n"
    )


def test_shape_as_json_is_one_more_key(case: Path) -> None:
    plain, done = (run(case, ".", "--format", "json", *more) for more in ((), ("--shape", "cpu=2,memory=2048Mi")))

    found = json.loads(done.stdout)
    shape = found.pop("shape")
    assert found == json.loads(plain.stdout)
    assert shape == {
        "requests": {"cpu": "2", "memory": "2Gi"},
        "tiers": [{"tier": 1, "name": "rack", "pods": 16, "domain": "r1"}],
        "cluster": 24,
        "reason": None,
    }


def test_shape_that_no_node_holds_names_the_resource_and_the_nearest_node(case: Path) -> None:
    done = run(case, ".", "--shape", "cpu=2,nvidia.com/gpu=9")

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == (
        "no node holds one: a pod of the shape needs 9 nvidia.com/gpu, and the nearest node, a, has 8 for it"
    )
    reason = json.loads(run(case, ".", "--shape", "nvidia.com/gpu=9", "--format", "json").stdout)["shape"]["reason"]
    assert (reason["resource"], reason["needed"], reason["available"]) == ("nvidia.com/gpu", "9", "8")


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("cpu", "--shape: cpu has no amount; write cpu=8"),
        ("nvidia.com/gpus=8", "--shape: no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?"),
        ("disk=1", "--shape: no node offers disk; known: cpu, ephemeral-storage, memory, nvidia.com/gpu"),
    ],
)
def test_wrong_shape_is_misuse_in_one_line(case: Path, shape: str, said: str) -> None:
    done = run(case, ".", "--shape", shape)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"basalt: {said}\n")


def test_without_an_inventory_nothing_is_counted(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(ENVIRONMENT)

    assert run(tmp_path, ".", "--shape", "any.com/thing=1").stdout.endswith("1 any.com/thing\nno node inventory\n")
    assert json.loads(run(tmp_path, ".", "--shape", "cpu=1", "--format", "json").stdout)["shape"]["cluster"] is None


def test_largest_gangs_of_seed_are_those_of_its_gpus() -> None:
    found = json.loads(run(ROOT, "seed", "--format", "json", "--shape", "nvidia.com/gpu=1").stdout)

    gpus = [int(tier["largest"]["nvidia.com/gpu"]["amount"]) for tier in found["tiers"]]
    assert [tier["pods"] for tier in found["shape"]["tiers"]] == gpus
