"""Inventories of any size, as `kubectl get nodes -o json` prints real nodes: addresses, conditions, images, nodeInfo,
managed annotations; about 9 kB a node. The same for the same size on every machine."""

import hashlib
import json
from pathlib import Path
from typing import Any

RACK, LEAF, SPINE = 8, 4, 8  # nodes in a rack, racks under a leaf, leaves under a spine
_IMAGES = 9  # real kubelets report up to 50; nine make the usual 9 kB a node


def node(number: int) -> dict[str, Any]:
    """The number-th node: its rack, leaf and spine follow from the number."""
    rack, leaf = number // RACK, number // (RACK * LEAF)
    name = f"gpu-{number:06}"
    digest = hashlib.sha256(name.encode()).hexdigest()
    address = f"10.{number >> 16}.{(number >> 8) & 255}.{number & 255}"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "example.com/leaf": f"leaf-{leaf}",
        "example.com/rack": f"rack-{rack}",
        "example.com/spine": f"spine-{leaf // SPINE}",
        "feature.node.kubernetes.io/cpu-model.vendor_id": "Intel",
        "feature.node.kubernetes.io/kernel-version.full": "5.15.0-113-generic",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "h100.8x",
        "nvidia.com/cuda.driver.major": "550",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/mig.capable": "true",
        "topology.kubernetes.io/zone": "eu-1a",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {
                "csi.volume.kubernetes.io/nodeid": json.dumps({"csi.example.com": name}),
                "nfd.node.kubernetes.io/feature-labels": ",".join(labels),
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": "2026-05-04T09:12:44Z",
            "labels": labels,
            "name": name,
            "resourceVersion": str(1_000_000 + number),
            "uid": f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}",
        },
        "spec": {"podCIDR": f"{address}/24", "podCIDRs": [f"{address}/24"], "providerID": f"example:///{name}"},
        "status": _status(name, address, digest),
    }


def _status(name: str, address: str, digest: str) -> dict[str, Any]:
    capacity = {
        "cpu": "192",
        "ephemeral-storage": "1843319320Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "2113136128Ki",
        "nvidia.com/gpu": "8",
        "pods": "110",
        "rdma/hca": "64",
    }
    conditions = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Ready")
    return {
        "addresses": [{"address": address, "type": "InternalIP"}, {"address": name, "type": "Hostname"}],
        "allocatable": {**capacity, "cpu": "190", "ephemeral-storage": "1698802982297"},
        "capacity": capacity,
        "conditions": [
            {
                "lastHeartbeatTime": "2026-11-20T08:42:47Z",
                "lastTransitionTime": "2026-05-04T09:13:30Z",
                "message": f"kubelet has posted its {kind} status",
                "reason": f"Kubelet{kind}",
                "status": "True" if kind == "Ready" else "False",
                "type": kind,
            }
            for kind in conditions
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": [
            {
                "names": [
                    f"registry.example.com/platform/image-{image}@sha256:{digest}",
                    f"registry.example.com/platform/image-{image}:v1.{image}.0",
                ],
                "sizeBytes": 180_000_000 + image,
            }
            for image in range(_IMAGES)
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": digest[:36],
            "containerRuntimeVersion": "containerd://1.7.22",
            "kernelVersion": "5.15.0-113-generic",
            "kubeProxyVersion": "v1.34.1",
            "kubeletVersion": "v1.34.1",
            "machineID": digest[:32],
            "operatingSystem": "linux",
            "osImage": "Ubuntu 22.04.5 LTS",
            "systemUUID": digest[16:52],
        },
    }


def write(path: Path, nodes: int) -> None:
    """An inventory of so many nodes, one node at a time, so that writing it needs no memory."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number in range(nodes):
            text = json.dumps(node(number), indent=4, sort_keys=True)
            file.write(("        " if not number else ",\n        ") + text.replace("\n", "\n        "))
        file.write('\n    ],\n    "kind": "List",\n    "metadata": {"resourceVersion": ""}\n}\n')
