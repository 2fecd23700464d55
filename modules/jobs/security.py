"""What a pod may do on its node: what its role declares, and what its namespace demands.

Source: the level `restricted` of the Pod Security Standards.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from modules.jobs.context import RESTRICTED, Context

_OF_POD = ("runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup", "supplementalGroups")
_OF_CONTAINER = ("allowPrivilegeEscalation", "readOnlyRootFilesystem")


def of_pod(role: Mapping[str, Any], context: Context) -> dict[str, Any]:
    declared = role.get("securityContext", {})
    found: dict[str, Any] = {field: declared[field] for field in _OF_POD if field in declared}
    if "fsGroup" in found:  # a large volume is not gone through at each start
        found["fsGroupChangePolicy"] = "OnRootMismatch"
    if context.security != RESTRICTED:
        return found
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, **found}


def of_container(role: Mapping[str, Any], context: Context, needed: Iterable[str]) -> dict[str, Any]:
    """needed are the capabilities that the container needs beside those that its role declares."""
    declared = role.get("securityContext", {})
    found: dict[str, Any] = {field: declared[field] for field in _OF_CONTAINER if field in declared}
    capabilities = {kind: list(names) for kind, names in declared.get("capabilities", {}).items()}
    missing = [each for each in needed if each not in capabilities.get("add", ())]
    if missing:
        capabilities["add"] = [*capabilities.get("add", ()), *missing]
    if context.security == RESTRICTED:
        found = {"allowPrivilegeEscalation": False, **found}
        capabilities = {"drop": ["ALL"], **capabilities}
    return {**found, "capabilities": capabilities} if capabilities else found
