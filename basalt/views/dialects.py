"""The topology labels that clouds and tools put on nodes, and whether two of them tell the same tree.

Sources: the projects' own documentation, as of 2026; keys run from the widest level to the narrowest.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
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
    Dialect(  # Ethernet and InfiniBand: two fabrics, which need not tell one tree
        "coreweave.cloud/*",
        tuple(
            f"{fabric}.coreweave.cloud/{level}"
            for fabric in ("backend", "ib")
            for level in ("fabric", "superpod", "leafgroup")
        ),
    ),
    Dialect("alibabacloud.com/*", ("alibabacloud.com/point-of-delivery", "alibabacloud.com/asw-id")),
    Dialect("volcano.sh/*", ("volcano.sh/hypercluster", "volcano.sh/hypernode", "volcano.sh/rack", "volcano.sh/tor")),
)


class Crossing(NamedTuple):
    """Two labels that contradict: values whose nodes overlap while each has others too, and the nodes of both."""

    one: str
    other: str
    values: tuple[str, str]
    sizes: tuple[int, int]
    nodes: tuple[Node, ...]


def crossings(nodes: Sequence[Node], rivals: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Iterator[Crossing]:
    """For every two dialects, given by their labels, the place where they contradict with fewest nodes. Labels that
    nest, as the levels of one tree do, agree."""
    keys = sorted({key for rival in rivals for labels in rival for key in labels})
    if not keys:
        return
    alike: dict[tuple[str | None, ...], list[Node]] = {}  # nodes of the same values: few, compared to the nodes
    for node in nodes:
        labels = node.labels
        alike.setdefault(tuple([labels.get(key) for key in keys]), []).append(node)
    for one, other in rivals:
        pairs = ((keys.index(left), keys.index(right)) for left, right in itertools.product(one, other))
        found = filter(None, (_crossing(alike, keys, *pair) for pair in pairs))
        if (fewest := min(found, key=lambda each: len(each.nodes), default=None)) is not None:
            yield fewest


def _crossing(
    alike: dict[tuple[str | None, ...], list[Node]], keys: Sequence[str], one: int, other: int
) -> Crossing | None:
    both: Counter[tuple[str, str]] = Counter()
    sizes: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for told, nodes in alike.items():
        left, right = told[one], told[other]
        if left is not None and right is not None:
            both[left, right] += len(nodes)
            sizes[0][left] += len(nodes)
            sizes[1][right] += len(nodes)
    crossed = (pair for pair, count in both.items() if count < sizes[0][pair[0]] and count < sizes[1][pair[1]])
    values = min(crossed, key=lambda pair: (both[pair], pair), default=None)
    if values is None:
        return None
    shared = [node for told, some in alike.items() if (told[one], told[other]) == values for node in some]
    return Crossing(keys[one], keys[other], values, (sizes[0][values[0]], sizes[1][values[1]]), tuple(shared))
