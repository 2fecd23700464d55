"""`seed` on the real API server and the real Volcano: accepted, and in effect."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from basalt.cluster.connection import Cluster, Refusal
from basalt.compiling import compile_folder
from basalt.findings import Ref
from basalt.rendering import layout
from tests.sandbox.conftest import ROOT, Up, eventually

pytestmark = pytest.mark.slow

JOB = ("batch.volcano.sh/v1alpha1", "Job")
GROUP = ("scheduling.volcano.sh/v1beta1", "PodGroup")
QUEUE = ("scheduling.volcano.sh/v1beta1", "Queue")
LEAVES = {"s0-s1": {"te1", "te2", "te3", "te4"}, "s0-s2": {"te5", "te6", "te7", "te8"}}


def running(cluster: Cluster, namespace: str, job: str) -> list[dict[str, Any]]:
    pods = cluster.list("v1", "Pod", namespace)
    return [each for each in pods if each["metadata"]["labels"].get("volcano.sh/job-name") == job
            and each["status"]["phase"] == "Running"]  # fmt: skip


def group_of(cluster: Cluster, namespace: str, job: str) -> dict[str, Any]:
    """The PodGroup of the job, {} while there is none."""
    groups = cluster.list(*GROUP, namespace)
    return next((each for each in groups if each["metadata"]["ownerReferences"][0]["name"] == job), {})


def job(
    name: str, replicas: int, cpu: int, queue: str = "default", topology: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A gang of pods in the namespace default, which nothing limits."""
    resources = {"requests": {"cpu": str(cpu)}, "limits": {"cpu": str(cpu), "memory": "1Gi"}}
    container = {"name": "main", "image": "registry.example.com/a:1", "resources": resources}
    task = {"name": "worker", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
    spec = {"schedulerName": "volcano", "queue": queue, "minAvailable": replicas, "tasks": [task]}
    if topology:
        spec["networkTopology"] = topology
    return {"apiVersion": JOB[0], "kind": JOB[1], "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def submit(cluster: Cluster, value: dict[str, Any]) -> None:
    cluster.apply(value, Ref(*JOB, "default", value["metadata"]["name"]), "test")


def test_every_object_is_in_the_cluster_as_declared(seed: Up) -> None:
    done = seed.run("verify", "seed", "--format", "json")

    found = json.loads(done.stdout)
    declared = layout.in_apply_order(compile_folder(ROOT / "stacks" / "seed").objects)
    assert [each["name"] for each in found["objects"]] == [each.name for each in declared]
    assert (done.returncode, found["summary"]) == (
        0, {"same": len(declared), "drifted": 0, "missing": 0, "refused": 0, "foreign": 0},
    )  # fmt: skip


def test_the_hard_gang_runs_inside_one_leaf_switch(seed: Up) -> None:
    pods = eventually(lambda: found if len(found := running(seed.cluster, "vision-train", "allreduce")) >= 6 else None)

    assert pods is not None
    nodes = {each["spec"]["nodeName"] for each in pods}
    assert [name for name, leaf in LEAVES.items() if nodes <= leaf] != []


def test_status_shows_where_the_gang_runs(seed: Up) -> None:
    eventually(lambda: len(running(seed.cluster, "vision-train", "allreduce")) >= 6)

    text = seed.run("sandbox", "status").stdout
    jobs = {
        each["name"]: each
        for each in json.loads(seed.run("sandbox", "status", "--format", "json").stdout)["sandboxes"][0]["jobs"]
    }

    gang = jobs["allreduce"]
    nodes = Counter(each["spec"]["nodeName"] for each in running(seed.cluster, "vision-train", "allreduce"))
    assert (gang["running"], gang["minimum"], gang["placement"]) == (nodes.total(), 6, dict(nodes))
    assert gang["domain"] in LEAVES
    assert (
        f"  vision-train/allreduce Running: {nodes.total()} pods running, 6 needed, in {gang['domain']} (leaf): "
        in text
    )


def test_the_readme_shows_what_one_sees(seed: Up) -> None:
    """But for who got the last GPUs: that is the scheduler's, whose sessions open when they open."""
    line = re.compile(r"^  (\S+/\S+) \w*: \d+ pods? running, (\d+) needed", re.MULTILINE)

    readme = line.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(readme) == 3
    try:
        eventually(lambda: line.findall(seed.run("sandbox", "status").stdout) == readme)
    except AssertionError:
        pytest.fail(f"not the gangs of the README, but\n{seed.run('sandbox', 'status').stdout}")


# access


def review(cluster: Cluster, verb: str, group: str, resource: str, namespace: str | None) -> bool:
    """Whether the client may, as the API server sees it."""
    asked = {"verb": verb, "group": group, "resource": resource, **({"namespace": namespace} if namespace else {})}
    value = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = cluster.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None, value)
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize(
    ("group", "verb", "api_group", "resource", "namespace", "is_allowed"),
    [
        ("vision-research", "create", "batch.volcano.sh", "jobs", "vision-train", True),
        ("vision-research", "create", "batch.volcano.sh", "jobs", "speech-train", False),
        ("vision-research", "create", "scheduling.volcano.sh", "queues", None, False),
        ("vision-research", "get", "scheduling.volcano.sh", "queues", None, True),
        ("vision-research", "update", "", "resourcequotas", "vision-train", False),
        ("vision-research", "create", "rbac.authorization.k8s.io", "rolebindings", "vision-train", False),
        ("vision-leads", "create", "batch.volcano.sh", "jobs", "vision-train", True),
        ("vision-leads", "delete", "", "nodes", None, False),
        ("auditors", "list", "batch.volcano.sh", "jobs", "speech-train", True),
        ("auditors", "create", "batch.volcano.sh", "jobs", "speech-train", False),
        ("strangers", "list", "batch.volcano.sh", "jobs", "speech-train", False),
    ],
)  # fmt: skip
def test_a_certificate_may_what_its_groups_role_says(
    seed: Up, group: str, verb: str, api_group: str, resource: str, namespace: str | None, is_allowed: bool
) -> None:
    client = seed.as_user("somebody", group)

    assert review(client, verb, api_group, resource, namespace) is is_allowed
    client.close()


def test_a_tenants_job_in_anothers_namespace_is_refused(seed: Up) -> None:
    client = seed.as_user("vera", "vision-research")
    value = job("intruder", 1, 1)

    with pytest.raises(Refusal) as refused:
        client.apply({**value, "metadata": {"name": "intruder", "namespace": "speech-train"}},
                     Ref(*JOB, "speech-train", "intruder"), "test", dry_run=True)  # fmt: skip

    assert (refused.value.status, 'User "vera" cannot patch resource "jobs"' in refused.value.message) == (403, True)
    client.close()


def test_a_tenants_job_in_anothers_queue_is_refused(seed: Up) -> None:
    client = seed.as_user("vera", "vision-research")
    value = {**job("borrower", 1, 1, queue="speech"), "metadata": {"name": "borrower", "namespace": "vision-train"}}

    with pytest.raises(Refusal, match="basalt-team-vision-queue"):
        client.apply(value, Ref(*JOB, "vision-train", "borrower"), "test", dry_run=True)
    client.close()


# quotas, limits, queues


def pod(name: str, namespace: str, requests: dict[str, str]) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "registry.example.com/a:1"}
    if requests:
        container["resources"] = {"requests": requests, "limits": requests}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def test_the_quota_refuses_what_is_beyond_it(seed: Up) -> None:
    value = pod("greedy", "speech-eval", {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "9"})  # the quota has 8

    with pytest.raises(Refusal, match=r"exceeded quota: quota, requested: requests.nvidia.com/gpu=9"):
        seed.cluster.create(value, Ref("v1", "Pod", "speech-eval", "greedy"), dry_run=True)


def test_the_limit_range_gives_pods_what_they_leave_out(seed: Up) -> None:
    made = seed.cluster.create(pod("plain", "speech-eval", {}), Ref("v1", "Pod", "speech-eval", "plain"), dry_run=True)

    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "1", "memory": "2Gi"},
    }  # fmt: skip


def test_a_queue_at_its_capability_takes_no_more(seed: Up) -> None:
    queue = {"apiVersion": QUEUE[0], "kind": QUEUE[1], "metadata": {"name": "narrow"},
             "spec": {"capability": {"cpu": "4", "memory": "8Gi"}, "parent": "root"}}  # fmt: skip
    ref = Ref(*QUEUE, None, "narrow")
    seed.cluster.apply(queue, ref, "test")
    eventually(lambda: (seed.cluster.get(ref) or {}).get("status", {}).get("state") == "Open")

    submit(seed.cluster, job("first", 3, 1, queue="narrow"))
    eventually(lambda: len(running(seed.cluster, "default", "first")) == 3)
    submit(seed.cluster, job("second", 2, 1, queue="narrow"))  # 3 + 2 > 4
    eventually(lambda: _is_judged(seed.cluster, "second"))

    assert running(seed.cluster, "default", "second") == []


def test_a_gang_that_cannot_fit_stays_pending_with_no_pod_running(seed: Up) -> None:
    rack = {"mode": "hard", "highestTierAllowed": 1}  # a rack has two nodes of 95 CPUs
    submit(seed.cluster, job("wide", 3, 60, topology=rack))

    eventually(lambda: _is_judged(seed.cluster, "wide"))

    assert running(seed.cluster, "default", "wide") == []
    assert group_of(seed.cluster, "default", "wide")["status"]["phase"] in ("Pending", "Inqueue")


def _is_judged(cluster: Cluster, name: str) -> bool:
    """Whether the scheduler has looked at the job and said that it does not place it."""
    group = group_of(cluster, "default", name)
    events = cluster.list("v1", "Event", "default")
    return any(each["involvedObject"].get("uid") == group["metadata"]["uid"] and each["reason"] == "Unschedulable"
               for each in events if group)  # fmt: skip
