"""The part gpu: what each provider installs, what each pool of nodes gets of it, and where mistakes are found."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.api.schemas import document_schema
from basalt.api.versions import Version, known
from basalt.compiling import compile_folder
from basalt.loading.nodes import Metadata, Node, Status
from basalt.objects import Manifest
from basalt.platform import Platform
from basalt.pointers import has
from basalt.views.exporters import Exporter, dcgm_list, metrics
from modules import gpu, vgpu

Spec = dict[str, Any]
STEADY = settings(deadline=None, derandomize=True)
H100, A100 = {"example.com/pool": "h100"}, {"example.com/pool": "a100"}
ENGINES = ("pulumi", "argocd", "flux")


def node(name: str, pool: str, **labels: str) -> Node:
    return Node(Metadata(name, {"example.com/pool": pool, **labels}), status=Status({"nvidia.com/gpu": "8"}))


NODES = (node("te2", "h100"), node("te1", "h100"), node("te3", "a100"), Node(Metadata("infra")))


def made(declared: Spec, **spec: Any) -> dict[str, Manifest]:
    """Everything of the part, by kind and name."""
    platform = Platform(
        "case", {"gpu": declared, **spec}, {}, lambda: NODES, Version(1, 34), Version(1, 15), is_development=False
    )
    module = vgpu.vgpu if declared.get("provider") == "volcano-vgpu" else gpu.gpu
    found = {f"{each.value['kind']}/{each.value['metadata']['name']}": each for each in module(declared, platform)}
    for each in found.values():
        leads_to_a_part(each, {"spec": platform.spec})
    return found


def leads_to_a_part(each: Manifest, document: Spec) -> None:
    """Every origin stands in the document, in this part or the one that it follows."""
    for pointer, written in each.origins.items():
        assert has(document, written), (pointer, written)
        assert written[:2] in (("spec", "gpu"), ("spec", "network")), (pointer, written)


def pools(**declared: Spec) -> Spec:
    return {"pools": declared}


# the operator


def test_operator_needs_no_word() -> None:
    found = made({})

    assert list(found) == [
        "Namespace/gpu-operator",
        "Release/gpu-operator",
        "ClusterPolicy/cluster-policy",
        "NVIDIADriver/default",
    ]
    assert found["Release/gpu-operator"].value["spec"]["values"] == {
        "clusterPolicy": {"deployCR": False},
        "nfd": {"enabled": True},
    }
    labels = found["Namespace/gpu-operator"].value["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_every_operand_has_a_whole_image() -> None:
    spec = made({})["ClusterPolicy/cluster-policy"].value["spec"]

    for operand in ("toolkit", "devicePlugin", "gfd", "dcgmExporter", "migManager"):
        assert {"repository", "image", "version"} <= spec[operand].keys(), operand
    # What the CRD requires, be it empty.
    required = {"operator", "daemonsets", "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd"}
    assert required | {"nodeStatusExporter"} <= spec.keys()


def test_each_pool_has_its_own_driver() -> None:
    declared = pools(
        h100={"nodeSelector": H100, "driver": {"version": "595.91.07", "kernelModuleType": "open"}},
        a100={"nodeSelector": A100, "driver": {"version": "580.82.07", "usePrecompiled": True}},
        hosts={"nodeSelector": {"a": "b"}, "driver": {"preinstalled": True}},
    )
    found = made(declared)
    drivers = {name: each.value["spec"] for name, each in found.items() if name.startswith("NVIDIADriver/")}

    assert list(drivers) == ["NVIDIADriver/h100", "NVIDIADriver/a100-precompiled"]
    first, second = drivers.values()
    assert (first["version"], first["kernelModuleType"], first["nodeSelector"], first["default"]) == (
        "595.91.07", "open", H100, False,
    )  # fmt: skip
    assert (second["version"], second["usePrecompiled"], second["nodeSelector"]) == ("580.82.07", True, A100)
    assert found["ClusterPolicy/cluster-policy"].value["spec"]["driver"] == {
        "enabled": True,
        "useNvidiaDriverCRD": True,
    }


def test_no_driver_where_every_host_has_one() -> None:
    found = made(pools(all={"driver": {"preinstalled": True}}))

    assert found["ClusterPolicy/cluster-policy"].value["spec"]["driver"]["enabled"] is False
    assert [name for name in found if name.startswith(("NVIDIADriver", "NodeFeatureRule"))] == []


def test_driver_upgrades_wait_for_training_and_delete_nothing_by_force() -> None:
    policy = made({})["NVIDIADriver/default"].value["spec"]["upgradePolicy"]

    assert policy["waitForCompletion"] == {"podSelector": "volcano.sh/job-name", "timeoutSeconds": 0}
    assert not any(policy[step][field] for step in ("podDeletion", "drain") for field in ("force", "deleteEmptyDir"))
    assert policy["drain"]["enable"] is False


def test_upgrade_is_as_declared() -> None:
    upgrade = {"autoUpgrade": False, "maxParallelUpgrades": 3, "waitForCompletion": {"podSelector": "a=b"}}
    policy = made(pools(all={"driver": {"upgrade": upgrade}}))["NVIDIADriver/all"].value["spec"]["upgradePolicy"]

    assert (policy["autoUpgrade"], policy["maxParallelUpgrades"]) == (False, 3)
    assert policy["waitForCompletion"] == {"podSelector": "a=b", "timeoutSeconds": 0}


@pytest.mark.parametrize(
    ("network", "rdma"),
    [
        (None, {"enabled": False}),
        ({}, {"enabled": True, "useHostMofed": False}),
        ({"ofed": {"preinstalled": True}}, {"enabled": True, "useHostMofed": True}),
    ],
)
def test_driver_is_told_where_that_of_the_nics_comes_from(network: Spec | None, rdma: Spec) -> None:
    spec = {} if network is None else {"network": network}

    assert made({}, **spec)["NVIDIADriver/default"].value["spec"]["rdma"] == rdma


def test_taints_of_pools_are_tolerated_everywhere_those_of_one_by_its_driver() -> None:
    ml, lab = ({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in ("ml", "lab"))
    declared = {
        "tolerations": [ml],
        **pools(h100={"nodeSelector": H100}, a100={"nodeSelector": A100, "tolerations": [lab, ml]}),
    }
    found = made(declared)
    keys = {
        name: [each["key"] for each in found[name].value["spec"]["tolerations"]]
        for name in found
        if name.startswith("NVIDIADriver")
    }
    policy = found["ClusterPolicy/cluster-policy"].value["spec"]["daemonsets"]
    worker = found["Release/gpu-operator"].value["spec"]["values"]["node-feature-discovery"]["worker"]

    assert keys == {"NVIDIADriver/h100": ["nvidia.com/gpu", "ml"], "NVIDIADriver/a100": ["nvidia.com/gpu", "ml", "lab"]}
    assert policy["tolerations"] == [{**ml, "key": "nvidia.com/gpu"}, ml, lab]
    assert worker["tolerations"][:3] == policy["tolerations"]


# sharing and MIG


def texts(found: dict[str, Manifest], name: str) -> dict[str, Any]:
    return {key: yaml.safe_load(text) for key, text in found[f"ConfigMap/{name}"].value["data"].items()}


def test_one_configuration_for_each_pool_and_one_for_the_rest() -> None:
    declared = pools(
        h100={"nodeSelector": H100},
        a100={
            "nodeSelector": A100,
            "mig": {"profile": "1g.10gb"},
            "sharing": {"timeSlicing": {"replicas": 2, "renameByDefault": True}},
        },
    )
    found = made(declared)
    shared = {"renameByDefault": True, "resources": [{"name": "nvidia.com/mig-1g.10gb", "replicas": 2}]}

    assert texts(found, "basalt-device-plugin") == {
        "default": {"version": "v1", "flags": {"migStrategy": "single"}},
        "h100": {"version": "v1", "flags": {"migStrategy": "single"}},
        "a100": {"version": "v1", "flags": {"migStrategy": "mixed"}, "sharing": {"timeSlicing": shared}},
    }
    policy = found["ClusterPolicy/cluster-policy"].value["spec"]
    assert policy["devicePlugin"]["config"] == {"name": "basalt-device-plugin", "default": "default"}
    assert "mig" not in policy, "it would go before the strategies of the pools"
    assert policy["migManager"]["config"] == {"default": "all-disabled"}


def test_nodes_get_their_configuration_by_labels() -> None:
    declared = pools(
        h100={"nodeSelector": H100, "sharing": {"mps": {"replicas": 4}}},
        a100={"nodeSelector": A100, "mig": {"profile": "1g.10gb"}, "driver": {"preinstalled": True}},
    )
    rule = made(declared)["NodeFeatureRule/basalt-gpu-pools"].value["spec"]["rules"]

    assert [(each["name"], each["labels"]) for each in rule] == [
        ("h100", {"nvidia.com/device-plugin.config": "h100"}),
        (
            "a100",
            {
                "nvidia.com/device-plugin.config": "a100",
                "nvidia.com/mig.config": "all-1g.10gb",
                "nvidia.com/gpu.deploy.driver": "false",
            },
        ),
    ]
    assert [each["matchFeatures"][0]["matchExpressions"]["nodename"]["value"] for each in rule] == [
        ["te1", "te2"], ["te3"],
    ]  # fmt: skip


def test_pool_without_a_selector_has_the_gpu_nodes_that_are_left() -> None:
    declared = pools(h100={"nodeSelector": H100}, rest={"mig": {"profile": "1g.10gb", "strategy": "single"}})
    found = made(
        declared | {"pools": {**declared["pools"], "h100": {"nodeSelector": H100, "mig": {"profile": "7g.80gb"}}}}
    )
    rules = found["NodeFeatureRule/basalt-gpu-pools"].value["spec"]["rules"]

    assert rules[1]["labels"] == {"nvidia.com/mig.config": "all-1g.10gb"}
    assert rules[1]["matchFeatures"][0]["matchExpressions"]["nodename"]["value"] == ["te3"]
    assert found["NVIDIADriver/rest"].value["spec"]["default"] is True
    config = found["ClusterPolicy/cluster-policy"].value["spec"]["devicePlugin"]["config"]
    assert config["default"] == "rest"


def test_partitions_by_gpu_take_the_place_of_the_operators_table() -> None:
    devices = [
        {"devices": [0], "mig-enabled": True, "mig-devices": {"1g.10gb": 5, "1g.10gb+me": 1}},
        {"devices": [1, 2], "mig-enabled": False},
    ]
    found = made(
        pools(a100={"nodeSelector": A100, "mig": {"devices": devices}, "sharing": {"timeSlicing": {"replicas": 2}}})
    )

    assert texts(found, "basalt-mig-parted")["config.yaml"] == {
        "version": "v1",
        "mig-configs": {"all-disabled": [{"devices": "all", "mig-enabled": False}], "a100": devices},
    }
    config = found["ClusterPolicy/cluster-policy"].value["spec"]["migManager"]["config"]
    assert config == {"name": "basalt-mig-parted", "default": "all-disabled"}
    sharing = texts(found, "basalt-device-plugin")["a100"]["sharing"]["timeSlicing"]["resources"]
    assert [each["name"] for each in sharing] == [
        "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb.me",
    ]  # fmt: skip


# the exporter


def test_own_counters_come_beside_those_of_the_exporter() -> None:
    line = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, Double-bit volatile ECC errors."
    found = made({"dcgmExporter": {"counters": [line]}})
    text = found["ConfigMap/basalt-dcgm-metrics"].value["data"]["dcgm-metrics.csv"]

    assert text.splitlines()[-1] == line
    assert dcgm_list(text).keys() == {*metrics(Exporter.DCGM), "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"}
    exporter = found["ClusterPolicy/cluster-policy"].value["spec"]["dcgmExporter"]
    assert exporter["config"] == {"name": "basalt-dcgm-metrics"}


def test_service_monitor_comes_with_the_metrics() -> None:
    def monitor(**spec: Any) -> Spec:
        found: Spec = made({}, **spec)["ClusterPolicy/cluster-policy"].value["spec"]["dcgmExporter"]["serviceMonitor"]
        return found

    assert (monitor()["enabled"], monitor(metrics={})["enabled"]) == (False, True)


# the other providers


def test_device_plugin_alone_has_its_configurations_in_the_values() -> None:
    declared = {"provider": "device-plugin", **pools(h100={"nodeSelector": H100, "sharing": {"mps": {"replicas": 4}}})}
    found = made(declared)
    values = found["Release/nvidia-device-plugin"].value["spec"]["values"]

    assert list(found) == [
        "Namespace/nvidia-device-plugin", "Release/nvidia-device-plugin", "NodeFeatureRule/basalt-gpu-pools",
    ]  # fmt: skip
    assert values["config"]["default"] == "default"
    assert yaml.safe_load(values["config"]["map"]["h100"])["sharing"] == {
        "mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}
    }


def test_volcanos_plugin_runs_once_in_each_pool() -> None:
    declared = {
        "provider": "volcano-vgpu",
        **pools(h100={"nodeSelector": H100, "vgpu": {"deviceSplitCount": 4}}, a100={"nodeSelector": A100}),
    }
    found = made(declared)
    sets = {name: each.value["spec"]["template"]["spec"] for name, each in found.items() if "DaemonSet" in name}

    assert [pod["nodeSelector"] for pod in sets.values()] == [H100, A100]
    assert [pod["containers"][0]["args"] for pod in sets.values()] == [
        ["--device-split-count=4"], ["--device-split-count=10"],
    ]  # fmt: skip
    nodes = json.loads(found["ConfigMap/volcano-vgpu-node-config"].value["data"]["config.json"])["nodeconfig"]
    assert [(each["name"], each["devicesplitcount"]) for each in nodes] == [("te2", 4), ("te1", 4)]
    devices = yaml.safe_load(found["ConfigMap/volcano-vgpu-device-config"].value["data"]["device-config.yaml"])
    assert devices["nvidia"]["resourceCountName"] == "volcano.sh/vgpu-number"


def test_volcanos_plugin_asks_for_the_runtime_class_that_it_brings() -> None:
    with_cdi = made({"provider": "volcano-vgpu"})
    without = made({"provider": "volcano-vgpu", "cdi": {"enabled": False}})

    pod = with_cdi["DaemonSet/volcano-device-plugin"].value["spec"]["template"]["spec"]
    assert pod["runtimeClassName"] == with_cdi["RuntimeClass/nvidia"].value["metadata"]["name"]
    assert "RuntimeClass/nvidia" not in without
    assert "runtimeClassName" not in without["DaemonSet/volcano-device-plugin"].value["spec"]["template"]["spec"]


# whole environments

_SHARING = st.sampled_from([{"timeSlicing": {"replicas": 2}}, {"mps": {"replicas": 4, "renameByDefault": True}}])
_POOL = st.fixed_dictionaries(
    {},
    optional={
        "driver": st.sampled_from([{}, {"preinstalled": True}, {"version": "1", "upgrade": {"autoUpgrade": False}}]),
        "tolerations": st.just([{"key": "ml", "operator": "Exists"}]),
        "sharing": _SHARING,
        "mig": st.sampled_from([{"profile": "1g.10gb"}, {"devices": [{"devices": "all", "mig-enabled": False}]}]),
        "nodeSelector": st.sampled_from([H100, A100]),
        "vgpu": st.just({"deviceSplitCount": 2}),
    },
)
_PARTS = st.fixed_dictionaries(
    {},
    optional={
        "provider": st.sampled_from(["operator", "device-plugin", "volcano-vgpu"]),
        "namespace": st.sampled_from(["gpus", "kube-system"]),
        "tolerations": st.just([{"key": "lab", "operator": "Exists"}]),
        "featureDiscovery": st.booleans(),
        "cdi": st.just({"enabled": False}),
        "toolkit": st.just({"version": "v1"}),
        "dcgmExporter": st.just({"serviceMonitor": {"interval": "30s"}, "counters": ["DCGM_FI_DEV_A, gauge, A"]}),
        "pools": st.dictionaries(st.sampled_from(["default", "h100", "rest"]), _POOL, max_size=3),
    },
)


@given(_PARTS, st.sampled_from([{}, {"network": {}}, {"metrics": {}}]))
@STEADY
def test_everything_comes_from_the_document_and_the_same_comes_twice(declared: Spec, spec: Spec) -> None:
    before = json.dumps(declared)

    first, second = made(declared, **spec), made(declared, **spec)

    assert [each.value for each in first.values()] == [each.value for each in second.values()]
    assert json.dumps(declared) == before


POOLS = """
    tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}]
    pools:
      h100:
        nodeSelector: {example.com/pool: h100}
        driver: {kernelModuleType: open}
      a100:
        nodeSelector: {example.com/pool: a100}
        driver: {version: 580.82.07}
        mig: {profile: 1g.10gb}
        sharing:
          timeSlicing:
            replicas: 2
"""
PRODUCTS = {"h100": "NVIDIA-H100-80GB-HBM3", "a100": "NVIDIA-A100-SXM4-80GB"}


def folder(tmp_path: Path, text: str, engine: str = "pulumi", version: str = "1.34") -> Path:
    partitioned = {"nvidia.com/mig.config": "all-1g.10gb"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"te{number}",
                "labels": {
                    "example.com/pool": pool,
                    "nvidia.com/gpu.product": PRODUCTS[pool],
                    "nvidia.com/gpu.present": "true",
                    **({"nvidia.com/device-plugin.config": pool} if "h100:" in text else {}),
                    **(partitioned if "h100:" in text and pool == "a100" else {}),
                },
            },
            "spec": {"taints": [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}},
        }
        for number, pool in enumerate(["h100", "h100", "a100"])
    ]
    (tmp_path / "nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": nodes}))
    (tmp_path / "environment.yaml").write_text(
        "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: case}\nspec:\n"
        f'  kubernetes: {{version: "{version}"}}\n  delivery: {{engine: {engine}}}\n  gpu:{text}',
        encoding="utf-8",
    )
    return tmp_path


def found_in(path: Path) -> list[tuple[str, str]]:
    """The rules that speak, each with the line that it points to."""
    lines = (path / "environment.yaml").read_text().splitlines()
    return [
        (each.rule, lines[each.source.line - 1].strip() if each.source.file.endswith("yaml") else each.source.file)
        for each in compile_folder(path).findings
    ]


PLAIN = "\n    tolerations: [{key: dedicated, operator: Exists}]\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        POOLS,
        f"{POOLS}  network: {{}}\n",
        f"{PLAIN}  network: {{type: sriov, ofed: {{preinstalled: true}}}}\n",
        f"{PLAIN}    provider: device-plugin\n",
        f"{PLAIN}    provider: volcano-vgpu\n  network: {{}}\n",
        f"{PLAIN}    featureDiscovery: false\n  network: {{}}\n",
    ],
    ids=["pools", "network", "sriov", "device-plugin", "volcano-vgpu", "nfd-of-network"],
)
def test_what_it_makes_breaks_no_rule(tmp_path: Path, text: str, engine: str) -> None:
    assert found_in(folder(tmp_path, text, engine)) == []


@pytest.mark.parametrize("version", known("kubernetes"), ids=str)
def test_default_breaks_no_rule_on_any_kubernetes(tmp_path: Path, version: Version) -> None:
    path = folder(tmp_path, " {}\n  network: {}\n", version=str(version))
    (path / "nodes.json").unlink()
    # Volcano, which every Environment has, supports no Kubernetes so new.
    too_new = [("version-is-supported", "spec:")] if version > Version(1, 35) else []

    assert found_in(path) == too_new


@pytest.mark.parametrize(
    ("right", "wrong", "rule", "line"),
    [
        ("replicas: 2", "replicas: 1", "gpu-sharing-is-sound", "replicas: 1"),
        ("timeSlicing:", "mps:", "gpu-sharing-is-sound", "mps:"),
        ("driver: {version: 580.82.07}", "driver: {upgrade: {waitForCompletion: {timeoutSeconds: 60}}}",
         "driver-upgrade-spares-gangs", "driver: {upgrade: {waitForCompletion: {timeoutSeconds: 60}}}"),
        ("nodeSelector: {example.com/pool: a100}", "nodeSelector: {example.com/pool: h100}",
         "driver-matches-pool", "nodeSelector: {example.com/pool: h100}"),
        ("key: dedicated", "key: other", "gpu-taint-is-tolerated",
         "tolerations: [{key: other, operator: Exists, effect: NoSchedule}]"),
    ],
)  # fmt: skip
def test_mistake_is_found_at_its_line(tmp_path: Path, right: str, wrong: str, rule: str, line: str) -> None:
    assert right in POOLS

    assert (rule, line) in found_in(folder(tmp_path, POOLS.replace(right, wrong)))


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        (f"{PLAIN}    version: latest\n", "chart-is-pinned", "version: latest"),
        (f"{PLAIN}    featureDiscovery: false\n", "one-feature-discovery", "featureDiscovery: false"),
        (
            f"{PLAIN}    pools: {{a: {{driver: {{usePrecompiled: true, version: 'sha256:0'}}}}}}\n",
            "driver-matches-pool",
            "pools: {a: {driver: {usePrecompiled: true, version: 'sha256:0'}}}",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("engine", ENGINES)
def test_mistake_of_a_release_is_found_at_its_line(
    tmp_path: Path, text: str, rule: str, line: str, engine: str
) -> None:
    assert (rule, line) in found_in(folder(tmp_path, text, engine))


def test_namespace_may_be_another() -> None:
    found = made({"namespace": "gpus", "dcgmExporter": {"counters": ["DCGM_FI_DEV_A, gauge, A"]}})

    assert found["ConfigMap/basalt-dcgm-metrics"].value["metadata"]["namespace"] == "gpus"
    assert "Namespace/gpus" in found
    assert "Namespace/kube-system" not in made({"namespace": "kube-system"})


def test_schema_names_the_providers_that_there_are() -> None:
    providers = document_schema("Environment")["properties"]["spec"]["properties"]["gpu"]["properties"]["provider"]

    for provider in providers["enum"]:
        assert made({"provider": provider})
