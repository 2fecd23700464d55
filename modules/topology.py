"""HyperNodes from the nodes' labels: one for each domain of each tier, the lowest tier naming (or selecting) nodes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt.domains import Domain, Domains, Tier
from basalt.loading.nodes import Node
from basalt.objects import MANAGED_BY, Manifest
from basalt.versions import Version

API_VERSION = "topology.volcano.sh/v1alpha1"
TIER_NAMES_SINCE = Version(1, 14)


def hyper_nodes(
    domains: Domains, *, members: str, with_tier_names: bool, selector: Mapping[str, str]
) -> Iterator[Manifest]:
    """A HyperNode for each domain, the lowest tier first, by name within a tier.

    members is `exact` (leaves name their nodes) or `label` (leaves select them by label, so that a node joins without
    a new compile); tier names exist since Volcano 1.14.
    """
    leaves = domains.leaves()
    children: dict[Domain, list[Domain]] = {}
    every: list[Domain] = []
    for domain, above in domains.parents().items():
        every.append(domain)
        if above:  # with several, domain-has-one-parent has spoken; the one with most nodes keeps the tree a tree
            children.setdefault(max(above, key=lambda parent: (len(above[parent]), parent)), []).append(domain)
    for domain in _in_order(every, domains):
        tier = domains.tiers[domain.tier]
        if domain.tier == 0:
            nodes = leaves[domain.key]
            found = _node_members(nodes) if members == "exact" else [_label_member(tier, nodes, selector)]
        else:
            found = _hyper_node_members(children.get(domain, ()), domains)
        if found:
            yield _hyper_node(tier, domain, found, with_tier_names=with_tier_names)


def _in_order(every: Iterable[Domain], domains: Domains) -> Iterator[Domain]:
    """By tier and name; of domains that share a name only the first, as domain-name-is-unique speaks of the rest."""
    named = sorted((domain.tier, domains.tiers[domain.tier].hyper_node(domain.key), domain.key) for domain in every)
    seen: set[str] = set()
    for tier, name, key in named:
        if name not in seen:
            seen.add(name)
            yield Domain(tier, key)


def _hyper_node(tier: Tier, domain: Domain, members: list[dict[str, Any]], *, with_tier_names: bool) -> Manifest:
    spec: dict[str, Any] = {"tier": tier.number}
    if with_tier_names:
        spec["tierName"] = tier.name
    spec["members"] = members
    value = {
        "apiVersion": API_VERSION,
        "kind": "HyperNode",
        "metadata": {"name": tier.hyper_node(domain.key), "labels": MANAGED_BY},
        "spec": spec,
    }
    return Manifest(value, {(): tier.pointer, ("spec", "tierName"): (*tier.pointer, "name")})


def _node_members(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    return [
        {"type": "Node", "selector": {"exactMatch": {"name": name}}}
        for name in sorted(node.metadata.name for node in nodes)
    ]


def _hyper_node_members(children: Iterable[Domain], domains: Domains) -> list[dict[str, Any]]:
    """Members of type HyperNode: Volcano resolves only exactMatch there."""
    found = sorted({domains.tiers[child.tier].hyper_node(child.key) for child in children})
    return [{"type": "HyperNode", "selector": {"exactMatch": {"name": name}}} for name in found]


def _label_member(tier: Tier, nodes: Iterable[Node], selector: Mapping[str, str]) -> dict[str, Any]:
    values = sorted({node.labels[tier.label] for node in nodes})
    labels: dict[str, Any] = {}
    if len(values) == 1:
        labels["matchLabels"] = {**selector, tier.label: values[0]}
    else:
        labels["matchLabels"] = dict(selector)
        labels["matchExpressions"] = [{"key": tier.label, "operator": "In", "values": values}]
    return {"type": "Node", "selector": {"labelMatch": {key: value for key, value in labels.items() if value}}}
