"""What became of the gangs in a sandbox: how many of their pods run, on which nodes, under which HyperNode. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.gathering.documents import Declaration
from basalt.loading import nodes
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence
from basalt.views.hyper_nodes import HyperNode, HyperNodes

_GROUP = "scheduling.k8s.io/group-name"  # the annotation that ties a pod to its PodGroup
Value = Mapping[str, Any]


class Gang(NamedTuple):
    """A PodGroup: its job's name, its phase, how many of its pods run and must, the nodes with how many run on each,
    the lowest HyperNode that holds them all, and what the scheduler says where it does not place it."""

    namespace: str
    name: str
    phase: str
    running: int
    minimum: int
    placement: dict[str, int]
    domain: str | None
    tier: str | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


def gangs(
    groups: Iterable[Value], pods: Iterable[Value], hyper_nodes: Iterable[Value], nodes: Iterable[Value]
) -> list[Gang]:
    """The gangs by namespace and name, from the cluster's own objects."""
    tree = HyperNodes([KubeObject(each, Declaration(dict(each), ())) for each in hyper_nodes], _decoded(nodes))
    placements: dict[tuple[str, str], Counter[str]] = {}
    for pod in pods:
        if pod["status"].get("phase") == "Running":
            metadata = pod["metadata"]
            group = mapping(metadata.get("annotations")).get(_GROUP, "")
            placements.setdefault((metadata["namespace"], group), Counter())[pod["spec"]["nodeName"]] += 1
    found = []
    for group in groups:
        metadata = group["metadata"]
        placement = dict(sorted(placements.get((metadata["namespace"], metadata["name"]), {}).items()))
        found.append(_gang(group, placement, _lowest(tree, placement)))
    return sorted(found, key=lambda gang: (gang.namespace, gang.name, gang.phase))


def _decoded(values: Iterable[Value]) -> list[Node]:
    return [each for each in map(nodes.from_value, values) if isinstance(each, Node)]


def _gang(group: Value, placement: dict[str, int], domain: HyperNode | None) -> Gang:
    metadata, status = group["metadata"], mapping(group.get("status"))
    owner = next(iter(sequence(metadata.get("ownerReferences"))), metadata)
    running = sum(placement.values())
    minimum = mapping(group.get("spec")).get("minMember") or 0
    return Gang(
        metadata["namespace"],
        owner["name"],
        str(status.get("phase") or "Pending"),
        running,
        minimum,
        placement,
        domain.name if domain else None,
        (domain.tier_name or str(domain.tier)) if domain else None,
        "" if running >= minimum else _reason(status),
    )


def _reason(status: Value) -> str:
    conditions: Sequence[Any] = sequence(status.get("conditions"))
    said = [each.get("message") for each in conditions if each.get("type") == "Unschedulable"]
    return " ".join(str(said[-1] or "").split()) if said else ""


def _lowest(tree: HyperNodes, placement: Mapping[str, int]) -> HyperNode | None:
    holding = [each for each in tree if each.tier is not None and placement.keys() <= tree.nodes_below[each.name]]
    return min(holding, key=lambda each: (each.tier, each.name), default=None) if placement else None
