"""Keys that somebody most probably meant for a field of a job: the API server drops them in silence.

Source of the fields: pkg/apis/batch/v1alpha1/job.go of volcano.sh/apis.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from basalt import names
from basalt.pointers import Pointer

JOB_FIELDS = frozenset({
    "maxRetry", "minAvailable", "minSuccess", "networkTopology", "plugins", "policies", "priorityClassName", "queue",
    "runningEstimate", "schedulerName", "tasks", "ttlSecondsAfterFinished", "volumes",
})  # fmt: skip
TASK_FIELDS = frozenset({
    "dependsOn", "maxRetry", "minAvailable", "name", "partitionPolicy", "policies", "replicas", "template",
    "topologyPolicy",
})  # fmt: skip
POLICY_FIELDS = frozenset({"action", "event", "events", "exitCode", "timeout"})


def misspelt(value: Mapping[str, Any], fields: Iterable[str], known: frozenset[str]) -> str | None:
    """The first key that is no field, and whose nearest is one of the fields."""
    meant = set(fields)
    unknown = (key for key in value if isinstance(key, str) and key not in known)
    return next((key for key in unknown if names.nearest(key, known) in meant), None)


def place_of(at: Pointer, value: Mapping[str, Any], field: str, known: frozenset[str]) -> tuple[Pointer, str | None]:
    """Where the field stands; where it is missing, the whole map, and the key that was meant for it: of the key itself
    object-matches-schema speaks."""
    if field in value:
        return (*at, field), None
    return at, misspelt(value, (field,), known)
