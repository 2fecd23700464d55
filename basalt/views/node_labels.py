"""The labels that node-feature-discovery puts on nodes by declared rules: those that name their nodes one by one, as
the part `gpu` makes them. What a rule says goes before what the inventory, which may be older, has."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping, sequence, strings

_KIND = ("nfd.k8s-sigs.io", "NodeFeatureRule")


def labelled(nodes: Iterable[Node], objects: Iterable[KubeObject]) -> tuple[Node, ...]:
    """The nodes with those labels."""
    given = labels_given(objects)
    return tuple(_with(node, given[node.name]) if node.name in given else node for node in nodes)


def labels_given(objects: Iterable[KubeObject]) -> dict[str, dict[str, str]]:
    """The labels that rules give, by the name of the node."""
    given: dict[str, dict[str, str]] = {}
    for rule in _rules(objects):
        labels = {key: value for key, value in mapping(rule.get("labels")).items() if isinstance(value, str)}
        for name in _names(rule):
            given.setdefault(name, {}).update(labels)
    return given


def _rules(objects: Iterable[KubeObject]) -> Iterator[Mapping[str, Any]]:
    for each in objects:
        if (each.ref.group, each.ref.kind) == _KIND:
            yield from map(mapping, sequence(each.spec.get("rules")))


def _names(rule: Mapping[str, Any]) -> list[str]:
    """The nodes that a rule names; none where it asks for anything else."""
    matches = [mapping(each) for each in sequence(rule.get("matchFeatures"))]
    if len(matches) != 1 or "matchAny" in rule or matches[0].get("feature") != "system.name":
        return []
    expressions = mapping(matches[0].get("matchExpressions"))
    expression = mapping(expressions.get("nodename"))
    return strings(expression.get("value")) if len(expressions) == 1 and expression.get("op") == "In" else []


def _with(node: Node, labels: Mapping[str, str]) -> Node:
    metadata = msgspec.structs.replace(node.metadata, labels={**node.labels, **labels})
    return msgspec.structs.replace(node, metadata=metadata)
