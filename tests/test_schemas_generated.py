"""The committed schemas of Kubernetes and Volcano objects: which kinds they hold and what those accept and reject."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from basalt.api import structural
from tools import go_modules

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "schemas" / "kubernetes").glob("*.json")) + sorted((ROOT / "schemas" / "volcano").glob("*.json"))
SOURCES = [each for each in go_modules.pinned() if each["module"] in ("k8s.io/kubernetes", "volcano.sh/volcano")]
KUBERNETES = ("1.29", "1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
VOLCANO = ("1.13", "1.14", "1.15")

Judge = jsonschema_rs.Draft202012Validator


@cache
def release(product: str, minor: str) -> Any:
    return json.loads((ROOT / "schemas" / product / f"{minor}.json").read_text())


@cache
def schema(product: str, minor: str, kind: str) -> Any:
    file = release(product, minor)
    name = file["kinds"][kind]["definition"]
    return {"$ref": f"#/definitions/{name}", "definitions": structural.reachable(file["definitions"], name)}


def messages(product: str, minor: str, kind: str, value: Any) -> list[str]:
    judge = Judge(schema(product, minor, kind))
    return ["/".join(map(str, (*error.instance_path, error.message))) for error in judge.iter_errors(value)]


def off(minor: str) -> set[str]:
    return {key for key, kind in release("kubernetes", minor)["kinds"].items() if kind.get("default") is False}


CONTAINER = {
    "name": "main",
    "image": "registry.example.com/train:1",
    "resources": {"limits": {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": "8"}},
    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
}
TEMPLATE = {
    "metadata": {"labels": {"app": "train"}},
    "spec": {"containers": [CONTAINER], "restartPolicy": "OnFailure", "tolerations": [{"operator": "Exists"}]},
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}, "spec": TEMPLATE["spec"]}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "a", "namespace": "b", "annotations": {"basalt.dev/waive": "rule: reason"}},
    "spec": {
        "minAvailable": 2,
        "queue": "research",
        "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
        "plugins": {"svc": [], "pytorch": ["--master=master"]},
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [{"name": "worker", "replicas": 2, "template": TEMPLATE}],
    },
}
QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "research"},
    "spec": {"weight": 1, "reclaimable": True, "capability": {"nvidia.com/gpu": 48}, "parent": "root"},
}
HYPER_NODE = {
    "apiVersion": "topology.volcano.sh/v1alpha1",
    "kind": "HyperNode",
    "metadata": {"name": "s0"},
    "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "te1"}}}]},
}
BATCH_JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "a"},
    "spec": {"backoffLimit": 3, "template": TEMPLATE},
}
SAMPLES = {
    "v1/Pod": POD,
    "batch/v1/Job": BATCH_JOB,
    "batch.volcano.sh/v1alpha1/Job": JOB,
    "scheduling.volcano.sh/v1beta1/Queue": QUEUE,
    "topology.volcano.sh/v1alpha1/HyperNode": HYPER_NODE,
}
EVERYWHERE = [
    (product, minor, kind)
    for product, minors in (("kubernetes", KUBERNETES), ("volcano", VOLCANO))
    for minor in minors
    for kind in SAMPLES
    if (".volcano.sh/" in kind) == (product == "volcano")
]


def test_each_source_has_its_file_and_none_is_left_over() -> None:
    expected = [
        (source["module"], source["version"], source["sum"])
        for source in SOURCES
        for _ in range(2 if (source["module"], source["version"]) == ("volcano.sh/volcano", "v1.14.1") else 1)
    ]
    found = [json.loads(path.read_text())["source"] for path in FILES]

    assert [path.stem for path in FILES] == [*KUBERNETES, *VOLCANO]
    assert sorted((each["module"], each["version"], each["sum"]) for each in found) == sorted(expected)


def test_only_volcano_1_13_is_derived() -> None:
    assert [path.stem for path in FILES if "derived" in json.loads(path.read_text())["source"]] == ["1.13"]


def test_all_files_together_stay_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < 12_000_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_kind_builds_and_no_definition_is_idle(path: Path) -> None:
    file = json.loads(path.read_text())
    reached: set[str] = set()
    for kind in file["kinds"].values():
        closure = structural.reachable(file["definitions"], kind["definition"])
        Judge({"$ref": f"#/definitions/{kind['definition']}", "definitions": closure})
        structural.quantity_paths({"$ref": f"#/definitions/{kind['definition']}"}, closure)
        reached |= closure.keys()

    assert reached == file["definitions"].keys()


@pytest.mark.parametrize(("product", "minor", "kind"), EVERYWHERE, ids=lambda each: each.replace("/", "-"))
def test_a_plain_object_fits_every_version(product: str, minor: str, kind: str) -> None:
    assert messages(product, minor, kind, SAMPLES[kind]) == []


def _changed(value: Any, path: tuple[Any, ...], old: str, new: str) -> Any:
    changed = copy.deepcopy(value)
    place = changed
    for part in path:
        place = place[part]
    place[new] = place.pop(old)
    return changed


IN_TASK = ("spec", "tasks", 0)
IN_POD = ("template", "spec", "containers", 0)
TYPOS = {
    "task-of-a-vcjob": ("batch.volcano.sh/v1alpha1/Job", IN_TASK, "replicas", "replica"),
    "container-of-a-vcjob": ("batch.volcano.sh/v1alpha1/Job", (*IN_TASK, *IN_POD), "image", "imagee"),
    "container-of-a-job": ("batch/v1/Job", ("spec", *IN_POD), "image", "imagee"),
    "metadata-of-a-queue": ("scheduling.volcano.sh/v1beta1/Queue", ("metadata",), "name", "nmae"),
    "root-of-a-hyper-node": ("topology.volcano.sh/v1alpha1/HyperNode", (), "spec", "specs"),
}


@pytest.mark.parametrize(("kind", "path", "old", "new"), TYPOS.values(), ids=TYPOS)
def test_a_typo_at_any_depth_is_rejected(kind: str, path: tuple[Any, ...], old: str, new: str) -> None:
    product, minor = ("volcano", "1.15") if ".volcano.sh/" in kind else ("kubernetes", "1.34")
    where = "".join(f"{part}/" for part in path)
    expected = f"{where}Additional properties are not allowed ('{new}' was unexpected)"

    assert messages(product, minor, kind, _changed(SAMPLES[kind], path, old, new)) == [expected]


def test_a_null_field_counts_as_absent() -> None:
    pod = POD | {"spec": {**POD["spec"], "nodeSelector": None, "volumes": [{"name": "a", "emptyDir": None}]}}  # type: ignore[dict-item]
    shape = schema("kubernetes", "1.34", "v1/Pod")

    assert messages("kubernetes", "1.34", "v1/Pod", structural.without_nulls(pod, shape)) == []


def test_the_quantities_of_a_vcjob_are_found() -> None:
    shape = schema("volcano", "1.15", "batch.volcano.sh/v1alpha1/Job")
    trie = structural.quantity_paths(shape, shape["definitions"])

    assert [(key, value) for _, key, value in structural.quantities(trie, JOB)] == [
        ("cpu", 8),
        ("memory", "64Gi"),
        ("nvidia.com/gpu", "8"),
    ]


VOLCANO_KINDS = {
    "batch.volcano.sh/v1alpha1/CronJob": "Namespaced",
    "batch.volcano.sh/v1alpha1/Job": "Namespaced",
    "bus.volcano.sh/v1alpha1/Command": "Namespaced",
    "config.volcano.sh/v1alpha1/ColocationConfiguration": "Namespaced",
    "flow.volcano.sh/v1alpha1/JobFlow": "Namespaced",
    "flow.volcano.sh/v1alpha1/JobTemplate": "Namespaced",
    "nodeinfo.volcano.sh/v1alpha1/Numatopology": "Cluster",
    "scheduling.volcano.sh/v1beta1/PodGroup": "Namespaced",
    "scheduling.volcano.sh/v1beta1/Queue": "Cluster",
    "shard.volcano.sh/v1alpha1/NodeShard": "Cluster",
    "topology.volcano.sh/v1alpha1/HyperNode": "Cluster",
}
NEW_IN_1_14 = {"config.volcano.sh/v1alpha1/ColocationConfiguration", "shard.volcano.sh/v1alpha1/NodeShard"}


@pytest.mark.parametrize("minor", VOLCANO)
def test_all_crds_of_volcano_are_there(minor: str) -> None:
    expected = {key: scope for key, scope in VOLCANO_KINDS.items() if minor != "1.13" or key not in NEW_IN_1_14}

    assert {key: kind["scope"] for key, kind in release("volcano", minor)["kinds"].items()} == expected


@pytest.mark.parametrize("minor", VOLCANO)
@pytest.mark.parametrize(
    "field", ["highestTierName", "tierName", "partitionPolicy", "subGroupPolicy", "dequeueStrategy", "hostnameOverride"]
)
def test_the_fields_of_volcano_1_14_are_not_in_1_13(field: str, minor: str) -> None:
    text = json.dumps(release("volcano", minor)["definitions"])

    assert (f'"{field}":' in text) == (minor != "1.13")


def test_the_cel_rules_of_a_hyper_node_are_kept() -> None:
    spec = release("volcano", "1.15")["definitions"]["sh.volcano.topology.v1alpha1.HyperNode"]["properties"]["spec"]
    selector = spec["properties"]["members"]["items"]["properties"]["selector"]

    assert [rule["rule"].count("has(self.") for rule in selector["x-kubernetes-validations"]] == [3, 3]


def test_the_defaults_of_volcano_are_kept() -> None:
    spec = release("volcano", "1.15")["definitions"]["sh.volcano.batch.v1alpha1.Job.spec"]["properties"]

    assert {key: spec[key]["default"] for key in spec if "default" in spec[key]} == {"maxRetry": 3, "queue": "default"}


PODS_METADATA = {"annotations", "finalizers", "labels", "name", "namespace"}


def test_the_metadata_of_a_vcjob_template_has_only_the_fields_that_the_crd_lists() -> None:
    template = release("volcano", "1.15")["definitions"]["sh.volcano.batch.v1alpha1.Job.spec.tasks.template"]

    assert template["properties"]["metadata"]["properties"].keys() == PODS_METADATA


# Where Kubernetes serves what, by the deprecation guide and KEP 3136: (kind, minors that know it, minors that serve it)
SERVED = {
    "pod": ("v1/Pod", KUBERNETES, KUBERNETES),
    "flow-schema-v1beta3": ("flowcontrol.apiserver.k8s.io/v1beta3/FlowSchema", KUBERNETES[:3], KUBERNETES[:3]),
    "flow-schema-v1": ("flowcontrol.apiserver.k8s.io/v1/FlowSchema", KUBERNETES, KUBERNETES),
    "disruption-budget-v1beta1": ("policy/v1beta1/PodDisruptionBudget", (), ()),
    "disruption-budget-v1": ("policy/v1/PodDisruptionBudget", KUBERNETES, KUBERNETES),
    "cron-job-v1beta1": ("batch/v1beta1/CronJob", (), ()),
    "device-class-v1beta1": ("resource.k8s.io/v1beta1/DeviceClass", KUBERNETES[3:], ()),
    "device-class-v1": ("resource.k8s.io/v1/DeviceClass", KUBERNETES[5:], KUBERNETES[5:]),
    "admission-policy-v1beta1": (
        "admissionregistration.k8s.io/v1beta1/ValidatingAdmissionPolicy",
        KUBERNETES[:5],
        (),
    ),
    "admission-policy-v1": (
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        KUBERNETES[1:],
        KUBERNETES[1:],
    ),
    "crd": ("apiextensions.k8s.io/v1/CustomResourceDefinition", KUBERNETES, KUBERNETES),
    "api-service": ("apiregistration.k8s.io/v1/APIService", KUBERNETES, KUBERNETES),
    "review": ("authorization.k8s.io/v1/SubjectAccessReview", (), ()),
    "eviction": ("policy/v1/Eviction", (), ()),
    "binding": ("v1/Binding", (), ()),
    "list": ("v1/PodList", (), ()),
}


@pytest.mark.parametrize(("kind", "known", "served"), SERVED.values(), ids=SERVED)
def test_a_kind_is_served_where_it_should_be(kind: str, known: tuple[str, ...], served: tuple[str, ...]) -> None:
    found = tuple(minor for minor in KUBERNETES if kind in release("kubernetes", minor)["kinds"])

    assert found == known
    assert tuple(minor for minor in found if kind not in off(minor)) == served


@pytest.mark.parametrize("minor", KUBERNETES)
def test_stable_versions_are_served_and_alpha_versions_are_not(minor: str) -> None:
    versions = {key: key.split("/")[-2] for key in release("kubernetes", minor)["kinds"]}

    assert {key for key in off(minor) if "alpha" not in versions[key] and "beta" not in versions[key]} == set()
    assert {key for key in versions if "alpha" in versions[key]} <= off(minor)


def test_scope_and_plural_come_from_the_paths() -> None:
    kinds = release("kubernetes", "1.34")["kinds"]

    assert {
        key: (kinds[key]["plural"], kinds[key]["scope"]) for key in ("v1/Node", "v1/Namespace", "v1/Endpoints")
    } == {
        "v1/Node": ("nodes", "Cluster"),
        "v1/Namespace": ("namespaces", "Cluster"),
        "v1/Endpoints": ("endpoints", "Namespaced"),
    }
