"""Which nodes the members of HyperNodes select, as Volcano's scheduler reads them.

Source: GetMembers in pkg/scheduler/api/hyper_node_info.go of Volcano.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import re2

from basalt import patterns
from basalt.loading.nodes import Node
from basalt.objects import mapping, sequence, strings
from basalt.pointers import Pointer

_PATTERNS_AT_ONCE = 500  # in one automaton: more make it slow, fewer make more passes over the nodes
_AUTOMATON_BYTES = 256 * 1024**2


class Member(NamedTuple):
    """One entry of spec.members: exact is the name it gives, None for a regexMatch or labelMatch."""

    pointer: Pointer
    type: str
    selector: Mapping[str, Any]
    exact: str | None

    @property
    def name_pointer(self) -> Pointer:
        return (*self.pointer, "selector", "exactMatch", "name")

    @property
    def pattern(self) -> str | None:
        """The regexMatch's pattern, where it has one."""
        pattern = mapping(self.selector.get("regexMatch")).get("pattern")
        return pattern if isinstance(pattern, str) else None

    @property
    def is_readable(self) -> bool:
        has_selector = self.exact is not None or self.pattern is not None or self.labels is not None
        return self.type in ("Node", "HyperNode") and has_selector

    @property
    def label_keys(self) -> set[str]:
        """The label keys that a node must have to be selected."""
        labels = mapping(self.labels)
        expressions = map(mapping, sequence(labels.get("matchExpressions")))
        return {*mapping(labels.get("matchLabels")), *(str(each.get("key")) for each in expressions if _is_in(each))}

    @property
    def labels(self) -> Mapping[str, Any] | None:
        """The labelMatch, where it has one."""
        labels = self.selector.get("labelMatch")
        return labels if isinstance(labels, Mapping) else None


class Selection:
    """What members select among the nodes: one pass over the nodes for all of them."""

    def __init__(self, nodes: Sequence[Node], members: Sequence[Member]) -> None:
        self._nodes = nodes
        self._members = members

    def of(self, member: Member) -> Sequence[str]:
        found: list[Sequence[str]] = [[member.exact]] if member.exact else []
        if member.pattern in self._by_pattern:
            found.append(self._by_pattern[member.pattern])
        if (selector := member.labels) is not None:
            alike = self._candidates(selector)
            found.append([node.name for node in alike if matches_labels(selector, node.labels)])
        return found[0] if len(found) == 1 else list(dict.fromkeys(itertools.chain(*found)))

    def _candidates(self, selector: Mapping[str, Any]) -> Iterable[Node]:
        """The fewest nodes that are known to hold all that the selector selects."""
        found = [self._having(key, [value]) for key, value in mapping(selector.get("matchLabels")).items()]
        expressions = map(mapping, sequence(selector.get("matchExpressions")))
        found += [self._having(each.get("key"), each.get("values")) for each in expressions if _is_in(each)]
        return min(found, key=len, default=self._nodes)

    def _having(self, key: Any, values: Any) -> list[Node]:
        by_value = self.by_label.get(key, {}) if isinstance(key, str) else {}
        return [node for value in dict.fromkeys(strings(values)) for node in by_value.get(value, ())]

    @cached_property
    def by_label(self) -> dict[str, dict[str, list[Node]]]:
        """For each label key that some selector reads, and each of its values, the nodes that carry it."""
        found: dict[str, dict[str, list[Node]]] = {}
        for member in self._members:
            labels = member.labels or {}
            found.update((key, {}) for key in mapping(labels.get("matchLabels")))
            expressions = map(mapping, sequence(labels.get("matchExpressions")))
            found.update((key, {}) for each in expressions if isinstance(key := each.get("key"), str))
        for node in self._nodes:
            for key, value in node.labels.items():
                if key in found:
                    found[key].setdefault(value, []).append(node)
        return found

    @cached_property
    def _by_pattern(self) -> dict[str, list[str]]:
        """For each pattern that some member reads the names of the nodes that match it anywhere, as Go's regexp."""
        wanted = sorted({member.pattern for member in self._members if member.pattern})
        wanted = [pattern for pattern in wanted if patterns.fault(pattern) is None]
        texts = [node.name for node in self._nodes]
        found: dict[str, list[str]] = {pattern: [] for pattern in wanted}
        for start in range(0, len(wanted), _PATTERNS_AT_ONCE):
            some = wanted[start : start + _PATTERNS_AT_ONCE]
            automaton = _automaton(some)
            for text in texts:
                for position in automaton.Match(text) or ():
                    found[some[position]].append(text)
        return found


def _is_in(expression: Mapping[str, Any]) -> bool:
    return bool(expression.get("operator") == "In")


def _automaton(some: Sequence[str]) -> "re2.Set":
    """All patterns as one, so that a text is read once for all of them."""
    options = re2.Options()
    options.max_mem = _AUTOMATON_BYTES
    options.log_errors = False
    automaton = re2.Set.SearchSet(options)
    for pattern in some:
        automaton.Add(pattern)
    automaton.Compile()
    return automaton


def matches_labels(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a Kubernetes LabelSelector selects the labels; an empty one selects nothing, as HyperNodes read it."""
    wanted = mapping(selector.get("matchLabels"))
    expressions = sequence(selector.get("matchExpressions"))
    if not wanted and not expressions:
        return False
    exact = all(labels.get(key) == value for key, value in wanted.items())
    return exact and all(_holds(mapping(each), labels) for each in expressions)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if expression_fault(expression):
        return False
    key, values = str(expression.get("key")), sequence(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
    return key not in labels


def expression_fault(expression: Mapping[str, Any]) -> str | None:
    """Why Kubernetes refuses the expression, and with it the whole selector; None where it does not.

    Source: NewRequirement in k8s.io/apimachinery/pkg/labels/selector.go.
    """
    operator, values = expression.get("operator"), sequence(expression.get("values"))
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        return f"the operator {operator} is none of In, NotIn, Exists, DoesNotExist"
    if operator in ("In", "NotIn") and not values:
        return f"{operator} has no values"
    if operator in ("Exists", "DoesNotExist") and values:
        return f"{operator} takes no values"
    return None
