"""Two environments, the base and the head, and what follows from both together."""

from functools import cached_property

from basalt.index import Index
from basalt.plan import domains, entitlements, objects, preemption, turns
from basalt.plan.domains import Resized
from basalt.plan.entitlements import Move
from basalt.plan.objects import Difference
from basalt.plan.preemption import Edges
from basalt.plan.turns import Turn


class Pair:
    """Immutable; every view is computed once, when first asked for."""

    def __init__(self, base: Index, head: Index) -> None:
        self.base = base
        self.head = head

    @cached_property
    def objects(self) -> Difference:
        return objects.difference(self.base.objects, self.head.objects, self.head.catalog)

    @cached_property
    def jobs(self) -> tuple[Turn, ...]:
        """Every job of either side."""
        return turns.jobs(self.base, self.head)

    @cached_property
    def turned(self) -> tuple[Turn, ...]:
        """The jobs whose verdicts differ."""
        return turns.turned(self.jobs)

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        return tuple(entitlements.moves(self.base.queues, self.head.queues))

    @cached_property
    def preemption(self) -> Edges:
        return preemption.edges(self.base, self.head)

    @cached_property
    def resized(self) -> tuple[Resized, ...]:
        return tuple(domains.resized(self.base.hyper_nodes, self.head.hyper_nodes))
