"""What pods ask of each other and of their node groups, from documents to verdicts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from basalt.compiling import compile_folder
from basalt.fit import verdicts
from tests.test_fit import ENVIRONMENT, judged

HOST, RACK = "kubernetes.io/hostname", "rack"
OWN: dict[str, Any] = {"matchLabels": {"app": "j"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def nodes(**racks: int) -> str:
    """So many nodes in each rack."""
    found = [(f"{rack}{number}", rack) for rack, count in racks.items() for number in range(count)]
    return yaml.safe_dump_all([node(name, rack) for name, rack in found])


def node(name: str, rack: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, RACK: rack, **labels}},
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "8", "pods": "110"}},
    }  # fmt: skip


def task(replicas: int, gpu: int, spec: dict[str, Any], name: str = "w", labels: dict[str, str] | None = None) -> Any:
    container = {"name": "a", "image": "a", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": str(gpu)}}}
    metadata = {"labels": {"app": "j"} if labels is None else labels}
    return {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": metadata, "spec": {**spec, "containers": [container]}},
    }


def job(*tasks: Any, name: str = "j", **spec: Any) -> str:
    pods = sum(each["replicas"] for each in tasks)
    return yaml.safe_dump({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name, "namespace": "here"},
        "spec": {"minAvailable": pods, "schedulerName": "volcano", "tasks": list(tasks), **spec},
    })  # fmt: skip


def affinity(kind: str, key: str, selector: dict[str, Any] | None = OWN, **more: Any) -> dict[str, Any]:
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": selector, **more}]}}}


def spread(key: str, skew: int = 1, **more: Any) -> dict[str, Any]:
    constraint = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": OWN}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


APART, TOGETHER = affinity("podAntiAffinity", HOST), affinity("podAffinity", RACK)
OTHER = {"app": "other"}
BY_INDEX, BY_NAME = (
    {"matchLabels": {f"volcano.sh/{key}": each}} for key, each in (("task-index", "0"), ("job-name", "j"))
)


@pytest.mark.parametrize(
    ("documents", "verdict", "reason"),
    [
        # One pod a host, one a rack.
        ([nodes(r=3), job(task(3, 1, APART))], "fits", ""),
        ([nodes(r=3), job(task(4, 1, APART))], "never",
         f"podAntiAffinity over {HOST} gives each of the 4 pods of w a place of its own, and 3 have room"),
        ([nodes(r=3, s=3), job(task(3, 1, affinity("podAntiAffinity", RACK)))], "never",
         "podAntiAffinity over rack gives each of the 3 pods of w a place of its own, and 2 have room"),
        # Nodes without the label are no place, and hold any number.
        ([nodes(r=2), job(task(9, 1, affinity("podAntiAffinity", "zone")))], "fits", ""),
        # An empty selector means every pod, none at all means no pod.
        ([nodes(r=3), job(task(2, 1, affinity("podAntiAffinity", RACK, {})))], "never",
         "podAntiAffinity over rack gives each of the 2 pods of w a place of its own, and 1 have room"),
        ([nodes(r=3), job(task(2, 1, affinity("podAntiAffinity", RACK, {"matchLabels": {}})))], "never",
         "podAntiAffinity over rack gives each of the 2 pods of w a place of its own, and 1 have room"),
        ([nodes(r=3), job(task(2, 1, affinity("podAntiAffinity", RACK, None)))], "fits", ""),
        ([nodes(r=2, s=1), job(task(3, 8, affinity("podAffinity", RACK, {})))], "never",
         "podAffinity over rack wants 3 pods in one domain, and the largest, rack=r, holds 2"),
        ([nodes(r=3, s=1), job(task(4, 8, spread(RACK, labelSelector={})))], "never",
         ("topologySpreadConstraints over rack: 4 pods must start together, rack=s has room for 1, no other may hold "
         "more than 1 beyond that, and so they hold 3 in all")),
        # Two tasks that keep each other away.
        ([nodes(r=2), job(task(1, 1, APART, "a"), task(1, 1, APART, "b"))], "fits", ""),
        ([nodes(r=2), job(task(1, 1, APART, "a"), task(2, 1, APART, "b"))], "never",
         "no packing of its 3 pods exists: the solver has proved it"),
        ([nodes(r=2), job(task(1, 1, APART, "a"), task(1, 1, {}, "b"))], "unknown",
         "Basalt cannot tell: it does not model podAntiAffinity that only some of its tasks ask for"),
        # All in one rack.
        ([nodes(r=2, s=1), job(task(2, 8, TOGETHER))], "fits", ""),
        ([nodes(r=2, s=1), job(task(3, 8, TOGETHER))], "never",
         "podAffinity over rack wants 3 pods in one domain, and the largest, rack=r, holds 2"),
        ([nodes(r=2), job(task(2, 1, affinity("podAffinity", RACK, {"matchLabels": OTHER})))], "unknown",
         "Basalt cannot tell: its podAffinity waits for pods that no declared job has"),
        # Evenly.
        ([nodes(r=2, s=2), job(task(4, 8, spread(RACK)))], "fits", ""),
        ([nodes(r=3, s=1), job(task(4, 8, spread(RACK)))], "never",
         ("topologySpreadConstraints over rack: 4 pods must start together, rack=s has room for 1, no other may hold "
         "more than 1 beyond that, and so they hold 3 in all")),
        ([nodes(r=3, s=1), job(task(4, 8, spread(RACK, 2)))], "fits", ""),
        ([nodes(r=3, s=1), job(task(4, 8, spread(RACK, whenUnsatisfiable="ScheduleAnyway")))], "fits", ""),
        ([nodes(r=3, s=3), job(task(4, 8, spread(RACK, minDomains=3)))], "never",
         ("topologySpreadConstraints over rack: 4 pods must start together, there are too few domains, no other may "
         "hold more than 1 beyond that, and so they hold 2 in all")),
        ([nodes(r=2), job(task(2, 1, spread(RACK), labels=OTHER))], "unknown",
         "Basalt cannot tell: it does not model topologySpreadConstraints over pods that do not all ask for the same"),
        # By values that only the cluster knows.
        ([nodes(r=2), job(task(2, 1, affinity("podAntiAffinity", HOST, BY_INDEX)))], "unknown",
         "Basalt cannot tell: it does not model podAntiAffinity by the label volcano.sh/task-index"),
        ([nodes(r=2), job(task(3, 1, affinity("podAntiAffinity", HOST, BY_NAME)))], "never",
         f"podAntiAffinity over {HOST} gives each of the 3 pods of w a place of its own, and 2 have room"),
    ],
)  # fmt: skip
def test_what_pods_ask_of_each_other(tmp_path: Path, documents: list[str], verdict: str, reason: str) -> None:
    found = judged(tmp_path, *documents)["j"]

    assert (found.state.value, found.reason.message if found.reason else "") == (verdict, reason)


def test_jobs_keep_each_other_away(tmp_path: Path) -> None:
    mine = affinity("podAntiAffinity", HOST, {"matchLabels": OTHER})
    other = job(task(2, 1, {}, labels=OTHER), name="k")

    def states(own: dict[str, Any], count: int) -> dict[str, str]:
        found = judged(tmp_path, nodes(r=3), job(task(count, 1, own)), other)
        return {name: each.state.value for name, each in found.items()}

    assert states({}, 9) == {"j": "fits", "k": "fits"}
    assert states(mine, 17) == {"j": "fits", "k": "contended"}
    assert states(mine, 9) == {"j": "fits", "k": "fits"}


NODEGROUP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system}
data:
  volcano-scheduler.conf: |
    actions: "allocate"
    tiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity}, {name: nodegroup%s}]}]
"""
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q}
spec: {affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [a]}}}
"""


@pytest.mark.parametrize(
    ("queue", "arguments", "pods", "verdict"),
    [
        ("q", "", 1, "fits"),
        ("q", "", 2, "never"),
        ("default", "", 1, "never"),  # a queue that names no group has no node
        ("default", ", arguments: {strict: false}", 1, "fits"),  # but those without one
        ("default", ", arguments: {strict: false}", 2, "never"),
    ],
)
def test_node_groups_belong_to_their_queues(
    tmp_path: Path, queue: str, arguments: str, pods: int, verdict: str
) -> None:
    label = "volcano.sh/nodegroup-name"
    three = [node("a", "r", **{label: "a"}), node("b", "r", **{label: "b"}), node("c", "r")]
    documents = [*map(yaml.safe_dump, three), NODEGROUP % arguments, QUEUE, job(task(pods, 8, {}), queue=queue)]

    (tmp_path / "plain.yaml").write_text("---\n".join(documents))
    found = verdicts.of(compile_folder(tmp_path, needs_environment=False).index)

    assert [each.state.value for each in found] == [verdict]


GROUP = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: j, namespace: here}
spec:
  minMember: %d
  subGroupPolicy:
    - {name: part, subGroupSize: 2, minSubGroups: %d, matchLabelKeys: [part],
       networkTopology: {mode: hard, highestTierAllowed: 1}}
"""


def member(part: str, number: int) -> str:
    pod = task(1, 8, {}, labels={"part": part})["template"]
    pod["metadata"] |= {"name": f"{part}{number}", "namespace": "here",
                        "annotations": {"scheduling.k8s.io/group-name": "j"}}  # fmt: skip
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Pod", **pod, "spec": {**pod["spec"], "schedulerName": "volcano"}}
    )


@pytest.mark.parametrize(
    ("racks", "minimum", "parts", "verdict"),
    [
        ({"r": 2, "s": 2}, 4, 2, "fits"),  # a part in each rack
        ({"r": 4}, 4, 2, "fits"),  # both in one
        ({"r": 3, "s": 1}, 4, 2, "never"),  # room for all, but not for both parts
        ({"r": 3, "s": 1}, 2, 1, "fits"),
        ({"r": 3, "s": 3}, 4, 3, "unknown"),  # there are two
    ],
)
def test_sub_groups_keep_together(
    tmp_path: Path, racks: dict[str, int], minimum: int, parts: int, verdict: str
) -> None:
    pods = [member(part, number) for part in ("x", "y") for number in range(2)]

    found = judged(tmp_path, nodes(**racks), GROUP % (minimum, parts), *pods)

    assert found["j"].state.value == verdict


@pytest.mark.parametrize(("caches", "is_tight"), [("", True), ("false", False)])
def test_a_node_that_refused_a_pod_is_not_asked_again(tmp_path: Path, caches: str, is_tight: bool) -> None:
    """Four pods spread evenly over two racks: the second pod finds the first one's rack closed, which Volcano keeps in
    mind when the third one needs it."""
    arguments = f"configurations: [{{name: allocate, arguments: {{predicateErrorCacheEnable: {caches}}}}}]" * bool(
        caches
    )
    volcano = f"  volcano: {{version: 1.14.1, scheduler: {{{arguments}}}}}\n"
    environment = ENVIRONMENT.replace(
        "  volcano: {version: 1.14.1}\n", volcano if caches else "  volcano: {version: 1.14.1}\n"
    )

    (tmp_path / "all.yaml").write_text("---\n".join([environment, nodes(r=2, s=2), job(task(4, 8, spread(RACK)))]))
    (found,) = verdicts.of(compile_folder(tmp_path).index)

    assert (found.state.value, found.tight) == ("fits", is_tight)
    assert (found.change or "").startswith("set predicateErrorCacheEnable: false") is is_tight


CLOSED = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: shut}, status: {state: Closed}}\n"
BELOW = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: low}, spec: {parent: q}}\n"


@pytest.mark.parametrize(
    ("queue", "verdict", "reason"),
    [
        ("low", "fits", None),
        ("default", "fits", None),
        ("shut", "never", ("queue-takes-jobs", "shut is Closed, it takes no jobs")),
        ("q", "never", ("queue-takes-jobs", "q has queues below it (low); only a queue without any takes jobs")),
        ("root", "never", ("queue-takes-jobs", "jobs cannot go to root")),
        ("gone", "never", ("queue-exists", "the queue gone is not declared")),
    ],
)
def test_what_its_queue_never_takes_never_runs(
    tmp_path: Path, queue: str, verdict: str, reason: tuple[str, str] | None
) -> None:
    found = judged(tmp_path, nodes(r=1), QUEUE, CLOSED, BELOW, job(task(1, 1, {}), queue=queue))["j"]

    assert (found.state.value, found.reason and found.reason[:2]) == (verdict, reason)
