"""How many nodes domains have, and which of them shrink or grow."""

from collections.abc import Iterator
from typing import NamedTuple

from basalt.views.hyper_nodes import HyperNode, HyperNodes


class Resized(NamedTuple):
    """A HyperNode that has another number of nodes; 0 where it is not there. tier is its tier's name, the number where
    it has none, None where it has neither."""

    name: str
    tier: str | int | None
    before: int
    after: int


def resized(base: HyperNodes, head: HyperNodes) -> Iterator[Resized]:
    """The HyperNodes whose number of nodes differs, by tier, the lowest first, and name. Where it cannot be known, for
    want of an inventory, nothing is said."""
    if not all(tree.is_known(each) for tree in (base, head) for each in tree):
        return
    declared = {**base.by_name, **head.by_name}
    for each in sorted(declared.values(), key=_order):
        before, after = (len(tree.nodes_below.get(each.name, ())) for tree in (base, head))
        if before != after:
            yield Resized(each.name, each.tier_name or each.tier, before, after)


def _order(each: HyperNode) -> tuple[int, str]:
    return each.tier or 0, each.name
