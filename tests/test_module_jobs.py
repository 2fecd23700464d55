"""TrainingJobs of every framework and form: what they become, that it works, and where findings about it point."""

import json
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.api import versions
from basalt.api.versions import Version
from basalt.compiling import compile_folder
from basalt.platform import Platform
from basalt.pointers import get, render
from modules import jobs, network
from tests.test_modules import leads_somewhere, mutated

Spec = dict[str, Any]
STEADY = settings(deadline=None, derandomize=True)
METADATA = {"name": "run", "namespace": "train"}
CONTEXT = jobs.Context("vision", "low", {"rack": 1, "block": 2})
GPUS = {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 8}


def made(context: jobs.Context = CONTEXT, **spec: Any) -> Spec:
    declared = {"framework": "plain", "image": "a/b:1", "roles": {"worker": {"replicas": 2}}, **spec}
    return jobs.job(METADATA, declared, context).value


def task(name: str, value: Spec) -> Spec:
    spec = value["spec"].get("jobTemplate", value)["spec"]
    return next(each for each in spec["tasks"] if each["name"] == name)


def pod(name: str, value: Spec) -> Spec:
    found: Spec = task(name, value)["template"]["spec"]
    return found


def main(name: str, value: Spec) -> Spec:
    (container,) = pod(name, value)["containers"]
    return dict(container)


def environment(name: str, value: Spec) -> dict[str, str]:
    return {each["name"]: each["value"] for each in main(name, value).get("env", ())}


# tensorflow


def tensorflow(**roles: Any) -> Spec:
    return made(framework="tensorflow", roles={name: {"replicas": 2, **role} for name, role in roles.items()})


@pytest.mark.parametrize(
    ("cpu", "threads"),
    [(8, ("8", "8", "2")), (1.5, ("1", "1", "1")), ("500m", ("1", "1", "1")), ("2", ("2", "2", "2"))],
)
def test_tensorflow_gets_as_many_threads_as_it_may_use_cpus(cpu: Any, threads: tuple[str, str, str]) -> None:
    found = environment("worker", tensorflow(worker={"resources": {"cpu": cpu}}))

    assert (found["OMP_NUM_THREADS"], found["TF_NUM_INTRAOP_THREADS"], found["TF_NUM_INTEROP_THREADS"]) == threads


def test_threads_that_a_role_sets_itself_stay_and_without_a_limit_none_are_set() -> None:
    own = tensorflow(worker={"resources": {"cpu": 8}, "env": {"OMP_NUM_THREADS": "3"}})

    assert main("worker", own)["env"][0] == {"name": "OMP_NUM_THREADS", "value": "3"}
    assert [each["name"] for each in main("worker", own)["env"]].count("OMP_NUM_THREADS") == 1
    assert "env" not in main("worker", tensorflow(worker={}))


@pytest.mark.parametrize(
    ("spread", "kind"),
    [
        (None, "preferredDuringSchedulingIgnoredDuringExecution"),
        ("required", "requiredDuringSchedulingIgnoredDuringExecution"),
        ("none", None),
    ],
)
def test_parameter_servers_are_spread(spread: str | None, kind: str | None) -> None:
    found = pod("ps", tensorflow(ps={"spread": spread} if spread else {}, worker={})).get("affinity", {})

    assert list(found.get("podAntiAffinity", {})) == ([kind] if kind else [])
    assert not kind or '"volcano.sh/job-name": "run"' in json.dumps(found)


@pytest.mark.parametrize(
    ("framework", "roles", "finishing"),
    [
        ("tensorflow", ["ps", "worker"], ["worker"]),
        ("tensorflow", ["chief", "ps", "worker"], ["chief"]),
        ("mpi", ["master", "worker"], ["master"]),
        ("ray", ["head", "worker"], []),
        ("ray", ["driver", "head", "worker"], ["driver"]),
        ("pytorch", ["master", "worker"], []),
        ("index", ["worker"], []),
    ],
)
def test_job_ends_with_the_task_that_does_the_work(framework: str, roles: list[str], finishing: list[str]) -> None:
    value = made(framework=framework, roles={name: {"replicas": 1} for name in roles})

    assert [each["name"] for each in value["spec"]["tasks"] if "policies" in each] == finishing
    assert all(task(name, value)["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]
               for name in finishing)  # fmt: skip


# mpi


@pytest.mark.parametrize(
    ("mpi", "worker", "slots"),
    [({}, {"resources": GPUS}, "8"), ({}, {}, "1"), ({"slots": 3}, {"resources": GPUS}, "3")],
)
def test_mpirun_finds_the_workers_with_their_slots(mpi: Spec, worker: Spec, slots: str) -> None:
    roles = {"master": {"replicas": 1, "resources": {"cpu": 1}}, "worker": {"replicas": 2, **worker}}
    value = made(framework="mpi", mpi=mpi, roles=roles)

    (writer,) = pod("master", value)["initContainers"]
    assert writer["env"] == [{"name": "SLOTS", "value": slots}]
    assert writer["resources"]["limits"] == {"cpu": 1}
    of_mpirun = {name: text for name, text in environment("master", value).items() if "_MCA_" in name}
    assert set(of_mpirun.values()) == {"/etc/mpi/hostfile"}
    assert "initContainers" not in pod("worker", value)


@pytest.mark.parametrize(("mpi", "expected"), [({}, {"1"}), ({"sshKeyFilePath": "/home/u/.ssh"}, {None})])
def test_mpirun_may_run_as_root_where_the_keys_are_roots(mpi: Spec, expected: set[str | None]) -> None:
    roles = {"master": {"replicas": 1}, "worker": {"replicas": 2}}
    found = environment("master", made(framework="mpi", mpi=mpi, roles=roles))

    assert {found.get(name) for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")} == expected


def test_host_file_lists_every_worker_that_answers(tmp_path: Path) -> None:
    roles = {"master": {"replicas": 1}, "worker": {"replicas": 2}}
    (writer,) = pod("master", made(framework="mpi", roles=roles))["initContainers"]
    script = writer["command"][2].replace("/etc/mpi", str(tmp_path))
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "ssh").chmod(0o755)
    surroundings = {"PATH": f"{tmp_path}:/bin:/usr/bin", "MPI_HOST": "run-worker-0.run,run-worker-1.run", "SLOTS": "8"}

    subprocess.run(["sh", "-c", script], env=surroundings, check=True)

    assert (tmp_path / "hostfile").read_text() == "run-worker-0.run slots=8\nrun-worker-1.run slots=8\n"


def test_ssh_may_have_another_folder_and_port() -> None:
    value = made(framework="mpi", mpi={"sshKeyFilePath": "/home/u/.ssh", "port": 2222})

    assert value["spec"]["plugins"] == {
        "env": [],
        "mpi": ["--master=master", "--worker=worker", "--port=2222"],
        "ssh": ["--ssh-key-file-path=/home/u/.ssh", "--ssh-port=2222"],
        "svc": [],
    }


# ray


@pytest.mark.parametrize(
    ("commanded", "arguments"),
    [
        ([], ["--headContainer=main", "--workerContainer=main"]),
        (["head"], ["--workerContainer=main"]),
        (["head", "worker"], []),
    ],
)
def test_plugin_starts_ray_where_a_role_has_no_command(commanded: list[str], arguments: list[str]) -> None:
    roles = {name: {"replicas": 1, **({"command": ["own"]} if name in commanded else {})}
             for name in ("head", "worker")}  # fmt: skip
    value = made(framework="ray", roles=roles)

    assert value["spec"]["plugins"]["ray"] == arguments
    ports = [each["name"] for each in main("head", value).get("ports", ())]
    assert ports == (["gcs", "dashboard", "client-server"] if "head" in commanded else [])


def test_driver_is_told_where_ray_is() -> None:
    roles = {name: {"replicas": 1} for name in ("head", "worker", "driver")}

    assert environment("driver", made(framework="ray", roles=roles)) == {
        "RAY_ADDRESS": "ray://run-head-svc:10001",
        "RAY_API_SERVER_ADDRESS": "http://run-head-svc:8265",
    }


# elastic


def elastic(**spec: Any) -> Spec:
    worker = {"replicas": 4, "command": ["torchrun", "train.py"], "resources": GPUS}
    return made(**{"framework": "pytorch", "elastic": {"min": 2}, "roles": {"worker": worker}, **spec})


def test_elastic_job_is_one_task_of_workers_that_starts_with_the_least() -> None:
    spec = elastic()["spec"]

    assert [(each["name"], each["replicas"], each["minAvailable"]) for each in spec["tasks"]] == [("worker", 4, 2)]
    assert (spec["minAvailable"], spec["minSuccess"]) == (2, 2)
    assert spec["plugins"] == {"env": [], "svc": ["--publish-not-ready-addresses"]}
    assert {each["action"] for each in spec["policies"]} == {"RestartPod"}


@pytest.mark.parametrize(
    ("declared", "nodes", "restarts"),
    [({"min": 2}, "2:4", "3"), ({"min": 1, "max": 16, "maxRestarts": 0}, "1:16", "0")],
)
def test_elastic_workers_meet_at_the_first(declared: Spec, nodes: str, restarts: str) -> None:
    assert environment("worker", elastic(elastic=declared)) == {
        "PET_NNODES": nodes,
        "PET_MAX_RESTARTS": restarts,
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ID": "run",
        "PET_RDZV_ENDPOINT": "run-worker-0.run:29400",
        "PET_NPROC_PER_NODE": "gpu",
    }


def test_elastic_job_of_a_flow_is_called_after_the_flow() -> None:
    found = environment("worker", elastic(flow={"name": "nightly"}))

    assert found["PET_RDZV_ENDPOINT"] == "nightly-run-worker-0.nightly-run:29400"


def test_elastic_job_of_a_schedule_learns_its_name_when_it_starts() -> None:
    value = elastic(schedule="@daily")
    command = main("worker", value)["command"]
    hosts = "run-29000000-worker-0.run-29000000,run-29000000-worker-1.run-29000000"
    printing = [*command[: command.index("torchrun")], "sh", "-c", 'echo "$PET_RDZV_ID $PET_RDZV_ENDPOINT"']

    done = subprocess.run(
        printing,
        env={"PATH": "/bin:/usr/bin", "HOSTNAME": "run-29000000-worker-1", "VC_WORKER_HOSTS": hosts},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "run-29000000 run-29000000-worker-0.run-29000000:29400\n"
    assert command[-2:] == ["torchrun", "train.py"]
    assert "PET_RDZV_ENDPOINT" not in environment("worker", value)


# networks

RDMA = {"transport": "rdma"}


def connected(context: jobs.Context = CONTEXT, **network: Any) -> Spec:
    return made(context, roles={"worker": {"replicas": 2, "resources": GPUS}}, network=network)


def test_rdma_asks_for_a_device_and_takes_nothing_else() -> None:
    context = CONTEXT._replace(rdma_resource="rdma/hca")
    value = connected(context, transport="rdma", hca=["mlx5_0", "mlx5_1"], attachments=["rdma-net"])

    assert environment("worker", value) == {
        "NCCL_SOCKET_IFNAME": "=eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
    }
    assert main("worker", value)["resources"]["limits"]["rdma/hca"] == 1
    assert main("worker", value)["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    annotations = task("worker", value)["template"]["metadata"]["annotations"]
    assert annotations == {"k8s.v1.cni.cncf.io/networks": "rdma-net"}


@pytest.mark.parametrize(
    ("network", "known", "resources", "limits"),
    [
        (RDMA, "rdma/hca", {}, {"rdma/hca": 1}),
        ({**RDMA, "resource": "a/b"}, "rdma/hca", {}, {"a/b": 1}),
        (RDMA, "rdma/hca", {"rdma/hca": 4}, {"rdma/hca": 4}),
        (RDMA, None, {}, {}),
        ({"transport": "tcp"}, "rdma/hca", {}, {}),
    ],
)
def test_device_is_the_roles_the_networks_or_the_environments(
    network: Spec, known: str | None, resources: Spec, limits: Spec
) -> None:
    roles = {"worker": {"replicas": 1, "resources": {"nvidia.com/gpu": 1, **resources}}}
    value = made(CONTEXT._replace(rdma_resource=known), roles=roles, network=network)

    assert main("worker", value)["resources"]["limits"] == {"nvidia.com/gpu": 1, **limits}


def test_tcp_keeps_off_infiniband_and_a_raised_memlock_needs_no_capability() -> None:
    found = connected(transport="tcp", interface="net1")

    assert environment("worker", found) == {
        "NCCL_SOCKET_IFNAME": "=net1",
        "GLOO_SOCKET_IFNAME": "net1",
        "NCCL_IB_DISABLE": "1",
    }
    assert "securityContext" not in main("worker", found)
    raised = connected(CONTEXT._replace(is_memlock_raised=True, rdma_resource="rdma/hca"), **RDMA)
    assert "securityContext" not in main("worker", raised)


def test_network_of_the_job_is_for_roles_with_devices_and_a_roles_own_comes_first() -> None:
    roles = {
        "ps": {"replicas": 1, "resources": {"cpu": 1}},
        "worker": {"replicas": 1, "resources": GPUS},
        "other": {"replicas": 1, "resources": GPUS, "network": {"transport": "tcp"}},
    }
    value = made(roles=roles, network={**RDMA, "resource": "a/b"})

    assert environment("ps", value) == {}
    assert environment("worker", value)["NCCL_NET"] == "IB"
    assert environment("other", value)["NCCL_IB_DISABLE"] == "1"


@pytest.mark.parametrize(
    ("network", "resource"),
    [
        (None, None),
        ({}, "rdma/hca_shared"),
        ({"type": "none"}, None),
        ({"type": "sriov"}, "nvidia.com/hca"),
        ({"devices": [{"resourceName": "hca_a"}, {"resourceName": "hca_b"}]}, "rdma/hca_a"),
        ({"type": "sriov", "devices": [{"resourceName": "nics"}]}, "nvidia.com/nics"),
    ],
)
def test_resource_is_that_of_the_environments_first_device(network: Spec | None, resource: str | None) -> None:
    assert jobs.rdma_resource(network) == resource


@pytest.mark.parametrize("declared", [{}, {"type": "sriov"}, {"devices": [{"resourceName": "fast"}]}])
def test_resource_is_the_one_that_the_network_offers(declared: Spec) -> None:
    """The names are those of modules/network.py: in what that makes, each stands with the same prefix."""
    platform = Platform("case", {"network": declared}, {}, tuple, Version(1, 34), Version(1, 15), is_development=False)
    offered = json.dumps([each.value for each in network.network(declared, platform)])

    _, _, name = str(jobs.rdma_resource(declared)).partition("/")

    assert f'resourceName\\": \\"{name}' in offered or f'"resourceName": "{name}"' in offered


# tasks and pods


@pytest.mark.parametrize(
    ("role", "policy", "minimum"),
    [
        ({}, {"minPartitions": 4}, 8),
        ({"minAvailable": 4}, {"minPartitions": 2}, 4),
        ({"minAvailable": 3}, {"minPartitions": 0}, 3),
        ({"partitions": {"count": 4, "size": 2, "min": 3}}, {"minPartitions": 3}, 6),
    ],
)
def test_partitions_are_whole(role: Spec, policy: Spec, minimum: int) -> None:
    declared = {"replicas": 8, "partitions": {"count": 4, "size": 2}, **role}
    found = task("worker", made(roles={"worker": declared}))

    assert found["partitionPolicy"] == {"totalPartitions": 4, "partitionSize": 2, **policy}
    assert found["minAvailable"] == minimum


@pytest.mark.parametrize(
    ("tier", "expected"), [("rack", {"highestTierAllowed": 1}), ("row", {"highestTierName": "row"})]
)
def test_partition_has_a_tier_of_its_own(tier: str, expected: Spec) -> None:
    role = {"replicas": 8, "partitions": {"count": 4, "size": 2, "highestTier": tier}, "numa": "restricted"}
    found = task("worker", made(roles={"worker": role}))

    assert found["partitionPolicy"]["networkTopology"] == {"mode": "hard", **expected}
    assert found["topologyPolicy"] == "restricted"


def test_no_pod_is_taken_out_of_partitions_for_a_master() -> None:
    role = {"replicas": 8, "partitions": {"count": 4, "size": 2}}

    assert [each["name"] for each in made(framework="pytorch", roles={"worker": role})["spec"]["tasks"]] == ["worker"]


def test_volumes_are_claims_or_come_and_go_with_the_pod() -> None:
    volumes = [
        {"name": "data", "mountPath": "/data", "claim": "imagenet", "subPath": "train"},
        {"name": "scratch", "mountPath": "/scratch", "emptyDir": {"sizeLimit": "10Gi"}},
        {"name": "fast", "mountPath": "/fast", "ephemeral": {"storage": "1Ti", "storageClassName": "nvme"}},
    ]
    role = {"replicas": 1, "checkpoint": {"claim": "kept"}, "sharedMemory": "1Gi"}
    value = made(volumes=volumes, roles={"worker": role, "other": {"replicas": 1}})

    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Ti"}},
        "storageClassName": "nvme",
    }
    common = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}},
        {"name": "scratch", "emptyDir": {"sizeLimit": "10Gi"}},
        {"name": "fast", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}},
    ]
    assert pod("other", value)["volumes"] == common
    assert pod("worker", value)["volumes"] == [
        *common,
        {"name": "checkpoint", "persistentVolumeClaim": {"claimName": "kept"}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
    ]
    assert main("worker", value)["volumeMounts"][0] == {"name": "data", "mountPath": "/data", "subPath": "train"}
    assert main("worker", value)["volumeMounts"][3] == {"name": "checkpoint", "mountPath": "/checkpoints"}


def test_pod_has_what_the_job_says_of_all_pods() -> None:
    value = made(terminationGracePeriodSeconds=120, serviceAccountName="trainer", imagePullSecrets=["registry"])

    found = pod("worker", value)
    assert found["terminationGracePeriodSeconds"] == 120
    assert found["serviceAccountName"] == "trainer"
    assert found["imagePullSecrets"] == [{"name": "registry"}]


def test_restricted_namespace_gets_what_it_demands_and_a_role_adds_to_it() -> None:
    role = {"replicas": 1, "securityContext": {"runAsUser": 7, "fsGroup": 8, "capabilities": {"add": ["CHOWN"]}}}
    value = made(CONTEXT._replace(security="restricted"), roles={"worker": role})

    assert pod("worker", value)["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsUser": 7,
        "fsGroup": 8,
        "fsGroupChangePolicy": "OnRootMismatch",
    }
    assert main("worker", value)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]},
    }
    assert "securityContext" not in pod("worker", made())


# schedules and flows


def test_schedule_makes_a_cron_job_that_is_patched_as_a_whole() -> None:
    patch = {"spec": {"suspend": True, "jobTemplate": {"spec": {"plugins": {"mpi": []}}}}}
    value = made(schedule="@daily", cron={"timeZone": "Europe/Berlin", "failedJobsHistoryLimit": 5}, patch=patch)

    assert (value["apiVersion"], value["kind"]) == ("batch.volcano.sh/v1alpha1", "CronJob")
    template = value["spec"].pop("jobTemplate")
    assert value["spec"] == {
        "schedule": "@daily",
        "concurrencyPolicy": "Forbid",
        "suspend": True,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 5,
        "timeZone": "Europe/Berlin",
    }
    assert template["metadata"] == {"labels": {"app.kubernetes.io/managed-by": "basalt"}}
    assert template["spec"]["plugins"] == {"mpi": [], "svc": [], "ssh": []}


def test_jobs_of_a_flow_are_templates_of_the_same_spec() -> None:
    value = made(flow={"name": "nightly"})

    assert (value["apiVersion"], value["kind"]) == ("flow.volcano.sh/v1alpha1", "JobTemplate")
    assert value["metadata"]["name"] == "run"
    assert value["spec"] == made()["spec"]


def test_flow_names_its_jobs_and_what_they_wait_for() -> None:
    members: list[tuple[str, Spec]] = [
        ("a", {"flow": {"name": "nightly"}}),
        ("b", {"flow": {"name": "nightly", "after": ["a"]}}),
    ]

    found = jobs.flow(jobs.Flow("train", "nightly"), members)

    assert found.value["metadata"]["name"] == "nightly"
    assert found.value["spec"] == {
        "jobRetainPolicy": "retain",
        "flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}],
    }
    documents = {name: {"metadata": {**METADATA, "name": name}, "spec": spec} for name, spec in members}
    for origin in found.origins.values():
        assert get({jobs.MEMBERS: documents}, origin[:-1]) is not None


# properties

ROLES = st.fixed_dictionaries(
    {"replicas": st.integers(1, 5)},
    optional={
        "minAvailable": st.integers(1, 5),
        "command": st.just(["run"]),
        "env": st.dictionaries(st.sampled_from(["A", "NCCL_NET", "OMP_NUM_THREADS"]), st.just("x")),
        "resources": st.sampled_from([{}, {"cpu": 4}, GPUS, {"rdma/hca": 1, "cpu": 0.5}]),
        "sharedMemory": st.just("1Gi"),
        "checkpoint": st.sampled_from([{"claim": "c"}, {"claim": "c", "mountPath": "/c", "subPath": "s"}]),
        "ports": st.just([{"containerPort": 80}]),
        "network": st.sampled_from([RDMA, {"transport": "tcp", "interface": "net1"}]),
        "numa": st.just("restricted"),
        "partitions": st.sampled_from(
            [{"count": 2, "size": 2}, {"count": 2, "size": 2, "min": 1, "highestTier": "rack"}]
        ),
        "spread": st.sampled_from(["none", "preferred", "required"]),
        "securityContext": st.sampled_from([{"runAsUser": 1, "fsGroup": 2}, {"capabilities": {"add": ["CHOWN"]}}]),
    },
)
COMMON = {
    "image": st.just("a/b:1"),
    "topology": st.just({"highestTier": "rack"}),
    "retries": st.integers(1, 5),
    "network": st.sampled_from([{**RDMA, "hca": ["m"], "resource": "a/b", "attachments": ["n"]}, RDMA]),
    "volumes": st.lists(
        st.sampled_from(
            [
                {"name": "a", "mountPath": "/a", "claim": "c", "readOnly": True},
                {"name": "b", "mountPath": "/b", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "d", "mountPath": "/d", "ephemeral": {"storage": "1Gi", "storageClassName": "x"}},
            ]
        ),
        max_size=2,
    ),
    "terminationGracePeriodSeconds": st.just(60),
    "serviceAccountName": st.just("trainer"),
    "imagePullSecrets": st.just(["one", "two"]),
    "patch": st.sampled_from([{}, {"metadata": {"labels": {"a": "b"}}}]),
}
JOBS = st.fixed_dictionaries(
    {
        "framework": st.sampled_from(["pytorch", "tensorflow", "mpi", "ray", "index", "plain"]),
        "roles": st.dictionaries(st.sampled_from(["master", "worker", "ps", "head"]), ROLES, min_size=1),
    },
    optional=COMMON,
)
ELASTIC = st.fixed_dictionaries(
    {
        "framework": st.just("pytorch"),
        "roles": st.fixed_dictionaries({"worker": ROLES}),
        "elastic": st.sampled_from([{"min": 1}, {"min": 1, "max": 9, "maxRestarts": 1}]),
    },
    optional=COMMON,
)
FORMS: list[Spec] = [
    {},
    {"flow": {"name": "f"}},
    {"schedule": "@daily"},
    {"schedule": "@daily", "cron": {"timeZone": "UTC"}},
]
CONTEXTS = [CONTEXT, jobs.Context("default", None, {}, "restricted", "rdma/hca", is_memlock_raised=True)]


@given(st.one_of(JOBS, ELASTIC), st.sampled_from(FORMS), st.sampled_from(CONTEXTS))
@STEADY
def test_job_of_any_form_is_written_out_whole_and_comes_from_its_document(
    spec: Spec, form: Spec, context: jobs.Context
) -> None:
    declared = {**spec, **form}
    before = deepcopy(declared)

    found = jobs.job(METADATA, declared, context)

    template = found.value["spec"].get("jobTemplate", found.value)
    assert template == mutated(template)
    assert declared == before
    assert found == jobs.job(METADATA, declared, context)
    leads_somewhere(found, {"metadata": METADATA, "spec": declared})


# whole environments

ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: case}
spec:
  kubernetes: {version: "%s"}
  volcano: {version: "1.15"}
  topology:
    tiers: [{name: rack, label: example.com/rack}, {name: block, label: example.com/block, nameTemplate: "block-{domain}"}]
  priorities: {low: {value: 1000, default: true}}
  delivery: {engine: %s}
---
apiVersion: basalt.dev/v1alpha1
kind: Team
metadata: {name: vision}
spec:
  access: {edit: [vision]}
  namespaces:
    train:
      security: privileged
      defaults: {cpu: 1, memory: 2Gi}
      quota: {cpu: 4000, memory: 64Ti, nvidia.com/gpu: 128, rdma/hca: 1000, pods: 1000}
    locked: {security: restricted}
  queue:
    capability: {cpu: 4000, memory: 64Ti, nvidia.com/gpu: 128, rdma/hca: 1000}
    deserved: {cpu: 2000, memory: 32Ti, nvidia.com/gpu: 100, rdma/hca: 100}
  priorities: [low]
"""  # noqa: E501  one flow map
DOCUMENTS = (Path(__file__).parent / "data" / "training-jobs.yaml").read_text(encoding="utf-8")


def node(number: int) -> Spec:
    places = {"example.com/rack": f"r{number // 4}", "example.com/block": f"b{number // 8}"}
    amounts = {"cpu": "128", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": "8", "rdma/hca": "64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}", **places}},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def findings(folder: Path, documents: str, version: str = "1.34", engine: str = "pulumi") -> list[Any]:
    (folder / "environment.yaml").write_text(ENVIRONMENT % (version, engine), encoding="utf-8")
    (folder / "jobs.yaml").write_text(documents, encoding="utf-8")
    nodes = {"apiVersion": "v1", "kind": "List", "items": [node(number) for number in range(16)]}
    (folder / "nodes.json").write_text(json.dumps(nodes), encoding="utf-8")
    return list(compile_folder(folder).findings)


@pytest.mark.parametrize("engine", ["pulumi", "argocd", "flux"])
@pytest.mark.parametrize("version", [str(each) for each in versions.known("kubernetes")])
def test_jobs_of_every_framework_and_form_pass_every_rule(tmp_path: Path, version: str, engine: str) -> None:
    """No Volcano supports Kubernetes 1.36 yet, which version-is-supported says of the Environment."""
    found = findings(tmp_path, DOCUMENTS, version, engine)

    assert [each for each in found if each.rule != "version-is-supported"] == []


MISTAKES = [
    ("min: 2, max: 8", "min: 5, max: 8", "document-matches-schema"),
    ("min: 2, max: 8", "min: 2, max: 3", "document-matches-schema"),
    ("elastic: {min: 1}", "elastic: {min: 0}", "document-matches-schema"),
    ('schedule: "0 2 * * *"', 'schedule: "0 25 * * *"', "cron-schedule-is-valid"),
    ("timeZone: Europe/Berlin", "timeZone: Europe/Belrin", "cron-schedule-is-valid"),
    ("after: [tokenize]", "after: [tokenise]", "flow-is-a-dag"),
    ("flow: {name: llm}", "flow: {name: llm}\n  ttlAfterFinished: 1h", "document-matches-schema"),
    ("flow: {name: llm}", "flow: {name: llm}\n  topology: {survive: rack}", "document-matches-schema"),
    ("flow: {name: llm}", 'flow: {name: llm}\n  schedule: "@daily"', "document-matches-schema"),
    ("flow: {name: llm}", "flow: {name: llm}\n  cron: {suspend: true}", "document-matches-schema"),
    ("replicas: 8", "replicas: 9", "partitions-multiply"),
    ("partitions: {count: 2, size: 4, highestTier: rack}", "partitions: {count: 2, size: 4, highestTier: rakc}",
     "topology-tier-exists"),
    ("resource: rdma/hca, hca", "resource: rdma/hac, hca", "resource-is-offered"),
    ("resource: rdma/hca, hca", "hca", "rdma-is-complete"),
    ("numa: best-effort", "numa: best_effort", "document-matches-schema"),
    ("sizeLimit: 10Gi", "sizeLimit: 10Gb", "quantity-is-valid"),
    ("name: fast, mountPath: /fast", "name: scratch, mountPath: /fast", "document-matches-schema"),
    ("name: fast, mountPath: /fast", "name: fast, mountPath: /scratch", "document-matches-schema"),
    ("ephemeral: {storage: 1Ti}", "ephemeral: {storage: 1Ti}, claim: x", "document-matches-schema"),
    ("runAsUser: 1000", "runAsUser: 1000, runAsNonRoot: false", "security-admits-jobs"),
    ("mpi: {slots: 2, ", "mpi: {slot: 2, ", "document-matches-schema"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "rule"), MISTAKES)
def test_mistake_is_found_on_the_line_where_it_was_made(tmp_path: Path, right: str, wrong: str, rule: str) -> None:
    assert DOCUMENTS.count(right) == 1
    documents = DOCUMENTS.replace(right, wrong)

    found = findings(tmp_path, documents)

    first = documents.split(wrong)[0].count("\n") + 1
    lines = range(first, first + wrong.count("\n") + 1)
    assert [(each.rule, each.source.file.rpartition("/")[2]) for each in found] == [(rule, "jobs.yaml")], found
    assert found[0].source.line in lines


def test_circle_of_a_flow_is_found_in_the_job_that_waits(tmp_path: Path) -> None:
    documents = DOCUMENTS.replace("flow: {name: llm}", "flow: {name: llm, after: [pretrain]}")

    (found,) = findings(tmp_path, documents)

    assert (found.rule, found.message) == (
        "flow-is-a-dag",
        "the flows wait for each other: pretrain -> tokenize -> pretrain",
    )
    assert "after: [tokenize]" in documents.splitlines()[found.source.line - 1]


def test_flow_is_waived_in_its_first_job(tmp_path: Path) -> None:
    waived = '{name: pretrain, namespace: train, annotations: {basalt.dev/waive: "flow-is-a-dag: a trial"}}'
    documents = DOCUMENTS.replace("{name: pretrain, namespace: train}", waived).replace("[tokenize]", "[tokenise]")

    assert [(each.rule, each.reason) for each in findings(tmp_path, documents)] == [("flow-is-a-dag", "a trial")]


def _judged(spec: Spec, tmp_path: Path) -> Iterator[tuple[str, str]]:
    document = {"apiVersion": "basalt.dev/v1alpha1", "kind": "TrainingJob", "metadata": METADATA, "spec": spec}
    for each in findings(tmp_path, json.dumps(document)):
        yield render(each.pointer), each.message


@pytest.mark.parametrize(
    ("change", "pointer", "message"),
    [
        ({"framework": "mpi"}, "/spec/elastic", 'elastic is for the framework pytorch, this is "mpi"'),
        ({"mpi": {}}, "/spec/mpi", 'mpi is for the framework mpi, this is "pytorch"'),
        ({"roles": {"trainer": {"replicas": 2}}}, "/spec/elastic",
         "an elastic job has a role worker, this one has none"),
        ({"roles": {"worker": {"replicas": 2}, "master": {"replicas": 1}}}, "/spec/roles/master",
         "an elastic job has no master: its workers agree on a leader"),
        ({"roles": {"worker": {"replicas": 2, "minAvailable": 1}}}, "/spec/roles/worker/minAvailable",
         "the job has elastic.min, which is the worker's minAvailable"),
        ({"schedule": "@daily"}, "/spec/roles/worker",
         "the worker of an elastic job with a schedule needs a command: it is told its leader in front of it"),
    ],
)  # fmt: skip
def test_fields_that_contradict_each_other_are_told(tmp_path: Path, change: Spec, pointer: str, message: str) -> None:
    spec = {"framework": "pytorch", "image": "a/b:1", "elastic": {"min": 1}, "roles": {"worker": {"replicas": 2}}}

    assert list(_judged({**spec, **change}, tmp_path)) == [(pointer, message)]


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, [1], {"a": 1}, {"worker": 1}, [{"name": 1}]])
@pytest.mark.parametrize(
    "field", ["roles", "elastic", "flow", "schedule", "cron", "mpi", "network", "volumes", "imagePullSecrets"]
)
def test_any_value_is_judged(tmp_path: Path, field: str, value: Any) -> None:
    spec = {"framework": "pytorch", "image": "a/b:1", "roles": {"worker": {"replicas": 2}}}

    assert list(_judged({**spec, field: value}, tmp_path)) is not None
