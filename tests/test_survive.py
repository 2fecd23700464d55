"""What is left after a loss: judged quickly as it is judged in full, and jobs that must survive one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from basalt.fit import losing, surviving, verdicts
from basalt.fit.refitting import Together, losses
from basalt.fit.verdicts import State
from basalt.index import Index
from basalt.objects import SURVIVE, KubeObject
from modules import jobs
from tests.test_fit import CLASSES, ENVIRONMENT, HARD
from tests.test_fit import job as job_document
from tests.test_fit import node as node_document
from tests.test_topology import index
from tests.test_topology_shape import TIERS, node, raw

_ORDER = [State.FITS, State.CONTENDED, State.UNKNOWN, State.NEVER]


def queue(name: str, parent: str = "root", **amounts: int) -> KubeObject:
    """capability and guarantee are amounts of GPUs; -1 leaves one out."""
    gpus = {field: {"nvidia.com/gpu": amount} for field, amount in amounts.items() if amount >= 0}
    if "guarantee" in gpus:
        gpus["guarantee"] = {"resource": gpus["guarantee"]}  # type: ignore[dict-item]
    value = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    return raw({**value, "spec": {"weight": 1, "parent": parent, **gpus}})


def quota(gpus: int) -> KubeObject:
    value = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all", "namespace": "here"}}
    return raw({**value, "spec": {"hard": {"requests.nvidia.com/gpu": gpus}}})


def job(name: str, tasks: list[tuple[int, int, int]], **spec: Any) -> KubeObject:
    """A Job of tasks: how many pods, and the CPUs and GPUs of each."""
    survive = spec.pop("survive", None)

    def task(number: int, pods: int, cpu: int, gpu: int) -> dict[str, Any]:
        limits = {"cpu": cpu, **({"nvidia.com/gpu": gpu} if gpu else {})}
        pod = {"containers": [{"name": "a", "image": "a", "resources": {"limits": limits}}]}
        return {"name": f"t{number}", "replicas": pods, "template": {"spec": pod}}

    value = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "here", **({"annotations": {SURVIVE: survive}} if survive else {})},
        "spec": {
            "minAvailable": sum(pods for pods, *_ in tasks),
            "schedulerName": "volcano",
            **spec,
            "tasks": [task(number, *each) for number, each in enumerate(tasks)],
        },
    }
    return raw(value)


@st.composite
def clusters(draw: st.DrawFn) -> Index:
    """Three racks under two leaves, queues with ceilings and guarantees, a quota, and jobs that get in their way."""
    nodes = []
    for number in range(draw(st.integers(3, 7))):
        labels = {"rack": f"r{number % 3}", "leaf": f"l{number % 3 // 2}"}
        amounts = {"cpu": draw(st.integers(2, 6)), "nvidia.com/gpu": draw(st.integers(0, 4)), "pods": 9}
        nodes.append(
            node(f"n{number}", labels, amounts, draw(st.sampled_from(["Ready", "Ready", "Ready", "Cordoned"])))
        )
    bounds = st.sampled_from([-1, 3, 6, 12])
    objects = [
        queue("top", capability=draw(bounds)),
        queue("one", "top", capability=draw(bounds)),
        queue("two", guarantee=draw(st.sampled_from([-1, 1, 4]))),
    ]
    if draw(st.booleans()):
        objects.append(quota(draw(st.integers(2, 12))))
    for number in range(draw(st.integers(1, 5))):
        shapes = st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(0, 2))
        tasks = draw(st.lists(shapes, min_size=1, max_size=2))
        tier = draw(st.sampled_from([None, 1, 2]))
        topology = {} if tier is None else {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}
        survive = draw(st.sampled_from([None, "rack", "1", "leaf"]))
        objects.append(
            job(f"j{number}", tasks, queue=draw(st.sampled_from(["one", "two"])), survive=survive, **topology)
        )
    return index(nodes, objects, {"tiers": TIERS})


def falls_in_full(facts: Index, tier: str) -> list[losing.Fall]:
    before = {each.job.key: each for each in verdicts.of(facts)}
    return [
        losing.Fall(domain, before[after.job.key], after)
        for domain in losing.domains_of(facts, tier)
        for after in losing.without(facts, facts.hyper_nodes.nodes_below[domain])
        if _ORDER.index(after.state) > _ORDER.index(before[after.job.key].state)
    ]


def shown(falls: list[losing.Fall]) -> list[Any]:
    return [(each.domain, each.before.as_json(), each.after.as_json()) for each in falls]


@given(clusters(), st.sampled_from(["rack", "leaf", "1"]))
@settings(max_examples=150, deadline=None)
def test_what_falls_is_the_same_as_when_all_is_judged_anew(facts: Index, tier: str) -> None:
    assume(losing.domains_of(facts, tier))

    assert shown([*losing.falls(facts, tier)]) == shown(falls_in_full(facts, tier))


@given(clusters())
@settings(max_examples=150, deadline=None)
def test_a_job_survives_just_where_it_fits_without_each_domain(facts: Index) -> None:
    found = {each.job.key: each for each in surviving.of(facts)}

    fitting = [each.job for each in verdicts.of(facts) if each.state is State.FITS]
    wanted = {each.key: each.object.value["metadata"].get("annotations", {}).get(SURVIVE) for each in fitting}
    assert found.keys() == {key for key, tier in wanted.items() if tier is not None}
    for key, survival in found.items():
        without = {
            domain: {each.job.key: each.state for each in losing.without(facts, facts.hyper_nodes.nodes_below[domain])}
            for domain in losing.domains_of(facts, survival.tier)
        }
        assert [name for name, _ in survival.falls] == [
            domain for domain, states in without.items() if states[key] is not State.FITS
        ]
        assert (survival.number, survival.open, survival.unseen) == (len(without), (), 0)


@given(clusters())
@settings(max_examples=100, deadline=None)
def test_looking_at_a_loss_leaves_everything_where_it_was(facts: Index) -> None:
    solved = verdicts.solved(facts)
    gangs = [each.job.gang for each in solved.verdicts if each.state is State.FITS]
    every = [*losses(facts, solved.read.problem, losing.domains_of(facts, "rack"))]
    fresh = [Together(solved.read.problem, gangs, solved.placement).withstand(loss) for loss in every]
    kept = Together(solved.read.problem, gangs, solved.placement)

    assert [kept.withstand(loss) for loss in [*every, *every]] == [*fresh, *fresh]


RACK = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
FOUR = [node(name, {"rack": rack}, {"cpu": 16, "nvidia.com/gpu": 8, "pods": 110})
        for name, rack in (("a", "r1"), ("b", "r1"), ("c", "r2"), ("d", "r2"))]  # fmt: skip


def said(*objects: KubeObject) -> dict[str, str]:
    facts = index(FOUR, objects, {"tiers": TIERS[:1]})
    return {each.job.key.name: each.text for each in surviving.of(facts)}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([job("j", [(2, 1, 8)], survive="rack")], {"j": "survives the loss of any one of 2 domains of tier rack"}),
        ([job("j", [(2, 1, 8)], survive="1")], {"j": "survives the loss of any one of 2 domains of tier 1"}),
        ([job("j", [(2, 1, 8)])], {}),
        ([job("j", [(5, 1, 8)], survive="rack")], {}),  # it never runs: others say so
        ([job("j", [(3, 1, 8)], survive="rack")], {
            "j": "does not survive the loss of r1, r2 (2 of 2 domains of tier rack): without r1, 3 pods must start "
            "together and the whole cluster holds 2: they need 24 nvidia.com/gpu, it has 16"}),
        ([job("first", [(1, 1, 8)]), job("j", [(2, 1, 8)], survive="rack")], {
            "j": "does not survive the loss of r1, r2 (2 of 2 domains of tier rack): without r1, waits for here/first: "
            "together they need 24 nvidia.com/gpu of queue default, which has 16"}),
        # Those after it in the order give way.
        ([job("j", [(2, 1, 8)], survive="rack"), job("later", [(2, 1, 8)])],
         {"j": "survives the loss of any one of 2 domains of tier rack"}),
        # Of a queue's guarantee the others have less once the cluster is smaller.
        ([queue("own", guarantee=9), job("j", [(1, 1, 8)], survive="rack")], {
            "j": "does not survive the loss of r1, r2 (2 of 2 domains of tier rack): without r1, its 1 pod needs 8 "
            "nvidia.com/gpu, and queue default has 7 beside what others are guaranteed"}),
        ([job("j", [(1, 1, 8)], survive="rakc")], {"j": "tier rakc has no domain that could fail; did you mean rack?"}),
    ],
)  # fmt: skip
def test_what_is_said_of_survival(objects: list[KubeObject], expected: dict[str, str]) -> None:
    assert said(*objects) == expected


def test_beyond_its_share_of_work_a_job_has_at_least_so_many_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surviving, "_MOST_NODES", 1)

    text = said(job("j", [(3, 1, 8)], survive="rack"))["j"]

    assert text.startswith("does not survive the loss of r1 (at least 1 of 2 domains of tier rack): without r1, 3 pods")


def test_what_waits_falls_too_where_it_would_not_even_run_alone() -> None:
    first, second = job("first", [(1, 1, 8)], queue="one"), job("second", [(2, 1, 8)], queue="one", **RACK)
    facts = index(FOUR[:3], [queue("one", capability=16), first, second], {"tiers": TIERS[:1]})

    [fall] = losing.falls(facts, "rack")

    assert (fall.domain, fall.after.job.key.name) == ("r1", "second")
    assert (fall.before.state, fall.after.state) == (State.CONTENDED, State.NEVER)


# documents

DECLARED: dict[str, Any] = {
    "framework": "plain", "image": "a/b:1", "roles": {"worker": {"replicas": 2}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "annotations", "origin"),
    [
        ({"topology": {"survive": "rack"}}, {SURVIVE: "rack"}, ("spec", "topology", "survive")),
        ({"topology": {"survive": 2}}, {SURVIVE: "2"}, ("spec", "topology", "survive")),
        ({"topology": {"highestTier": 1}}, None, None),
    ],
)
def test_survive_becomes_an_annotation(more: dict[str, Any], annotations: Any, origin: Any) -> None:
    for schedule in ({}, {"schedule": "0 2 * * *"}):
        made = jobs.job({"name": "j", "namespace": "n"}, {**DECLARED, **more, **schedule}, jobs.Context("q", None, {}))

        assert made.value["metadata"].get("annotations") == annotations
        assert made.origins.get(("metadata", "annotations", SURVIVE)) == origin


def test_survive_alone_is_no_network_topology() -> None:
    made = jobs.job({"name": "j", "namespace": "n"}, {**DECLARED, "topology": {"survive": "rack"}},
                    jobs.Context("q", None, {}))  # fmt: skip

    assert "networkTopology" not in made.value["spec"]


def test_annotation_of_a_training_job_is_kept_unlike_basalts_others() -> None:
    annotations = {SURVIVE: "rack", "basalt.dev/waive": "image-is-pinned: a demo"}

    made = jobs.job({"name": "j", "namespace": "n", "annotations": annotations}, DECLARED, jobs.Context("q", None, {}))

    assert made.value["metadata"]["annotations"] == {SURVIVE: "rack"}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "basalt", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_fit_and_check_fail_where_a_job_would_not_survive(tmp_path: Path) -> None:
    racks = [node_document(name, rack) for name, rack in (("a", "r1"), ("b", "r1"), ("c", "r2"))]
    wanted = job_document("j", 2, 8, topology=HARD)
    wanted = wanted.replace("namespace: here}", f"namespace: here, annotations: {{{SURVIVE}: rack}}}}")
    (tmp_path / "all.yaml").write_text("---\n".join([ENVIRONMENT, *racks, wanted]) + CLASSES)

    fit, check = run(tmp_path, "fit", "."), run(tmp_path, "check", ".", "--quiet")

    message = (
        "does not survive the loss of r1 (1 of 2 domains of tier rack): without r1, 2 pods must start together and "
        "r2, the largest domain up to tier 1, holds 1: they need 16 nvidia.com/gpu, it has 8"
    )
    assert (fit.returncode, check.returncode) == (1, 1)
    assert fit.stdout.splitlines()[:2] == ["Job here/j fits: 2 pods in r1: a 1, b 1", f"  {message}"]
    assert f'Job/here/j metadata.annotations["{SURVIVE}"]: {message} [gang-fits-a-domain]' in check.stdout
