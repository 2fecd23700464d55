"""The topology as the scheduler will see it: the HyperNode tree, what each domain offers, the largest gang per tier."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from basalt.hyper_nodes import HyperNode, HyperNodes
from basalt.index import Index
from basalt.quantities import Resources, add, parse_map, show


class Branch(NamedTuple):
    """One domain: its HyperNode, the nodes directly in it, what all nodes below can give, and the domains below."""

    name: str
    tier: int | None
    tier_name: str | None
    nodes: tuple[str, ...]
    node_count: int
    offers: Resources
    children: tuple["Branch", ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tier": self.tier,
            "tierName": self.tier_name,
            "nodeCount": self.node_count,
            "nodes": list(self.nodes),
            "offers": _shown(self.offers),
            "children": [child.as_json() for child in self.children],
        }


class TierSummary(NamedTuple):
    """One tier: how many domains, how many nodes the smallest and largest have, and per resource the largest gang."""

    tier: int
    name: str | None
    domains: int
    nodes: tuple[int, int]
    largest: dict[str, tuple[str, str]]  # resource -> (amount, domain)

    def as_json(self) -> dict[str, Any]:
        return {
            "tier": self.tier,
            "name": self.name,
            "domains": self.domains,
            "nodes": {"min": self.nodes[0], "max": self.nodes[1]},
            "largest": {resource: {"amount": found[0], "domain": found[1]} for resource, found in self.largest.items()},
        }


class Drawn(NamedTuple):
    """The whole topology. cluster is what all nodes together can give; None where there is no inventory."""

    roots: tuple[Branch, ...]
    tiers: tuple[TierSummary, ...]
    unplaced: tuple[str, ...]
    node_count: int | None
    cluster: Resources | None

    def as_json(self) -> dict[str, Any]:
        return {
            "nodes": self.node_count,
            "cluster": None if self.cluster is None else _shown(self.cluster),
            "tiers": [tier.as_json() for tier in self.tiers],
            "tree": [root.as_json() for root in self.roots],
            "unplaced": list(self.unplaced),
        }


def _shown(offers: Resources) -> dict[str, str]:
    return {resource: show(amount, resource) for resource, amount in sorted(offers.items())}


def draw(index: Index) -> Drawn:
    hyper_nodes = index.hyper_nodes
    offers = _Offers(index)
    roots = tuple(
        _branch(each, hyper_nodes, offers, frozenset())
        for each in sorted(hyper_nodes, key=lambda each: each.name)
        if each.name not in hyper_nodes.parents
    )
    tiers = tuple(_summary(tier, domains, hyper_nodes, offers) for tier, domains in hyper_nodes.tiers.items())
    unplaced = tuple(sorted(node.name for node in index.participants if node.name not in hyper_nodes.holders))
    known = bool(index.nodes)
    return Drawn(roots, tiers, unplaced, len(index.nodes) if known else None, index.capacity if known else None)


class _Offers:
    """What the nodes of a domain can give, summed once for each domain."""

    def __init__(self, index: Index) -> None:
        self._nodes = {node.name: parse_map(node.allocatable) for node in index.nodes if node.takes_pods}
        self._below = index.hyper_nodes.nodes_below
        self._sums: dict[str, Resources] = {}

    def of(self, hyper_node: HyperNode) -> Resources:
        if hyper_node.name not in self._sums:
            found = (self._nodes[name] for name in self._below[hyper_node.name] if name in self._nodes)
            self._sums[hyper_node.name] = add(*found)
        return self._sums[hyper_node.name]


def _branch(each: HyperNode, hyper_nodes: HyperNodes, offers: _Offers, above: frozenset[str]) -> Branch:
    children = tuple(
        _branch(child, hyper_nodes, offers, above | {each.name})
        for child in _children(each, hyper_nodes)
        if child.name not in above and child is not each
    )
    nodes = tuple(sorted(hyper_nodes.leaf_members.get(each.name, ())))
    count = len(hyper_nodes.nodes_below[each.name])
    return Branch(each.name, each.tier, each.tier_name, nodes, count, offers.of(each), children)


def _children(each: HyperNode, hyper_nodes: HyperNodes) -> Iterator[HyperNode]:
    names = dict.fromkeys(member.exact for member in each.of_type("HyperNode") if member.exact)
    return (hyper_nodes.by_name[name] for name in names if name in hyper_nodes.by_name)


def _summary(tier: int, domains: list[HyperNode], hyper_nodes: HyperNodes, offers: _Offers) -> TierSummary:
    counts = [len(hyper_nodes.nodes_below[each.name]) for each in domains]
    largest: dict[str, tuple[str, str]] = {}
    resources = sorted({resource for each in domains for resource in offers.of(each)})
    for resource in resources:
        best = max(sorted(domains, key=lambda each: each.name), key=lambda each: offers.of(each).get(resource, 0))
        largest[resource] = (show(offers.of(best).get(resource, 0), resource), best.name)
    name = next((each.tier_name for each in domains if each.tier_name), None)
    return TierSummary(tier, name, len(domains), (min(counts), max(counts)), largest)
