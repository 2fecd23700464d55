"""What the stand-in for the Kubernetes provider takes for a difference, and what it replaces."""

from typing import Any

import pytest

from basalt.findings import Ref
from tests.engine import differences

CONFIG_MAP = Ref("v1", "ConfigMap", "a", "b")
QUEUE = Ref("scheduling.volcano.sh/v1beta1", "Queue", None, "a")
BINDING = Ref("rbac.authorization.k8s.io/v1", "RoleBinding", "a", "b")


@pytest.mark.parametrize(
    ("live", "declared", "is_typed", "found"),
    [
        ({"a": 1, "status": {}}, {"a": 1}, False, []),
        ({"a": 2}, {"a": 1}, False, ["a"]),
        ({}, {"a": 1}, False, ["a"]),
        ({"a": [{"b": 1, "default": 2}]}, {"a": [{"b": 1}]}, False, []),
        ({"a": [1, 2]}, {"a": [1]}, False, []),
        ({"a": [1]}, {"a": [1, 2]}, False, ["a[1]"]),
        ({"hard": {"x.y/z": "1"}}, {"hard": {"x.y/z": "2"}}, False, ['hard["x.y/z"]']),
        ({"cpu": "1"}, {"cpu": "1000m"}, True, []),
        ({"cpu": "1"}, {"cpu": "1000m"}, False, ["cpu"]),
        ({}, {"ingress": []}, True, []),
        ({}, {"ingress": []}, False, ["ingress"]),
    ],
)
def test_difference_is_what_the_declared_shape_shows(
    live: dict[str, Any], declared: dict[str, Any], is_typed: bool, found: list[str]
) -> None:
    before = differences.pruned(live, declared)

    seen = differences.differences(before, declared, is_typed=is_typed)

    assert [differences.path(each) for each in seen] == found


@pytest.mark.parametrize(
    ("ref", "at", "mutable", "replaced"),
    [
        (QUEUE, ("spec", "weight"), (), False),
        (QUEUE, ("metadata", "name"), (), True),
        (BINDING, ("roleRef", "name"), (), True),
        (BINDING, ("subjects",), (), False),
        (CONFIG_MAP, ("data", "a"), (), True),
        (CONFIG_MAP, ("data", "a"), ("ConfigMap",), False),
    ],
)
def test_what_the_api_server_does_not_change_is_replaced(
    ref: Ref, at: tuple[str, ...], mutable: tuple[str, ...], replaced: bool
) -> None:
    assert differences.replaces(at, ref, frozenset(mutable)) is replaced
