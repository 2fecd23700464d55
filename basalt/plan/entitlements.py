"""What queues are entitled to, and which of these amounts move."""

from collections.abc import Iterator
from typing import NamedTuple

from basalt.quantities import Amount, show
from basalt.views.queue_tree import POINTERS, Queue, QueueTree


class Move(NamedTuple):
    """One amount of a queue; None where the queue does not name the resource, or is not there."""

    queue: str
    resource: str
    field: str
    before: Amount | None
    after: Amount | None

    @property
    def shown(self) -> tuple[str | None, str | None]:
        """The amounts before and after, in the usual text."""
        before, after = (None if each is None else show(each, self.resource) for each in (self.before, self.after))
        return before, after


def moves(base: QueueTree, head: QueueTree) -> Iterator[Move]:
    """The amounts that differ, by queue, resource and field."""
    for name in sorted({*base.queues, *head.queues}):
        before, after = ({**_amounts(tree.queues.get(name))} for tree in (base, head))
        for resource, field in sorted({*before, *after}):
            old, new = before.get((resource, field)), after.get((resource, field))
            if old != new:
                yield Move(name, resource, field, old, new)


def _amounts(queue: Queue | None) -> dict[tuple[str, str], Amount]:
    fields = POINTERS if queue is not None else ()
    return {(name, field): amount for field in fields if queue for name, amount in queue.amounts(field).items()}
