"""The HyperNode tree as Volcano's scheduler builds it, with the nodes that each HyperNode holds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from basalt import patterns
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer

SOURCE_LABEL = "volcano.sh/network-topology-source"


class Member(NamedTuple):
    """One entry of spec.members: exact is the name it gives, None for a regexMatch or labelMatch."""

    pointer: Pointer
    type: str
    selector: Mapping[str, Any]
    exact: str | None


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


class HyperNodes:
    """All HyperNodes by name. nodes is None where there is no inventory: then only exact members are known."""

    def __init__(self, objects: Iterable[KubeObject], nodes: Sequence[Node] | None) -> None:
        self.by_name = {each.name: _hyper_node(each) for each in objects}
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
                if member.exact is not None:
                    found.setdefault(member.exact, []).append((hyper_node, member))
        return found

    @cached_property
    def node_names(self) -> frozenset[str]:
        return frozenset(node.metadata.name for node in self.nodes or ())

    @cached_property
    def leaf_members(self) -> dict[str, list[str]]:
        """For each HyperNode with Node members the names of its nodes, as far as they can be known."""
        return {leaf.name: self._nodes_of(leaf) for leaf in self if leaf.holds_nodes}

    def _nodes_of(self, leaf: HyperNode) -> list[str]:
        found: dict[str, None] = {}
        for member in leaf.of_type("Node"):
            if member.exact is not None:
                found[member.exact] = None
            else:
                found.update(dict.fromkeys(self.selected(member)))
        return list(found)

    def selected(self, member: Member) -> list[str]:
        """The declared nodes that a member selects by pattern or label."""
        selector = member.selector
        if "labelMatch" in selector:
            matches = mapping(selector["labelMatch"])
            return [node.name for node in self.nodes or () if matches_labels(matches, node.labels)]
        pattern = mapping(selector.get("regexMatch")).get("pattern")
        if not isinstance(pattern, str) or patterns.fault(pattern):
            return []
        compiled = patterns.compile_pattern(pattern)
        return [node.name for node in self.nodes or () if compiled.search(node.name)]

    @cached_property
    def holders(self) -> dict[str, list[str]]:
        """For each node the leaf HyperNodes that hold it."""
        found: dict[str, list[str]] = {}
        for leaf, names in self.leaf_members.items():
            for name in names:
                found.setdefault(name, []).append(leaf)
        return found

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
        """For each HyperNode the names of all nodes under it. Lower tiers first; a cycle adds nothing."""
        found: dict[str, frozenset[str]] = {}
        for hyper_node in sorted(self, key=lambda each: (each.tier or 0, each.name)):
            children = [member.exact for member in hyper_node.of_type("HyperNode") if member.exact]
            own = self.leaf_members.get(hyper_node.name, ())
            found[hyper_node.name] = frozenset(own).union(*(found.get(child, ()) for child in children))
        return found

    def cycle(self, start: HyperNode) -> list[str]:
        """The names around a cycle through the HyperNode, from it back to it; empty where there is none."""
        trail: list[tuple[str, Iterator[str]]] = [(start.name, self._children(start.name))]
        seen = {start.name}
        while trail:
            child = next(trail[-1][1], None)
            if child is None:
                trail.pop()
            elif child == start.name:
                return [*(name for name, _ in trail), child]
            elif child not in seen and child in self.by_name:
                seen.add(child)
                trail.append((child, self._children(child)))
        return []

    def _children(self, name: str) -> Iterator[str]:
        return (member.exact for member in self.by_name[name].of_type("HyperNode") if member.exact)


def matches_labels(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a Kubernetes LabelSelector selects the labels; an empty one selects nothing, as HyperNodes read it."""
    wanted = mapping(selector.get("matchLabels"))
    expressions = sequence(selector.get("matchExpressions"))
    if not wanted and not expressions:
        return False
    exact = all(labels.get(key) == value for key, value in wanted.items())
    return exact and all(_holds(mapping(each), labels) for each in expressions)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = str(expression.get("key")), sequence(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


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
    exact = mapping(selector.get("exactMatch")).get("name")
    pointer = ("spec", "members", index)
    return Member(pointer, str(declared.get("type")), selector, exact if isinstance(exact, str) else None)
