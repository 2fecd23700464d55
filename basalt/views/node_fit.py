"""Which declared nodes would take a pod, as the predicates of Kubernetes and Volcano judge one node at a time: labels,
affinity, taints, and what it offers. Nothing that runs already is counted."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from basalt.loading.nodes import Node, Taint
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer, get
from basalt.quantities import Amount, Resources, parse
from basalt.views.node_selection import matches_labels

TERMS: Pointer = (
    "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms",
)  # fmt: skip
_ON_EVERY_NODE = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})  # unknown, not 0, where a node is silent
_SIZES = ("memory", "ephemeral-storage")  # hardly two nodes offer the same
_CLOSING = ("NoSchedule", "NoExecute")
_Shape = tuple[Node, Mapping[str, Amount | None]]


class Lack(NamedTuple):
    """The node that comes nearest to holding a pod, and what it lacks: resource -> (needed, offered)."""

    node: Node
    missing: Mapping[str, tuple[Amount, Amount]]


class Fleet:
    """The declared nodes, asked the same question again and again: every answer is kept."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = list(nodes)
        self._offers = {id(node): {name: parse(each) for name, each in node.allocatable.items()} for node in self.nodes}
        self._selected: dict[str, list[Node]] = {}
        self._open: dict[str, list[Node]] = {}
        self._shapes: dict[int, list[_Shape]] = {}  # by the identity of a list that is kept above
        self._fitting: dict[tuple[int, tuple[tuple[str, Amount], ...]], Lack | None] = {}
        self._faults: dict[str, Taint | None] = {}
        self._keys: dict[str, dict[str, list[Node]]] = {}

    @cached_property
    def offered(self) -> frozenset[str]:
        """The resources of which some node has any, or an amount that cannot be read."""
        some = {name for offers in self._offers.values() for name, amount in offers.items() if amount is None or amount}
        return frozenset(some)

    @cached_property
    def is_silent(self) -> bool:
        """Whether some node does not say what it offers."""
        return not all(self._offers.values())

    def values(self, key: str) -> Mapping[str, list[Node]]:
        """The values of the label, each with the nodes that carry it."""
        if key not in self._keys:
            found: dict[str, list[Node]] = {}
            for node in self.nodes:
                if (value := node.labels.get(key)) is not None:
                    found.setdefault(value, []).append(node)
            self._keys[key] = found
        return self._keys[key]

    @cached_property
    def label_keys(self) -> frozenset[str]:
        return frozenset(key for node in self.nodes for key in node.labels)

    def selected(self, pod: Mapping[str, Any]) -> list[Node]:
        """The nodes with the labels that the pod asks for."""
        selector, terms = mapping(pod.get("nodeSelector")), get(pod, TERMS)
        asked = repr((selector, terms))
        if asked not in self._selected:
            found = self.nodes
            if selector:
                key, value = next(iter(selector.items()))
                found = self.values(str(key)).get(value, []) if isinstance(value, str) else []
            has = [node for node in found if all(node.labels.get(key) == each for key, each in selector.items())]
            if isinstance(terms, list):
                has = [node for node in has if any(_meets(mapping(term), node) for term in terms)]
            self._selected[asked] = has
        return self._selected[asked]

    def candidates(self, pod: Mapping[str, Any], *, with_taints: bool = True) -> list[Node]:
        """Of the selected nodes those that take new pods, and whose taints it tolerates."""
        selected = self.selected(pod)
        asked = f"{id(selected)} {repr(pod.get('tolerations')) if with_taints else ''}"
        if asked not in self._open:
            found = [node for node in selected if node.takes_pods]
            self._open[asked] = [node for node in found if not (with_taints and self.intolerable(node, pod))]
        return self._open[asked]

    def intolerable(self, node: Node, pod: Mapping[str, Any]) -> Taint | None:
        """The first taint that keeps the pod off the node."""
        taints = node.spec.taints
        if not taints:
            return None
        tolerations = [mapping(each) for each in sequence(pod.get("tolerations"))]
        asked = repr((taints, tolerations))
        if asked not in self._faults:
            closing = (taint for taint in taints if taint.effect in _CLOSING)
            self._faults[asked] = next((each for each in closing if not _tolerated(each, tolerations)), None)
        return self._faults[asked]

    def lack(self, nodes: list[Node], requests: Resources) -> Lack | None:
        """None where one of the nodes, as the fleet gave them, holds the requests; else the one that comes nearest."""
        asked = id(nodes), tuple(sorted(requests.items()))
        if asked not in self._fitting:
            self._fitting[asked] = _nearest(self._shapes_of(nodes), requests)
        return self._fitting[asked]

    def holder(self, requests: Resources) -> Node | None:
        """A node that holds the requests, be it closed to the pod."""
        every = self._shapes_of(self.nodes)
        return next((shape[0] for shape in every if _nearest([shape], requests) is None), None)

    def _shapes_of(self, nodes: list[Node]) -> list[_Shape]:
        """The nodes that differ in what they offer, without those that another one covers."""
        asked = id(nodes)
        if asked not in self._shapes:
            groups: dict[tuple[tuple[str, str | int | float], ...], list[Node]] = {}
            for node in nodes:
                rest = sorted((name, each) for name, each in node.allocatable.items() if name not in _SIZES)
                groups.setdefault(tuple(rest), []).append(node)
            found = [each for group in groups.values() for each in self._largest(group)]
            self._shapes[asked] = [(node, self._offers[id(node)]) for node in found]
        return self._shapes[asked]

    def _largest(self, nodes: list[Node]) -> Iterator[Node]:
        """Of nodes that differ in sizes only, those that no other one covers."""
        sizes = [(tuple(self._size(node, name) for name in _SIZES), node) for node in nodes]
        sizes.sort(key=lambda each: each[0], reverse=True)
        most: Amount | float = -1
        for (_, storage), node in sizes:
            if storage > most:
                most = storage
                yield node

    def _size(self, node: Node, name: str) -> Amount | float:
        amount = self._offers[id(node)].get(name)
        return float("inf") if amount is None else amount


def _nearest(shapes: Iterable[_Shape], requests: Resources) -> Lack | None:
    best: tuple[int, float, Lack] | None = None
    for node, offers in shapes:
        missing = {}
        for name, need in {**requests, "pods": 1}.items():
            has = offers.get(name, None if name in _ON_EVERY_NODE or name in offers else 0)
            if has is not None and need > has:
                missing[name] = (need, has)
        if not missing:
            return None
        short = sum(float((need - has) / need) for need, has in missing.values())
        if best is None or (len(missing), short) < best[:2]:
            best = len(missing), short, Lack(node, missing)
    return best[2] if best else None


def _tolerated(taint: Taint, tolerations: Iterable[Mapping[str, Any]]) -> bool:
    """ToleratesTaint in k8s.io/component-helpers/scheduling/corev1/helpers.go."""
    for each in tolerations:
        operator = each.get("operator") or "Equal"
        is_meant = (each.get("effect") or taint.effect) == taint.effect and (each.get("key") or taint.key) == taint.key
        is_alike = operator != "Equal" or (each.get("value") or "") == taint.value
        if is_meant and is_alike and (each.get("key") or operator == "Exists"):
            return True
    return False


def _meets(term: Mapping[str, Any], node: Node) -> bool:
    """Whether the node meets a term of node affinity; an empty one selects nothing.

    Source: nodeSelectorTerm.match in k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
    """
    labels, fields = sequence(term.get("matchExpressions")), sequence(term.get("matchFields"))
    own = {"metadata.name": node.name}
    return bool(labels or fields) and (
        all(holds(mapping(each), node.labels) for each in labels) and all(holds(mapping(each), own) for each in fields)
    )


def holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether the labels meet one expression of node affinity."""
    operator = expression.get("operator")
    if operator not in ("Gt", "Lt"):
        return matches_labels({"matchExpressions": [expression]}, labels)
    try:
        (bound,) = map(int, sequence(expression.get("values")))
        value = int(labels[str(expression.get("key"))])
    except (ValueError, KeyError, TypeError):
        return False
    return value > bound if operator == "Gt" else value < bound
