"""Gangs that a queue could hold, and that Volcano leaves Pending for the sake of it: seen on v1.14.1."""

import pytest

from basalt.fit import pod_by_pod
from basalt.fit.pod_by_pod import Scoring
from basalt.fit.problem import Gang, Key, Limit, Problem, Shape
from basalt.quantities import Resources

KEY = Key("Job", "default", "a")
NODES = frozenset(f"n{each}" for each in range(8))


def gang(minimum: int, *tasks: tuple[int, int, int]) -> tuple[Gang, tuple[int, ...]]:
    """The gang of tasks of so many pods, of which so many are needed, which request so many CPUs each."""
    shapes = tuple(Shape(f"w{each}", pods, need, {"cpu": cpus}, NODES)
                   for each, (pods, need, cpus) in enumerate(tasks))  # fmt: skip
    return Gang(KEY, minimum, shapes, None), tuple(cpus for _, _, cpus in tasks)


@pytest.mark.parametrize(
    ("capability", "minimum", "tasks", "is_found"),
    [
        pytest.param(16, 3, [(6, 2, 5), (5, 1, 3)], True, id="whichever pod comes third, the second of w0 has room"),
        pytest.param(15, 3, [(6, 2, 5), (5, 1, 3)], False, id="a second pod of w1 comes before the second of w0"),
        pytest.param(13, 3, [(2, 2, 5), (1, 1, 3)], True, id="there is no second pod of w1"),
        pytest.param(6, 2, [(2, 0, 4), (2, 0, 2)], False, id="counted with the first pods, it is not even enqueued"),
        pytest.param(6, 2, [(2, 0, 2), (2, 0, 4)], True, id="the first pods are the small ones"),
        pytest.param(60, 3, [(6, 2, 5), (5, 1, 3)], True, id="room for all"),
    ],
)
def test_the_scheduler_finds_a_place_within_the_queue(
    capability: int, minimum: int, tasks: list[tuple[int, int, int]], is_found: bool
) -> None:
    found, costs = gang(minimum, *tasks)
    free: dict[str, Resources] = {node: {"cpu": 64} for node in NODES}
    limit = Limit("gang-fits-its-queue", "queue a", "cpu", capability, {KEY: costs})
    problem = Problem(free, (), (found,), (limit,), free)

    assert pod_by_pod.finds(problem, found, Scoring()) is is_found
