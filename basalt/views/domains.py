"""Nodes to domains: what the tiers of an Environment's topology make of the nodes' labels. Pure.

The module `topology` writes HyperNodes from it, and the topology rules judge it; neither reads labels itself.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from basalt import names, patterns
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
        return _folded(name)

    def reader(self) -> Callable[[Mapping[str, str]], str | None]:
        """From a node's labels to its domain; None where the label is missing or does not match."""
        label, extract = self.label, _extractor(self.pattern)

        def read(labels: Mapping[str, str]) -> str | None:
            value = labels.get(label)
            return None if value is None else extract(value)

        return read


def _folded(text: str) -> str:
    return text.lower().replace("_", "-")


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


Sides = dict[Domain, list[Node]]  # the domains above one domain, each with the nodes whose labels say so


class Domains:
    """The domains of a set of nodes."""

    def __init__(self, tiers: Sequence[Tier], nodes: Iterable[Node]) -> None:
        self.tiers = tuple(tiers)
        self.paths: dict[Path, list[Node]] = {}
        readers = [tier.reader() for tier in self.tiers]
        keys = [tier.label for tier in self.tiers]
        known: dict[tuple[str | None, ...], list[Node]] = {}  # by the values of the labels: few, of many nodes
        for node in nodes:
            labels = node.metadata.labels or {}
            values = tuple(map(labels.get, keys))
            if (found := known.get(values)) is None:
                path = tuple([read(labels) for read in readers])
                found = known[values] = self.paths.setdefault(path, [])
            found.append(node)

    @cached_property
    def nodes(self) -> dict[Domain, list[Node]]:
        """The nodes of every domain, by their labels."""
        found: dict[Domain, list[Node]] = {}
        for path, nodes in self.paths.items():
            for index, key in enumerate(path):
                if key is not None:
                    found.setdefault(Domain(index, key), []).extend(nodes)
        return found

    def leaves(self) -> dict[str, list[Node]]:
        """The nodes of each domain of the lowest tier."""
        return {domain.key: nodes for domain, nodes in self.nodes.items() if domain.tier == 0}

    def parents(self) -> dict[Domain, Sides]:
        """For each domain the domains directly above it, each with the nodes whose labels say so.

        Domains of one tier: a domain that some nodes place in the next tier and others only in a higher one belongs
        to the next.
        """
        return self._parents

    @cached_property
    def _parents(self) -> dict[Domain, Sides]:
        found: dict[Domain, Sides] = {domain: {} for domain in self.nodes}
        for path, nodes in self.paths.items():
            placed = [Domain(index, key) for index, key in enumerate(path) if key is not None]
            for child, parent in itertools.pairwise(placed):
                found[child].setdefault(parent, []).extend(nodes)
        return {child: _lowest(above) for child, above in found.items()}

    @cached_property
    def split(self) -> dict[Domain, Sides]:
        """The domains that lie under several of one tier, by their nodes' labels, with those of the lowest such tier.

        One wrong label may split several domains; those whose smaller sides hold only nodes that split a lower domain
        already, and those that only follow from a split further up, are left out.
        """
        above = self._above()
        found: dict[Domain, Sides] = {}
        blamed: set[str] = set()
        for domain in sorted(above):
            tier = next((tier for tier, keys in sorted(above[domain].items()) if len(keys) > 1), None)
            if tier is None or self._follows(domain, tier, above):
                continue
            paths = above[domain][tier]
            sides = {Domain(tier, key): [node for path in paths[key] for node in self.paths[path]] for key in paths}
            smaller = {node.name for node in sides[self.odd_side(sides)]}
            if not smaller <= blamed:
                found[domain] = sides
                blamed |= smaller
        return found

    def _above(self) -> dict[Domain, dict[int, dict[str, list[Path]]]]:
        """For each domain and each higher tier the domains there, each with the paths that lead to it."""
        found: dict[Domain, dict[int, dict[str, list[Path]]]] = {}
        for path in self.paths:
            placed = [(index, key) for index, key in enumerate(path) if key is not None]
            for position, (tier, key) in enumerate(placed):
                into = found.setdefault(Domain(tier, key), {})
                for upper, above in placed[position + 1 :]:
                    into.setdefault(upper, {}).setdefault(above, []).append(path)
        return found

    @staticmethod
    def _follows(domain: Domain, tier: int, above: Mapping[Domain, Mapping[int, Mapping[str, list[Path]]]]) -> bool:
        """Whether a domain between the two tiers is split in the upper one: then that is where the labels differ."""
        between = ((index, key) for index, keys in above[domain].items() if index < tier for key in keys)
        return any(len(above[Domain(index, key)].get(tier, ())) > 1 for index, key in between)

    def odd_side(self, sides: Sides) -> Domain:
        """The side whose labels are most probably wrong: fewest nodes, then a domain of nothing else, then one that
        has most, because it is the one that got a node too many."""

        def weight(side: Domain) -> tuple[int, bool, int]:
            total = len(self.nodes[side])
            return len(sides[side]), total > len(sides[side]), -total

        return min(sorted(sides, reverse=True), key=weight)

    @cached_property
    def reversed_tiers(self) -> frozenset[tuple[int, int]]:
        """The pairs of tiers that nest the other way round: every domain of the lower holds several of the upper."""
        found = set()
        for lower, upper in itertools.combinations(range(len(self.tiers)), 2):
            pairs = {(path[lower], path[upper]) for path in self.paths if path[lower] and path[upper]}
            below, above = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
            if len(below) > 1 and min(below.values()) > 1 and max(above.values()) == 1:
                found.add((lower, upper))
        return frozenset(found)

    @cached_property
    def split_tiers(self) -> frozenset[int]:
        """The tiers of several domains that are all split: their names are counted anew in each domain above."""
        tiers = Counter(domain.tier for domain in self.nodes)
        split = Counter(domain.tier for domain in self.split)
        return frozenset(tier for tier, count in split.items() if 1 < count == tiers[tier])

    @cached_property
    def _usual(self) -> dict[int, Counter[int]]:
        """For each tier how many of its domains have how many nodes."""
        found: dict[int, Counter[int]] = {}
        for domain, nodes in self.nodes.items():
            found.setdefault(domain.tier, Counter())[len(nodes)] += 1
        return found

    def has_surplus(self, domain: Domain, nodes: int) -> bool:
        """Whether the domain has as many nodes as its tier's others only without so many of its own."""
        size = len(self.nodes[domain])
        others = self._usual[domain.tier] - Counter([size])
        usual = max(others, key=lambda each: (others[each], each), default=size)
        return size - nodes <= usual < size

    @cached_property
    def named(self) -> dict[str, list[Domain]]:
        """The domains by their HyperNode's name; the first has it: the lowest tier's, then the one of most nodes, then
        the one that is spelt as the name is."""
        found: dict[str, list[Domain]] = {}

        def order(domain: Domain) -> tuple[int, int, bool, str]:
            return domain.tier, -len(self.nodes[domain]), _folded(domain.key) != domain.key, domain.key

        for domain in sorted(self.nodes, key=order):
            found.setdefault(self.tiers[domain.tier].hyper_node(domain.key), []).append(domain)
        return found

    def namesakes(self) -> Iterator[tuple[Domain, Domain]]:
        """Each domain that would get the name of another, after that other: the first of its tier, or of all."""
        for alike in self.named.values():
            firsts: dict[int, Domain] = {}
            for domain in alike:
                if domain.tier in firsts:
                    yield firsts[domain.tier], domain
                else:
                    yield from ((first, domain) for first in [*firsts.values()][:1])
                    firsts[domain.tier] = domain

    def hyper_nodes(self) -> Iterator[tuple[Domain, str]]:
        """The domains that become a HyperNode, with its name: by tier, then by name."""
        named = ((domains[0], name) for name, domains in self.named.items() if 0 < len(name) <= names.SUBDOMAIN_LENGTH)
        return iter(sorted(named, key=lambda each: (each[0].tier, each[1])))


def _lowest(above: Sides) -> Sides:
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
