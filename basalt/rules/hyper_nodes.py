"""The family Topology, second part: HyperNodes and their members, generated or written by hand."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt import names, patterns
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping, sequence
from basalt.rules.bounds import MANY, bounded, joined
from basalt.rules.rule import Rule, Scope
from basalt.views.hyper_nodes import SOURCE_LABEL, HyperNode, HyperNodes, one_letter_off
from basalt.views.node_selection import Member, expression_fault
from basalt.views.topology_discovery import enabled_sources

_COMPARED = 1000  # known names that are compared with a misspelt one letter by letter


def hypernode_has_one_parent(index: Index) -> Iterator[Problem]:
    yield from bounded(_second_parents(index.hyper_nodes))


def _second_parents(hyper_nodes: HyperNodes) -> Iterator[Problem]:
    hint = "keep it in one: while it is in two, Volcano schedules no job that has networkTopology"
    for child, above in hyper_nodes.parents.items():
        held = {parent.name: member for parent, member in reversed(above)}
        holders = dict.fromkeys(parent.name for parent, _ in above)
        outside = [hyper_nodes.by_name[name] for name in holders if not hyper_nodes.is_circular(name, child)]
        message = f"{child} is a member of {joined([each.name for each in outside], ' and of ')}"
        for parent in hyper_nodes.newcomers(outside):
            yield Problem(parent.object, held[parent.name].name_pointer, message, hint)


def hypernode_tree_has_no_cycle(index: Index) -> Iterator[Problem]:
    hyper_nodes = index.hyper_nodes
    for circle in hyper_nodes.circles:
        seen: set[tuple[str, str]] = set()
        ways = 0
        for parent, member in _leading_back(circle, hyper_nodes):
            if ways < MANY and (parent.name, member.exact) not in seen:
                way = [parent.name, *hyper_nodes.way(str(member.exact), parent.name)]
                seen.update(itertools.pairwise(way))
                ways += 1
                message = f"the members lead back: {' -> '.join(way)}"
                yield Problem(parent.object, member.name_pointer, message, "take one of the members out")


def _leading_back(circle: tuple[str, ...], hyper_nodes: HyperNodes) -> list[tuple[HyperNode, Member]]:
    """The members that keep the circle closed: those that name a HyperNode of no lower tier, the highest first."""
    inside = set(circle)
    found = [
        (parent, member)
        for parent in map(hyper_nodes.by_name.__getitem__, circle)
        for member in parent.of_type("HyperNode")
        if member.exact in inside and hyper_nodes.is_circular(parent.name, member.exact)
    ]
    rise = {
        (parent.name, member.exact): (hyper_nodes.by_name[str(member.exact)].tier or 0) - (parent.tier or 0)
        for parent, member in found
    }
    climbing = [each for each in found if rise[each[0].name, each[1].exact] >= 0] or found
    return sorted(climbing, key=lambda each: -rise[each[0].name, each[1].exact])


def hypernode_members_exist(index: Index) -> Iterator[Problem]:
    missing = (
        Problem(parent.object, member.name_pointer, f"names the {member.type} {member.exact}, which is not declared")
        for parent, member in index.hyper_nodes.missing_members()
        if member.type == "HyperNode" or index.knows(Fact.NODES)
    )
    hyper_nodes = index.hyper_nodes
    yield from bounded(missing, lambda found: found._replace(hint=_meant(hyper_nodes, member_at(found, hyper_nodes))))


def member_at(problem: Problem, hyper_nodes: HyperNodes) -> Member:
    """The member that the problem's pointer leads into."""
    assert problem.place.ref is not None
    return hyper_nodes.by_name[problem.place.ref.name].members[int(problem.pointer[2])]


def _meant(hyper_nodes: HyperNodes, member: Member) -> str:
    name = str(member.exact)
    if hyper_nodes.is_mistyped(member):
        other = "HyperNode" if member.type == "Node" else "Node"
        return f"{name} is a {other}: write type: {other}"
    known = hyper_nodes.node_by_name if member.type == "Node" else hyper_nodes.by_name
    if len(known) <= _COMPARED:
        return names.did_you_mean(name, known, otherwise="declare it, or take the member out")
    close = one_letter_off(name, known.keys())
    return f"did you mean {close}?" if close else "declare it, or take the member out"


def hypernode_child_is_named(index: Index) -> Iterator[Problem]:
    yield from bounded(_unnamed_children(index))


def _unnamed_children(index: Index) -> Iterator[Problem]:
    for parent, member in _members(index):
        if member.type != "HyperNode" or member.exact is not None:
            continue
        hint = "name each child by exactMatch"
        if not member.selector and not _is_given(parent, member):
            yield Problem(parent.object, member.pointer, "a member of type HyperNode without selector names none", hint)
        for field in ("regexMatch", "labelMatch"):
            if field in member.selector and "exactMatch" not in member.selector:
                message = f"a member of type HyperNode is selected by {field}, which Volcano ignores there"
                yield Problem(parent.object, (*member.pointer, "selector", field), message, hint)


def _is_given(parent: HyperNode, member: Member) -> bool:
    """Whether the selector is empty or no map: other rules speak about that. Nulls are as good as absent."""
    selector = mapping(parent.object.spec["members"][member.pointer[-1]]).get("selector")
    return selector is not None and not (isinstance(selector, Mapping) and selector)


def hypernode_selector_selects(index: Index) -> Iterator[Problem]:
    for parent, member in _members(index):
        if member.type == "Node" and not member.selector and not _is_given(parent, member):
            hint = "add exactMatch, regexMatch or labelMatch"
            yield Problem(parent.object, member.pointer, "a member without selector selects no node", hint)
        elif member.type == "Node" and member.labels is not None and (fault := _selector_fault(member.labels)):
            yield Problem(parent.object, (*member.pointer, "selector", "labelMatch"), *fault)
    if index.knows(Fact.NODES):
        hyper_nodes = index.hyper_nodes
        found = (problem for each in hyper_nodes.barren_members() if (problem := _selects_none(index, *each)))
        yield from bounded(
            found, lambda problem: problem._replace(hint=_way_out(hyper_nodes, member_at(problem, hyper_nodes)))
        )


def _selector_fault(labels: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a labelMatch selects nothing on any cluster."""
    if not labels.get("matchLabels") and not labels.get("matchExpressions"):
        return "an empty labelMatch selects no node", "add matchLabels"
    for expression in map(mapping, sequence(labels.get("matchExpressions"))):
        if fault := expression_fault(expression):
            return f"{fault}: the whole labelMatch then selects no node", "In and NotIn take values, the others none"
    return None


def _selects_none(index: Index, parent: HyperNode, member: Member) -> Problem | None:
    """What is to say about a selector that is sound and selects nothing; None where it is not sound."""
    none = f"selects none of the {len(index.nodes)} declared nodes"
    if member.labels is not None:
        parts = member.labels.get("matchLabels"), member.labels.get("matchExpressions")
        is_sound = isinstance(parts[0], Mapping | None) and isinstance(parts[1], list | None)
        if is_sound and not _selector_fault(member.labels):
            pointer = (*member.pointer, "selector", "labelMatch")
            return Problem(parent.object, pointer, f"labelMatch {_shown(member.labels)} {none}")
    elif member.pattern and patterns.fault(member.pattern) is None:
        pointer = (*member.pointer, "selector", "regexMatch")
        return Problem(parent.object, pointer, f"regexMatch {member.pattern} {none}")
    return None


def _way_out(hyper_nodes: HyperNodes, member: Member) -> str:
    if member.labels is None:
        return f"it is matched against the nodes' names, such as {next(iter(hyper_nodes.node_by_name))}"
    for key, value in mapping(member.labels.get("matchLabels")).items():
        known = hyper_nodes.nodes_by_value(key)
        if not known:
            return f"no node has the label {key}"
        if isinstance(value, str) and value not in known:
            free = [each for each, nodes in known.items() if not {*nodes} & hyper_nodes.placements.keys()]
            some = free if names.nearest(str(value), free[:_COMPARED]) else sorted(known)
            return names.did_you_mean(str(value), some[:_COMPARED], otherwise=f"no node has {key}={value}")
    return "no node meets all of it"


def _shown(selector: Mapping[str, Any]) -> str:
    wanted = [f"{key}={value}" for key, value in mapping(selector.get("matchLabels")).items()]
    for each in map(mapping, sequence(selector.get("matchExpressions"))):
        values = f" ({names.listed(map(str, sequence(each['values'])))})" if sequence(each.get("values")) else ""
        wanted.append(f"{each.get('key')} {each.get('operator')}{values}")
    return ", ".join(wanted)


def hypernode_pattern_is_re2(index: Index) -> Iterator[Problem]:
    yield from bounded(
        Problem(
            parent.object,
            (*member.pointer, "selector", "regexMatch", "pattern"),
            f"{member.pattern} is not an expression that Go reads: {fault}",
            "Go has no look-around, no back-references and no possessive repeats",
        )
        for parent, member in _members(index)
        if member.pattern and (fault := patterns.fault(member.pattern))
    )


def hypernode_is_ours(index: Index) -> Iterator[Problem]:
    yield from bounded(
        Problem(
            each,
            ("metadata", "labels", SOURCE_LABEL),
            f"{each.name} carries {SOURCE_LABEL}: Volcano's discovery deletes or rewrites such objects",
            "take the label out",
        )
        for each in index.raw_hyper_nodes
        if each.name and SOURCE_LABEL in each.labels
    )
    sources = list(enabled_sources(index.of_kind("ConfigMap"), index.chart_values))
    hyper_nodes = index.hyper_nodes if sources else ()
    for place, pointer, source in sources if len(hyper_nodes) else ():
        count = f"{len(hyper_nodes)} declared HyperNode{'s' * (len(hyper_nodes) > 1)}"
        message = f"discovery by {source} is on beside {count}"
        yield Problem(place, pointer, message, "switch it off, or declare no HyperNodes")


def _members(index: Index) -> Iterable[tuple[HyperNode, Member]]:
    return ((parent, member) for parent in index.hyper_nodes for member in parent.members)


RULES = (
    Rule("hypernode-has-one-parent", Severity.ERROR, hypernode_has_one_parent, scope=Scope.FABRIC),
    Rule("hypernode-tree-has-no-cycle", Severity.ERROR, hypernode_tree_has_no_cycle, scope=Scope.FABRIC),
    Rule(
        "hypernode-members-exist",
        Severity.ERROR,
        hypernode_members_exist,
        partly_needs=(Fact.NODES,),
        scope=Scope.FABRIC,
    ),
    Rule("hypernode-child-is-named", Severity.ERROR, hypernode_child_is_named, scope=Scope.FABRIC),
    Rule(
        "hypernode-selector-selects",
        Severity.ERROR,
        hypernode_selector_selects,
        partly_needs=(Fact.NODES,),
        scope=Scope.FABRIC,
    ),
    Rule("hypernode-pattern-is-re2", Severity.ERROR, hypernode_pattern_is_re2, scope=Scope.FABRIC),
    Rule("hypernode-is-ours", Severity.ERROR, hypernode_is_ours),
)
