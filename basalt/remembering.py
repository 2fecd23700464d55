"""What a run may take from an earlier one: what was found out of nodes and HyperNodes by themselves. Pure.

Only that a rule found nothing is kept, and a few sums; what it does find is found anew in every run. The key holds
everything that the index of the fabric is made from, so a rule that looks at this index alone has the same to say.
"""

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from basalt.index import Index
from basalt.quantities import Amount

KIND = "fabric"


class Known(NamedTuple):
    """The rules that find nothing in the fabric, and some of the index's views by their names."""

    silent: frozenset[str]
    views: Mapping[str, Any]


NOTHING = Known(frozenset(), {})


def key(index: Index) -> Iterator[str]:
    """All that nodes, HyperNodes and the topology follow from, as texts; inventories by the digest of their bytes."""
    return map(repr, index.fabric_sources)


def as_json(index: Index, silent: Collection[str]) -> dict[str, Any]:
    """For the next run."""
    capacity = {name: str(amount) for name, amount in index.capacity.items()}
    return {
        "silent": sorted(silent),
        "node_count": index.node_count,
        "offered": sorted(index.offered),
        "capacity": capacity,
    }


def from_json(kept: Any) -> Known:
    """What as_json told, by an earlier run of the same compiler; nothing where there was none."""
    if kept is None:
        return NOTHING
    capacity = {name: _amount(text) for name, text in kept["capacity"].items()}
    views = {"node_count": kept["node_count"], "offered": frozenset(kept["offered"]), "capacity": capacity}
    return Known(frozenset(kept["silent"]), views)


def _amount(text: str) -> Amount:
    amount = Fraction(text)
    return amount.numerator if amount.denominator == 1 else amount
