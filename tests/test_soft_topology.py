"""How a soft topology steers the scheduler: seen on v1.14.1, where the gang below ran alone."""

import pytest

from basalt.fit import pod_by_pod
from basalt.fit.pod_by_pod import Scoring
from basalt.fit.problem import Domain, Gang, Key, Problem, Shape
from basalt.quantities import Resources

GPU = "nvidia.com/gpu"
FREE: dict[str, Resources] = {
    "small": {"cpu": 16, "memory": 64, GPU: 8},
    "large": {"cpu": 24, "memory": 64, GPU: 8},
}
NODES = frozenset(FREE)
RACKS = tuple(Domain(f"rack of {node}", 1, frozenset({node})) for node in FREE)
SHAPES = (
    Shape("w0", 1, 1, {"cpu": 10, "memory": 1, GPU: 4}, NODES),
    Shape("w1", 2, 2, {"cpu": 14, "memory": 1, GPU: 3}, NODES),
)
WEIGHTS = {"cpu": 1.0, "memory": 1.0}
SCORING = Scoring(least=1, balanced=1, binpack=1, binpack_of=WEIGHTS, topology=1, topology_of=WEIGHTS, fading=0.8)


@pytest.mark.parametrize(("is_soft", "is_found"), [(True, True), (False, False)])
def test_pods_of_a_soft_topology_go_near_their_own_and_others_where_it_is_full(is_soft: bool, is_found: bool) -> None:
    gang = Gang(Key("Job", "default", "a"), 3, SHAPES, None, is_soft=is_soft)
    problem = Problem(FREE, (*RACKS, Domain("top", 2, NODES)), (gang,), (), FREE)

    assert pod_by_pod.finds(problem, gang, SCORING) is is_found
