"""The HyperNode tree as Volcano's scheduler builds it, with the nodes that each HyperNode holds.

Source: pkg/scheduler/api/hyper_node_info.go of Volcano.
"""

import string
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence
from basalt.views.components import Components
from basalt.views.node_selection import Member, Selection

SOURCE_LABEL = "volcano.sh/network-topology-source"
_LETTERS = string.ascii_lowercase + string.digits + "-."  # of names


class HyperNode(NamedTuple):
    name: str
    object: KubeObject
    tier: int | None
    tier_name: str | None
    members: tuple[Member, ...]

    def of_type(self, kind: str) -> Iterator[Member]:
        return (member for member in self.members if member.type == kind)

    @property
    def holds_nodes(self) -> bool:
        return any(member.type == "Node" for member in self.members)

    @property
    def is_readable(self) -> bool:
        """Whether every member has a type and a selector; object-matches-schema speaks where one has not."""
        declared = self.object.spec.get("members")
        return declared is None or (bool(self.members) and all(member.is_readable for member in self.members))

    @property
    def children(self) -> Iterator[str]:
        """The HyperNodes that it names; each once, declared or not."""
        return iter(dict.fromkeys(member.exact for member in self.of_type("HyperNode") if member.exact))


class HyperNodes:
    """All HyperNodes by name. nodes is None where there is no inventory: then only exact members are known."""

    def __init__(self, objects: Iterable[KubeObject], nodes: Sequence[Node] | None) -> None:
        self.by_name = {each.name: _hyper_node(each) for each in objects if each.name}
        self.nodes = nodes

    def __iter__(self) -> Iterator[HyperNode]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    @cached_property
    def parents(self) -> dict[str, list[tuple[HyperNode, Member]]]:
        """For each HyperNode the members, of others, that name it."""
        found: dict[str, list[tuple[HyperNode, Member]]] = {}
        for hyper_node in self:
            for member in hyper_node.of_type("HyperNode"):
                if member.exact:
                    found.setdefault(member.exact, []).append((hyper_node, member))
        return found

    @cached_property
    def node_by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes or ()}

    @cached_property
    def _selection(self) -> Selection:
        members = [member for each in self for member in each.of_type("Node")]
        return Selection(self.nodes or (), members)

    def selected(self, member: Member) -> Sequence[str]:
        """The nodes that a member of type Node names, whether declared or not, and the declared ones it selects."""
        return [member.exact] if member.exact and len(member.selector) == 1 else self._selection.of(member)

    def nodes_by_value(self, label: str) -> dict[str, list[str]]:
        """The values that nodes have of a label which some member selects by, each with the nodes' names."""
        found = self._selection.by_label.get(label, {})
        return {value: [node.name for node in nodes] for value, nodes in found.items()}

    def is_known(self, leaf: HyperNode) -> bool:
        """Whether all nodes of a HyperNode are known: its members name them, or there is an inventory."""
        return self.nodes is not None or all(member.exact for member in leaf.of_type("Node"))

    def is_mistyped(self, member: Member) -> bool:
        """Whether a member names something declared of the other type."""
        if self.nodes is None or member.exact is None:
            return False
        is_node, is_hyper_node = member.exact in self.node_by_name, member.exact in self.by_name
        return is_hyper_node and not is_node if member.type == "Node" else is_node and not is_hyper_node

    def missing_members(self) -> Iterator[tuple[HyperNode, Member]]:
        """The members that name what is not declared, as far as that can be known."""
        known = {"HyperNode": self.by_name.keys(), "Node": None if self.nodes is None else self.node_by_name.keys()}
        for parent in self:
            for member in parent.members:
                declared = known.get(member.type)
                if member.exact is not None and declared is not None and member.exact not in declared:
                    yield parent, member

    def barren_members(self) -> Iterator[tuple[HyperNode, Member]]:
        """The members of type Node that select by pattern or label, and select none of the declared nodes."""
        for parent in self:
            for member in parent.of_type("Node"):
                if self.nodes is not None and "exactMatch" not in member.selector and not self.selected(member):
                    yield parent, member

    @cached_property
    def leaves(self) -> list[HyperNode]:
        """The HyperNodes of known tier that hold nodes; a HyperNode's name under the wrong type is no node."""
        tiered = (each for each in self if each.tier is not None)
        return [each for each in tiered if not all(map(self.is_mistyped, each.of_type("Node")))]

    @cached_property
    def leaf_tiers(self) -> Counter[int]:
        """How many leaves each tier has."""
        return Counter(leaf.tier for leaf in self.leaves if leaf.tier is not None)

    @property
    def usual_leaf_tier(self) -> int:
        """The tier of most leaves, the lower of two."""
        return max(self.leaf_tiers, key=lambda tier: (self.leaf_tiers[tier], -tier), default=0)

    @cached_property
    def odd_leaves(self) -> list[HyperNode]:
        """The leaves that are at another tier than most."""
        usual = self.usual_leaf_tier
        return [leaf for leaf in self.leaves if leaf.tier != usual]

    @cached_property
    def leaf_members(self) -> dict[str, list[str]]:
        """For each HyperNode with Node members the names of its nodes, as far as they can be known."""
        found: dict[str, dict[str, None]] = {leaf.name: {} for leaf in self if leaf.holds_nodes}
        for node, places in self.placements.items():
            for leaf, _ in places:
                found[leaf.name][node] = None
        return {leaf: list(nodes) for leaf, nodes in found.items()}

    @cached_property
    def placements(self) -> dict[str, list[tuple[HyperNode, Member]]]:
        """For each node the HyperNodes that hold it directly, each with the first of its members that does."""
        found: dict[str, list[tuple[HyperNode, Member]]] = {}
        for leaf in self:
            for member in leaf.of_type("Node"):
                for name in self.selected(member):
                    places = found.setdefault(name, [])
                    if not places or places[-1][0] is not leaf:
                        places.append((leaf, member))
        return found

    @cached_property
    def holders(self) -> dict[str, list[str]]:
        """For each node the leaf HyperNodes that hold it."""
        return {node: [leaf.name for leaf, _ in places] for node, places in self.placements.items()}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """How many HyperNodes or nodes each HyperNode holds directly."""
        return {each.name: len([*each.children]) or len(self.leaf_members.get(each.name, ())) for each in self}

    @cached_property
    def _usual_sizes(self) -> dict[int | None, Counter[int]]:
        found: dict[int | None, Counter[int]] = {}
        for each in self:
            found.setdefault(each.tier, Counter())[self._sizes[each.name]] += 1
        return found

    def has_one_too_many(self, each: HyperNode) -> bool:
        """Whether the HyperNode would hold as many as most of its tier do if it held one less."""
        size = self._sizes[each.name]
        others = self._usual_sizes[each.tier] - Counter([size])
        return size - 1 == max(others, key=lambda count: (others[count], count), default=size)

    def newcomers(self, holders: Sequence[HyperNode]) -> list[HyperNode]:
        """Of several HyperNodes that hold the same those that probably should not: the ones that have one too many, or
        all but the first."""
        surplus = [each for each in holders if self.has_one_too_many(each)]
        return surplus if 0 < len(surplus) < len(holders) else list(holders[1:])

    @cached_property
    def tiers(self) -> dict[int, list[HyperNode]]:
        """The HyperNodes of each tier number, lowest first."""
        found: dict[int, list[HyperNode]] = {}
        for hyper_node in self:
            if hyper_node.tier is not None:
                found.setdefault(hyper_node.tier, []).append(hyper_node)
        return dict(sorted(found.items()))

    @cached_property
    def nodes_below(self) -> dict[str, frozenset[str]]:
        """For each HyperNode the names of all nodes under it; those of a circle share theirs."""
        found: dict[str, frozenset[str]] = {}
        for circle in self.circles:
            own = [frozenset(self.leaf_members.get(name, ())) for name in circle]
            below = [found[child] for name in circle for child in self.by_name[name].children if child in found]
            parts = [part for part in (*own, *below) if part]
            whole = parts[0] if len(parts) == 1 else frozenset[str]().union(*parts)
            found.update(dict.fromkeys(circle, whole))
        return found

    @cached_property
    def circles(self) -> list[tuple[str, ...]]:
        """The HyperNodes, children before parents; those that contain each other together."""
        return Components({each.name: [*filter(self.by_name.get, each.children)] for each in self}).found

    @cached_property
    def _circle_of(self) -> dict[str, int]:
        return {name: number for number, circle in enumerate(self.circles) for name in circle}

    def is_circular(self, parent: str, child: str) -> bool:
        """Whether the parent's member leads back to the parent."""
        return self._circle_of.get(parent) == self._circle_of.get(child, -1)

    def way(self, start: str, end: str) -> list[str]:
        """The shortest way down from one HyperNode to another of its circle, both included."""
        came_from = {start: start}
        waiting = [start]
        for name in waiting:  # grows while it is read
            for child in self.by_name[name].children:
                if child not in came_from and self.is_circular(name, child):
                    came_from[child] = name
                    waiting.append(child)
        names = [end]
        while names[-1] != start:
            names.append(came_from[names[-1]])
        return names[::-1]


def one_letter_off(name: str, known: Collection[str]) -> str | None:
    """A known name that differs by one letter, or by two that changed places; the first of them."""
    cuts = [(name[:at], name[at:]) for at in range(len(name) + 1)]
    edits = {head + tail[1:] for head, tail in cuts if tail}
    edits.update(head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1)
    edits.update(head + letter + tail[skip:] for head, tail in cuts for letter in _LETTERS for skip in (0, 1))
    return min((each for each in edits if each in known), default=None)


def _hyper_node(declared: KubeObject) -> HyperNode:
    spec = declared.spec
    tier, tier_name = spec.get("tier"), spec.get("tierName")
    members = tuple(_member(index, mapping(each)) for index, each in enumerate(sequence(spec.get("members"))))
    return HyperNode(
        declared.name,
        declared,
        tier if isinstance(tier, int) and not isinstance(tier, bool) else None,
        tier_name if isinstance(tier_name, str) and tier_name else None,
        members,
    )


def _member(index: int, declared: Mapping[str, Any]) -> Member:
    selector = mapping(declared.get("selector"))
    if None in selector.values():  # a null is an absent field
        selector = {key: value for key, value in selector.items() if value is not None}
    exact = mapping(selector.get("exactMatch")).get("name")
    pointer = ("spec", "members", index)
    return Member(pointer, str(declared.get("type")), selector, exact if isinstance(exact, str) and exact else None)
