"""The topology labels that clouds and tools put on nodes, and whether two of them tell the same tree.

Sources: the projects' own documentation, as of 2026; keys run from the widest level to the narrowest.
"""

from collections.abc import Sequence
from typing import NamedTuple

from basalt.loading.nodes import Node


class Dialect(NamedTuple):
    """One tool's labels: exact keys, or every key under a prefix."""

    name: str
    keys: tuple[str, ...] = ()
    prefix: str = ""
    replaced_by: str = ""

    def has(self, key: str) -> bool:
        """Whether the label key is one of the dialect's."""
        return key in self.keys or (bool(self.prefix) and key.startswith(self.prefix))

    def carriers(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes that carry one of the labels."""
        return [node for node in nodes if any(map(self.has, node.labels))]

    def label_of(self, node: Node) -> str:
        return next(key for key in sorted(node.labels) if self.has(key))

    def keys_of(self, nodes: Sequence[Node]) -> list[str]:
        """The keys that the nodes carry, in the order of their levels where it is known."""
        found = {key for node in nodes for key in node.labels if self.has(key)}
        return [key for key in self.keys if key in found] or sorted(found)


DIALECTS = (
    Dialect(
        "network.topology.nvidia.com/*",  # Topograph before 1.0
        prefix="network.topology.nvidia.com/",
        replaced_by="fabric.topograph.run/tier-* and accelerator.topograph.run/*",
    ),
    Dialect(
        "fabric.topograph.run/*",
        ("fabric.topograph.run/tier-2", "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0"),
        prefix="fabric.topograph.run/",
    ),
    Dialect("topology.k8s.aws/*", tuple(f"topology.k8s.aws/network-node-layer-{layer}" for layer in range(1, 5))),
    Dialect(
        "cloud.google.com/gce-topology-*",
        tuple(f"cloud.google.com/gce-topology-{level}" for level in ("block", "subblock", "host")),
    ),
    Dialect(
        "oci.oraclecloud.com/rdma.*",
        tuple(f"oci.oraclecloud.com/rdma.{level}_id" for level in ("hpc_island", "network_block", "local_block")),
    ),
    Dialect(
        "backend.coreweave.cloud/*",
        tuple(f"backend.coreweave.cloud/{level}" for level in ("fabric", "superpod", "leafgroup")),
    ),
    Dialect(
        "ib.coreweave.cloud/*", tuple(f"ib.coreweave.cloud/{level}" for level in ("fabric", "superpod", "leafgroup"))
    ),
    Dialect("alibabacloud.com/*", ("alibabacloud.com/point-of-delivery", "alibabacloud.com/asw-id")),
    Dialect("volcano.sh/*", ("volcano.sh/hypercluster", "volcano.sh/hypernode", "volcano.sh/rack", "volcano.sh/tor")),
)


def crossing(nodes: Sequence[Node], one: str, other: str) -> tuple[Node, str] | None:
    """Where two labels contradict: groups of nodes that overlap, and neither holds the other. None where they nest,
    as the levels of one tree do."""
    groups: dict[tuple[str, str], list[Node]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for node in nodes:
        left, right = node.labels.get(one), node.labels.get(other)
        if left is not None and right is not None:
            groups.setdefault((left, right), []).append(node)
            for key, value in ((one, left), (other, right)):
                sizes[key, value] = sizes.get((key, value), 0) + 1
    for (left, right), both in sorted(groups.items()):
        if len(both) < sizes[one, left] and len(both) < sizes[other, right]:
            node = both[0]
            message = (
                f"{one}={left} and {other}={right} disagree: they share {len(both)} nodes ({node.name}, ...) and each "
                f"has others ({sizes[one, left]} and {sizes[other, right]} nodes)"
            )
            return node, message
    return None
