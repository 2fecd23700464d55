"""Counts that rule a gang out are proofs: none rules out what a search through everything places."""

from basalt.fit import reasons, search
from basalt.fit.problem import Gang, Key, Problem, Shape
from basalt.fit.solver import Outcome
from basalt.quantities import Resources

GPU = "nvidia.com/gpu"


def test_a_node_may_hold_more_pods_of_two_shapes_than_of_either() -> None:
    free: dict[str, Resources] = {"small": {"cpu": 16, GPU: 8}, "big": {"cpu": 24, GPU: 8}}
    nodes = frozenset(free)
    shapes = (Shape("w0", 1, 1, {"cpu": 9, GPU: 6}, nodes), Shape("w1", 2, 2, {"cpu": 15, GPU: 2}, nodes))
    gang = Gang(Key("Job", "default", "a"), 3, shapes, None)
    problem = Problem(free, (), (gang,), (), free)

    assert reasons.plain(problem, gang) is None
    assert search.alone(problem, gang).outcome is Outcome.FOUND
