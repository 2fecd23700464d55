"""Nodes to domains: what the tiers of an Environment's topology make of the nodes' labels. Pure.

The module `topology` writes HyperNodes from it, and the topology rules judge it; neither reads labels itself.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from basalt import patterns
from basalt.loading.nodes import Node
from basalt.pointers import Pointer

Path = tuple[str | None, ...]  # a node's domain in each tier, the lowest first; None where it has none


class Tier(NamedTuple):
    """One tier of the declaration; number 1 is the lowest."""

    number: int
    name: str
    label: str
    pattern: str | None
    template: str

    @property
    def pointer(self) -> Pointer:
        return ("spec", "topology", "tiers", self.number - 1)

    def hyper_node(self, domain: str) -> str:
        """The HyperNode's name: label values are lower-cased and `_` becomes `-`, as DNS-1123 asks."""
        name = self.template.replace("{tier}", self.name).replace("{domain}", domain)
        return name.lower().replace("_", "-")

    def reader(self) -> Callable[[Mapping[str, str]], str | None]:
        """From a node's labels to its domain; None where the label is missing or does not match."""
        label, extract = self.label, _extractor(self.pattern)

        def read(labels: Mapping[str, str]) -> str | None:
            value = labels.get(label)
            return None if value is None else extract(value)

        return read


def _extractor(pattern: str | None) -> Callable[[str], str | None]:
    if pattern is None:
        return lambda value: value or None
    compiled = patterns.compile_pattern(pattern)

    @cache  # a label has few values and many nodes
    def extract(value: str) -> str | None:
        found = compiled.search(value)
        if found is None:
            return None
        return (found.group(1) if found.re.groups else found.group(0)) or None

    return extract


class Domain(NamedTuple):
    """A domain of one tier, by the labels: tier is the index into the tiers, key the label's (part of a) value."""

    tier: int
    key: str


class Domains:
    """The domains of a set of nodes."""

    def __init__(self, tiers: Sequence[Tier], nodes: Iterable[Node]) -> None:
        self.tiers = tuple(tiers)
        self.paths: dict[Path, list[Node]] = {}
        readers = [tier.reader() for tier in self.tiers]
        for node in nodes:
            labels = node.metadata.labels or {}
            self.paths.setdefault(tuple([read(labels) for read in readers]), []).append(node)

    def leaves(self) -> dict[str, list[Node]]:
        """The nodes of each domain of the lowest tier."""
        found: dict[str, list[Node]] = {}
        for path, nodes in self.paths.items():
            if path and path[0] is not None:
                found.setdefault(path[0], []).extend(nodes)
        return found

    def parents(self) -> dict[Domain, dict[Domain, list[Node]]]:
        """For each domain the domains directly above it, each with the nodes whose labels say so.

        Domains of one tier: a domain that some nodes place in the next tier and others only in a higher one belongs
        to the next.
        """
        found: dict[Domain, dict[Domain, list[Node]]] = {}
        for path, nodes in self.paths.items():
            placed = [Domain(index, key) for index, key in enumerate(path) if key is not None]
            for child, parent in itertools.pairwise(placed):
                found.setdefault(child, {}).setdefault(parent, []).extend(nodes)
            for top in placed[-1:]:
                found.setdefault(top, {})
        return {child: _lowest(above) for child, above in found.items()}


def _lowest(above: dict[Domain, list[Node]]) -> dict[Domain, list[Node]]:
    lowest = min((domain.tier for domain in above), default=0)
    return {domain: nodes for domain, nodes in above.items() if domain.tier == lowest}


def tiers_of(topology: Mapping[str, Any]) -> tuple[Tier, ...]:
    """The tiers that an Environment's spec.topology declares; a pattern that is not one leaves its tier out."""
    declared = topology.get("tiers") or []
    tiers = (
        Tier(number, tier["name"], tier["label"], tier.get("pattern"), tier.get("nameTemplate", "{domain}"))
        for number, tier in enumerate(declared, start=1)
    )
    return tuple(tier for tier in tiers if tier.pattern is None or patterns.fault(tier.pattern) is None)


def participating(topology: Mapping[str, Any], nodes: Iterable[Node]) -> list[Node]:
    """The nodes that spec.topology.nodeSelector selects; all of them where it is empty."""
    selector = (topology.get("nodeSelector") or {}).items()
    return [node for node in nodes if selector <= node.labels.items()] if selector else list(nodes)
