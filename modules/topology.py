"""HyperNodes from the nodes' labels: one for each domain of each tier, the lowest tier naming (or selecting) nodes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt import names
from basalt.api.versions import Version
from basalt.loading.nodes import Node
from basalt.objects import MANAGED_BY, Manifest
from basalt.views.domains import Domain, Domains, Tier

API_VERSION = "topology.volcano.sh/v1alpha1"
TIER_NAMES_SINCE = Version(1, 14)


def hyper_nodes(
    domains: Domains, *, members: str, with_tier_names: bool, selector: Mapping[str, str]
) -> Iterator[Manifest]:
    """A HyperNode for each domain, the lowest tier first, by name within a tier.

    members is `exact` (leaves name their nodes) or `label` (leaves select them by label, so that a node joins without
    a new compile); tier names exist since Volcano 1.14.
    """
    named = dict(domains.hyper_nodes())
    children = _children(domains)
    made: dict[Domain, str] = {}
    for domain, name in named.items():
        tier = domains.tiers[domain.tier]
        below = sorted(made[child] for child in children.get(domain, ()) if child in made)
        if domain.tier == 0:
            nodes = domains.nodes[domain]
            found = _node_members(nodes) if members == "exact" else [_label_member(tier, nodes, selector)]
        else:
            found = [_member("HyperNode", each) for each in below if names.subdomain_fault(each) is None]
        if found:
            made[domain] = name
            yield _hyper_node(tier, name, found, with_tier_names=with_tier_names)


def _children(domains: Domains) -> dict[Domain, list[Domain]]:
    """The domains directly under each domain. Where domain-has-one-parent has spoken, the parent with most nodes has
    the child, which keeps the tree a tree."""
    found: dict[Domain, list[Domain]] = {}
    for domain, above in domains.parents().items():
        if above:
            found.setdefault(max(above, key=lambda parent: (len(above[parent]), parent)), []).append(domain)
    return found


def _hyper_node(tier: Tier, name: str, members: list[dict[str, Any]], *, with_tier_names: bool) -> Manifest:
    spec: dict[str, Any] = {"tier": tier.number}
    if with_tier_names:
        spec["tierName"] = tier.name
    spec["members"] = members
    value = {
        "apiVersion": API_VERSION,
        "kind": "HyperNode",
        "metadata": {"name": name, "labels": MANAGED_BY},
        "spec": spec,
    }
    return Manifest(value, {(): tier.pointer, ("spec", "tierName"): (*tier.pointer, "name")})


def _node_members(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    return [_member("Node", name) for name in sorted({node.metadata.name for node in nodes})]


def _member(kind: str, name: str) -> dict[str, Any]:
    """By exactMatch: for members of type HyperNode Volcano resolves nothing else."""
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def _label_member(tier: Tier, nodes: Iterable[Node], selector: Mapping[str, str]) -> dict[str, Any]:
    values = sorted({node.labels[tier.label] for node in nodes})
    labels: dict[str, Any] = {}
    if len(values) == 1:
        labels["matchLabels"] = {**selector, tier.label: values[0]}
    else:
        labels["matchLabels"] = dict(selector)
        labels["matchExpressions"] = [{"key": tier.label, "operator": "In", "values": values}]
    return {"type": "Node", "selector": {"labelMatch": {key: value for key, value in labels.items() if value}}}
