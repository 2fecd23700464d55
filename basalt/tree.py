"""The topology as the scheduler will see it: the HyperNode tree, what each domain offers, the largest gang per tier."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from basalt.index import Index
from basalt.quantities import Resources, add, show
from basalt.views.hyper_nodes import HyperNode, HyperNodes

_DEPTH = 32  # levels that are drawn; real trees have up to five


class Branch(NamedTuple):
    """One domain: its HyperNode, the nodes directly in it, what all nodes below can give, and the domains below.

    closed counts the nodes that are cordoned or not Ready; hidden the HyperNodes below that are not shown here: they
    lie too deep, or stand elsewhere in the tree already.
    """

    name: str
    tier: int | None
    tier_name: str | None
    nodes: tuple[str, ...]
    node_count: int
    closed: int
    offers: Resources
    children: tuple["Branch", ...]
    hidden: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tier": self.tier,
            "tierName": self.tier_name,
            "nodeCount": self.node_count,
            "closedNodes": self.closed,
            "nodes": list(self.nodes),
            "offers": _shown(self.offers),
            "children": [child.as_json() for child in self.children],
            "hidden": self.hidden,
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
    tiers = tuple(_summary(tier, domains, hyper_nodes, offers) for tier, domains in hyper_nodes.tiers.items())
    unplaced = tuple(sorted(node.name for node in index.participants if node.name not in hyper_nodes.placements))
    known = bool(index.nodes)
    cluster = index.capacity if known else None
    return Drawn(_branches(hyper_nodes, offers), tiers, unplaced, len(index.nodes) if known else None, cluster)


class _Offers:
    """What the nodes of each domain can give, and how many of them take no pods."""

    def __init__(self, index: Index) -> None:
        self._nodes = {node.name: index.offers[node.name] for node in index.nodes if node.takes_pods}
        self._closed = frozenset(node.name for node in index.nodes if not node.takes_pods)
        self._hyper_nodes = index.hyper_nodes
        self._sums: dict[str, Resources] = {}
        for circle in index.hyper_nodes.circles:  # children first
            self._sums.update(dict.fromkeys(circle, self._sum(circle)))

    def _sum(self, circle: tuple[str, ...]) -> Resources:
        """From the domains below where no node is in two of them, else node by node."""
        below = self._hyper_nodes.nodes_below
        declared = [self._hyper_nodes.by_name[name] for name in circle]
        children = {child for each in declared for child in each.children if child in self._sums}
        own = {node for each in declared for node in self._hyper_nodes.leaf_members.get(each.name, ())}
        every = below[circle[0]]
        if len(own) + sum(len(below[child]) for child in children) == len(every):
            return add(*self._of_nodes(own), *(self._sums[child] for child in sorted(children)))
        return add(*self._of_nodes(every))

    def _of_nodes(self, names: "set[str] | frozenset[str]") -> Iterator[Resources]:
        return (self._nodes[name] for name in sorted(names) if name in self._nodes)

    def of(self, hyper_node: HyperNode) -> Resources:
        return self._sums[hyper_node.name]

    def closed(self, hyper_node: HyperNode) -> int:
        return len(self._closed & self._hyper_nodes.nodes_below[hyper_node.name])


class _Spot(NamedTuple):
    """Where a HyperNode is drawn: under which other one (None for a root), and how deep."""

    name: str
    parent: str | None
    depth: int


def _branches(hyper_nodes: HyperNodes, offers: _Offers) -> tuple[Branch, ...]:
    """The trees; each HyperNode once, so that neither a circle nor one with two parents is drawn for ever."""
    spots = _spots(hyper_nodes)
    drawn: dict[str | None, list[Branch]] = {}
    for spot in reversed(spots):
        each = hyper_nodes.by_name[spot.name]
        children = drawn.pop(spot.name, [])[::-1] if spot.depth < _DEPTH else ()
        hidden = sum(child in hyper_nodes.by_name for child in each.children) - len(children)
        nodes = tuple(sorted(hyper_nodes.leaf_members.get(each.name, ())))
        count = len(hyper_nodes.nodes_below[each.name])
        branch = Branch(
            each.name,
            each.tier,
            each.tier_name,
            nodes,
            count,
            offers.closed(each),
            offers.of(each),
            tuple(children),
            hidden,
        )
        drawn.setdefault(spot.parent, []).append(branch)
    return tuple(drawn.get(None, [])[::-1])


def _spots(hyper_nodes: HyperNodes) -> list[_Spot]:
    """Every HyperNode, parents before children: from those that no other holds, then from the circles that are left,
    the highest tier first."""
    by_name = sorted(hyper_nodes, key=lambda each: each.name)
    tops = [each for each in by_name if each.name not in hyper_nodes.parents]
    rest = sorted(by_name, key=lambda each: -(each.tier or 0))
    found: dict[str, _Spot] = {}
    for top in (*tops, *rest):
        waiting = [_Spot(top.name, None, 0)]
        while waiting:
            spot = waiting.pop()
            if spot.name not in found:
                found[spot.name] = spot
                below = [child for child in hyper_nodes.by_name[spot.name].children if child in hyper_nodes.by_name]
                waiting.extend(_Spot(child, spot.name, spot.depth + 1) for child in reversed(below))
    return list(found.values())


def _summary(tier: int, domains: list[HyperNode], hyper_nodes: HyperNodes, offers: _Offers) -> TierSummary:
    counts = [len(hyper_nodes.nodes_below[each.name]) for each in domains]
    ordered = sorted(domains, key=lambda each: each.name)
    largest: dict[str, tuple[str, str]] = {}
    for resource in sorted({resource for each in domains for resource in offers.of(each)}):
        best = max(ordered, key=lambda each: offers.of(each).get(resource, 0))
        largest[resource] = (show(offers.of(best).get(resource, 0), resource), best.name)
    name = next((each.tier_name for each in domains if each.tier_name), None)
    return TierSummary(tier, name, len(domains), (min(counts), max(counts)), largest)
