"""The platform's modules: declarations in, whole manifests out. topology has tests of its own."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.api.versions import Version, known
from basalt.objects import Manifest
from basalt.pointers import Pointer, get, has
from modules import jobs, priorities, queues, scheduler, tenancy

BY_BASALT = {"app.kubernetes.io/managed-by": "basalt"}
Spec = dict[str, Any]
STEADY = settings(deadline=None, derandomize=True)


# queues


@pytest.mark.parametrize(
    ("declared", "spec"),
    [
        ({}, {"parent": "root", "weight": 1, "reclaimable": True}),
        (
            {"parent": "research", "capability": {"cpu": 8}, "deserved": {"cpu": 4}, "guarantee": {"cpu": 2}},
            {
                "parent": "research",
                "capability": {"cpu": 8},
                "deserved": {"cpu": 4},
                "guarantee": {"resource": {"cpu": 2}},
                "weight": 1,
                "reclaimable": True,
            },
        ),
        (
            {"weight": 4, "reclaimable": False, "priority": 7, "dequeueStrategy": "fifo"},
            {"parent": "root", "weight": 4, "reclaimable": False, "priority": 7, "dequeueStrategy": "fifo"},
        ),
        (
            {"capability": {"cpu": 0.5, "memory": "1Ti"}, "deserved": {}, "guarantee": {}},
            {"parent": "root", "capability": {"cpu": "0.5", "memory": "1Ti"}, "weight": 1, "reclaimable": True},
        ),
    ],
    ids=["nothing", "amounts", "plain-fields", "fractions-and-empty-maps"],
)
def test_queue_has_what_the_webhook_and_the_controller_fill_in(declared: Spec, spec: Spec) -> None:
    (made,) = queues.queues({"vision": declared})

    assert made.value == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "vision", "labels": BY_BASALT},
        "spec": spec,
    }


def test_root_has_no_parent() -> None:
    (made,) = queues.queues({"root": {"parent": "vision"}})

    assert made.value["spec"] == {"weight": 1, "reclaimable": True}


# priorities


def test_priority_class_has_the_defaults_of_the_api() -> None:
    low, high = priorities.priority_classes(
        {
            "low": {"value": 1000, "default": True, "description": "may wait"},
            "high": {"value": -5, "preemption": "Never"},
        }
    )

    assert low.value == {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "low", "labels": BY_BASALT},
        "value": 1000,
        "globalDefault": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "description": "may wait",
    }
    assert high.value == {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high", "labels": BY_BASALT},
        "value": -5,
        "globalDefault": False,
        "preemptionPolicy": "Never",
    }


# scheduler

# RegisterAction in pkg/scheduler/actions/factory.go, PluginName in pkg/scheduler/plugins/*.
ACTIONS = {"enqueue", "allocate", "backfill", "preempt", "reclaim", "shuffle"}
ACTIONS_SINCE_1_15 = {"gangpreempt", "gangreclaim"}
PLUGINS = set(
    "binpack capacity cdp conformance deviceshare drf extender gang network-topology-aware nodegroup nodeorder "
    "numa-aware overcommit pdb predicates priority proportion rescheduling resource-strategy-fit resourcequota sla "
    "task-topology tdm usage".split()
)


def configuration(made: list[Manifest]) -> dict[str, Any]:
    """What Volcano reads in the ConfigMap."""
    found: dict[str, Any] = yaml.safe_load(made[-1].value["data"]["volcano-scheduler.conf"])
    return found


@pytest.mark.parametrize("version", known("volcano"), ids=str)
def test_default_names_what_volcano_of_that_version_knows(version: Version) -> None:
    made = configuration(list(scheduler.scheduler(None, version)))

    actions = made["actions"].split(", ")
    plugins = [plugin["name"] for tier in made["tiers"] for plugin in tier["plugins"]]
    assert set(actions) <= ACTIONS | (ACTIONS_SINCE_1_15 if version >= Version(1, 15) else set())
    assert len(set(actions)) == len(actions)
    assert {"enqueue", "allocate", "backfill"} <= set(actions)
    assert {"reclaim", "gangreclaim"} & set(actions), "deserved would mean nothing"
    assert set(plugins) <= PLUGINS
    assert len(set(plugins)) == len(plugins)
    assert {"gang", "capacity", "network-topology-aware", "resourcequota", "predicates"} <= set(plugins)


def test_default_follows_the_tree_of_queues_and_lets_gangs_be_preempted() -> None:
    plugins = {
        plugin["name"]: plugin
        for tier in scheduler.default_configuration(Version(1, 15))["tiers"]
        for plugin in tier["plugins"]
    }

    assert plugins["capacity"]["enableHierarchy"] is True
    assert plugins["gang"]["enablePreemptable"] is False


def test_configuration_stands_in_the_config_map_of_the_chart() -> None:
    namespace, config_map = scheduler.scheduler(None, Version(1, 15))

    assert namespace.value == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "volcano-system", "labels": BY_BASALT},
    }
    assert config_map.value["kind"] == "ConfigMap"
    assert config_map.value["metadata"] == {
        "name": "volcano-scheduler-configmap",
        "namespace": "volcano-system",
        "labels": BY_BASALT,
    }
    assert list(config_map.value["data"]) == ["volcano-scheduler.conf"]


def test_what_a_declaration_leaves_out_is_the_default() -> None:
    version = Version(1, 15)
    tiers = [{"plugins": [{"name": "gang", "arguments": {"a": 1.5}}]}]
    default = scheduler.default_configuration(version)

    only_tiers = configuration(list(scheduler.scheduler({"tiers": tiers}, version)))
    only_actions = configuration(list(scheduler.scheduler({"actions": ["allocate"]}, version)))
    more = configuration(list(scheduler.scheduler({"metrics": {"type": "prometheus"}}, version)))

    assert only_tiers == {"actions": ", ".join(default["actions"]), "tiers": tiers}
    assert only_actions == {"actions": "allocate", "tiers": default["tiers"]}
    assert more == {**default, "actions": ", ".join(default["actions"]), "metrics": {"type": "prometheus"}}


# tenancy

TEAM: Spec = {
    "access": {"admin": ["leads"], "edit": ["devs", "ops"], "view": []},
    "namespaces": {
        "train": {
            "quota": {"cpu": 8, "nvidia.com/gpu": 4, "pods": 10},
            "defaults": {"cpu": 0.5, "memory": "2Gi"},
            "security": "restricted",
        },
        "open": {"network": "open"},
    },
}


def of_team(spec: Spec) -> dict[str, Manifest]:
    """Everything of the team, by kind, namespace and name."""
    found = {}
    for made in tenancy.team("vision", spec):
        metadata = made.value["metadata"]
        key = "/".join(filter(None, (made.value["kind"], metadata.get("namespace"), metadata["name"])))
        assert key not in found, "an object is made twice"
        found[key] = made
    return found


def test_team_gets_its_namespaces_with_limits_access_and_policies() -> None:
    assert list(of_team(TEAM)) == [
        "ClusterRoleBinding/basalt-team-vision-cluster-view",
        "Namespace/train", "ResourceQuota/train/quota", "LimitRange/train/defaults",
        "RoleBinding/train/basalt-team-admin", "RoleBinding/train/basalt-team-edit",
        "NetworkPolicy/train/default-deny", "NetworkPolicy/train/allow-dns", "NetworkPolicy/train/allow-same-namespace",
        "Namespace/open", "RoleBinding/open/basalt-team-admin", "RoleBinding/open/basalt-team-edit",
    ]  # fmt: skip


def test_namespace_enforces_its_pod_security_level() -> None:
    made = of_team(TEAM)

    def levels(namespace: str) -> set[str]:
        labels = made[f"Namespace/{namespace}"].value["metadata"]["labels"]
        assert labels["basalt.dev/team"] == "vision"
        return {labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "audit", "warn")}

    assert (levels("train"), levels("open")) == ({"restricted"}, {"baseline"})


def test_limits_have_the_declared_amounts() -> None:
    made = of_team(TEAM)

    assert made["ResourceQuota/train/quota"].value["spec"] == {
        "hard": {"cpu": 8, "requests.nvidia.com/gpu": 4, "pods": 10}
    }
    defaults = {"cpu": "0.5", "memory": "2Gi"}
    assert made["LimitRange/train/defaults"].value["spec"] == {
        "limits": [{"type": "Container", "default": defaults, "defaultRequest": defaults}]
    }


@pytest.mark.parametrize(
    ("declared", "legal"),
    [
        ("cpu", "cpu"), ("memory", "memory"), ("pods", "pods"), ("requests.cpu", "requests.cpu"),
        ("limits.cpu", "limits.cpu"), ("services.nodeports", "services.nodeports"),
        ("nvidia.com/gpu", "requests.nvidia.com/gpu"), ("nvidia.com/mig-1g.5gb", "requests.nvidia.com/mig-1g.5gb"),
        ("requests.nvidia.com/gpu", "requests.nvidia.com/gpu"), ("limits.nvidia.com/gpu", "limits.nvidia.com/gpu"),
        ("rdma/hca", "requests.rdma/hca"), ("hugepages-2Mi", "hugepages-2Mi"),
        ("count/jobs.batch.volcano.sh", "count/jobs.batch.volcano.sh"), ("requests.storage", "requests.storage"),
        (
            "gold.storageclass.storage.k8s.io/requests.storage",
            "gold.storageclass.storage.k8s.io/requests.storage",
        ),
        ("a.deviceclass.resource.k8s.io/devices", "a.deviceclass.resource.k8s.io/devices"),
    ],
)  # fmt: skip
def test_quota_key_is_the_one_that_kubernetes_counts(declared: str, legal: str) -> None:
    made = of_team({"namespaces": {"train": {"quota": {declared: 1}}}})

    assert made["ResourceQuota/train/quota"].value["spec"] == {"hard": {legal: 1}}


def test_two_words_for_one_key_both_stay() -> None:
    quota = {"nvidia.com/gpu": 8, "requests.nvidia.com/gpu": 4}
    made = of_team({"namespaces": {"train": {"quota": quota}}})

    assert made["ResourceQuota/train/quota"].value["spec"] == {"hard": quota}


def test_group_with_two_levels_reads_the_cluster_once() -> None:
    made = of_team({"access": {"admin": ["b", "a"], "view": ["a"]}})

    (binding,) = made.values()
    assert [subject["name"] for subject in binding.value["subjects"]] == ["a", "b"]
    assert binding.value["roleRef"]["name"] == "basalt-team-cluster-view"


def test_roles_let_a_team_work_and_change_nothing_that_the_scheduler_obeys() -> None:
    roles = {made.value["metadata"]["name"]: made.value["rules"] for made in tenancy.cluster_roles()}

    assert sorted(roles) == [f"basalt-team-{name}" for name in ("admin", "cluster-view", "edit", "view")]
    ruled = {
        "queues",
        "priorityclasses",
        "hypernodes",
        "nodes",
        "resourcequotas",
        "limitranges",
        "roles",
        "rolebindings",
    }
    for rule in (rule for rules in roles.values() for rule in rules):
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        if ruled & set(rule["resources"]):
            assert set(rule["verbs"]) <= {"get", "list", "watch"}


# jobs

CONTEXT = jobs.Context("vision", "low", {"rack": 1, "leaf": 2})
METADATA = {"name": "resnet", "namespace": "train"}
GANG = {"replicas": 4, "resources": {"cpu": 8, "nvidia.com/gpu": 8}}


def job(**spec: Any) -> dict[str, Any]:
    declared = {"framework": "plain", "image": "a/b:1", "roles": {"worker": {"replicas": 2}}, **spec}
    return jobs.job(METADATA, declared, CONTEXT).value


def test_job_is_written_out_whole() -> None:
    assert job(framework="index", topology={"highestTier": "leaf"}, retries=5, ttlAfterFinished="1h30m") == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "resnet", "namespace": "train", "labels": BY_BASALT},
        "spec": {
            "schedulerName": "volcano",
            "queue": "vision",
            "minAvailable": 2,
            "maxRetry": 5,
            "priorityClassName": "low",
            "ttlSecondsAfterFinished": 5400,
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
            "plugins": {"env": [], "svc": []},
            "policies": [
                {"event": "PodEvicted", "action": "RestartPod"},
                {"event": "PodFailed", "action": "RestartPod"},
            ],
            "tasks": [
                {
                    "name": "worker",
                    "replicas": 2,
                    "minAvailable": 2,
                    "maxRetry": 3,
                    "template": {
                        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a/b:1"}]},
                    },
                }
            ],
        },
    }


def test_container_has_all_that_its_role_declares() -> None:
    role = {
        "replicas": 1, "image": "c/d:2", "command": ["torchrun"], "args": ["train.py"], "env": {"EPOCHS": "90"},
        "resources": {"cpu": 0.5, "memory": "8Gi"}, "sharedMemory": "4Gi", "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    }  # fmt: skip
    volumes = [{"name": "data", "mountPath": "/data", "claim": "imagenet", "readOnly": True}]

    pod = job(roles={"worker": role}, volumes=volumes)["spec"]["tasks"][0]["template"]["spec"]

    amounts = {"cpu": "0.5", "memory": "8Gi"}
    assert pod == {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": "c/d:2",
                "command": ["torchrun"],
                "args": ["train.py"],
                "env": [{"name": "EPOCHS", "value": "90"}],
                "resources": {"requests": amounts, "limits": amounts},
                "volumeMounts": [
                    {"name": "data", "mountPath": "/data", "readOnly": True},
                    {"name": "shared-memory", "mountPath": "/dev/shm"},
                ],
            }
        ],
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet", "readOnly": True}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}},
        ],
    }


@pytest.mark.parametrize(
    ("framework", "plugins"),
    [
        ("plain", set()),
        ("index", {"env", "svc"}),
        ("pytorch", {"env", "pytorch", "svc"}),
        ("tensorflow", {"env", "svc", "tensorflow"}),
        ("mpi", {"env", "mpi", "ssh", "svc"}),
        ("ray", {"ray", "svc"}),
    ],
)
def test_framework_brings_its_plugins(framework: str, plugins: set[str]) -> None:
    made = job(framework=framework)["spec"]

    assert set(made.get("plugins", ())) == plugins
    assert ("plugins" in made) == bool(plugins)


def shape(**spec: Any) -> list[tuple[str, int, int]]:
    return [(task["name"], task["replicas"], task["minAvailable"]) for task in job(**spec)["spec"]["tasks"]]


@pytest.mark.parametrize(
    ("roles", "tasks"),
    [
        ({"worker": {"replicas": 4}}, [("master", 1, 1), ("worker", 3, 3)]),
        ({"worker": {"replicas": 4, "minAvailable": 2}}, [("master", 1, 1), ("worker", 3, 1)]),
        ({"worker": {"replicas": 4, "minAvailable": 0}}, [("master", 1, 0), ("worker", 3, 0)]),
        ({"worker": {"replicas": 1}}, [("master", 1, 1)]),
        ({"worker": {"replicas": 0}}, [("worker", 0, 0)]),
        ({"master": {"replicas": 1}, "worker": {"replicas": 3}}, [("master", 1, 1), ("worker", 3, 3)]),
        ({"trainer": {"replicas": 2}}, [("trainer", 2, 2)]),
    ],
)
def test_pytorch_without_a_master_has_one_split_from_its_workers(
    roles: Spec, tasks: list[tuple[str, int, int]]
) -> None:
    assert shape(framework="pytorch", roles=roles) == tasks


def test_other_frameworks_are_not_split() -> None:
    assert shape(framework="mpi", roles={"worker": GANG}) == [("worker", 4, 4)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ("vision", "low")),
        ({"queue": "speech", "priority": "high"}, ("speech", "high")),
    ],
)
def test_queue_and_priority_come_from_the_team_where_the_job_says_nothing(
    spec: Spec, expected: tuple[str, str]
) -> None:
    made = job(**spec)["spec"]

    assert (made["queue"], made["priorityClassName"]) == expected


def test_job_without_a_team_has_the_default_queue_and_no_priority() -> None:
    declared = {"framework": "plain", "image": "a/b:1", "roles": {"worker": {"replicas": 1}}}

    made = jobs.job(METADATA, declared, jobs.Context("default", None, {})).value["spec"]

    assert (made["queue"], "priorityClassName" in made) == ("default", False)


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ({"highestTier": "rack"}, {"mode": "hard", "highestTierAllowed": 1}),
        ({"mode": "soft", "highestTier": 3}, {"mode": "soft", "highestTierAllowed": 3}),
        ({"highestTier": "spine"}, {"mode": "hard", "highestTierName": "spine"}),
        ({}, {"mode": "hard"}),
    ],
)
def test_tier_becomes_its_number_where_the_tree_has_it(topology: Spec, expected: Spec) -> None:
    assert job(topology=topology)["spec"]["networkTopology"] == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("24h", 86400), ("90m", 5400), ("1h30m", 5400), ("3600s", 3600), (3600, 3600), (0, 0), ("1d", 86400), ("0s", 0),
        ("24 hours", None), ("h", None), ("1.5h", None), ("-1h", None), ("", None), ("1h ", None), ("1h\n", None),
    ],
)  # fmt: skip
def test_duration_is_counted_in_seconds(text: str | int, seconds: int | None) -> None:
    assert jobs.seconds(text) == seconds


def test_patch_is_applied_last_and_null_removes() -> None:
    patch = {
        "metadata": {"annotations": {"a": "b"}, "labels": None},
        "spec": {
            "minAvailable": 1,
            "policies": None,
            "tasks": [{"name": "other", "replicas": 1}],
            "plugins": {"ssh": []},
        },
    }

    made = job(framework="index", patch=patch)

    plain = job(framework="index")
    assert made["metadata"] == {"name": "resnet", "namespace": "train", "annotations": {"a": "b"}}
    assert made["spec"] == {
        **{key: value for key, value in plain["spec"].items() if key != "policies"},
        "minAvailable": 1,
        "tasks": [{"name": "other", "replicas": 1, "minAvailable": 1, "maxRetry": 3}],
        "plugins": {"env": [], "svc": [], "ssh": []},
    }


def test_what_a_patch_gets_wrong_is_left_for_the_rules() -> None:
    assert job(framework="plain", patch={"spec": []})["spec"] == []
    made = job(framework="plain", patch={"spec": {"tasks": [7, {"replicas": "2", "template": []}], "plugins": [1]}})[
        "spec"
    ]
    assert made["tasks"] == [7, {"replicas": "2", "template": [], "name": "default1", "maxRetry": 3, "minAvailable": 0}]
    assert made["plugins"] == [1]


def test_nothing_below_a_patched_value_follows_from_a_role() -> None:
    manifest = jobs.job(
        METADATA, {"framework": "plain", "roles": {"w": {"replicas": 1}}, "patch": {"spec": {"tasks": []}}}, CONTEXT
    )

    assert manifest.origins["spec", "tasks"] == ("spec", "patch", "spec", "tasks")
    assert not [at for at in manifest.origins if at[:2] == ("spec", "tasks") and len(at) > 2]


def test_annotations_and_labels_are_taken_over_but_for_basalts_own() -> None:
    metadata = {
        **METADATA,
        "labels": {"project": "imagenet"},
        "annotations": {"a": "b", "basalt.dev/waive": "gang-is-whole: elastic"},
    }

    made = jobs.job(metadata, {"framework": "plain", "roles": {"w": {"replicas": 1}}}, CONTEXT).value["metadata"]

    assert made["labels"] == {**BY_BASALT, "project": "imagenet"}
    assert made["annotations"] == {"a": "b"}


def mutated(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The Job after Volcano's mutating webhook: createPatch in pkg/webhooks/admission/jobs/mutate/mutate_job.go."""
    value = deepcopy(dict(declared))
    spec = value["spec"]
    spec["queue"] = spec.get("queue") or "default"
    spec["schedulerName"] = spec.get("schedulerName") or "volcano"
    spec["maxRetry"] = spec.get("maxRetry") or 3
    for index, task in enumerate(spec["tasks"]):
        task["name"] = task.get("name") or f"default{index}"
        pod = task["template"]["spec"]
        if pod.get("hostNetwork"):
            pod.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
        partitions = task.get("partitionPolicy", {})
        least = partitions.get("minPartitions", 0) * partitions.get("partitionSize", 0)
        task.setdefault("minAvailable", least or task["replicas"])
        task["maxRetry"] = task.get("maxRetry") or 3
    spec["minAvailable"] = spec.get("minAvailable") or sum(task["minAvailable"] for task in spec["tasks"])
    if plugins := spec.get("plugins"):
        if {"tensorflow", "mpi", "pytorch", "ray"} & plugins.keys():
            plugins.setdefault("svc", [])
        if "mpi" in plugins:
            plugins.setdefault("ssh", [])
    # and the defaults of the CRD's schema
    policies = [task["partitionPolicy"] for task in spec["tasks"] if "partitionPolicy" in task]
    for policy in policies:
        policy.setdefault("minPartitions", 0)
    for holder in (spec, *policies):
        if topology := holder.get("networkTopology"):
            topology.setdefault("mode", "hard")
    return value


# origins

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "limits.cpu"]), st.sampled_from([1, 0.5, "1Gi"])
)
ROLES = st.fixed_dictionaries(
    {"replicas": st.integers(0, 5)},
    optional={
        "minAvailable": st.integers(0, 5),
        "image": st.just("c/d:2"),
        "command": st.just(["run"]),
        "env": st.dictionaries(st.sampled_from("AB"), st.just("x")),
        "resources": AMOUNTS,
        "sharedMemory": st.just("1Gi"),
        "nodeSelector": st.just({"a": "b"}),
        "tolerations": st.just([{"operator": "Exists"}]),
    },
)
PATCHES: list[Spec] = [
    {},
    {"spec": {"maxRetry": 9, "plugins": {"ssh": []}, "policies": None}},
    {"spec": {"maxRetry": None, "queue": "", "schedulerName": None, "minAvailable": 0, "plugins": {"mpi": []}}},
    {"spec": {"tasks": [{"replicas": 2, "template": {"spec": {"hostNetwork": True}}}], "minAvailable": None}},
    {"spec": {"tasks": [{"name": "a", "replicas": 6, "template": {"spec": {}}, "partitionPolicy": {
        "totalPartitions": 3, "partitionSize": 2, "minPartitions": 2, "networkTopology": {"highestTierAllowed": 1}}}]}},
    {"spec": {"tasks": [{"replicas": 4, "template": {"spec": {}}, "partitionPolicy": {
        "totalPartitions": 2, "partitionSize": 2}}]}},
]  # fmt: skip
JOBS = st.fixed_dictionaries(
    {
        "framework": st.sampled_from(["pytorch", "tensorflow", "mpi", "ray", "index", "plain"]),
        "roles": st.dictionaries(st.sampled_from(["master", "worker", "ps"]), ROLES, min_size=1),
    },
    optional={
        "image": st.just("a/b:1"),
        "queue": st.just("speech"),
        "priority": st.just("high"),
        "topology": st.fixed_dictionaries({}, optional={"highestTier": st.sampled_from(["leaf", "nowhere", 2])}),
        "volumes": st.lists(st.just({"name": "data", "mountPath": "/data", "claim": "c"}), max_size=2),
        "retries": st.integers(1, 5),
        "ttlAfterFinished": st.sampled_from(["24h", 3600]),
        "patch": st.sampled_from(PATCHES),
    },
)
GROUPS = st.lists(st.sampled_from(["leads", "devs", "guests"]), unique=True, max_size=2)
QUEUES = st.fixed_dictionaries(
    {},
    optional={
        "parent": st.just("research"),
        "capability": AMOUNTS,
        "deserved": AMOUNTS,
        "guarantee": AMOUNTS,
        "weight": st.just(2),
        "reclaimable": st.booleans(),
        "priority": st.just(1),
    },
)
NAMESPACES = st.fixed_dictionaries(
    {},
    optional={
        "quota": AMOUNTS,
        "defaults": AMOUNTS,
        "security": st.just("restricted"),
        "network": st.sampled_from(["isolated", "open"]),
    },
)
TEAMS = st.fixed_dictionaries(
    {},
    optional={
        "access": st.fixed_dictionaries({}, optional={"admin": GROUPS, "edit": GROUPS, "view": GROUPS}),
        "namespaces": st.dictionaries(st.sampled_from(["train", "eval"]), NAMESPACES),
        "queue": QUEUES,
    },
)
ENVIRONMENTS = st.fixed_dictionaries(
    {},
    optional={
        "queues": st.dictionaries(st.sampled_from(["research", "root"]), QUEUES),
        "priorities": st.dictionaries(
            st.sampled_from(["low", "high"]),
            st.fixed_dictionaries({"value": st.integers(0, 9)}, optional={"default": st.booleans()}),
        ),
        "volcano": st.fixed_dictionaries({}, optional={"scheduler": st.just({"actions": ["allocate"]})}),
    },
)


def leaves(value: Any, at: Pointer = ()) -> Iterator[Pointer]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from leaves(child, (*at, key))
    if not children:
        yield at


def origin(made: Manifest, pointer: Pointer) -> Pointer:
    """The pointer in the document that a value follows from, as KubeObject gives it."""
    length = max(length for length in range(len(pointer) + 1) if pointer[:length] in made.origins)
    return (*made.origins[pointer[:length]], *pointer[length:])


def leads_somewhere(made: Manifest, document: Spec) -> None:
    """Every origin is a value of the document, or a field that was left out of a map which is there; so the nearest
    value around each leaf's origin is at most one step above what the whole object comes from."""
    for pointer, written in made.origins.items():
        if has(made.value, pointer):
            assert has(document, written) or isinstance(get(document, written[:-1]), dict), (pointer, written)
    for pointer in leaves(made.value):
        written = origin(made, pointer)
        nearest = max(length for length in range(len(written) + 1) if has(document, written[:length]))
        assert nearest >= len(made.origins[()]) - 1, f"{pointer} comes from nowhere near {written}"


@given(JOBS)
@STEADY
def test_job_has_nothing_left_for_the_webhook_to_fill_in_and_comes_from_its_document(spec: Spec) -> None:
    before = deepcopy(spec)

    made = jobs.job(METADATA, spec, CONTEXT)

    assert made.value == mutated(made.value)
    assert spec == before
    leads_somewhere(made, {"metadata": METADATA, "spec": spec})


@given(st.integers(1, 20), st.data())
@STEADY
def test_split_keeps_the_sums(replicas: int, data: st.DataObject) -> None:
    minimum = data.draw(st.integers(0, replicas))

    tasks = shape(framework="pytorch", roles={"worker": {"replicas": replicas, "minAvailable": minimum}})

    assert sum(count for _, count, _ in tasks) == replicas
    assert sum(least for _, _, least in tasks) == minimum
    assert all(least <= count for _, count, least in tasks)


@given(TEAMS)
@STEADY
def test_objects_of_a_team_come_from_its_document(spec: Spec) -> None:
    made = list(tenancy.team("vision", spec))
    if "queue" in spec:
        made.append(queues.queue("vision", spec["queue"], ("spec", "queue")))

    for each in made:
        leads_somewhere(each, {"metadata": {"name": "vision"}, "spec": spec})


@given(ENVIRONMENTS)
@STEADY
def test_objects_of_an_environment_come_from_its_document(spec: Spec) -> None:
    made = [
        *queues.queues(spec.get("queues", {})),
        *priorities.priority_classes(spec.get("priorities", {})),
        *scheduler.scheduler(spec.get("volcano", {}).get("scheduler"), Version(1, 15)),
        *tenancy.cluster_roles(),
    ]

    for each in made:
        leads_somewhere(each, {"metadata": {"name": "case"}, "spec": spec})
