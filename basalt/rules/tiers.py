"""The family Topology, third part: the tiers of HyperNodes, their numbers and names."""

from collections import Counter
from collections.abc import Iterable, Iterator

from basalt import names
from basalt.findings import Problem, Ref, Severity
from basalt.index import Index
from basalt.objects import KubeObject
from basalt.rules.bounds import bounded
from basalt.rules.rule import Rule, Scope
from basalt.views.hyper_nodes import HyperNode, HyperNodes

_TIER = ("spec", "tier")
_TIER_NAME = ("spec", "tierName")


def hypernode_tiers_rise(index: Index) -> Iterator[Problem]:
    yield from bounded(_misnumbered(index.hyper_nodes))


def _misnumbered(hyper_nodes: HyperNodes) -> Iterator[Problem]:
    odd = {leaf.name for leaf in hyper_nodes.odd_leaves}
    usual = hyper_nodes.usual_leaf_tier
    for parent in hyper_nodes:
        if parent.tier is None:
            continue
        below = list(filter(None, map(hyper_nodes.by_name.get, parent.children)))
        wrong = [
            child
            for child in below
            if child.tier is not None
            and child.tier >= parent.tier
            and not hyper_nodes.is_circular(parent.name, child.name)
            and not (child.name in odd and parent.tier > usual)  # hypernode-leaves-share-a-tier speaks
        ]
        right = [child.tier for child in below if child.tier is not None and child.tier < parent.tier]
        yield from _too_high(parent, wrong, right) if len(wrong) <= len(right) else _too_low(parent, wrong)


def _too_high(parent: HyperNode, wrong: list[HyperNode], right: list[int]) -> Iterator[Problem]:
    for child in wrong:
        message = f"tier {child.tier} is not below tier {parent.tier} of {parent.name}, whose member it is"
        hint = f"set it to {Counter(right).most_common(1)[0][0]}, as the other members have it"
        yield Problem(child.object, _TIER, message, hint)


def _too_low(parent: HyperNode, wrong: list[HyperNode]) -> Iterator[Problem]:
    highest = max(child.tier or 0 for child in wrong)
    listed = names.listed(child.name for child in wrong)
    message = f"tier {parent.tier} is not above tier {highest} of its member{'s' * (len(wrong) > 1)} {listed}"
    yield Problem(parent.object, _TIER, message, f"set it to {highest + 1} or more")


def hypernode_leaves_share_a_tier(index: Index) -> Iterator[Problem]:
    hyper_nodes = index.hyper_nodes
    usual = hyper_nodes.usual_leaf_tier
    count = hyper_nodes.leaf_tiers[usual]
    others = f"{count} others do" if count > 1 else "another does"
    hint = "Volcano looks for a node's HyperNode in the lowest tier only: put the nodes into HyperNodes of one tier"
    yield from bounded(
        Problem(leaf.object, _TIER, f"{leaf.name} has nodes at tier {leaf.tier}, {others} at tier {usual}", hint)
        for leaf in hyper_nodes.odd_leaves
    )


def tier_has_one_name(index: Index) -> Iterator[Problem]:
    named = [each for each in index.hyper_nodes if each.tier is not None and each.tier_name is not None]
    wrong = _wrong_numbers(index.hyper_nodes, _TierNames(named))
    tiers = _TierNames([each for each in named if each.object.ref not in wrong])
    rest = _TierNames([each for each in tiers.named if each.tier == tiers.number_of(each)])
    found = [Problem(each.object, _TIER_NAME, *tiers.two_numbers(each)) for each in tiers.misnumbered]
    found += [Problem(each.object, _TIER_NAME, *rest.two_names(each)) for each in rest.misnamed]
    yield from bounded(_once_a_place(found))


def _wrong_numbers(hyper_nodes: HyperNodes, tiers: "_TierNames") -> set[Ref | None]:
    """The HyperNodes whose tier another rule finds to be wrong already, and that several others contradict by name."""
    odd = {leaf.object.ref for leaf in hyper_nodes.odd_leaves if tiers.is_outvoted(leaf)}
    return odd.union(problem.place.ref for problem in _misnumbered(hyper_nodes))


def _once_a_place(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Of all HyperNodes that one tier of the Environment generates the first speaks."""
    seen = set()
    for problem in problems:
        assert isinstance(problem.place, KubeObject)
        place = problem.place.origin(problem.pointer) if problem.place.module else problem.place.ref
        if place not in seen:
            seen.add(place)
            yield problem


class _TierNames:
    """Which names the tiers have, and which tiers the names: what most HyperNodes say, then what the first says."""

    def __init__(self, named: list[HyperNode]) -> None:
        self.named = named
        self._first = {(each.tier, each.tier_name): each.name for each in reversed(named)}
        self._count = Counter((each.tier, each.tier_name) for each in named)
        by_count = sorted(self._count, key=lambda pair: -self._count[pair])  # stable: the first stays before others
        self._name = dict(reversed(by_count))
        best = sorted(by_count, key=lambda pair: (-self._count[pair], self._name[pair[0]] != pair[1]))
        self._number = {name: tier for tier, name in reversed(best)}

    def number_of(self, each: HyperNode) -> int | None:
        return self._number[each.tier_name]

    @property
    def misnumbered(self) -> list[HyperNode]:
        """Those whose tier is not the one that their name has."""
        return [each for each in self.named if each.tier != self.number_of(each)]

    @property
    def misnamed(self) -> list[HyperNode]:
        """Those whose name is not the one that their tier has."""
        return [each for each in self.named if each.tier_name != self._name[each.tier]]

    def is_outvoted(self, each: HyperNode) -> bool:
        """Whether several HyperNodes say that this one's name goes with another number, or its number with another
        name: then it is the number that is wrong."""
        if each.tier_name is None:
            return False
        usual, name = self.number_of(each), self._name[each.tier]
        votes = [self._count[usual, each.tier_name]] * (usual != each.tier)
        votes += [self._count[each.tier, name]] * (name != each.tier_name)
        return max(votes, default=0) > 1

    def two_numbers(self, each: HyperNode) -> tuple[str, str]:
        number, name = self.number_of(each), each.tier_name
        message = (
            f"the name {name} stands for tier {each.tier} here and for tier {number} at {self._first[number, name]}"
        )
        return message, "Volcano takes either: give each tier a name of its own"

    def two_names(self, each: HyperNode) -> tuple[str, str]:
        name = self._name[each.tier]
        message = f"tier {each.tier} is called {each.tier_name} here and {name} at {self._first[each.tier, name]}"
        return message, f"write {name}, or give the tier one other name everywhere"


RULES = (
    Rule("hypernode-tiers-rise", Severity.ERROR, hypernode_tiers_rise, scope=Scope.FABRIC),
    Rule("hypernode-leaves-share-a-tier", Severity.ERROR, hypernode_leaves_share_a_tier, scope=Scope.FABRIC),
    Rule("tier-has-one-name", Severity.ERROR, tier_has_one_name, scope=Scope.FABRIC),
)
