"""What keeps a team's jobs in its own queue and priorities: Volcano lets anyone name any (volcano-sh/volcano#1475), so
the API server judges them, by a ValidatingAdmissionPolicy for each team."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt import names
from basalt.api.versions import Version
from basalt.objects import MANAGED_BY, Manifest
from basalt.platform import Platform
from basalt.pointers import Pointer

SINCE = Version(1, 30)  # admissionregistration.k8s.io/v1 serves the policies
_API_VERSION = "admissionregistration.k8s.io/v1"
_DEFAULT_QUEUE = "default"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
# Where the job stands in each kind; pods and PodGroups have no template.
_SPEC = "object.kind == 'CronJob' ? object.spec.jobTemplate.spec : object.spec"
# What the scheduler and the controllers write again and again, PodGroups and pods, is judged once.
_WRITTEN, _CREATED = ["CREATE", "UPDATE"], ["CREATE"]
_KINDS = (
    ("batch.volcano.sh", "v1alpha1", ["jobs", "cronjobs"], _WRITTEN),
    ("flow.volcano.sh", "v1alpha1", ["jobtemplates"], _WRITTEN),
    ("scheduling.volcano.sh", "v1beta1", ["podgroups"], _CREATED),
)
_PODS = ("", "v1", ["pods"], _CREATED)


def team_policies(platform: Platform, name: str, spec: Mapping[str, Any]) -> Iterator[Manifest]:
    """The policies of one team and their bindings; none where the API server is too old, or the team has no
    namespace, or no name that a policy could have."""
    namespaces = sorted(spec.get("namespaces", {}))
    if platform.kubernetes < SINCE or not namespaces or names.subdomain_fault(name):
        return
    queues = _queues(platform, name, spec)
    named = f"the jobs of team {name} go to {_listed(queues)}"
    yield from _policy(f"basalt-team-{name}-queue", namespaces, _KINDS, [_among("queue", queues, named)], ("spec",))
    if priorities := _priorities(platform, spec):
        named = f"team {name} may use the priorities {_listed(priorities)}"
        check = _among("priorityClassName", priorities, named)
        yield from _policy(
            f"basalt-team-{name}-priority", namespaces, (*_KINDS, _PODS), [check], ("spec", "priorities")
        )


def _queues(platform: Platform, name: str, spec: Mapping[str, Any]) -> list[str]:
    """The team's own queue, and those of the platform that take jobs."""
    shared: Mapping[str, Any] = platform.spec.get("queues", {})
    below = [*shared.values(), *(team.get("queue", {}) for team in platform.teams.values())]
    parents = {queue.get("parent") for queue in below}
    own = name if "queue" in spec else _DEFAULT_QUEUE
    return [own, *sorted(queue for queue in shared if queue not in parents and queue not in ("root", own))]


def _priorities(platform: Platform, spec: Mapping[str, Any]) -> list[str]:
    """Those that the team lists, and the default, which the API server itself writes into pods without one."""
    listed = list(spec.get("priorities", ()))
    declared: Mapping[str, Any] = platform.spec.get("priorities", {})
    default = [name for name, each in declared.items() if each.get("default") and name not in listed]
    return [*listed, *default] if listed else []


def _among(field: str, allowed: list[str], message: str) -> dict[str, Any]:
    value = f"variables.spec.{field}"
    expression = f"!has({value}) || {value} == '' || {value} in {json.dumps(allowed)}"
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _policy(
    name: str,
    namespaces: list[str],
    kinds: Iterable[tuple[str, str, list[str], list[str]]],
    validations: list[dict[str, Any]],
    at: Pointer,
) -> Iterator[Manifest]:
    metadata = {"name": name, "labels": MANAGED_BY}
    rules = [
        {"apiGroups": [group], "apiVersions": [version], "resources": resources, "operations": operations}
        for group, version, resources, operations in kinds
    ]
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "variables": [{"name": "spec", "expression": _SPEC}],
        "validations": validations,
    }
    selector = {"matchExpressions": [{"key": _NAMESPACE_NAME, "operator": "In", "values": namespaces}]}
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": selector},
    }
    kind = "ValidatingAdmissionPolicy"
    yield Manifest({"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}, {(): at})
    bound = {"apiVersion": _API_VERSION, "kind": f"{kind}Binding", "metadata": dict(metadata), "spec": binding}
    yield Manifest(bound, {(): at})
