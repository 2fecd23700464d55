"""HyperNodes to the tiers of a topology that might make them: the label, or the part of one, by whose value the nodes
fall into just these domains. Pure."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt import patterns
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import get

_DELIMITERS = "-._"
_ESCAPED = {"-": "-", ".": r"\.", "_": "_"}
_MOST_PARTS = 6
Tier = dict[str, Any]


class _Domain(NamedTuple):
    name: str
    nodes: frozenset[str]


def topologies(objects: Iterable[KubeObject], nodes: Sequence[Node]) -> Iterator[Tier]:
    """Topologies that might make the HyperNodes, the plainest first; none where a tier follows from no label."""
    found = [each for each in objects if (each.ref.group, each.ref.kind) == ("topology.volcano.sh", "HyperNode")]
    levels = _levels(found, nodes)
    if not levels:
        return
    by_tier = [sorted(_tiers(level, nodes), key=lambda tier: ("pattern" in tier, len(tier))) for level in levels]
    names = _names(found, len(levels))
    for chosen in itertools.islice(itertools.product(*by_tier), 24):
        tiers = [{"name": _free(names[at], tier, at, chosen), **tier} for at, tier in enumerate(chosen)]
        if len({tier["name"] for tier in tiers}) < len(tiers):
            tiers = [{**tier, "name": f"tier-{at}"} for at, tier in enumerate(tiers, 1)]
        yield _topology(tiers, found, nodes)


def _topology(tiers: list[Tier], found: list[KubeObject], nodes: Sequence[Node]) -> dict[str, Any]:
    topology: dict[str, Any] = {}
    leaf = tiers[0]["label"]
    selectors = [each for member in _members(found) if (each := get(member, ("selector", "labelMatch"))) is not None]
    if selectors:
        topology["members"] = "label"
        own = [mapping(mapping(each).get("matchLabels")) for each in selectors]
        if shared := {key: text for key, text in own[0].items() if key != leaf and all(key in each for each in own)}:
            topology["nodeSelector"] = shared
    if not any("tierName" in each.spec for each in found):
        topology["tierNames"] = False
    taking = [node for node in nodes if node.carries(topology.get("nodeSelector", {}))]
    if any(tier["label"] not in node.labels for tier in tiers for node in taking):
        topology["unplaced"] = "allow"
    return {**topology, "tiers": tiers}


def _members(found: Iterable[KubeObject]) -> Iterator[Mapping[str, Any]]:
    for each in found:
        yield from map(mapping, sequence(each.spec.get("members")))


def _names(found: list[KubeObject], count: int) -> list[str | None]:
    """The name that the HyperNodes give each tier."""
    said = [{each.spec.get("tierName") for each in found if each.spec.get("tier") == at} for at in range(1, count + 1)]
    return [str(next(iter(names))) if len(names) == 1 and None not in names else None for names in said]


def _free(named: str | None, tier: Tier, at: int, chosen: Sequence[Tier]) -> str:
    """The tier's name: the HyperNodes' own, else what its label is called where no other tier reads it."""
    if named is not None:
        return named
    is_alone = sum(each["label"] == tier["label"] for each in chosen) == 1
    return tier["label"].rpartition("/")[2] if is_alone else f"tier-{at + 1}"


def _levels(found: list[KubeObject], nodes: Sequence[Node]) -> list[list[_Domain]]:
    """The domains of each tier, from the lowest; empty where the tiers are not numbered from 1 on."""
    known = {node.name: node for node in nodes}
    numbers = {each.spec.get("tier") for each in found}
    if not known or not found or numbers != set(range(1, len(numbers) + 1)):
        return []
    held: dict[str, frozenset[str]] = {}
    levels: list[list[_Domain]] = []
    for number in range(1, len(numbers) + 1):
        level = []
        for each in (each for each in found if each.spec.get("tier") == number):
            held[each.name] = frozenset(name for member in _members([each]) for name in _nodes(member, held, known))
            level.append(_Domain(each.name, held[each.name]))
        levels.append(level)
    return levels


def _nodes(member: Mapping[str, Any], held: Mapping[str, frozenset[str]], known: Mapping[str, Node]) -> Iterator[str]:
    """The nodes of the inventory that a member brings."""
    exact, selected = (get(member, ("selector", *at)) for at in (("exactMatch", "name"), ("labelMatch",)))
    if isinstance(exact, str):
        yield from held.get(exact, ()) if member.get("type") == "HyperNode" else {exact} & known.keys()
    elif isinstance(selected, Mapping):
        labels = mapping(selected.get("matchLabels"))
        any_of = [mapping(each) for each in sequence(selected.get("matchExpressions"))]
        for node in known.values():
            in_all = all(node.labels.get(str(each.get("key"))) in sequence(each.get("values")) for each in any_of)
            if in_all and node.carries(labels):
                yield node.name


def _tiers(level: list[_Domain], nodes: Sequence[Node]) -> Iterator[Tier]:
    """The labels, and parts of labels, by which the nodes fall into just these domains."""
    by_name = {node.name: node for node in nodes}
    keys = sorted({key for domain in level for name in domain.nodes for key in by_name[name].labels})
    for pattern in (None, *_patterns()):
        for key in keys:
            if not _names_one(level[0], by_name, key, pattern):
                continue  # the cheap look first: there are many labels, and many nodes
            if (template := _template(level, by_name, key, pattern)) is not None:
                tier: Tier = {"label": key}
                tier |= {} if pattern is None else {"pattern": pattern}
                yield tier if template == "{domain}" else {**tier, "nameTemplate": template}


def _names_one(domain: _Domain, nodes: Mapping[str, Node], key: str, pattern: str | None) -> bool:
    first: str | None = None
    for value in {nodes[name].labels.get(key) for name in domain.nodes}:
        part = _part(value, pattern)
        if part is None or first not in (None, part):
            return False
        first = part
    return first is not None


def _patterns() -> Iterator[str]:
    """The first parts of a value, then its last ones, by each delimiter."""
    for delimiter, parts in itertools.product(_DELIMITERS, range(1, _MOST_PARTS)):
        yield f"^({_ESCAPED[delimiter].join([f'[^{delimiter}]+'] * parts)}){_ESCAPED[delimiter]}"
    for delimiter in _DELIMITERS:
        yield f"{_ESCAPED[delimiter]}([^{delimiter}]+)$"


def _template(level: list[_Domain], nodes: Mapping[str, Node], key: str, pattern: str | None) -> str | None:
    """The nameTemplate under which the label names these domains; None where it does not."""
    values: dict[str, set[str]] = {}
    for node in nodes.values():
        if part := _part(node.labels.get(key), pattern):
            values.setdefault(part, set()).add(node.name)
    template: str | None = None
    by_nodes = {frozenset(names): part for part, names in values.items()}
    for domain in level:
        value = by_nodes.get(domain.nodes)
        folded = value.lower().replace("_", "-") if value else ""
        if not folded or folded not in domain.name:
            return None
        before, _, after = domain.name.rpartition(folded)
        if template not in (None, made := f"{before}{{domain}}{after}"):
            return None
        template = made
    return template


def _part(value: str | None, pattern: str | None) -> str | None:
    if value is None or pattern is None:
        return value
    found = patterns.compile_pattern(pattern).search(value)
    return found.group(1) if found else None
