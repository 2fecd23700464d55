"""The family Topology, first part: the nodes' labels, and the domains they make."""

import difflib
import itertools
from collections.abc import Iterator

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.loading.nodes import Node
from basalt.pointers import Pointer
from basalt.rules import hyper_nodes, placement, tiers
from basalt.rules.bounds import bounded
from basalt.rules.rule import Rule, Scope
from basalt.views.dialects import DIALECTS, Crossing, Dialect, crossings
from basalt.views.domains import Domain, Domains, Sides, Tier

_LABELS = ("metadata", "labels")
_SIDES = 6  # of a domain under many that a message lists


def node_has_every_tier(index: Index) -> Iterator[Problem]:
    lacking = _lacking(index)
    yield from _tiers_of_no_node(index)
    usual = next((node.labels for node in index.participants if node.name not in lacking), {})
    found = (node for node in index.participants if node.name in lacking)
    yield from bounded(problem for node in found for problem in _unplaced(index, node, lacking[node.name], usual))


def _lacking(index: Index) -> dict[str, list[Tier]]:
    """The nodes that lack a tier which others have, each with those tiers; none where that is allowed."""
    domains, nowhere = index.domains, _nowhere(index)
    if not _is_error(index):
        return {}
    lacking = {
        path: [tier for tier, key in zip(domains.tiers, path, strict=True) if key is None and tier not in nowhere]
        for path in domains.paths
    }
    return {node.name: lacking[path] for path, nodes in domains.paths.items() if lacking[path] for node in nodes}


def _is_error(index: Index) -> bool:
    return bool(index.topology.get("unplaced", "error") == "error")


def _nowhere(index: Index) -> list[Tier]:
    """The tiers that none of several nodes is in: there the declaration is wrong, not the nodes."""
    tiers, paths = index.domains.tiers, index.domains.paths
    found = [tier for at, tier in enumerate(tiers) if all(path[at] is None for path in paths)]
    return found if len(index.participants) > 1 and _is_error(index) else []


def _tiers_of_no_node(index: Index) -> Iterator[Problem]:
    assert index.environment is not None  # the fact TOPOLOGY
    every = f"the {len(index.participants)} nodes"
    by_label: dict[str, list[Tier]] = {}
    for tier in _nowhere(index):
        by_label.setdefault(tier.label, []).append(tier)
    for label, some in by_label.items():
        node = next((each for each in index.participants if each.labels.get(label)), None)
        if node is None:
            message = f"none of {every} has the label {label}, which {_tiers(some)} read{'s' * (len(some) == 1)}"
            known = {key for each in index.participants[:100] for key in each.labels}
            hint = names.did_you_mean(label, known, most=0, otherwise="name a label that the nodes have")
            yield Problem(index.environment, (*some[0].pointer, "label"), message, hint)
            continue
        for tier in some:
            message = f"{tier.pattern} matches {label} of none of {every}: {node.name} has {node.labels[label]}"
            hint = "the pattern is matched anywhere in the value; its first group is the domain's name"
            yield Problem(index.environment, (*tier.pointer, "pattern"), message, hint)


def _tiers(some: list[Tier]) -> str:
    listed = [tier.name for tier in some]
    return f"tier {listed[0]}" if len(listed) == 1 else f"the tiers {', '.join(listed[:-1])} and {listed[-1]}"


def _unplaced(index: Index, node: Node, lacking: list[Tier], usual: dict[str, str]) -> Iterator[Problem]:
    """What one node lacks, label by label; usual are the labels of a node that lacks nothing."""
    or_else = "leave it out by topology.nodeSelector, or say unplaced: allow"
    for label in dict.fromkeys(tier.label for tier in lacking):
        some = [tier for tier in lacking if tier.label == label]
        hint = f"mend the value, {or_else}"
        pointer: Pointer = (*_LABELS, label)
        if label not in node.labels:
            strange = difflib.get_close_matches(label, sorted(node.labels.keys() - usual.keys()), n=1, cutoff=0.85)
            hint = f"it has {strange[0]}: did you mean {label}?" if strange else f"label the node, {or_else}"
            pointer = (*_LABELS, strange[0]) if strange else _LABELS if node.labels else _LABELS[:1]
        message = f"{node.name} is in no domain of {_tiers(some)}: {_lack(some, node.labels.get(label))}"
        yield Problem(index.place_of(node), pointer, message, hint)


def _lack(some: list[Tier], value: str | None) -> str:
    label = some[0].label
    if value is None:
        return f"it has no label {label}"
    unmatched = [tier.pattern for tier in some if tier.pattern]
    return f"its label {label}={value} does not match {' or '.join(unmatched)}" if unmatched else f"{label} is empty"


def domain_has_one_parent(index: Index) -> Iterator[Problem]:
    domains = index.domains
    yield from bounded(_split(index, domains, child, sides) for child, sides in domains.split.items())


def _split(index: Index, domains: Domains, child: Domain, sides: Sides) -> Problem:
    """Found at the label that is most probably wrong, of the first node of the smaller side."""
    lower, odd = domains.tiers[child.tier], domains.odd_side(sides)
    upper, nodes = domains.tiers[odd.tier], sorted(sides[odd], key=lambda each: each.name)
    shown = [_side(parent, sides[parent], upper) for parent in sorted(sides)[:_SIDES]]
    more = [f"{len(sides) - _SIDES} more"] if len(sides) > _SIDES else []
    message = f"{lower.name} {child.key} lies under {len(sides)} domains: {'; '.join(shown + more)}"
    label = lower.label if domains.has_surplus(child, len(nodes)) else upper.label
    hint = f"mend {label} of {names.listed(node.name for node in nodes)}"
    if (child.tier, odd.tier) in domains.reversed_tiers:
        hint = f"each {upper.name} lies in one {lower.name}: list the tiers from the leaf up"
    elif child.tier in domains.split_tiers:
        hint = f"each {upper.name} counts its own {lower.name}s: put the {upper.name} into {lower.label} too"
    elif lower.label != upper.label:
        hint += f", or tell them apart by a prefix where each {upper.name} has a {lower.name} {child.key} of its own"
    return Problem(index.place_of(nodes[0]), (*_LABELS, label), message, hint)


def _side(parent: Domain, nodes: list[Node], upper: Tier) -> str:
    return f"{upper.name} {parent.key} by {names.listed(sorted(node.name for node in nodes))}"


def domain_name_is_unique(index: Index) -> Iterator[Problem]:
    assert index.environment is not None  # the fact TOPOLOGY
    domains = index.domains
    unplaced = _lacking(index)
    within: list[Problem] = []
    across: dict[tuple[Tier, Tier], list[tuple[Domain, Domain]]] = {}
    for first, other in domains.namesakes():
        pair = domains.tiers[first.tier], domains.tiers[other.tier]
        if pair[0] != pair[1]:
            across.setdefault(pair, []).append((first, other))
        elif "{domain}" in pair[0].template and not all(node.name in unplaced for node in domains.nodes[other]):
            within.append(_two_spellings(index, pair[0], first, other))
    yield from bounded(within)
    for (_, upper), found in across.items():
        hint = f'give the tier {upper.name} a nameTemplate such as "{{tier}}-{{domain}}"'
        yield Problem(index.environment, _template_pointer(index, upper), _across(domains, found), hint)
    for tier in domains.tiers:
        yield from _template_faults(index, domains, tier)


def _two_spellings(index: Index, tier: Tier, first: Domain, other: Domain) -> Problem:
    """Found at a node of the smaller domain."""
    nodes = index.domains.nodes
    both = (
        f"{tier.name} {each.key} ({names.listed(sorted(node.name for node in nodes[each]))})" for each in (first, other)
    )
    message = f"{' and '.join(both)} would both be the HyperNode {tier.hyper_node(other.key)}"
    node = min(nodes[other], key=lambda each: each.name)
    hint = "spell the value one way: letters are lower-cased and _ becomes - in the name"
    return Problem(index.place_of(node), (*_LABELS, tier.label), message, hint)


def _across(domains: Domains, found: list[tuple[Domain, Domain]]) -> str:
    (first, other), *rest = found
    lower, upper = domains.tiers[first.tier], domains.tiers[other.tier]
    message = f"{lower.name} {first.key} and {upper.name} {other.key} would both be the HyperNode "
    message += lower.hyper_node(first.key)
    return message + (f"; so with {names.listed(other.key for _, other in rest)}" if rest else "")


def _template_pointer(index: Index, tier: Tier) -> Pointer:
    declared = index.topology["tiers"][tier.number - 1]
    return (*tier.pointer, "nameTemplate") if "nameTemplate" in declared else tier.pointer


def _template_faults(index: Index, domains: Domains, tier: Tier) -> Iterator[Problem]:
    assert index.environment is not None
    own = [domain for domain in domains.nodes if domains.tiers[domain.tier] == tier]
    pointer = _template_pointer(index, tier)
    if "{domain}" not in tier.template and len(own) > 1:
        message = f"all {len(own)} domains of tier {tier.name} would be the HyperNode {tier.hyper_node('')}"
        yield Problem(index.environment, pointer, message, "put {domain} into the nameTemplate")
        return
    lengths = {domain: len(tier.hyper_node(domain.key)) for domain in own}
    wrong = [domain for domain, length in lengths.items() if not 0 < length <= names.SUBDOMAIN_LENGTH]
    if wrong:
        worst = max(wrong, key=lambda domain: (lengths[domain], domain.key))
        others = f", and so do {len(wrong) - 1} others" if len(wrong) > 1 else ""
        message = f"{tier.name} {worst.key} makes a HyperNode name of {lengths[worst]} characters{others}"
        hint = f"names have 1 to {names.SUBDOMAIN_LENGTH} characters: shorten the nameTemplate"
        yield Problem(index.environment, pointer, message, hint)


def topology_label_is_current(index: Index) -> Iterator[Problem]:
    present = set[str]().union(*(node.labels for node in index.participants))  # few keys, many nodes
    speaking = [dialect for dialect in DIALECTS if any(map(dialect.has, present))]
    for dialect in speaking:
        if dialect.replaced_by:
            nodes = dialect.carriers(index.participants)
            message = f"{len(nodes)} of {len(index.participants)} nodes carry the outdated labels {dialect.name}"
            hint = f"relabel: {dialect.replaced_by} replaces them"
            yield Problem(index.place_of(nodes[0]), (*_LABELS, dialect.label_of(nodes[0])), message, hint)
    current = [dialect for dialect in speaking if not dialect.replaced_by]
    yield from _disagreeing(index, current)


def _disagreeing(index: Index, dialects: list[Dialect]) -> Iterator[Problem]:
    """Labels of different dialects that contradict. What the Environment's tiers read is one of them: whether that is a
    tree in itself, the rules of domains judge."""
    own = {tier.label for tier in index.domains.tiers}
    read = sorted({tier.label for tier in index.domains.tiers if tier.pattern is None})
    spoken = {each: [key for key in each.keys_of(index.participants) if key not in own] for each in dialects}
    rivals = [([key for key in read if not each.has(key)], keys) for each, keys in spoken.items()]
    for found in crossings(index.participants, [*rivals, *itertools.combinations(spoken.values(), 2)]):
        yield _crossing(index, found, own)


def _crossing(index: Index, found: Crossing, own: set[str]) -> Problem:
    """Found at the label that the tiers do not read."""
    listed = names.listed(node.name for node in found.nodes)
    message = (
        f"{found.one}={found.values[0]} and {found.other}={found.values[1]} disagree: both hold {listed}, "
        f"and each holds others, {found.sizes[0]} and {found.sizes[1]} nodes in all"
    )
    label = found.one if found.other in own else found.other
    return Problem(
        index.place_of(found.nodes[0]), (*_LABELS, label), message, "keep the labels that are right, remove the others"
    )


_TOPOLOGY = (Fact.TOPOLOGY, Fact.NODES)
RULES = (
    Rule("node-has-every-tier", Severity.ERROR, node_has_every_tier, needs=_TOPOLOGY, scope=Scope.FABRIC),
    Rule("domain-has-one-parent", Severity.ERROR, domain_has_one_parent, needs=_TOPOLOGY, scope=Scope.FABRIC),
    Rule("domain-name-is-unique", Severity.ERROR, domain_name_is_unique, needs=_TOPOLOGY, scope=Scope.FABRIC),
    Rule(
        "topology-label-is-current",
        Severity.WARNING,
        topology_label_is_current,
        needs=(Fact.NODES,),
        scope=Scope.FABRIC,
    ),
    *hyper_nodes.RULES,
    *tiers.RULES,
    *placement.RULES,
)
