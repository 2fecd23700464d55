"""What a pod requests, container by container."""

from typing import Any

import pytest

from basalt.quantities import parse_map
from basalt.views.requests import pod_requests

Spec = dict[str, Any]


def of(requests: Spec, **more: Any) -> Spec:
    return {"resources": {"requests": requests}, **more}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"containers": [of({"cpu": 1}), of({"cpu": "500m"})]}, {"cpu": "1500m"}, id="a sum"),
        pytest.param({"containers": [{"resources": {"limits": {"cpu": 2}}}]}, {"cpu": 2}, id="a limit is a request"),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": 2}, "requests": {"cpu": 1}}}]}, {"cpu": 1}, id="both"
        ),
        pytest.param(
            {"containers": [of({"cpu": 2})], "initContainers": [of({"cpu": 1, "memory": "1Gi"}), of({"cpu": 3})]},
            {"cpu": 3, "memory": "1Gi"},
            id="the largest init container of each resource",
        ),
        pytest.param(
            {
                "containers": [of({"cpu": 2})],
                "initContainers": [of({"cpu": 1}, restartPolicy="Always"), of({"cpu": 4})],
            },
            {"cpu": 5},
            id="a sidecar runs beside the init containers after it",
        ),
        pytest.param(
            {"containers": [of({"cpu": 2})], "initContainers": [of({"cpu": 1}, restartPolicy="Always")]},
            {"cpu": 3},
            id="and beside the containers",
        ),
        pytest.param({"containers": [of({"cpu": 1})], "overhead": {"cpu": "250m"}}, {"cpu": "1250m"}, id="overhead"),
        pytest.param(
            {
                "resources": {"requests": {"cpu": 8, "nvidia.com/gpu": 8}, "limits": {"memory": "4Gi", "cpu": 9}},
                "containers": [of({"cpu": 2, "nvidia.com/gpu": 1})],
            },
            {"cpu": 8, "memory": "4Gi", "nvidia.com/gpu": 1},
            id="what the pod itself says counts, for cpu, memory and huge pages",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": 9}}, "containers": [of({"cpu": 2})]},
            {"cpu": 2},
            id="a limit of the pod stands back behind a container's request",
        ),
        pytest.param({"containers": 7, "initContainers": [None], "resources": [], "overhead": "x"}, {}, id="garbage"),
    ],
)
def test_requests_are_those_the_scheduler_counts(pod: Spec, expected: Spec) -> None:
    assert pod_requests(pod) == parse_map(expected)
