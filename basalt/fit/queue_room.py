"""What the queues let the scheduler place, as it takes the pods: not the cheapest ones, but the first.

Source: calcPGMinResources in pkg/controllers/job, which says what a gang must find free to be enqueued, and
queueAllocatable in pkg/scheduler/plugins/capacity, which is asked for each pod, of Volcano v1.14.
"""

from collections.abc import Sequence

from basalt.fit.problem import Gang, Limit, Problem


class QueueRoom:
    """What is left of the queues' limits for the pods of one gang, on an otherwise empty cluster."""

    def __init__(self, problem: Problem, gang: Gang) -> None:
        limits = [limit for limit in problem.limits if _is_of_queue(limit) and gang.key in limit.costs]
        self._gang = gang
        self._costs = [limit.costs[gang.key] for limit in limits]
        self._left = [limit.amount - limit.beside.get(gang.key, 0) for limit in limits]

    @property
    def is_ample(self) -> bool:
        """Whether there is room for all pods, not only for as many as must start together."""
        return self._holds([shape.replicas for shape in self._gang.shapes])

    def enqueues(self) -> bool:
        """Whether the gang leaves the state Pending: counted are the pods that each task needs, and what is missing of
        the minimum from the first tasks on."""
        pods = [shape.need for shape in self._gang.shapes]
        missing = self._gang.minimum - sum(pods)
        for index, shape in enumerate(self._gang.shapes):
            more = max(0, min(missing, shape.replicas - pods[index]))
            pods[index] += more
            missing -= more
        return self._holds(pods)

    def takes(self, placed: Sequence[int], index: int) -> bool:
        """Whether there is room for one more pod of the shape beside those that are placed."""
        return self._holds([count + (each == index) for each, count in enumerate(placed)])

    def _holds(self, pods: Sequence[int]) -> bool:
        sums = (sum(cost * count for cost, count in zip(costs, pods, strict=True)) for costs in self._costs)
        return all(cost <= left for cost, left in zip(sums, self._left, strict=True))


def _is_of_queue(limit: Limit) -> bool:
    return limit.rule != "gang-fits-its-quota"
