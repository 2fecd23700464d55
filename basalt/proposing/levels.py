"""Labels as levels of a tree: which nodes each value holds together, and which level lies within which."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from basalt import names
from basalt.loading.nodes import Node
from basalt.proposing import composite, vocabulary
from basalt.proposing.vocabulary import CLIQUE, Key
from basalt.views.domains import Tier

_CLIQUE_DOMAIN = r"^([^.]+)\."  # of <cluster UUID>.<clique id> the NVLink domain
_MOST_KEYS = 24


class Kinds:
    """Nodes grouped by the values of some labels: those of one kind cannot be told apart by them."""

    def __init__(self, nodes: Iterable[Node], keys: Sequence[Key]) -> None:
        self.labels = [key.label for key in keys]
        self.nodes: dict[tuple[str | None, ...], list[Node]] = {}
        for node in nodes:
            labels = node.labels
            self.nodes.setdefault(tuple([labels.get(label) for label in self.labels]), []).append(node)

    def values(self, label: str) -> list[str | None]:
        """The label's value of each kind."""
        at = self.labels.index(label)
        return [kind[at] for kind in self.nodes]

    @cached_property
    def sizes(self) -> list[int]:
        return [len(nodes) for nodes in self.nodes.values()]


@dataclass(frozen=True, eq=False)
class Level:
    """One candidate for a tier: what it reads, and the domain of each kind of node, None where it has none."""

    key: Key
    name: str
    pattern: str | None
    of: tuple[str | None, ...]
    domains: Mapping[str, int]  # nodes of each domain
    is_part: bool = False  # of a label that holds several tiers

    @property
    def label(self) -> str:
        return self.key.label

    @property
    def carried(self) -> int:
        """How many nodes have a domain."""
        return sum(self.domains.values())

    @property
    def title(self) -> str:
        """How the summary calls it: the label, and the part of its value."""
        return self.label if self.pattern is None else f"{self.label} ({self.pattern})"

    def hyper_node(self, domain: str, template: str = "{domain}") -> str:
        return Tier(1, self.name, self.label, self.pattern, template).hyper_node(domain)

    def lies_in(self, upper: "Level") -> bool:
        """Whether each of its domains lies in one of the upper level's."""
        found: dict[str, str] = {}
        return all(
            found.setdefault(own, above) == above
            for own, above in zip(self.of, upper.of, strict=True)
            if own is not None and above is not None
        )

    def splits_over(self, upper: "Level") -> int:
        """How many of its domains lie under several of the upper level's."""
        pairs = {
            (own, above) for own, above in zip(self.of, upper.of, strict=True) if own is not None and above is not None
        }
        return sum(count > 1 for count in Counter(own for own, _ in pairs).values())

    def holds_the_same(self, other: "Level") -> bool:
        """Whether it makes the same groups of nodes."""
        return (
            len(self.domains) == len(other.domains)
            and self.carried == other.carried
            and self.lies_in(other)
            and other.lies_in(self)
            and all((own is None) == (their is None) for own, their in zip(self.of, other.of, strict=True))
        )

    def name_fault(self) -> str | None:
        """Why the values make no names of HyperNodes; None where they do."""
        spelt: dict[str, str] = {}
        for domain in sorted(self.domains):
            name = self.hyper_node(domain)
            if (fault := names.subdomain_fault(name)) is not None:
                return f"{domain} makes no name of a HyperNode, which {fault}"
            if spelt.setdefault(name, domain) != domain:
                return f"{spelt[name]} and {domain} would both be the HyperNode {name}"
        return None


def read(nodes: Sequence[Node]) -> tuple[Kinds, list[Level]]:
    """The levels that the nodes' labels may tell, those of one label from the lowest up."""
    present: set[str] = set().union(*(node.labels for node in nodes))
    keys = sorted(vocabulary.keys(present), key=lambda key: (-key.weight, key.label))[:_MOST_KEYS]
    kinds = Kinds(nodes, keys)
    found: list[Level] = []
    for key in keys:
        found.extend(_of_key(kinds, key))
    return kinds, found


def _of_key(kinds: Kinds, key: Key) -> list[Level]:
    values = kinds.values(key.label)
    distinct = {value for value in values if value}
    cuts = composite.cuts(distinct, (key.name,)) if key.counted else []
    whole = _level(kinds, key, key.name, None, is_part=bool(cuts))
    if key.label == CLIQUE and all(value.partition(".")[2] for value in distinct):
        domain = _level(kinds, key, key.name, _CLIQUE_DOMAIN, is_part=True)
        if domain.holds_the_same(whole):
            return [whole]
        return [_level(kinds, key, "clique", None, is_part=True), domain]
    return [whole, *(_level(kinds, key, cut.name, cut.pattern, is_part=True) for cut in cuts)]


def _level(kinds: Kinds, key: Key, name: str, pattern: str | None, *, is_part: bool) -> Level:
    value_of = Tier(1, name, key.label, pattern, "{domain}").reader()
    labels = ({} if value is None else {key.label: value} for value in kinds.values(key.label))
    of = tuple([value_of(each) for each in labels])
    domains: Counter[str] = Counter()
    for domain, size in zip(of, kinds.sizes, strict=True):
        if domain is not None:
            domains[domain] += size
    return Level(key, name, pattern, of, domains, is_part)
