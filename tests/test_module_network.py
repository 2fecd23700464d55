"""The part network: the operator, what its device plugins offer, and how it agrees with the GPUs' part."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.api.versions import Version
from basalt.compiling import compile_folder
from basalt.objects import Manifest
from basalt.platform import Platform
from basalt.pointers import has
from basalt.views import network_operator
from modules import network

Spec = dict[str, Any]
STEADY = settings(deadline=None, derandomize=True)
ENGINES = ("pulumi", "argocd", "flux")
ML = {"key": "ml", "operator": "Exists", "effect": "NoSchedule"}


def made(declared: Spec, **spec: Any) -> dict[str, Manifest]:
    """Everything of the part, by kind and name."""
    document = {"network": declared, **spec}
    platform = Platform("case", document, {}, tuple, Version(1, 34), Version(1, 15), is_development=False)
    found = {
        f"{each.value['kind']}/{each.value['metadata']['name']}": each for each in network.network(declared, platform)
    }
    for each in found.values():
        for pointer, written in each.origins.items():
            assert has({"spec": document}, written), (pointer, written)
            assert written[:2] in (("spec", "network"), ("spec", "gpu")), (pointer, written)
    return found


def policy(declared: Spec, **spec: Any) -> Spec:
    found: Spec = made(declared, **spec)["NicClusterPolicy/nic-cluster-policy"].value["spec"]
    return found


def values(declared: Spec, **spec: Any) -> Spec:
    found: Spec = made(declared, **spec)["Release/network-operator"].value["spec"]["values"]
    return found


def test_operator_needs_no_word() -> None:
    found = made({})

    assert list(found) == [
        "Namespace/nvidia-network-operator",
        "Release/network-operator",
        "NicClusterPolicy/nic-cluster-policy",
    ]
    spec = policy({})
    assert {"ofedDriver", "rdmaSharedDevicePlugin"} <= spec.keys()
    assert spec["ofedDriver"]["upgradePolicy"]["autoUpgrade"] is False
    assert spec["rdmaSharedDevicePlugin"]["version"] == "network-operator-v26.4.1"


@pytest.mark.parametrize(
    ("text", "resources"),
    [
        ("{}", ["rdma/hca_shared"]),
        ("{type: sriov}", ["nvidia.com/hca"]),
        ("{type: none}", []),
        ("{devices: [{resourceName: ib}, {resourceName: roce}]}", ["rdma/ib", "rdma/roce"]),
        ("{type: sriov, devices: [{resourceName: ib}]}", ["nvidia.com/ib"]),
    ],
)
def test_resources_are_those_that_jobs_ask_for(tmp_path: Path, text: str, resources: list[str]) -> None:
    assert found_in(tmp_path, f"  network: {text}\n") == []

    (each,) = network_operator.policies(compile_folder(tmp_path).objects)
    assert list(network_operator.resources(each)) == resources


def config(declared: Spec, plugin: str) -> Any:
    return json.loads(policy(declared)[plugin]["config"])


def test_shared_plugin_is_configured_as_it_reads_it() -> None:
    devices = [{"resourceName": "ib", "vendors": ["15b3"], "deviceIDs": ["1021"], "ifNames": ["ibs0"], "rdmaHcaMax": 8}]

    assert config({"devices": devices}, "rdmaSharedDevicePlugin")["configList"] == [
        {
            "resourceName": "ib",
            "rdmaHcaMax": 8,
            "selectors": {"vendors": ["15b3"], "deviceIDs": ["1021"], "ifNames": ["ibs0"]},
        }
    ]


def test_sriov_plugin_has_its_own_words_for_the_same() -> None:
    devices = [{"resourceName": "ib", "deviceIDs": ["101e"], "ifNames": ["ibs0"], "linkTypes": ["infiniband"]}]

    assert config({"type": "sriov", "devices": devices}, "sriovDevicePlugin")["resourceList"] == [
        {
            "resourcePrefix": "nvidia.com",
            "resourceName": "ib",
            "selectors": {"devices": ["101e"], "pfNames": ["ibs0"], "linkTypes": ["infiniband"], "isRdma": True},
        }
    ]


@pytest.mark.parametrize("kind", ["shared", "sriov"])
def test_a_device_always_has_a_selector(kind: str) -> None:
    plugin, field = {
        "shared": ("rdmaSharedDevicePlugin", "configList"),
        "sriov": ("sriovDevicePlugin", "resourceList"),
    }[kind]

    (entry,) = config({"type": kind, "devices": [{"resourceName": "ib"}]}, plugin)[field]

    assert entry["selectors"]["vendors"] == ["15b3"]


def test_no_driver_where_the_hosts_have_one() -> None:
    assert "ofedDriver" not in policy({"ofed": {"preinstalled": True}})
    assert policy({"ofed": {"version": "doca1"}})["ofedDriver"]["version"] == "doca1"


@pytest.mark.parametrize(
    ("declared", "spec", "installs"),
    [
        ({}, {}, True),
        ({}, {"gpu": {}}, False),
        ({}, {"gpu": {"provider": "device-plugin"}}, False),
        ({}, {"gpu": {"featureDiscovery": False}}, True),
        ({}, {"gpu": {"provider": "volcano-vgpu"}}, True),
        ({"featureDiscovery": False}, {}, False),
    ],
)
def test_one_part_installs_node_feature_discovery(declared: Spec, spec: Spec, *, installs: bool) -> None:
    assert values(declared, **spec)["nfd"]["enabled"] is installs


def test_node_feature_discovery_sees_gpus_and_nics() -> None:
    worker = values({}, gpu={"featureDiscovery": False})["node-feature-discovery"]["worker"]

    assert worker["config"]["sources"]["pci"]["deviceClassWhitelist"] == ["02", "0200", "0207", "0300", "0302"]


def test_taints_of_gpu_nodes_are_tolerated() -> None:
    lab = {**ML, "key": "lab"}
    spec = policy({"tolerations": [lab]}, gpu={"pools": {"h100": {"tolerations": [ML, lab]}}})

    assert [each["key"] for each in spec["tolerations"]] == ["nvidia.com/gpu", "lab", "ml"]


def test_namespace_of_both_parts_is_declared_once() -> None:
    assert "Namespace/nvidia" in made({"namespace": "nvidia"})
    assert "Namespace/nvidia" not in made({"namespace": "nvidia"}, gpu={"namespace": "nvidia"})


def test_networks_bring_what_joins_pods_to_them() -> None:
    ipam = {"type": "nv-ipam", "poolName": "rdma"}
    networks = {
        "a": {"type": "macvlan", "master": "ens2f0", "mode": "bridge", "mtu": 9000, "ipam": ipam},
        "b": {"type": "hostdevice", "resourceName": "hca", "networkNamespace": "train"},
        "c": {"type": "ipoib", "master": "ibs0"},
    }
    found = made({"secondaryNetwork": {"networks": networks}})
    spec = policy({"secondaryNetwork": {"networks": networks}})

    assert [name for name in found if "Network/" in name] == [
        "MacvlanNetwork/a", "HostDeviceNetwork/b", "IPoIBNetwork/c",
    ]  # fmt: skip
    macvlan = found["MacvlanNetwork/a"].value["spec"]
    assert json.loads(macvlan.pop("ipam")) == ipam
    assert macvlan == {"networkNamespace": "default", "master": "ens2f0", "mode": "bridge", "mtu": 9000}
    assert found["HostDeviceNetwork/b"].value["spec"] == {"networkNamespace": "train", "resourceName": "hca"}
    assert spec["secondaryNetwork"].keys() == {"cniPlugins", "multus", "ipoib"}
    assert "nvIpam" in spec


def test_nothing_joins_pods_where_there_is_nothing_to_join() -> None:
    assert "secondaryNetwork" not in policy({})
    assert policy({"secondaryNetwork": {"multus": True}})["secondaryNetwork"].keys() == {"cniPlugins", "multus"}


_DEVICE = st.fixed_dictionaries(
    {"resourceName": st.sampled_from(["ib", "roce"])},
    optional={"vendors": st.just(["15b3"]), "ifNames": st.just(["a"]), "rdmaHcaMax": st.integers(1, 100)},
)
_NETWORK = st.fixed_dictionaries(
    {"type": st.sampled_from(["macvlan", "hostdevice", "ipoib"])}, optional={"ipam": st.just({"type": "nv-ipam"})}
)
_PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["shared", "sriov", "none"]),
        "ofed": st.sampled_from([{}, {"preinstalled": True}, {"upgrade": {"autoUpgrade": True}}]),
        "devices": st.lists(_DEVICE, min_size=1, max_size=2),
        "tolerations": st.just([ML]),
        "secondaryNetwork": st.fixed_dictionaries(
            {}, optional={"networks": st.dictionaries(st.sampled_from("ab"), _NETWORK)}
        ),
    },
)


@given(_PARTS, st.sampled_from([{}, {"gpu": {}}, {"gpu": {"tolerations": [ML]}}]))
@STEADY
def test_everything_comes_from_the_document_and_the_same_comes_twice(declared: Spec, spec: Spec) -> None:
    before = json.dumps(declared)

    first, second = made(declared, **spec), made(declared, **spec)

    assert [each.value for each in first.values()] == [each.value for each in second.values()]
    assert json.dumps(declared) == before


def found_in(path: Path, text: str, engine: str = "pulumi") -> list[tuple[str, str]]:
    """The rules that speak, each with the line that it points to."""
    file = path / "environment.yaml"
    file.write_text(
        "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: case}\nspec:\n"
        f'  kubernetes: {{version: "1.34"}}\n  delivery: {{engine: {engine}}}\n{text}',
        encoding="utf-8",
    )
    lines = file.read_text(encoding="utf-8").splitlines()
    return [(each.rule, lines[each.source.line - 1].strip()) for each in compile_folder(path).findings]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        "  network: {}\n",
        "  network: {type: none}\n",
        "  network: {ofed: {upgrade: {autoUpgrade: true}}}\n",
        "  gpu: {}\n  network: {type: sriov, ofed: {preinstalled: true}}\n",
        "  network: {secondaryNetwork: {networks: {a: {type: macvlan, ipam: {type: nv-ipam, poolName: a}}}}}\n",
    ],
    ids=["plain", "none", "upgraded", "sriov", "networks"],
)
def test_what_it_makes_breaks_no_rule(tmp_path: Path, text: str, engine: str) -> None:
    assert found_in(tmp_path, text, engine) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        ("  network:\n    version: 26.x\n", "chart-is-pinned", "version: 26.x"),
        ("  gpu: {}\n  network:\n    featureDiscovery: true\n", "one-feature-discovery", "featureDiscovery: true"),
        (
            "  network:\n    ofed:\n      upgrade: {autoUpgrade: true, waitForCompletion: {timeoutSeconds: 9}}\n",
            "driver-upgrade-spares-gangs",
            "upgrade: {autoUpgrade: true, waitForCompletion: {timeoutSeconds: 9}}",
        ),
    ],
)
def test_mistake_is_found_at_its_line(tmp_path: Path, text: str, rule: str, line: str, engine: str) -> None:
    assert (rule, line) in found_in(tmp_path, text, engine)
