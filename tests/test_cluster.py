"""What differs between an object and the cluster's, whose its fields are, and the order of what is applied."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basalt.cluster import comparing
from basalt.cluster.comparing import Change, Owned
from basalt.cluster.connection import Refusal
from basalt.cluster.settling import is_settled
from basalt.compiling import compile_folder
from basalt.findings import Ref
from basalt.rendering import layout
from tests.test_readme import ROOT

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["spec", "data", "metadata"]), VALUES)


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": 1}}, []),
        ({"spec": {"a": 1}}, {"spec": {"a": 2}}, [Change(("spec", "a"), 1, 2)]),
        ({"spec": {}}, {"spec": {"a": {"b": 1}}}, [Change(("spec", "a"), None, {"b": 1})]),
        ({"spec": {"a": [1, 2]}}, {"spec": {"a": [1, 3]}}, [Change(("spec", "a", 1), 2, 3)]),
        ({"spec": {"a": [1]}}, {"spec": {"a": [1, 2]}}, [Change(("spec", "a"), [1], [1, 2])]),
        ({"status": {"phase": "Active"}}, {}, []),
        ({"metadata": {"resourceVersion": "1", "generation": 1}}, {"metadata": {"resourceVersion": "2"}}, []),
        ({"metadata": {"labels": {"a": "b"}}}, {"metadata": {}}, [Change(("metadata", "labels"), {"a": "b"}, None)]),
    ],
)
def test_changes_are_told_down_to_the_value(
    before: dict[str, Any], after: dict[str, Any], changes: list[Change]
) -> None:
    assert comparing.changes(before, after) == changes


@given(OBJECTS)
def test_nothing_differs_from_itself(value: dict[str, Any]) -> None:
    assert comparing.changes(value, json.loads(json.dumps(value))) == []


@given(OBJECTS, OBJECTS)
def test_what_differs_one_way_differs_the_other_way(one: dict[str, Any], other: dict[str, Any]) -> None:
    there, back = comparing.changes(one, other), comparing.changes(other, one)

    assert back == [Change(each.pointer, each.after, each.before) for each in there]


def managed(*entries: tuple[str, dict[str, Any]], **value: Any) -> dict[str, Any]:
    fields = [{"manager": manager, "operation": "Apply", "fieldsV1": owned} for manager, owned in entries]
    return {"metadata": {"managedFields": fields}, **value}


def test_fields_of_others_are_those_that_we_do_not_own_too() -> None:
    live = managed(
        ("basalt", {"f:spec": {"f:weight": {}, "f:parent": {}}}),
        ("hand", {"f:spec": {"f:weight": {}, "f:capability": {".": {}, "f:cpu": {}}}}),
    )

    assert comparing.strangers(live, "basalt") == [Owned(("spec", "capability", "cpu"), "hand")]
    assert comparing.is_managed(live, "basalt")
    assert not comparing.is_managed(live, "flux")


def test_items_of_lists_are_found_by_their_keys_and_their_values() -> None:
    ports = 'k:{"containerPort":2,"protocol":"TCP"}'
    spec = {"ports": [{"containerPort": 1, "protocol": "TCP"}, {"containerPort": 2, "protocol": "TCP", "name": "b"}]}
    owned: dict[str, Any] = {
        "f:ports": {ports: {".": {}, "f:name": {}}, 'k:{"containerPort":9,"protocol":"TCP"}': {"f:name": {}}}
    }
    live = managed(("hand", {"f:spec": owned, "f:tags": {'v:"y"': {}}}), spec=spec, tags=["x", "y"])

    assert comparing.strangers(live, "basalt") == [
        Owned(("spec", "ports", 1, "name"), "hand"), Owned(("tags", 1), "hand"),
    ]  # fmt: skip


def test_what_controllers_write_into_the_status_is_nobodys_business() -> None:
    live = managed()
    live["metadata"]["managedFields"] = [
        {"manager": "controller", "subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}}}}
    ]

    assert comparing.strangers(live, "basalt") == []


@pytest.mark.parametrize(
    ("field", "pointer", "touches"),
    [
        (("spec", "limits"), ("spec", "limits", 0, "cpu"), True),
        (("spec", "limits", 0, "cpu"), ("spec", "limits"), True),
        (("spec", "limits"), ("spec", "limit"), False),
        (("spec", "a", 1), ("spec", "a", 0), False),
    ],
)  # fmt: skip
def test_a_field_touches_what_is_in_it_and_around_it(
    field: tuple[str | int, ...], pointer: tuple[str | int, ...], touches: bool
) -> None:
    assert Owned(field, "hand").touches(pointer) is touches


QUEUE = Ref("scheduling.volcano.sh/v1beta1", "Queue", None, "a")
JOB = Ref("batch.volcano.sh/v1alpha1", "Job", "a", "b")
CRD = Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "a")


@pytest.mark.parametrize(
    ("ref", "status", "settled"),
    [
        (QUEUE, {"state": "Open"}, True),
        (QUEUE, {"state": "Closed"}, False),
        (QUEUE, {}, False),
        (JOB, {"state": {"phase": "Pending"}}, True),
        (JOB, {}, False),
        (Ref("batch/v1", "Job", "a", "b"), {}, True),
        (Ref("v1", "Namespace", None, "a"), {"phase": "Active"}, True),
        (Ref("v1", "Namespace", None, "a"), {"phase": "Terminating"}, False),
        (CRD, {"conditions": [{"type": "Established", "status": "True"}]}, True),
        (CRD, {"conditions": [{"type": "Established", "status": "False"}]}, False),
        (CRD, {}, False),
        (Ref("v1", "ConfigMap", "a", "b"), {}, True),
    ],
)
def test_what_has_settled_can_be_built_on(ref: Ref, status: dict[str, Any], settled: bool) -> None:
    assert is_settled(ref, {"status": status}) is settled


@pytest.mark.parametrize(
    ("status", "fields", "may_pass"),
    [(500, (), True), (503, (), True), (429, (), True), (404, (), True), (409, (), True),
     (409, ((".spec", "conflict"),), False), (403, (), False), (422, (), False), (400, (), False)],
)  # fmt: skip
def test_what_may_pass_is_tried_again(status: int, fields: tuple[tuple[str, str], ...], may_pass: bool) -> None:
    assert Refusal(status, "", "no", fields).may_pass is may_pass


@pytest.mark.parametrize("stack", ["seed", "prod"])
def test_phases_hold_every_object_once_in_the_order_of_the_folders(stack: str) -> None:
    objects = compile_folder(ROOT / "stacks" / stack).objects

    phases = layout.phases(objects)

    assert [phase.part for phase in phases] == sorted({phase.part for phase in phases})
    ordered = [each for phase in phases for each in phase.objects]
    assert sorted(map(id, ordered)) == sorted(map(id, layout.in_apply_order(objects)))
    place = {each.name: number for number, each in enumerate(ordered) if each.ref.kind == "Queue"}
    parents = {each.name: str(each.spec.get("parent") or "root") for each in ordered if each.ref.kind == "Queue"}
    assert all(place[parent] < place[name] for name, parent in parents.items() if parent in place)


def test_jobs_of_the_highest_priority_come_first_and_parents_in_earlier_waves() -> None:
    phases = {phase.part: phase for phase in layout.phases(compile_folder(ROOT / "stacks" / "seed").objects)}

    named = {part: [[each.name for each in wave] for wave in phase.waves] for part, phase in phases.items()}
    assert named["90-jobs"] == [["allreduce"], ["transcribe", "resnet"]]
    assert named["40-queues"] == [["research"], ["speech", "vision"]]
    assert named["50-topology"] == [
        ["s0-s1-rack-1", "s0-s1-rack-2", "s0-s2-rack-3", "s0-s2-rack-4"], ["s0-s1", "s0-s2"], ["s0"],
    ]  # fmt: skip
