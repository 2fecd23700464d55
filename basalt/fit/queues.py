"""What a queue may really take: its capability and those above it, less what other queues are guaranteed.

Source: checkHierarchicalQueue and queueAllocatable in pkg/scheduler/plugins/capacity/capacity.go of Volcano.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from basalt.quantities import Amount, Resources, add
from basalt.views.queue_tree import ROOT, Queue, QueueTree

_IN_BYTES_AND_CORES = ("cpu", "memory")  # of which 0 is taken for not set


class Ceiling(NamedTuple):
    """The most that what runs in a queue may take; a resource that is not in it is not limited."""

    queue: str
    amounts: Resources


def ceilings(tree: QueueTree, total: Resources, *, is_hierarchical: bool) -> dict[str, list[Ceiling]]:
    """For each queue that jobs may name the ceilings that hold for it, its own first. total is what all nodes offer."""
    own = {ROOT: total}
    if is_hierarchical:
        own |= _below(tree, ROOT, total, _capability_of(tree, ROOT, total))
        return {name: [Ceiling(each, own[each]) for each in way_up(tree, name) if each in own] for name in tree.names()}
    guaranteed = add(*(queue.guarantee for queue in tree))
    for queue in tree:
        real = _real(total, guaranteed, queue)
        own[queue.name] = _least(real, _set(queue.capability))
    own.setdefault("default", _less(total, guaranteed))
    return {name: [Ceiling(name, amounts)] for name, amounts in own.items()}


def _below(tree: QueueTree, parent: str, real: Resources, capability: Resources) -> dict[str, Resources]:
    """The ceilings of the queues under a parent, whose own ceiling and capability are known."""
    children = [*tree.children.get(parent, ())]
    guaranteed = add(*(child.guarantee for child in children))
    found: dict[str, Resources] = {}
    for child in children:
        inherited = {**capability, **_set(child.capability)}
        found[child.name] = _least(_real(real, guaranteed, child), inherited)
        found |= _below(tree, child.name, found[child.name], inherited)
    if parent == ROOT and "default" not in tree.queues:
        found["default"] = _least(_less(real, guaranteed), capability)
    return found


def _capability_of(tree: QueueTree, name: str, otherwise: Resources) -> Resources:
    queue = tree.queues.get(name)
    return {**otherwise, **_set(queue.capability)} if queue and _set(queue.capability) else otherwise


def _set(capability: Resources) -> Resources:
    return {name: amount for name, amount in capability.items() if amount or name not in _IN_BYTES_AND_CORES}


def _real(total: Resources, guaranteed: Resources, queue: Queue) -> Resources:
    return add(_less(total, guaranteed), queue.guarantee)


def _less(total: Resources, taken: Mapping[str, Amount]) -> Resources:
    return {name: max(0, amount - taken.get(name, 0)) for name, amount in total.items()}


def _least(real: Resources, capability: Resources) -> Resources:
    return {name: min(amount, capability.get(name, amount)) for name, amount in real.items()}


def way_up(tree: QueueTree, name: str) -> Iterable[str]:
    """The queue and those above it."""
    queue = tree.queues.get(name)
    above = [each.name for each in tree.ancestors(queue)] if queue else []
    return [name, *above, ROOT]
