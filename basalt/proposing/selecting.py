"""Labels that tell some nodes from the others, as a nodeSelector needs them."""

import itertools
import re
from collections.abc import Sequence

from basalt import names
from basalt.loading.nodes import Node
from basalt.proposing import vocabulary

_MOST = 40  # labels that are looked at
# By what nodes are best told apart, the best first: what people call a pool before what a tool measures.
_RANKS = (
    re.compile(r"node-role\.kubernetes\.io/(gpu|.*gpu.*)|nvidia\.com/gpu\.present|amd\.com/gpu\.present"),
    re.compile(r".*(pool|node-?group)[^/]*"),
    re.compile(r"node\.kubernetes\.io/instance-type"),
    re.compile(r".*(gpu\.product|accelerator)[^/]*"),
    re.compile(r"node-role\.kubernetes\.io/.*"),
    re.compile(r"(?!(.*\.)?(nvidia\.com|kubernetes\.io|k8s\.io)/).*"),
)
_NEVER = re.compile(r"kubernetes\.io/hostname|feature\.node\.kubernetes\.io/.*|.*(version|timestamp|driver|cuda)[^/]*")


def selector(inside: Sequence[Node], outside: Sequence[Node]) -> dict[str, str] | None:
    """The labels that all nodes inside carry and none of those outside; {} where there is nobody outside, None where
    no label, and no two labels, tell them apart."""
    if not outside or not inside:
        return {} if not outside else None
    common = _common(inside)
    seen = {frozenset(pair for pair in common if node.labels.get(pair[0]) == pair[1]) for node in outside}
    for pair in common:
        if not any(pair in carried for carried in seen):
            return dict([pair])
    for both in itertools.combinations(common, 2):
        if not any(carried.issuperset(both) for carried in seen):
            return dict(both)
    return None


def _common(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    """The labels that all of them carry, the best to select by first."""
    shared = dict(nodes[0].labels)
    for node in nodes[1:]:
        labels = node.labels
        shared = {key: value for key, value in shared.items() if labels.get(key) == value}
    usable = [each for each in shared.items() if _is_usable(*each)]
    return sorted(usable, key=lambda each: (_rank(each[0]), len(each[0]), each))[:_MOST]


def _is_usable(key: str, value: str) -> bool:
    """Whether it may be selected by: no API server takes a label that breaks the form, but a file may hold one."""
    if _NEVER.fullmatch(key) or vocabulary.key_of(key):
        return False
    return names.qualified_fault(key) is None and names.label_value_fault(value) is None


def _rank(key: str) -> int:
    return next((rank for rank, pattern in enumerate(_RANKS) if pattern.fullmatch(key)), len(_RANKS))
