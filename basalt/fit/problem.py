"""The question that a verdict answers, in numbers: nodes, domains, gangs, and what gangs may take together. No objects
of Kubernetes from here on: reading makes it, packing searches it, checking knows nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from basalt.quantities import Amount, Resources, add

PODS = "pods"  # every pod takes one of what a node calls so
PLENTY = 2**31  # more pods than there are
ENDLESS = 2**62  # of a resource: what a node that does not say how much it has is taken to have


class Shape(NamedTuple):
    """Pods that are alike: how many there are, how many of them run in any case, what each requests, and the nodes
    that would take one; tier is the highest whose domains may hold all of them, None for anywhere in the gang's."""

    name: str
    replicas: int
    need: int
    requests: Resources
    nodes: frozenset[str]
    tier: int | None = None


class Key(NamedTuple):
    """Which job: its kind, namespace and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Domain(NamedTuple):
    """The nodes under one HyperNode, or those that share a label's value: its tier is 0."""

    name: str
    tier: int
    nodes: frozenset[str]


class Bond(NamedTuple):
    """All pods of these shapes, by their place in the gang, stand in one of the domains; what says so in messages."""

    shapes: tuple[int, ...]
    domains: tuple[Domain, ...]
    what: str

    @property
    def is_by_tier(self) -> bool:
        return any(domain.tier for domain in self.domains)


class Spread(NamedTuple):
    """No domain holds more than skew pods of these shapes beyond what the emptiest one holds; beyond none at all where
    there are too few domains (is_lifted is False). Nodes outside the domains take none of them."""

    shapes: tuple[int, ...]
    domains: tuple[Domain, ...]
    skew: int
    is_lifted: bool
    what: str


class Gang(NamedTuple):
    """At least minimum pods of the shapes start together; tier is the highest whose domains may hold them, None for
    anywhere; is_soft where they are to be near each other and need not."""

    key: Key
    minimum: int
    shapes: tuple[Shape, ...]
    tier: int | None
    bonds: tuple[Bond, ...] = ()
    spreads: tuple[Spread, ...] = ()
    is_soft: bool = False


Slot = tuple[Key, int]  # one shape of one gang


class Apart(NamedTuple):
    """Pods of the slot share a place with no pod of the others, nor with one another where it is itself among them.
    places has the label's value of each node; a node without one is no place."""

    slot: Slot
    others: frozenset[Slot]
    places: Mapping[str, str]
    what: str


class Limit(NamedTuple):
    """What the named gangs may take together: costs are per pod of each of a gang's shapes, beside is what the gang
    takes apart from its pods. owner is the Queue or ResourceQuota that says so, as messages name it; note is what makes
    it less than it was declared with. of is the object itself; most is what the amount would be in a cluster without
    end, None where that does not matter."""

    rule: str
    owner: str
    resource: str
    amount: Amount
    costs: Mapping[Key, tuple[Amount, ...]]
    beside: Mapping[Key, Amount] = {}
    note: str = ""
    of: Key = Key("", "", "")
    most: Amount | None = None


@dataclass(frozen=True)
class Problem:
    """All of it. free is what each node that takes pods has left for jobs, offers what it has in all."""

    free: Mapping[str, Resources]
    domains: tuple[Domain, ...]
    gangs: tuple[Gang, ...]
    limits: tuple[Limit, ...] = ()
    offers: Mapping[str, Resources] = field(default_factory=dict)
    aparts: tuple[Apart, ...] = ()

    def allowed(self, tier: int | None) -> tuple[Domain, ...]:
        """The domains up to the tier, those within another left out; all nodes where no tier is named."""
        if tier is None:
            return (self.everywhere,)
        if tier not in self._allowed:
            self._allowed[tier] = outermost(each for each in self.domains if each.tier <= tier)
        return self._allowed[tier]

    @cached_property
    def aparts_of(self) -> Mapping[Slot, list[int]]:
        """The numbers of those that have a word in where the pods of a slot stand."""
        found: dict[Slot, list[int]] = {}
        for number, each in enumerate(self.aparts):
            for slot in {each.slot, *each.others}:
                found.setdefault(slot, []).append(number)
        return found

    def is_free(self, gang: Gang) -> bool:
        """Whether its pods may stand beside whatever pods there are."""
        slots = ((gang.key, index) for index in range(len(gang.shapes)))
        return not (gang.bonds or gang.spreads or (self.aparts and any(slot in self.aparts_of for slot in slots)))

    def is_roomy_company(self, gang: Gang) -> bool:
        """Whether each pod of the gang, wherever it stands, keeps others off its own node at most."""
        numbers = {number for index in range(len(gang.shapes)) for number in self.aparts_of.get((gang.key, index), ())}
        return not (gang.bonds or gang.spreads) and all(self._is_by_host(number) for number in numbers)

    def _is_by_host(self, number: int) -> bool:
        places = self.aparts[number].places
        if id(places) not in self._hosts:
            self._hosts[id(places)] = len(set(places.values())) == len(places)
        return self._hosts[id(places)]

    @cached_property
    def _hosts(self) -> dict[int, bool]:
        return {}

    @cached_property
    def domains_of(self) -> Mapping[str, list[Domain]]:
        """The domains that hold each node, the lowest tier first; of a tier the first that is declared."""
        found: dict[str, list[Domain]] = {}
        for domains in self.of_tier.values():
            seen: set[str] = set()
            for domain in domains:
                for node in domain.nodes - seen:
                    found.setdefault(node, []).append(domain)
                seen |= domain.nodes
        return found

    @cached_property
    def sums(self) -> Mapping[str, tuple[Resources, Resources]]:
        """Of each domain what its nodes offer, and what is taken of that already."""
        found = {}
        for domain in self.domains:
            offers = add(*(self.offers[node] for node in domain.nodes))
            free = add(*(self.free[node] for node in domain.nodes))
            found[domain.name] = offers, {name: amount - free.get(name, 0) for name, amount in offers.items()}
        return found

    @cached_property
    def of_tier(self) -> dict[int, list[Domain]]:
        """The domains by tier, the lowest first."""
        found: dict[int, list[Domain]] = {}
        for domain in sorted(self.domains, key=lambda each: each.tier):
            found.setdefault(domain.tier, []).append(domain)
        return found

    @cached_property
    def everywhere(self) -> Domain:
        return Domain("", 0, frozenset(self.free))

    def in_order(self, nodes: frozenset[str]) -> tuple[str, ...]:
        """The nodes by name; those of a domain are sorted once."""
        if nodes not in self._in_order:
            self._in_order[nodes] = tuple(sorted(nodes))
        return self._in_order[nodes]

    @cached_property
    def _in_order(self) -> dict[frozenset[str], tuple[str, ...]]:
        return {}

    @cached_property
    def _allowed(self) -> dict[int, tuple[Domain, ...]]:
        return {}


def holds(free: Resources, requests: Resources) -> int:
    """How many pods with these requests what is free holds."""
    counts = [free.get(name, 0) // amount for name, amount in requests.items() if amount > 0]
    return max(0, int(min(counts, default=PLENTY)))


def outermost(domains: Iterable[Domain]) -> tuple[Domain, ...]:
    """The domains that are within no other; of those that hold the same nodes, the first."""
    found: list[Domain] = []
    holders: dict[str, list[Domain]] = {}
    for each in sorted(domains, key=lambda each: (-len(each.nodes), each.tier, each.name)):
        above = holders.get(next(iter(each.nodes), ""), [])
        if each.nodes and not any(each.nodes <= other.nodes for other in above):
            found.append(each)
            for node in each.nodes:
                holders.setdefault(node, []).append(each)
    return tuple(found)


# For each gang, by shape and node, how many pods stand there.
Counts = Mapping[tuple[int, str], int]
Placement = Mapping[Key, Counts]
