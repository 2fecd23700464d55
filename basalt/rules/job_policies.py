"""The policies of a job: which event or exit code leads to which action.

Source: validatePolicies in pkg/webhooks/admission/jobs/validate/util.go, which breaks off at the first mistake.
"""

from collections.abc import Iterator, Sequence

from basalt import names
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.pointers import Pointer, dotted
from basalt.rules.rule import Rule
from basalt.views.job_policies import (
    ACTIONS,
    ANY,
    EVENTS,
    INTERNAL_ACTIONS,
    INTERNAL_EVENTS,
    Policy,
    policies,
    policy_lists,
)
from basalt.views.misspelling import POLICY_FIELDS, misspelt, place_of
from basalt.views.workloads import Workload

_CAUSES = ("event", "events", "exitCode")
_EVENT = "event: PodFailed"


def policy_is_exclusive(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        for policy in policies(job):
            if policy.names_event and policy.names_exit_code:
                hint = "make two policies of it, one for the event and one for the exit code"
                message = f"a policy has an event or an exitCode; this one has {_events(policy)} and exitCode"
                yield Problem(job.object, (*policy.pointer, "exitCode"), message, hint)
            elif not _has_cause(policy):
                yield _without_cause(job, policy)


def _events(policy: Policy) -> str:
    return " and ".join(field for field in ("event", "events") if policy.value.get(field) not in (None, "", []))


def _has_cause(policy: Policy) -> bool:
    """An empty event counts here: policy-event-is-accepted speaks about it."""
    return policy.names_event or policy.names_exit_code or policy.value.get("event") is not None


def _without_cause(job: Workload, policy: Policy) -> Problem:
    message = "a policy has an event or an exitCode; this one has neither"
    if (key := misspelt(policy.value, _CAUSES, POLICY_FIELDS)) is not None:
        meant = names.nearest(key, POLICY_FIELDS)
        return Problem(job.object, policy.pointer, f"{message}: no field is called {key}", f"write {meant}")
    pointer = (*policy.pointer, "events") if "events" in policy.value else policy.pointer
    return Problem(job.object, pointer, message, f"say when it applies, for example {_EVENT}")


def policy_event_is_accepted(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        for policy in policies(job):
            for pointer, event in policy.events():
                if event not in EVENTS:
                    yield Problem(job.object, pointer, *_refused_event(event))


def _refused_event(event: str) -> tuple[str, str]:
    if event in INTERNAL_EVENTS:
        message = f"{event} is an event of Volcano's own use, which its webhook refuses in a policy"
        return message, "accepted: " + ", ".join(sorted(EVENTS))
    message = f"Volcano knows no event {event}" if event else "the event is an empty text"
    return message, names.did_you_mean(event, EVENTS)


def policy_action_is_known(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        for policy in policies(job):
            action = policy.value.get("action")
            if action is None and _has_cause(policy):
                yield _without_action(job, policy)
            elif isinstance(action, str) and action not in ACTIONS:
                yield Problem(job.object, (*policy.pointer, "action"), *_refused_action(policy, action))


def _without_action(job: Workload, policy: Policy) -> Problem:
    pointer, key = place_of(policy.pointer, policy.value, "action", POLICY_FIELDS)
    message = "the policy has no action" + ("" if key is None else f": no field is called {key}")
    hint = "known: " + ", ".join(sorted(ACTIONS)) if key is None else "write action"
    return Problem(job.object, pointer, message, hint)


def _refused_action(policy: Policy, action: str) -> tuple[str, str]:
    if action in INTERNAL_ACTIONS:
        return f"{action} is an action of Volcano's own use", "known: " + ", ".join(sorted(ACTIONS))
    message = f"Volcano knows no action {action}" if action else "the action is an empty text"
    unnoticed = policy.names_exit_code and not policy.names_event
    return message + (": when the exit code comes, nothing is done" if unnoticed else ""), names.did_you_mean(
        action, ACTIONS
    )


def policy_events_are_unique(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        for each in policy_lists(job):
            for pointer, message, hint in (*_repeated_events(each), *_beside_any(each), *_exit_codes(each)):
                yield Problem(job.object, pointer, message, hint)


def _repeated_events(every: Sequence[Policy]) -> Iterator[tuple[Pointer, str, str]]:
    """An event twice in one policy counts once (removeDuplicates)."""
    first: dict[str, Policy] = {}
    told: set[tuple[Pointer, str]] = set()
    for policy in every:
        for pointer, event in policy.events():
            earlier = first.setdefault(event, policy)
            if earlier is not policy and event in EVENTS and (policy.pointer, event) not in told:
                told.add((policy.pointer, event))
                hint = "leave each event to one policy"
                yield pointer, f"the event {event} stands in {_place(earlier)} already", hint


def _beside_any(every: Sequence[Policy]) -> Iterator[tuple[Pointer, str, str]]:
    found = [(pointer, event) for policy in every for pointer, event in policy.events() if event in EVENTS]
    others = dict.fromkeys(event for _, event in found if event != ANY)
    places = [pointer for pointer, event in found if event == ANY]
    if places and others:
        message = f"{ANY} stands for every event, and beside it: {names.listed(others)}"
        yield places[0], message, f"keep {ANY} alone, or name each event"


def _exit_codes(every: Sequence[Policy]) -> Iterator[tuple[Pointer, str, str]]:
    first: dict[int, Policy] = {}
    for policy in every:
        code = policy.exit_code
        if code is None or policy.names_event:  # policy-is-exclusive speaks about the exitCode beside an event
            continue
        pointer = (*policy.pointer, "exitCode")
        if code == 0:
            yield pointer, "the exit code 0 is that of success, Volcano refuses it in a policy", _FOR_SUCCESS
        elif code in first:
            yield pointer, f"the exit code {code} stands in {_place(first[code])} already", "keep one of the two"
        else:
            first[code] = policy


_FOR_SUCCESS = "say event: TaskCompleted for a task whose pods succeed"


def _place(policy: Policy) -> str:
    return dotted(policy.pointer[-2:])


RULES = (
    Rule("policy-is-exclusive", Severity.ERROR, policy_is_exclusive),
    Rule("policy-event-is-accepted", Severity.ERROR, policy_event_is_accepted),
    Rule("policy-action-is-known", Severity.ERROR, policy_action_is_known),
    Rule("policy-events-are-unique", Severity.ERROR, policy_events_are_unique),
)
