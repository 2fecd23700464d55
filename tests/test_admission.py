"""The policies that keep a team in its queue and priorities, evaluated as the API server would."""

from typing import Any

import pytest
from cel_expr_python import cel

from basalt.api.versions import Version
from basalt.platform import Platform
from modules import admission

TEAM = {"namespaces": {"vision-train": {}}, "queue": {"parent": "research"}, "priorities": ["high"]}
SPEC = {
    "queues": {"research": {}, "scavenger": {}},
    "priorities": {"low": {"value": 1, "default": True}, "high": {"value": 2}},
}
NEW = Version(1, 34)


def platform(version: Version = NEW) -> Platform:
    teams = {"vision": TEAM}
    return Platform("case", SPEC, teams, tuple, version, Version(1, 15), is_development=False)


def policies() -> dict[str, dict[str, Any]]:
    made = [each.value for each in admission.team_policies(platform(), "vision", TEAM)]
    return {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "ValidatingAdmissionPolicy"}


def allows(policy: str, kind: str, spec: dict[str, Any]) -> bool:
    declared = policies()[policy]
    written = {"kind": kind, "spec": {"jobTemplate": {"spec": spec}} if kind == "CronJob" else spec}
    (variable,), (validation,) = declared["variables"], declared["validations"]
    found = evaluate(variable["expression"], {"object": written})
    return bool(evaluate(validation["expression"], {"variables": {"spec": found}}))


def evaluate(expression: str, values: dict[str, Any]) -> Any:
    environment = cel.NewEnv(variables=dict.fromkeys(values, cel.Type.DYN))
    return environment.compile(expression).eval(data=values).plain_value()


@pytest.mark.parametrize("kind", ["Job", "CronJob", "JobTemplate", "PodGroup"])
@pytest.mark.parametrize(
    ("queue", "is_allowed"),
    [("vision", True), ("scavenger", True), ("speech", False), ("research", False), ("default", False), ("", True)],
)
def test_jobs_go_to_the_queue_of_the_team_or_to_one_of_the_platform(kind: str, queue: str, is_allowed: bool) -> None:
    assert allows("basalt-team-vision-queue", kind, {"queue": queue}) is is_allowed


@pytest.mark.parametrize("kind", ["Job", "CronJob", "Pod"])
@pytest.mark.parametrize(("priority", "is_allowed"), [("high", True), ("low", True), ("higher", False)])
def test_priorities_are_those_of_the_team_and_the_default(kind: str, priority: str, is_allowed: bool) -> None:
    assert allows("basalt-team-vision-priority", kind, {"priorityClassName": priority}) is is_allowed
    assert allows("basalt-team-vision-priority", kind, {})


def test_policies_are_bound_to_the_namespaces_of_the_team() -> None:
    made = [each.value for each in admission.team_policies(platform(), "vision", TEAM)]
    bound = [each["spec"] for each in made if each["kind"].endswith("Binding")]

    assert [each["policyName"] for each in bound] == list(policies())
    for each in bound:
        assert each["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"] == ["vision-train"]


def test_an_old_api_server_gets_none() -> None:
    assert list(admission.team_policies(platform(Version(1, 29)), "vision", TEAM)) == []
