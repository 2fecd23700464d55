"""Verdicts beside what runs now: who keeps a place, what is left for the others, and what is wrong with a snapshot."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.compiling import compile_folder
from basalt.fit import beside, checking, reading, running, verdicts
from basalt.fit.beside import Beside
from basalt.index import Index
from basalt.loading import files, snapshots
from basalt.loading.snapshots import Snapshot
from basalt.loading.sources import Misuse
from tests.test_fit import CLASSES, ENVIRONMENT, HARD, RACK, job, node
from tests.test_readme import ROOT

SEED = "tests/data/snapshot-seed.json"
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: small}
spec: {capability: {nvidia.com/gpu: 8}, reclaimable: true, weight: 1}
"""
SMALL = job("j", 1, 4).replace("tasks:", "queue: small\n  tasks:")
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: here}
spec: {hard: {requests.nvidia.com/gpu: "16"}}
"""
DAEMONS = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: here}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: a, image: a, resources: {requests: {cpu: "15"}}}]}
"""
Value = dict[str, Any]


def pod(name: str, place: str | None, gpu: int = 1, **more: Any) -> Value:
    """A pod of `here`; more are its phase, job, group, owner, task and CPUs."""
    marks = {"volcano.sh/job-name": "job", "volcano.sh/task-spec": "task", "scheduling.k8s.io/group-name": "group"}
    annotations = {mark: more[field] for mark, field in marks.items() if field in more}
    metadata: Value = {"name": name, "namespace": "here", "annotations": annotations}
    if "owner" in more:
        metadata["ownerReferences"] = [dict(zip(("kind", "name"), more["owner"].split("/"), strict=True))]
    requests = {"cpu": more.get("cpu", "1"), "memory": "1Gi", "nvidia.com/gpu": str(gpu)}
    spec = {"containers": [{"name": "a", "resources": {"requests": requests, "limits": requests}}]}
    status = {"phase": more.get("phase", "Running")}
    placed = {**spec, "nodeName": place} if place else spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": placed, "status": status}


def gang(name: str, gpu: int, *places: str, queue: str = "default", **more: Any) -> list[Value]:
    """The pods of a Volcano Job and its PodGroup."""
    marks = {"job": name, "group": f"{name}-1", "task": "w", **more}
    return [*(pod(f"{name}-w-{index}", place, gpu, **marks) for index, place in enumerate(places)),
            group(f"{name}-1", queue)]  # fmt: skip


def group(name: str, queue: str) -> Value:
    metadata = {"name": name, "namespace": "here"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata,
            "spec": {"queue": queue, "minMember": 1}}  # fmt: skip


def nodes(*documents: str, **changes: Value) -> list[Value]:
    """The documents as values; changes are laid over the spec of the node of that name."""
    found = [yaml.safe_load(each) for each in documents]
    return [{**each, "spec": changes.get(each["metadata"]["name"], {})} for each in found]


def listed(items: Iterable[Value]) -> Value:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def taken(folder: Path, items: Iterable[Value]) -> Snapshot:
    (folder / "now").mkdir()
    path = folder / "now" / "basalt-snapshot"  # no suffix: it is no document of the environment
    path.write_text(json.dumps(listed(items)))
    return snapshots.read(files.argument(str(path)))


def declared(folder: Path, documents: Iterable[str]) -> Index:
    (folder / "all.yaml").write_text("---\n".join([ENVIRONMENT, *documents]) + CLASSES)
    return compile_folder(folder).index


def judged(folder: Path, documents: Iterable[str], items: Iterable[Value], *lost: str) -> Beside:
    snapshot = taken(folder, items)
    return beside.judged(running.cluster(declared(folder, documents), snapshot), snapshot, frozenset(lost))


TWO = [*RACK, job("one", 2, 8), job("two", 1, 4)]


@pytest.mark.parametrize(
    ("documents", "items", "expected"),
    [
        # What runs keeps its place, whatever its priority; what is declared and does not run waits for it.
        (TWO, [], {"one": "fits", "two": "contended"}),
        (TWO, gang("two", 4, "a"), {"one": "contended", "two": "fits, runs"}),
        (TWO, gang("one", 8, "a", "b"), {"one": "fits, runs", "two": "contended"}),
        (TWO, gang("other", 1, "a"), {"one": "contended", "two": "fits"}),
        # A gang that is not whole does not run: its room is free.
        (TWO, gang("one", 8, "a"), {"one": "fits, moved", "two": "contended"}),
        # What has ended, waits, or is of a declared DaemonSet takes nothing.
        (TWO, [pod("p", "a", phase="Succeeded"), pod("q", None), pod("r", "gone")],
         {"one": "fits", "two": "contended"}),
        ([node("a"), job("j", 1, 8), DAEMONS], [pod("p", "a", 0, cpu="15", owner="DaemonSet/agent")], {"j": "fits"}),
        ([node("a"), job("j", 1, 8)], [pod("p", "a", 0, cpu="16", owner="DaemonSet/other")], {"j": "contended"}),
        # Never is about the empty cluster of the snapshot.
        ([*RACK, job("j", 3, 8)], gang("other", 1, "a"), {"j": "never"}),
        ([*RACK, job("j", 3, 8)], nodes(*RACK, node("c")), {"j": "fits"}),
        ([*RACK, job("j", 2, 8)], nodes(node("a")), {"j": "never"}),
        ([*RACK, job("j", 2, 8)], nodes(*RACK, b={"unschedulable": True}), {"j": "never"}),
        # A cordon is for new pods; a taint that evicts is for all.
        ([*RACK, job("j", 2, 8)], nodes(*RACK, b={"unschedulable": True}) + gang("j", 8, "a", "b"),
         {"j": "fits, runs"}),
        ([*RACK, job("j", 2, 8)],
         nodes(*RACK, b={"taints": [{"key": "k", "effect": "NoExecute"}]}) + gang("j", 8, "a", "b"),
         {"j": "never, moved"}),
        # What runs is not what is declared any more.
        ([*RACK, node("c", "r2"), job("j", 2, 4, topology=HARD)], gang("j", 4, "a", "c"), {"j": "fits, moved"}),
        ([*RACK, job("j", 2, 8)], gang("j", 4, "a", "a"), {"j": "fits, moved"}),
        ([*RACK, job("j", 2, 8)], gang("j", 8, "a", "b", task="v"), {"j": "fits, moved"}),
        ([*RACK, job("j", 2, 8)], gang("j", 8, "a", "b", queue="small"), {"j": "fits, moved"}),
        # Pods beyond the minimum, and beyond what is declared, hold their room.
        ([*RACK, job("one", 1, 8, replicas=2), job("two", 1, 1)], gang("one", 8, "a", "b"),
         {"one": "fits, runs", "two": "contended"}),
        ([*RACK, job("one", 1, 8), job("two", 1, 1)], gang("one", 8, "a", "b"),
         {"one": "fits, runs", "two": "contended"}),
        # Queues and quotas.
        ([*RACK, QUEUE, SMALL], gang("other", 5, "a", queue="small"),
         {"j": "contended"}),
        ([*RACK, QUEUE, SMALL], gang("other", 5, "a"), {"j": "fits"}),
        ([*RACK, node("c"), QUOTA, job("j", 1, 4)], [pod("p", "a", 8), pod("q", "b", 8)], {"j": "contended"}),
        ([*RACK, node("c"), QUOTA, job("j", 1, 4)], [pod("p", "a", 8)], {"j": "fits"}),
    ],
)  # fmt: skip
def test_verdicts_beside_what_runs(
    tmp_path: Path, documents: list[str], items: list[Value], expected: dict[str, str]
) -> None:
    found = judged(tmp_path, documents, items)

    def how(verdict: verdicts.Verdict) -> str:
        key = verdict.job.key
        return verdict.state.value + (", runs" if key in found.kept else ", moved" if key in found.moved else "")

    assert {each.job.key.name: how(each) for each in found.verdicts} == expected


def cron() -> str:
    value = yaml.safe_load(job("nightly", 1, 8))
    spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": value["spec"]}}
    return yaml.safe_dump({**value, "kind": "CronJob", "spec": spec})


LONE = """\
apiVersion: v1
kind: Pod
metadata: {name: lone, namespace: here}
spec: {schedulerName: volcano, containers: [{name: a, image: a, resources: {limits: {nvidia.com/gpu: 8}}}]}
"""
GROUP = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: set, namespace: here}
spec: {minMember: 2}
"""


@pytest.mark.parametrize(
    ("document", "items", "placement"),
    [
        (cron(), gang("nightly-29384000", 8, "a"), {"a": 1}),
        (cron(), gang("nightly-29384000", 8, "a") + gang("nightly-29385440", 8, "b"), {"b": 1}),
        (LONE, [pod("lone", "b", 8)], {"b": 1}),
        (LONE, [pod("lone", "b", 8, group="podgroup-1"), group("podgroup-1", "default")], {"b": 1}),
        (GROUP, [pod("p", "a", group="set"), pod("q", "b", group="set", owner="ReplicaSet/x")], {"a": 1, "b": 1}),
    ],
)
def test_what_runs_is_known_by_its_name(
    tmp_path: Path, document: str, items: list[Value], placement: dict[str, int]
) -> None:
    found = judged(tmp_path, [*RACK, document], items)

    (verdict,) = found.verdicts
    assert (verdict.job.key in found.kept, verdict.placement) == (True, placement)


@pytest.mark.parametrize(
    ("documents", "items", "message"),
    [
        ([*RACK, job("j", 2, 8)], gang("other", 1, "a"),
         ("waits for here/other (1 pod), which runs now: 2 pods must start together and the whole cluster holds 1: "
          "they need 16 nvidia.com/gpu, it has 15")),
        ([*RACK, job("j", 1, 8)], [pod("p", "a", 3), *gang("big", 2, "b", "b")],
         ("waits for here/big (2 pods), here/p (1 pod), which run now: a pod of w needs 8 nvidia.com/gpu, and the "
          "nearest node, a, has 5 for it")),
        ([*RACK, QUEUE, SMALL],
         [pod("p", "b", 1), *gang("big", 5, "a", queue="small")],
         ("waits for here/big (1 pod), which runs now: its 1 pod needs 4 nvidia.com/gpu, and queue small has 3 beside "
          "5 that run now")),
        ([*RACK, node("c"), QUOTA, job("j", 1, 4)], [pod("p", "a", 8), pod("q", "b", 8)],
         ("waits for here/p (1 pod), here/q (1 pod), which run now: its 1 pod needs 4 requests.nvidia.com/gpu, and "
          "ResourceQuota here/quota has 0 beside 16 that run now")),
    ],
)  # fmt: skip
def test_the_reason_names_what_runs(tmp_path: Path, documents: list[str], items: list[Value], message: str) -> None:
    (verdict,) = judged(tmp_path, documents, items).verdicts

    assert verdict.reason is not None
    assert (verdict.reason.rule, verdict.reason.message) == ("gang-fits-beside-others", message)
    assert sum(verdict.placement.values()) == verdict.job.gang.minimum


def test_what_runs_on_a_lost_node_is_lost(tmp_path: Path) -> None:
    items = gang("one", 8, "a", "b")

    found = judged(tmp_path, [*RACK, node("c"), job("one", 2, 8), job("two", 1, 8)], items, "a")

    assert {each.job.key.name: each.state.value for each in found.verdicts} == {"one": "fits", "two": "contended"}
    assert dict(found.moved) == {("Job", "here", "one"): "1 of the 2 pods that it needs have a place"}


# properties

_PLACES = st.lists(st.sampled_from("abc"), max_size=5)
_JOBS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 8), st.booleans()), min_size=1, max_size=3)
CLUSTER = [node("a"), node("b"), node("c", "r2")]


def some(jobs: list[tuple[int, int, bool]]) -> list[str]:
    return [job(f"j{number}", minimum, gpu, topology=HARD if is_hard else "")
            for number, (minimum, gpu, is_hard) in enumerate(jobs)]  # fmt: skip


@given(_JOBS)
@settings(max_examples=25, deadline=None)
def test_where_nothing_runs_verdicts_are_those_without_a_snapshot(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[tuple[int, int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("case")
    documents = [*CLUSTER, *some(jobs)]

    found = judged(folder, documents, nodes(*CLUSTER)).verdicts

    plain = verdicts.verdicts(reading.read(compile_folder(folder).index))
    assert [each.as_json() for each in found] == [each.as_json() for each in plain]


@given(_JOBS, st.lists(st.tuples(_PLACES, st.integers(1, 3)), max_size=3), _PLACES)
@settings(max_examples=60, deadline=None)
def test_placements_hold_together_with_what_runs(
    tmp_path_factory: pytest.TempPathFactory,
    jobs: list[tuple[int, int, bool]],
    others: list[tuple[list[str], int]],
    own: list[str],
) -> None:
    folder = tmp_path_factory.mktemp("case")
    items = [each for number, (places, gpu) in enumerate(others) for each in gang(f"other{number}", gpu, *places)]
    items += gang("j0", jobs[0][1], *own)
    snapshot = taken(folder, items)
    index = declared(folder, [*CLUSTER, *some(jobs)])

    found = beside.judged(index, snapshot)

    empty = reading.read(index)
    now = running.now(index, snapshot, empty)
    fitting = {each.job.key: {(0, name): count for name, count in each.placement.items()}
               for each in found.verdicts if each.state is verdicts.State.FITS}  # fmt: skip
    new = {key: counts for key, counts in fitting.items() if key not in now.kept}
    assert checking.fault(empty.problem, fitting) is None
    assert checking.fault(now.beside, new) is None
    assert {each.job.key for each in found.verdicts if each.state is verdicts.State.NEVER} == {
        each.job.key for each in verdicts.verdicts(empty) if each.state is verdicts.State.NEVER
    }
    for key in now.kept:
        assert set(fitting[key]) <= {(0, name) for name in own}


# the file


def read(path: Path, text: str | bytes) -> Snapshot:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return snapshots.read(files.argument(str(path)))


ITEMS = [*nodes(node("a")), *gang("j", 1, "a"), {"apiVersion": "v1", "kind": "Service", "spec": 5}]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(listed(ITEMS)),
        json.dumps(listed(ITEMS)).encode("utf-8-sig"),
        yaml.safe_dump(listed(ITEMS)),
        yaml.safe_dump_all(ITEMS[:3]),
        json.dumps(listed(ITEMS[:1])) + "\n" + json.dumps(listed(ITEMS[1:])),
        json.dumps(listed([*ITEMS, *ITEMS])),
    ],
)
def test_a_snapshot_is_read_in_each_form_that_kubectl_writes(tmp_path: Path, text: str | bytes) -> None:
    found = read(tmp_path / "now", text)

    assert [each.name for each in found.nodes] == ["a"]
    assert [(each.metadata.name, each.node) for each in found.pods] == [("j-w-0", "a")]
    assert [(each.metadata.name, each.spec.queue) for each in found.groups] == [("j-1", "default")]


def test_a_pod_list_need_not_say_what_its_items_are(tmp_path: Path) -> None:
    bare = {key: value for key, value in pod("p", "a").items() if key not in ("apiVersion", "kind")}
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [bare]})

    assert [each.metadata.name for each in read(tmp_path / "json", text).pods] == ["p"]
    assert [each.metadata.name for each in read(tmp_path / "yaml", yaml.safe_dump(json.loads(text))).pods] == ["p"]


WRONG_POD = pod("p", "a")
WRONG_POD["spec"]["nodeName"] = 5
WAY_OUT = "give what kubectl get nodes,pods,podgroups -A -o json prints"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "now:1: not JSON: a key in quotes is expected here"),
        ("", f"now:1: nothing in it; {WAY_OUT}"),
        ("[]", f"now:1: no list of Kubernetes objects; {WAY_OUT}"),
        ('{"apiVersion": "v1", "kind": "Service"}',
         f"now:1: no list of Kubernetes objects: its kind is Service; {WAY_OUT}"),
        ('{"apiVersion": "v1", "kind": "List", "items": 5}', f"now:1: its items are no list; {WAY_OUT}"),
        (json.dumps(listed([WRONG_POD]), indent=1), f"now:31: expected `str`, got `int` at spec.nodeName; {WAY_OUT}"),
        (yaml.safe_dump(listed([WRONG_POD])), f"now:18: expected `str`, got `int` at spec.nodeName; {WAY_OUT}"),
        (json.dumps(listed([5])), f"now:1: expected `object`, got `int`; {WAY_OUT}"),  # type: ignore[list-item]
        (json.dumps(listed([{"apiVersion": "v1", "kind": "Pod"}])),
         f"now:1: object missing required field `metadata`; {WAY_OUT}"),
        ("a: [", "now:1: not YAML: "),
        (b"a: \xff", f"now:1: not UTF-8; {WAY_OUT}"),
        ("x\n".encode("utf-16"), f"now:1: not UTF-8; {WAY_OUT}"),
        ("[" * 100_000, "now:1: "),
        ('{"a":' * 100_000, "now:1: nested deeper than 200 levels"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_snapshot_is_one_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(Misuse) as misuse:
        read(tmp_path / "now", text)

    found = str(misuse.value).removeprefix(f"{tmp_path}/")
    assert found == message if message.endswith(WAY_OUT) else found.startswith(message)
    assert "\n" not in str(misuse.value)


_JUNK = st.sampled_from(
    [None, 5, -1, 1e300, "", "x", True, [], [None], {}, {"": ""}, {"cpu": "x"}, "\ud800", "9" * 500]
)


def spots(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The places of all values in a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(*at, key) for key, _ in inside] + [spot for key, each in inside for spot in spots(each, (*at, key))]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_spoilt_snapshot_is_misuse_or_gives_verdicts(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("case")
    value = json.loads(json.dumps(listed(nodes(*RACK) + gang("j", 4, "a", "b", owner="Job/j"))))
    *way, last = data.draw(st.sampled_from(spots(value)))
    spoilt = value
    for step in way:
        spoilt = spoilt[step]
    spoilt[last] = data.draw(_JUNK)
    index = declared(folder, [*RACK, QUOTA, job("j", 2, 4), job("k", 1, 8)])

    try:
        snapshot = read(folder / "now", json.dumps(value))
    except Misuse:
        return
    found = beside.judged(running.cluster(index, snapshot), snapshot)
    assert [each.job.key.name for each in found.verdicts] == ["j", "k"]


# the command


def run(*arguments: str, cwd: Path = ROOT, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "basalt", "fit", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, input=text)


def test_a_sandbox_where_seed_runs_agrees() -> None:
    """Volcano has left resnet Pending there."""
    done = run("seed", "--snapshot", SEED, "--no-color")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Job vision-train/allreduce fits: runs now, 6 of 10 pods in s0-s1: te1 2, te2 2, te3 2",
        "Job speech-train/transcribe fits: 1 of 8 pods in s0-s2-rack-3: te5 1",
        "Job vision-train/resnet contended: alone, it would run with 3 pods in s0-s1: te1 1, te2 1, te3 1",
        (
            "  waits for vision-train/allreduce (8 pods), speech-train/probe-0 (1 pod), speech-train/probe-1 (1 pod), "
            "which run now: 3 pods must start together and the whole cluster holds 2: 1 on each of 2 nodes "
            "[gang-fits-beside-others]"
        ),
        "runs now: 10 pods on 6 nodes",
        "  speech-train/probe-0: 1 pod on 1 node in s0-s2-rack-4: te7 1 (queue speech)",
        "  speech-train/probe-1: 1 pod on 1 node in s0-s2-rack-4: te8 1 (queue speech)",
        "  vision-train/allreduce: 8 pods on 4 nodes in s0-s1: te1 2, te2 2, te3 2, te4 2 (queue vision)",
        "3 jobs: 2 fits, 1 contended",
    ]


def test_json_says_what_runs_and_nothing_else_is_new() -> None:
    with_snapshot = json.loads(run("seed", "--snapshot", SEED, "--format", "json").stdout)
    without = json.loads(run("seed", "--format", "json").stdout)

    assert with_snapshot.keys() - without.keys() == {"running"}
    assert [each.keys() for each in with_snapshot["jobs"]] == [each.keys() for each in without["jobs"]]
    assert with_snapshot["running"][0] == {
        "namespace": "speech-train", "name": "probe-0", "queue": "speech", "pods": 1, "domain": "s0-s2-rack-4",
        "nodes": {"te7": 1},
    }  # fmt: skip


def test_a_snapshot_comes_by_stdin_and_goes_with_the_other_options() -> None:
    text = (ROOT / SEED).read_text()

    def states(*arguments: str) -> list[str]:
        done = run("seed", "--snapshot", "-", "--format", "json", *arguments, text=text)
        return [f"{each['name']} {each['verdict']}" for each in json.loads(done.stdout)["jobs"]]

    assert states("--job", "resnet") == ["resnet contended"]
    assert states("--lose", "te1") == ["allreduce fits", "transcribe fits", "resnet contended"]
    assert states("--lose", "te1", "--lose", "te2") == ["allreduce fits", "transcribe fits", "resnet contended"]
    assert states("--lose-any", "rack") == []


def test_what_would_have_to_restart_is_said(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text("---\n".join([ENVIRONMENT, *RACK, job("j", 2, 8)]) + CLASSES)
    text = json.dumps(listed(gang("j", 4, "a", "a")))

    done = run(".", "--snapshot", "-", "--quiet", cwd=tmp_path, text=text)

    assert done.stdout.splitlines() == [
        "Job here/j fits: 2 pods in r1: a 1, b 1",
        "  runs now, and is judged as if it did not: its pods of w have 4 nvidia.com/gpu, and 8 is declared",
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.json", "cannot read missing.json: No such file or directory"),
        (".", "cannot read .: Is a directory"),
        ("Makefile", "Makefile:"),
    ],
)
def test_a_file_that_cannot_be_read_is_misuse(path: str, message: str) -> None:
    done = run("seed", "--snapshot", path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"basalt: {message}")
    assert done.stderr.count("\n") == 1
