"""The policies of a job, as rules see them: which event or exit code leads to which action."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from basalt.objects import sequence
from basalt.pointers import Pointer
from basalt.views.workloads import Workload

ANY = "*"
# policyEventMap in pkg/webhooks/admission/jobs/validate/util.go.
EVENTS = frozenset(
    {ANY, "JobUpdated", "PodEvicted", "PodFailed", "PodPending", "TaskCompleted", "TaskFailed", "Unknown"}
)
INTERNAL_EVENTS = frozenset({"CommandIssued", "OutOfSync", "PodRunning"})
# policyActionMap there.
ACTIONS = frozenset({
    "AbortJob", "CompleteJob", "RestartJob", "RestartPartition", "RestartPod", "RestartTask", "ResumeJob",
    "TerminateJob",
})  # fmt: skip
INTERNAL_ACTIONS = frozenset({"CloseQueue", "EnqueueJob", "OpenQueue", "SyncJob", "SyncQueue"})


@dataclass(frozen=True, eq=False)
class Policy:
    """One policy. What it says of a wrong type is left to object-matches-schema."""

    pointer: Pointer
    value: Mapping[str, Any]

    @property
    def names_event(self) -> bool:
        """Whether it says anything of an event: Volcano takes an empty text or list for nothing."""
        return self.value.get("event") not in (None, "") or self.value.get("events") not in (None, [])

    @property
    def names_exit_code(self) -> bool:
        return self.value.get("exitCode") is not None

    @property
    def exit_code(self) -> int | None:
        code = self.value.get("exitCode")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    def events(self) -> Iterator[tuple[Pointer, str]]:
        """The events, be they known or not, each with the pointer to it."""
        if isinstance(event := self.value.get("event"), str):
            yield (*self.pointer, "event"), event
        for position, event in enumerate(sequence(self.value.get("events"))):
            if isinstance(event, str):
                yield (*self.pointer, "events", position), event


def policy_lists(job: Workload) -> Iterator[list[Policy]]:
    """The job's own policies, and those of each of its tasks: Volcano looks at every list for itself."""
    yield _policies(job.pointer, job.spec)
    for task in job.tasks:
        yield _policies(task.pointer, task.value)


def policies(job: Workload) -> Iterator[Policy]:
    """All of them."""
    for each in policy_lists(job):
        yield from each


def _policies(at: Pointer, owner: Mapping[str, Any]) -> list[Policy]:
    return [
        Policy((*at, "policies", position), value)
        for position, value in enumerate(sequence(owner.get("policies")))
        if isinstance(value, Mapping)
    ]
