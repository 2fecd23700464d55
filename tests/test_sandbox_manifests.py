"""What a sandbox is made from: nodes, the scheduler's configuration, what an environment lacks, KWOK's stages."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from basalt.compiling import compile_folder
from basalt.loading import nodes
from basalt.sandbox import manifests
from tests.test_readme import ROOT


def node(**more: Any) -> dict[str, Any]:
    value = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"rack": "1"}}, **more}
    found = nodes.from_value(value)
    assert isinstance(found, nodes.Node)
    return manifests.node(found)


def test_a_node_keeps_its_labels_taints_cordon_and_amounts() -> None:
    taint = {"key": "dedicated", "effect": "NoSchedule", "value": "gpu"}
    made = node(
        spec={
            "unschedulable": True,
            "taints": [taint, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        },
        status={"allocatable": {"cpu": "8", "memory": "1Gi", "pods": "20", "nvidia.com/gpu": 4}},
    )

    assert made["metadata"] == {
        "name": "a",
        "labels": {"rack": "1"},
        "annotations": {"sandbox.basalt.dev/kubelet": "kwok"},
    }
    assert made["spec"] == {"unschedulable": True, "taints": [taint]}
    assert made["status"]["allocatable"] == {"cpu": "8", "memory": "1Gi", "pods": "20", "nvidia.com/gpu": "4"}
    assert made["status"]["capacity"] == made["status"]["allocatable"]


def test_a_node_that_is_not_ready_gets_no_kubelet() -> None:
    made = node(status={"conditions": [{"type": "Ready", "status": "Unknown"}]})

    assert "annotations" not in made["metadata"]


def test_amounts_that_kwok_would_make_up_are_given() -> None:
    assert node()["status"]["allocatable"] == {"cpu": "0", "memory": "0", "pods": "110"}


@pytest.mark.parametrize(
    ("actions", "kept", "dropped"),
    [
        ("enqueue, allocate, backfill", "enqueue, allocate, backfill", []),
        ("enqueue,allocate,gangreclaim,gangpreempt", "enqueue, allocate", ["gangreclaim", "gangpreempt"]),
    ],
)
def test_actions_of_a_later_volcano_are_left_out(actions: str, kept: str, dropped: list[str]) -> None:
    text, left = manifests.adapted({"actions": actions, "tiers": [{"plugins": [{"name": "gang"}]}]})

    assert yaml.safe_load(text) == {"actions": kept, "tiers": [{"plugins": [{"name": "gang"}]}]}
    assert left == dropped


def test_what_seed_needs_and_does_not_declare() -> None:
    wanted = manifests.wanted(compile_folder(ROOT / "stacks" / "seed"))

    assert [each["metadata"]["name"] for each in wanted.nodes] == [f"te{number}" for number in range(1, 9)]
    assert wanted.claims == [
        ("speech-train", "recordings"), ("vision-train", "allreduce"), ("vision-train", "imagenet"),
    ]  # fmt: skip
    assert [each["metadata"]["name"] for each in wanted.namespaces] == [
        "speech-train",
        "vision-train",
        "volcano-system",
    ]
    assert wanted.namespaces[0]["metadata"]["labels"]["basalt.dev/team"] == "speech"
    assert wanted.strange_namespaces == []


def test_a_declared_claim_is_left_to_apply(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text("""\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: here}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: here}
spec:
  containers: [{name: a, image: a}]
  volumes:
    - {name: data, persistentVolumeClaim: {claimName: data}}
    - {name: more, persistentVolumeClaim: {claimName: more}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: b}
spec: {volumes: [{mountPath: /a, volumeClaimName: own}], tasks: []}
""")
    wanted = manifests.wanted(compile_folder(tmp_path))

    assert wanted.claims == [("default", "own"), ("here", "more")]
    assert wanted.strange_namespaces == ["here"]


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Widget", "widgets"),
        ("ClusterPolicy", "clusterpolicies"),
        ("Box", "boxes"),
        ("Class", "classes"),
        ("Mesh", "meshes"),
    ],
)
def test_a_stand_in_takes_everything(kind: str, plural: str) -> None:
    (made,) = manifests.stand_ins({("example.com/v1beta1", kind): True, ("example.com/v1", kind): True})

    assert (made["metadata"]["name"], made["spec"]["scope"]) == (f"{plural}.example.com", "Namespaced")
    assert [(each["name"], each["storage"]) for each in made["spec"]["versions"]] == [("v1", False), ("v1beta1", True)]
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_webhooks_call_the_address_instead_of_the_service() -> None:
    webhook = {"name": "a", "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/jobs/validate"}}}
    configuration = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "x"}, "webhooks": [webhook]}
    text = yaml.safe_dump_all([configuration, {"kind": "Service"}])

    made = manifests.webhooks(text, "https://127.0.0.1:1", b"pem")

    authority = base64.b64encode(b"pem").decode()
    expected = {"url": "https://127.0.0.1:1/jobs/validate", "caBundle": authority}
    assert [each["clientConfig"] for each in made[0]["webhooks"]] == [expected]
    assert manifests.paths(made, "https://127.0.0.1:1") == ["/jobs/validate"]


def test_pods_end_when_their_annotation_says_so_and_every_claim_gets_a_volume() -> None:
    owner = {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]}
    running = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
    own_class = {"cel": {"expression": "self.spec.storageClassName == 'kwok-volume'"}}
    alive = {"cel": {"expression": "!has(self.metadata.deletionTimestamp)"}}
    text = yaml.safe_dump_all([
        {"metadata": {"name": name}, "spec": {"selector": {"matchExpressions": list(expressions)}}}
        for name, expressions in (("pod-complete", (running, owner)), ("pvc-provision", (own_class, alive)))
    ])  # fmt: skip

    complete, provision = yaml.safe_load_all(manifests.stages(text))

    path = '.metadata.annotations["sandbox.basalt.dev/run-for"]'
    assert complete["spec"]["selector"]["matchExpressions"] == [running, {"key": path, "operator": "Exists"}]
    assert complete["spec"]["delay"] == {"durationFrom": {"expressionFrom": path}}
    assert provision["spec"]["selector"]["matchExpressions"] == [alive]
