"""The family Topology: rack labels, the domains they make, and the HyperNode tree."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt import names, patterns
from basalt.dialects import DIALECTS, Dialect, crossing
from basalt.domains import Domain, Domains, Tier
from basalt.findings import Problem, Severity
from basalt.hyper_nodes import SOURCE_LABEL, HyperNode, Member
from basalt.index import Fact, Index
from basalt.loading.nodes import Node
from basalt.objects import mapping, sequence
from basalt.quantities import is_extended, parse
from basalt.rules.rule import Rule
from basalt.topology_discovery import enabled_sources

_MANY = 20  # nodes without a tier's label: above that one finding speaks for all


def node_has_every_tier(index: Index) -> Iterator[Problem]:
    if index.topology.get("unplaced", "error") == "allow":
        return
    domains = index.domains
    for position, tier in enumerate(domains.tiers):
        unplaced = [node for path, nodes in domains.paths.items() if path[position] is None for node in nodes]
        if unplaced:
            yield from _unplaced(index, tier, unplaced)


def _unplaced(index: Index, tier: Tier, unplaced: list[Node]) -> Iterator[Problem]:
    assert index.environment is not None  # the fact TOPOLOGY
    if len(unplaced) == len(index.participants):
        message = f"none of the {len(unplaced)} nodes is in a domain of tier {tier.name}: {_lack(tier, unplaced[0])}"
        known = {label for node in unplaced[:100] for label in node.labels}
        yield Problem(index.environment, tier.pointer, message, names.did_you_mean(tier.label, known, most=0))
        return
    hint = "label the node, leave it out by topology.nodeSelector, or say unplaced: allow"
    shown = unplaced if len(unplaced) <= _MANY else unplaced[:1]
    for node in shown:
        message = f"{node.name} is in no domain of tier {tier.name}: {_lack(tier, node)}"
        if len(shown) < len(unplaced):
            message += f"; so are {len(unplaced) - 1} other nodes ({names.listed(each.name for each in unplaced[1:])})"
        yield Problem(index.place_of(node), ("metadata", "labels", tier.label), message, hint)


def _lack(tier: Tier, node: Node) -> str:
    value = node.labels.get(tier.label)
    if value is None:
        return f"it has no label {tier.label}"
    return f"its label {tier.label}={value} does not match {tier.pattern}" if tier.pattern else f"{tier.label} is empty"


def domain_has_one_parent(index: Index) -> Iterator[Problem]:
    assert index.environment is not None
    domains = index.domains
    for domain, above in domains.parents().items():
        if len(above) > 1:
            tier = domains.tiers[domain.tier]
            sides = "; ".join(_side(parent, nodes, domains) for parent, nodes in sorted(above.items()))
            message = f"{tier.name} {domain.key} lies under {len(above)} domains: {sides}"
            fewest = min(above, key=lambda parent: (len(above[parent]), parent))
            node = min(above[fewest], key=lambda each: each.name)
            upper = domains.tiers[fewest.tier]
            hint = f"mend the label {upper.label} of one side, or add a prefix to the {tier.name} names"
            yield Problem(index.place_of(node), ("metadata", "labels", upper.label), message, hint)


def _side(parent: Domain, nodes: list[Node], domains: Domains) -> str:
    listed = names.listed(sorted(node.name for node in nodes))
    return f"{domains.tiers[parent.tier].name} {parent.key} by {listed}"


def domain_name_is_unique(index: Index) -> Iterator[Problem]:
    assert index.environment is not None
    domains = index.domains
    taken: dict[str, Domain] = {}
    for domain in sorted(domains.parents()):
        tier = domains.tiers[domain.tier]
        name = tier.hyper_node(domain.key)
        if name in taken:
            other = taken[name]
            both = f"{domains.tiers[other.tier].name} {other.key} and {tier.name} {domain.key}"
            hint = f'give the tier {tier.name} a nameTemplate such as "{{tier}}-{{domain}}"'
            yield Problem(index.environment, tier.pointer, f"{both} would both be the HyperNode {name}", hint)
        elif not name or len(name) > names.SUBDOMAIN_LENGTH:
            message = f"{tier.name} {domain.key} makes a HyperNode name of {len(name)} characters"
            yield Problem(index.environment, tier.pointer, message, f"names have 1 to {names.SUBDOMAIN_LENGTH}")
        taken.setdefault(name, domain)


def domain_has_several_nodes(index: Index) -> Iterator[Problem]:
    leaves = index.hyper_nodes.leaf_members
    if max(map(len, leaves.values()), default=0) < 2:
        return
    usual = max(len(found) for found in leaves.values())
    for leaf in index.hyper_nodes:
        if leaf.holds_nodes and len(leaves[leaf.name]) == 1:
            message = f"{leaf.name} holds one node, {leaves[leaf.name][0]}; others of its tier hold up to {usual}"
            yield Problem(leaf.object, ("spec", "members"), message, "check the node's label: a typo makes a domain")


def topology_label_is_current(index: Index) -> Iterator[Problem]:
    present = set[str]().union(*(node.labels for node in index.participants))  # few keys, many nodes
    speaking = [dialect for dialect in DIALECTS if any(map(dialect.has, present))]
    carried = {dialect: dialect.carriers(index.participants) for dialect in speaking}
    for dialect, nodes in carried.items():
        if dialect.replaced_by:
            message = f"{len(nodes)} of {len(index.participants)} nodes carry the outdated labels {dialect.name}"
            hint = f"relabel: {dialect.replaced_by} replaces them"
            yield Problem(index.place_of(nodes[0]), ("metadata", "labels", dialect.label_of(nodes[0])), message, hint)
    yield from _disagreeing(index, list(carried))


def _disagreeing(index: Index, dialects: list[Dialect]) -> Iterator[Problem]:
    keys = {key: dialect for dialect in dialects for key in dialect.keys_of(index.participants)}
    own = {tier.label for tier in index.domains.tiers if tier.pattern is None}
    listed = [*keys, *sorted(own - keys.keys())]
    for position, one in enumerate(listed):
        for other in listed[position + 1 :]:
            if keys.get(one) is keys.get(other, one):
                continue  # one dialect's own levels: the tiers' rules judge those
            if (found := crossing(index.participants, one, other)) is not None:
                node, message = found
                hint = "keep the dialect that is right, and remove the other's labels"
                yield Problem(index.place_of(node), ("metadata", "labels", other), message, hint)


def hypernode_has_one_parent(index: Index) -> Iterator[Problem]:
    for child, above in index.hyper_nodes.parents.items():
        holders = list(dict.fromkeys(parent.name for parent, _ in above))
        for parent, member in above[1:]:
            if parent.name != above[0][0].name:
                message = f"{child} is a member of {' and of '.join(holders)}"
                hint = "keep it in one: Volcano stops scheduling every job that has networkTopology"
                yield Problem(parent.object, (*member.pointer, "selector", "exactMatch", "name"), message, hint)


def hypernode_tree_has_no_cycle(index: Index) -> Iterator[Problem]:
    reported: set[str] = set()
    for hyper_node in index.hyper_nodes:
        circle = [] if hyper_node.name in reported else index.hyper_nodes.cycle(hyper_node)
        if circle:
            reported.update(circle)
            member = next(each for each in hyper_node.of_type("HyperNode") if each.exact == circle[1])
            message = f"the members lead back: {' -> '.join(circle)}"
            pointer = (*member.pointer, "selector", "exactMatch", "name")
            yield Problem(hyper_node.object, pointer, message, "take one of the members out")


def hypernode_tiers_rise(index: Index) -> Iterator[Problem]:
    for parent in index.hyper_nodes:
        for member in parent.of_type("HyperNode"):
            child = index.hyper_nodes.by_name.get(member.exact or "")
            if child is None or child.tier is None or parent.tier is None or parent.tier > child.tier:
                continue
            message = f"tier {parent.tier} is not above tier {child.tier} of its member {child.name}"
            yield Problem(parent.object, ("spec", "tier"), message, f"set it to {child.tier + 1} or more")


def hypernode_leaves_share_a_tier(index: Index) -> Iterator[Problem]:
    leaves = [each for each in index.hyper_nodes if each.holds_nodes and each.tier is not None]
    counts: dict[int, list[HyperNode]] = {}
    for leaf in leaves:
        counts.setdefault(leaf.tier or 0, []).append(leaf)
    if len(counts) < 2:
        return
    usual = max(counts, key=lambda tier: (len(counts[tier]), -tier))
    for leaf in leaves:
        if leaf.tier != usual:
            message = f"{leaf.name} names nodes at tier {leaf.tier}, {len(counts[usual])} others do at tier {usual}"
            hint = "Volcano looks for nodes in the lowest tier only: put the nodes into HyperNodes of one tier"
            yield Problem(leaf.object, ("spec", "tier"), message, hint)


def hypernode_members_exist(index: Index) -> Iterator[Problem]:
    hyper_nodes = index.hyper_nodes
    for parent in hyper_nodes:
        for member in parent.members:
            if member.exact is None or (not index.knows(Fact.NODES) and member.type == "Node"):
                continue
            known = hyper_nodes.node_names if member.type == "Node" else hyper_nodes.by_name.keys()
            if member.exact not in known and member.type in ("Node", "HyperNode"):
                message = f"{parent.name} names the {member.type} {member.exact}, which is not declared"
                pointer = (*member.pointer, "selector", "exactMatch", "name")
                yield Problem(parent.object, pointer, message, names.did_you_mean(member.exact, known))


def hypernode_child_is_named(index: Index) -> Iterator[Problem]:
    for parent, member in _members(index):
        for field in ("regexMatch", "labelMatch"):
            if member.type == "HyperNode" and field in member.selector:
                message = f"a member of type HyperNode is selected by {field}, which Volcano ignores there"
                hint = "name each child by exactMatch"
                yield Problem(parent.object, (*member.pointer, "selector", field), message, hint)


def hypernode_selector_selects(index: Index) -> Iterator[Problem]:
    for parent, member in _members(index):
        for field in ("regexMatch", "labelMatch"):
            if field in member.selector and member.type == "Node":
                fault = _selects_nothing(index, member, field)
                if fault:
                    yield Problem(parent.object, (*member.pointer, "selector", field), *fault)


def _selects_nothing(index: Index, member: Member, field: str) -> tuple[str, str] | None:
    selector = mapping(member.selector[field])
    if field == "labelMatch" and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return "an empty labelMatch selects no node", "add matchLabels"
    pattern = selector.get("pattern")
    if isinstance(pattern, str) and patterns.fault(pattern):
        return None  # hypernode-pattern-is-re2 speaks
    if not index.knows(Fact.NODES) or index.hyper_nodes.selected(member):
        return None
    shown = pattern if field == "regexMatch" else _shown(selector)
    return (
        f"{field} {shown} selects none of the {len(index.nodes)} declared nodes",
        "check it against the node's labels",
    )


def _shown(selector: Mapping[str, Any]) -> str:
    wanted = [f"{key}={value}" for key, value in mapping(selector.get("matchLabels")).items()]
    expressions = map(mapping, sequence(selector.get("matchExpressions")))
    wanted.extend(f"{each.get('key')} {each.get('operator')} {sequence(each.get('values'))}" for each in expressions)
    return ", ".join(wanted)


def hypernode_pattern_is_re2(index: Index) -> Iterator[Problem]:
    for parent, member in _members(index):
        pattern = mapping(member.selector.get("regexMatch")).get("pattern")
        if isinstance(pattern, str) and (fault := patterns.fault(pattern)):
            message = f"{pattern} is not an expression that Go reads: {fault}"
            pointer = (*member.pointer, "selector", "regexMatch", "pattern")
            yield Problem(parent.object, pointer, message, "Go has no look-around and no back-references")


def node_is_in_one_leaf(index: Index) -> Iterator[Problem]:
    hyper_nodes = index.hyper_nodes
    for node, leaves in hyper_nodes.holders.items():
        for name in leaves[1:]:
            leaf = hyper_nodes.by_name[name]
            member = next((each for each in leaf.of_type("Node") if each.exact == node), None)
            pointer = (*member.pointer, "selector", "exactMatch", "name") if member else ("spec", "members")
            message = f"the node {node} is in {' and in '.join(leaves)}"
            yield Problem(leaf.object, pointer, message, "keep it in one leaf")


def node_is_placed(index: Index) -> Iterator[Problem]:
    hyper_nodes = index.hyper_nodes
    if not len(hyper_nodes):
        return
    unplaced = [node for node in index.participants if node.name not in hyper_nodes.holders and _has_gpu(node)]
    for node in unplaced if len(unplaced) <= _MANY else unplaced[:1]:
        message = f"{node.name} has {_gpus(node)} and is in no HyperNode: no job with a hard topology will use it"
        if len(unplaced) > _MANY:
            message += f"; so are {len(unplaced) - 1} other nodes"
        yield Problem(index.place_of(node), ("metadata", "name"), message, "label it, or add it to a HyperNode")


def _has_gpu(node: Node) -> bool:
    return any(is_accelerator(name) and parse(amount) for name, amount in node.allocatable.items())


def is_accelerator(resource: str) -> bool:
    """Whether an extended resource is a GPU or the like: not a NIC, a FUSE device or a KVM."""
    kind = resource.rpartition("/")[2]
    return is_extended(resource) and (
        kind.startswith(("gpu", "mig-", "vgpu", "npu")) or "ascend" in kind.casefold() or "tpu" in kind
    )


def _gpus(node: Node) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in node.allocatable.items() if is_accelerator(name))


def tier_has_one_name(index: Index) -> Iterator[Problem]:
    by_number: dict[int, HyperNode] = {}
    by_name: dict[str, HyperNode] = {}
    for each in index.hyper_nodes:
        if each.tier is None or each.tier_name is None:
            continue
        first = by_number.setdefault(each.tier, each)
        if first.tier_name != each.tier_name:
            message = f"tier {each.tier} is called {each.tier_name} here and {first.tier_name} at {first.name}"
            yield Problem(each.object, ("spec", "tierName"), message, "Volcano takes either: use one name")
        same = by_name.setdefault(each.tier_name, each)
        if same.tier != each.tier:
            message = f"the name {each.tier_name} stands for tier {each.tier} here and tier {same.tier} at {same.name}"
            yield Problem(each.object, ("spec", "tierName"), message, "Volcano takes either: give each tier its own")


def hypernode_is_ours(index: Index) -> Iterator[Problem]:
    for each in index.hyper_nodes:
        if SOURCE_LABEL in each.object.labels:
            message = f"{each.name} carries {SOURCE_LABEL}: Volcano's discovery deletes or rewrites such objects"
            yield Problem(each.object, ("metadata", "labels", SOURCE_LABEL), message, "take the label out")
    if not len(index.hyper_nodes):
        return
    for declared, pointer, source in enabled_sources(index.of_kind("ConfigMap")):
        message = f"discovery by {source} is on beside {len(index.hyper_nodes)} declared HyperNodes"
        yield Problem(declared, pointer, message, "switch it off, or declare no HyperNodes")


def _members(index: Index) -> Iterable[tuple[HyperNode, Member]]:
    return ((parent, member) for parent in index.hyper_nodes for member in parent.members)


_TOPOLOGY = (Fact.TOPOLOGY, Fact.NODES)
RULES = (
    Rule("node-has-every-tier", Severity.ERROR, node_has_every_tier, needs=_TOPOLOGY),
    Rule("domain-has-one-parent", Severity.ERROR, domain_has_one_parent, needs=_TOPOLOGY),
    Rule("domain-name-is-unique", Severity.ERROR, domain_name_is_unique, needs=_TOPOLOGY),
    Rule("domain-has-several-nodes", Severity.WARNING, domain_has_several_nodes),
    Rule("topology-label-is-current", Severity.WARNING, topology_label_is_current, needs=(Fact.NODES,)),
    Rule("hypernode-has-one-parent", Severity.ERROR, hypernode_has_one_parent),
    Rule("hypernode-tree-has-no-cycle", Severity.ERROR, hypernode_tree_has_no_cycle),
    Rule("hypernode-tiers-rise", Severity.ERROR, hypernode_tiers_rise),
    Rule("hypernode-leaves-share-a-tier", Severity.ERROR, hypernode_leaves_share_a_tier),
    Rule("hypernode-members-exist", Severity.ERROR, hypernode_members_exist, partly_needs=(Fact.NODES,)),
    Rule("hypernode-child-is-named", Severity.ERROR, hypernode_child_is_named),
    Rule("hypernode-selector-selects", Severity.ERROR, hypernode_selector_selects, partly_needs=(Fact.NODES,)),
    Rule("hypernode-pattern-is-re2", Severity.ERROR, hypernode_pattern_is_re2),
    Rule("node-is-in-one-leaf", Severity.ERROR, node_is_in_one_leaf),
    Rule("node-is-placed", Severity.WARNING, node_is_placed, needs=(Fact.NODES, Fact.HYPER_NODES)),
    Rule("tier-has-one-name", Severity.ERROR, tier_has_one_name),
    Rule("hypernode-is-ours", Severity.ERROR, hypernode_is_ours),
)
