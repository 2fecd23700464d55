"""Verdicts: exact against a search through everything, checked, and the same whatever the order of the input."""

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.compiling import compile_folder
from basalt.fit import checking, packing, reading, reasons, search
from basalt.fit.packing import Room
from basalt.fit.problem import Apart, Bond, Domain, Gang, Key, Limit, Placement, Problem, Shape, Spread
from basalt.fit.solver import Outcome
from basalt.fit.verdicts import Verdict, verdicts
from basalt.quantities import Resources
from tests.test_readme import ROOT

RACKS = {"r1": ("a", "b"), "r2": ("c", "d")}


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to four nodes in two racks, up to three gangs of up to two shapes: few enough to try everything."""
    free: dict[str, Resources] = {
        node: {"cpu": draw(st.integers(0, 4)), "gpu": draw(st.integers(0, 3))} for node in "abcd"
    }
    domains = [Domain(name, 1, frozenset(nodes)) for name, nodes in RACKS.items()]
    gangs = []
    for number in range(draw(st.integers(1, 3))):
        shapes = tuple(
            Shape(
                f"s{index}",
                replicas := draw(st.integers(1, 2)),
                draw(st.integers(0, replicas)),
                {"cpu": draw(st.integers(0, 3)), "gpu": draw(st.integers(0, 2))},
                frozenset(draw(st.sets(st.sampled_from("abcd"), min_size=1))),
                draw(st.sampled_from([None, None, 1])),
            )
            for index in range(draw(st.integers(1, 2)))
        )
        least = max(1, sum(shape.need for shape in shapes))
        minimum = draw(st.integers(least, max(least, sum(shape.replicas for shape in shapes))))
        gangs.append(Gang(Key("Job", "n", f"g{number}"), minimum, shapes, draw(st.sampled_from([None, 1, 2]))))
    gangs = [draw(with_company(gang)) for gang in gangs]
    costs = {gang.key: tuple(shape.requests["gpu"] for shape in gang.shapes) for gang in gangs}
    limit = Limit("rule", "queue q", "gpu", draw(st.integers(0, 6)), costs)
    domains.append(Domain("top", 2, frozenset("abcd")))
    slots = [(gang.key, index) for gang in gangs for index in range(len(gang.shapes))]
    place = {"a": "x", "b": "x", "c": "y"}  # d is no place
    aparts = tuple(
        Apart(
            draw(st.sampled_from(slots)), frozenset(draw(st.sets(st.sampled_from(slots), min_size=1))), place, "apart"
        )
        for _ in range(draw(st.integers(0, 2)))
    )
    return Problem(free, tuple(domains), tuple(gangs), (limit,), aparts=aparts)


@st.composite
def with_company(draw: st.DrawFn, gang: Gang) -> Gang:
    """What the pods of a gang ask of each other, now and then."""
    zones = (Domain("x", 0, frozenset("ab")), Domain("y", 0, frozenset("c")))
    some = tuple(sorted(draw(st.sets(st.integers(0, len(gang.shapes) - 1), min_size=1))))
    spread = Spread(some, zones, draw(st.integers(1, 2)), draw(st.booleans()), "spread")
    match draw(st.sampled_from(["", "", "", "bond", "spread"])):
        case "bond":
            return gang._replace(bonds=(Bond(some, zones, "bond"),))
        case "spread":
            return gang._replace(spreads=(spread,))
    return gang


def everything(problem: Problem, gangs: tuple[Gang, ...]) -> bool:
    """Whether some placement of the gangs passes the checker, of all there are."""

    def of_gang(gang: Gang) -> list[dict[tuple[int, str], int]]:
        ways = []
        for index, shape in enumerate(gang.shapes):
            nodes = sorted(shape.nodes)
            counts = itertools.product(range(shape.replicas + 1), repeat=len(nodes))
            ways.append([{(index, node): count for node, count in zip(nodes, each, strict=True) if count}
                         for each in counts if shape.need <= sum(each) <= shape.replicas])  # fmt: skip
        every = ({key: count for part in parts for key, count in part.items()} for parts in itertools.product(*ways))
        return [each for each in every if checking.fault(problem, {gang.key: each}) is None]

    for parts in itertools.product(*(of_gang(gang) for gang in gangs)):
        placement: Placement = {gang.key: part for gang, part in zip(gangs, parts, strict=True)}
        if checking.fault(problem, placement) is None:
            return True
    return False


@given(problems())
@settings(max_examples=150, deadline=None)
def test_the_solver_agrees_with_a_search_through_everything(problem: Problem) -> None:
    gangs = problem.gangs[:2]

    answer = packing.decide(problem, gangs)

    assert answer.outcome is (Outcome.FOUND if everything(problem, gangs) else Outcome.IMPOSSIBLE)
    if answer.outcome is Outcome.FOUND:
        assert checking.fault(problem, answer.placement) is None


@given(problems())
@settings(max_examples=200, deadline=None)
def test_a_gang_alone_is_judged_as_a_search_through_everything_does(problem: Problem) -> None:
    for gang in problem.gangs:
        found = search.alone(problem, gang).outcome

        assert found is (Outcome.FOUND if everything(problem, (gang,)) else Outcome.IMPOSSIBLE)


@given(problems())
@settings(max_examples=300, deadline=None)
def test_a_count_that_rules_a_gang_out_is_a_proof(problem: Problem) -> None:
    for gang in problem.gangs:
        if reasons.plain(problem, gang) is not None:
            assert packing.decide(problem, [gang]).outcome is Outcome.IMPOSSIBLE


@given(problems())
@settings(max_examples=300, deadline=None)
def test_what_is_found_quickly_passes_the_checker(problem: Problem) -> None:
    room = Room(problem, {})
    for gang in problem.gangs:
        room.put(gang)

    assert checking.fault(problem, room.placement) is None


BASE = Problem(
    {"a": {"gpu": 2}, "b": {"gpu": 2}, "c": {"gpu": 2}},
    (Domain("r1", 1, frozenset("ab")), Domain("r2", 1, frozenset("c"))),
    (Gang(Key("Job", "n", "j"), 3, (Shape("w", 4, 2, {"gpu": 1}, frozenset("abc")),), 1),),
    (Limit("rule", "queue q", "gpu", 3, {Key("Job", "n", "j"): (1,)}),),
)


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        ({(0, "a"): 2, (0, "b"): 1}, None),
        ({(0, "a"): 2}, "n/j: 2 pods are placed, 3 are needed"),
        ({(0, "a"): 3}, "a: 3 gpu are taken, 2 are there"),
        ({(0, "a"): 1, (0, "c"): 2}, "n/j: no domain up to tier 1 holds its nodes"),
        ({(0, "a"): 2, (0, "b"): 2}, "queue q: 4 gpu are taken, 3 are allowed"),
        ({(0, "a"): 5}, "n/j: 5 pods of w are placed, between 2 and 4 are due"),
        ({(0, "z"): 3}, "n/j: z takes no pod of w"),
    ],
)  # fmt: skip
def test_the_checker_refuses_what_is_no_placement(counts: dict[tuple[int, str], int], fault: str | None) -> None:
    assert checking.fault(BASE, {BASE.gangs[0].key: counts}) == fault


# documents

NODE = """\
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{rack: {rack}}}}}
status: {{allocatable: {{cpu: "{cpu}", memory: 64Gi, nvidia.com/gpu: "{gpu}", pods: "110"}}}}
"""
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}, namespace: here}}
spec:
  minAvailable: {minimum}
  schedulerName: volcano
  priorityClassName: {priority}
  {topology}
  tasks:
    - name: w
      replicas: {replicas}
      template:
        spec:
          containers:
            - {{name: a, image: a, resources: {{limits: {{cpu: "1", memory: 1Gi, nvidia.com/gpu: "{gpu}"}}}}}}
"""
CLASSES = "".join(
    f"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n"
    for name, value in (("low", 1), ("high", 9))
)
ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: case}
spec:
  kubernetes: {version: "1.34"}
  volcano: {version: 1.14.1}
  topology: {tiers: [{name: rack, label: rack}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: here}
"""
HARD = "networkTopology: {mode: hard, highestTierAllowed: 1}"


def node(name: str, rack: str = "r1", cpu: int = 16, gpu: int = 8) -> str:
    return NODE.format(name=name, rack=rack, cpu=cpu, gpu=gpu)


def job(name: str, minimum: int, gpu: int, *, priority: str = "low", topology: str = "", replicas: int = 0) -> str:
    return JOB.format(
        name=name, minimum=minimum, gpu=gpu, priority=priority, topology=topology, replicas=replicas or minimum
    )


def judged(folder: Path, *documents: str) -> dict[str, Verdict]:
    (folder / "all.yaml").write_text("---\n".join([ENVIRONMENT, *documents]) + CLASSES)
    found = verdicts(reading.read(compile_folder(folder).index))
    return {each.job.key.name: each for each in found}


RACK = [node("a"), node("b")]


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([*RACK, job("j", 2, 8)], {"j": "fits"}),
        ([*RACK, job("j", 3, 8)], {"j": "never"}),
        ([*RACK, job("j", 2, 9)], {"j": "never"}),
        ([*RACK, node("c", "r2"), job("j", 3, 8)], {"j": "fits"}),
        ([*RACK, node("c", "r2"), job("j", 3, 8, topology=HARD)], {"j": "never"}),
        ([*RACK, job("one", 2, 8), job("two", 1, 1)], {"one": "fits", "two": "contended"}),
        ([*RACK, job("one", 2, 8), job("two", 1, 1, priority="high")], {"one": "contended", "two": "fits"}),
        # The first has to move to make room: its rack is the only one for the second.
        ([*RACK, node("c", "r2"), job("any", 1, 8, priority="high"), job("rack", 2, 8, topology=HARD)],
         {"any": "fits", "rack": "fits"}),
    ],
)  # fmt: skip
def test_verdicts_on_small_clusters(tmp_path: Path, documents: list[str], expected: dict[str, str]) -> None:
    assert {name: each.state.value for name, each in judged(tmp_path, *documents).items()} == expected


@pytest.mark.parametrize(
    ("documents", "rule", "message", "change"),
    [
        ([*RACK, node("c", "r2"), job("j", 3, 8, topology=HARD)], "gang-fits-a-domain",
         ("3 pods must start together and r1, the largest domain up to tier 1, holds 2: "
         "they need 24 nvidia.com/gpu, it has 16"),
         "allow any tier: take the hard topology out, or lower minAvailable to 2, or add 1 node like a in r1"),
        ([*RACK, job("j", 2, 9)], "pod-fits-a-node",
         "a pod of w needs 9 nvidia.com/gpu, and the nearest node, a, has 8 for it",
         "let the pods of w request 8 nvidia.com/gpu"),
        ([*RACK, job("j", 3, 9)], "pod-fits-a-node",  # smaller ones would not fit either, all three
         "a pod of w needs 9 nvidia.com/gpu, and the nearest node, a, has 8 for it", None),
        ([*RACK, job("j", 3, 8)], "gang-fits-a-domain",
         "3 pods must start together and the whole cluster holds 2: they need 24 nvidia.com/gpu, it has 16",
         "lower minAvailable to 2, or add 1 node like a"),
    ],
)  # fmt: skip
def test_never_comes_with_its_reason_and_a_change_that_helps(
    tmp_path: Path, documents: list[str], rule: str, message: str, change: str | None
) -> None:
    verdict = judged(tmp_path, *documents)["j"]

    assert verdict.reason is not None
    assert (verdict.reason.rule, verdict.reason.message, verdict.change) == (rule, message, change)


@given(
    st.permutations(range(6)), st.lists(st.integers(0, 2), min_size=6, max_size=6), st.integers(1, 4), st.integers(1, 8)
)
@settings(max_examples=25, deadline=None)
def test_the_order_of_documents_and_files_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], files: list[int], minimum: int, gpu: int
) -> None:
    documents = [
        node("a"), node("b", gpu=4), node("c", "r2"), job("one", minimum, gpu, topology=HARD), job("two", 2, 4),
        job("three", 1, 8, priority="high"),
    ]  # fmt: skip
    expected = [each.as_json() for each in judged(tmp_path_factory.mktemp("case"), *documents).values()]

    folder = tmp_path_factory.mktemp("case")
    for number in range(3):
        chosen = [documents[each] for each in order if files[each] == number]
        if chosen:
            (folder / f"{number}.yaml").write_text("---\n".join(chosen))

    assert [each.as_json() for each in judged(folder).values()] == expected


@given(problems(), st.sampled_from("abcd"))
@settings(max_examples=200, deadline=None)
def test_a_node_more_or_less_never_turns_a_verdict_the_wrong_way(problem: Problem, lost: str) -> None:
    """But for topology spread, which counts domains: an empty one that is new holds the others down."""
    left = frozenset("abcd") - {lost}
    smaller = replace(
        problem,
        free={node: problem.free[node] for node in left},
        domains=tuple(each._replace(nodes=each.nodes & left) for each in problem.domains),
    )
    for gang in problem.gangs:
        if not gang.spreads:
            shapes = tuple(shape._replace(nodes=shape.nodes & left) for shape in gang.shapes)
            bonds = tuple(
                bond._replace(domains=tuple(each._replace(nodes=each.nodes & left) for each in bond.domains))
                for bond in gang.bonds
            )
            before = search.alone(problem, gang).outcome
            after = search.alone(smaller, gang._replace(shapes=shapes, bonds=bonds)).outcome
            assert (before, after) != (Outcome.IMPOSSIBLE, Outcome.FOUND)


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "basalt", "fit", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_seed_as_json_is_what_the_contract_says() -> None:
    done = run("seed", "--format", "json")

    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert found.keys() == {"environment", "jobs", "summary"}
    assert found["summary"] == {"fits": 3, "contended": 0, "never": 0, "unknown": 0}
    hard = found["jobs"][0]
    assert list(hard) == [
        "kind", "namespace", "name", "queue", "pods", "minAvailable", "highestTier", "verdict", "tight", "domain",
        "placement", "reason", "change",
    ]  # fmt: skip
    assert (hard["name"], hard["verdict"], hard["highestTier"], sum(hard["placement"].values())) == (
        "allreduce", "fits", "leaf", 6,
    )  # fmt: skip


def test_a_job_that_never_runs_is_exit_code_1_and_one_job_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text("---\n".join([ENVIRONMENT, *RACK, job("j", 1, 1), job("k", 3, 8)]) + CLASSES)

    assert run(".", cwd=tmp_path).returncode == 1
    one = run(".", "--job", "here/j", "--quiet", cwd=tmp_path)
    assert one.stdout == "Job here/j fits: 1 pod in r1: a 1\n"
    wrong = run(".", "--job", "here/jj", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr) == (2, "basalt: no job here/jj; did you mean here/j?\n")


def test_without_an_inventory_every_verdict_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(job("j", 1, 1).replace("  priorityClassName: low\n", ""))

    done = run("job.yaml", "--format", "json", cwd=tmp_path)

    found = json.loads(done.stdout)["jobs"]
    assert [each["verdict"] for each in found] == ["unknown"]
    assert found[0]["reason"]["message"] == "Basalt cannot tell: there is no node inventory"


def test_what_is_lost_is_gone(tmp_path: Path) -> None:
    racks = [*RACK, node("c", "r2"), node("d", "r2")]
    (tmp_path / "all.yaml").write_text(
        "---\n".join([ENVIRONMENT, *racks, job("one", 2, 8, topology=HARD), job("two", 3, 4)]) + CLASSES
    )

    def states(*arguments: str) -> dict[str, str]:
        done = run(".", "--format", "json", *arguments, cwd=tmp_path)
        return {each["name"]: each["verdict"] for each in json.loads(done.stdout)["jobs"]}

    assert states() == {"one": "fits", "two": "fits"}
    assert states("--lose", "r1") == {"one": "fits", "two": "contended"}
    assert states("--lose", "a", "--lose", "c") == {"one": "never", "two": "fits"}
    any_rack = run(".", "--lose-any", "rack", cwd=tmp_path)
    assert any_rack.stdout.splitlines() == [
        (
            "without r1: here/two fits -> contended: waits for here/one: together they need 28 nvidia.com/gpu of queue "
            "default, which has 16"
        ),
        (
            "without r2: here/two fits -> contended: waits for here/one: together they need 28 nvidia.com/gpu of queue "
            "default, which has 16"
        ),
        "2 verdicts worse without any one domain of tier rack",
    ]
    assert run(".", "--lose-any", "rack", "--job", "two", cwd=tmp_path).stdout == any_rack.stdout
    assert (
        json.loads(run(".", "--lose-any", "1", "--job", "one", "--format", "json", cwd=tmp_path).stdout)["jobs"] == []
    )


def test_what_cannot_be_lost_is_misuse(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text("---\n".join([ENVIRONMENT, *RACK, job("one", 2, 8)]) + CLASSES)
    (tmp_path / "job.yaml").write_text(job("j", 1, 1))
    (tmp_path / "many.yaml").write_text("---\n".join(node(f"n{number}") for number in range(13)))

    def told(file: str, *arguments: str) -> str:
        done = run(file, *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    assert told(".", "--lose", "zz") == "basalt: nothing is named zz; basalt topology shows what there is\n"
    assert told("all.yaml", "--lose", "r3") == "basalt: nothing is named r3; known: a, b, r1\n"
    assert told("job.yaml", "--lose-any", "rack") == "basalt: nothing is named rack; none is declared\n"
    assert told("all.yaml", "--lose-any", "rack", "--job", "x") == "basalt: no job x; known: one\n"
    assert told("all.yaml", "--lose-any", "rack", "--lose", "a").startswith("basalt: --lose and --lose-any exclude")


GROUP = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, namespace: here}
spec: %s
"""
IN_GROUP = """\
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: here, annotations: {scheduling.k8s.io/group-name: g}}
spec: {schedulerName: volcano, containers: [{name: a, image: a, resources: {limits: {nvidia.com/gpu: %d}}}]}
"""


@pytest.mark.parametrize(
    ("documents", "name", "state", "message", "change"),
    [
        ([GROUP % "{minMember: 2}", IN_GROUP % ("p", 1)], "g", "never",
         "2 pods must start together, and only 1 is declared", "lower minMember to 1"),
        ([GROUP % "{minMember: 1}", IN_GROUP % ("p", 9)], "g", "never",
         "a pod of g needs 9 nvidia.com/gpu, and the nearest node, a, has 8 for it",
         "let the pods of g request 8 nvidia.com/gpu"),
        ([GROUP % "{minMember: 1, minTaskMember: {a: 1}}", IN_GROUP % ("p", 1)], "g", "unknown",
         "Basalt cannot tell: it does not model minTaskMember", None),
        ([GROUP % "{minMember: 1, minResources: {nvidia.com/gpu: 99}}", IN_GROUP % ("p", 1)], "g", "unknown",
         "Basalt cannot tell: it does not model minResources beyond what the pods request, here of nvidia.com/gpu",
         None),
        ([IN_GROUP % ("p", 1)], "p", "unknown", "Basalt cannot tell: nobody declares its PodGroup g", None),
    ],
)  # fmt: skip
def test_pods_of_a_group_and_the_group_are_judged_together(
    tmp_path: Path, documents: list[str], name: str, state: str, message: str, change: str | None
) -> None:
    found = judged(tmp_path, *RACK, *documents)

    assert list(found) == [name]
    reason = found[name].reason
    assert reason is not None
    assert (found[name].state.value, reason.message, found[name].change) == (state, message, change)


def test_gang_beyond_all_measure_is_judged_like_any_other(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *RACK, job("j", 2**31 - 1, 8))["j"]

    assert (verdict.state.value, verdict.change) == ("never", "lower minAvailable to 2")


def test_partitions_beyond_all_measure_are_left_open(tmp_path: Path) -> None:
    topology = "networkTopology: {mode: hard, highestTierAllowed: 1}"
    policy = f"partitionPolicy: {{totalPartitions: 10000000, partitionSize: 1, {topology}}}"
    document = job("j", 10**7, 1).replace("replicas: 10000000", f"replicas: 10000000\n      {policy}")
    assert policy in document

    verdict = judged(tmp_path, *RACK, document)["j"]

    assert verdict.reason is not None
    assert verdict.reason.message == "Basalt cannot tell: it takes up to 10000 partitions of a task"
