"""The sub-groups of a PodGroup: which of its pods keep together, and how many of them there have to be.

Source: getSubJobMatchValues in pkg/scheduler/api/sub_job_info.go and CheckSubJobReady in job_info.go of Volcano v1.14.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from basalt.objects import mapping, strings
from basalt.views.gangs import Pods
from basalt.views.node_selection import matches_labels


class SubGroup(NamedTuple):
    """Pods that one policy puts together: its number, what messages call the group, and the places of its shapes."""

    policy: int
    name: str
    shapes: tuple[int, ...]


class SubGroups(NamedTuple):
    """All of them; for each shape of the gang how many of its pods have to run for their sake; gap is what they ask
    for that has no place in the problem."""

    groups: tuple[SubGroup, ...]
    needs: tuple[int, ...]
    gap: str = ""


def read(policies: Sequence[Any], pods: Sequence[Pods]) -> SubGroups:
    """The first policy that matches a pod has it, and puts together those with the same values of its labels."""
    members: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for index, each in enumerate(pods):
        for number, policy in enumerate(map(mapping, policies)):
            if (values := _values(policy, mapping(each.labels))) is not None:
                members.setdefault((number, values), []).append(index)
                break
    groups = tuple(SubGroup(number, _name(policies[number], values), tuple(shapes))
                   for (number, values), shapes in sorted(members.items()))  # fmt: skip
    needs = [0] * len(pods)
    gap = ""
    for number, policy in enumerate(map(mapping, policies)):
        own = [each for each in groups if each.policy == number]
        gap = gap or _add_needs(policy, own, pods, needs)
    return SubGroups(groups, tuple(needs), gap)


def _name(policy: Any, values: Sequence[str]) -> str:
    return " ".join([str(mapping(policy).get("name") or ""), *values]).strip()


def _values(policy: Mapping[str, Any], labels: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What tells the pod's group from others of the policy; None where the policy is not about such a pod."""
    selector = mapping(policy.get("labelSelector"))
    if any(selector.values()) and not matches_labels(selector, labels):  # an empty one selects everything
        return None
    keys = strings(policy.get("matchLabelKeys"))
    values = tuple(str(labels.get(key) or "") for key in keys)
    return None if "" in values else values


def _add_needs(policy: Mapping[str, Any], groups: Sequence[SubGroup], pods: Sequence[Pods], needs: list[int]) -> str:
    """Marks the pods that have to run so that enough sub-groups do; returns what cannot be told."""
    size, least = policy.get("subGroupSize"), policy.get("minSubGroups")
    if not isinstance(size, int) or not isinstance(least, int) or least < 1:
        return ""
    if least > len(groups):
        return f"it has {len(groups)} sub-groups of {policy.get('name')}, and minSubGroups is {least}"
    alike = {tuple((pods[index].count, repr(pods[index].spec)) for index in group.shapes) for group in groups}
    if least < len(groups) and len(alike) > 1:
        return "it does not model minSubGroups of sub-groups that differ"
    for group in groups[:least]:
        total = sum(pods[index].count for index in group.shapes)
        if len(group.shapes) > 1 and total != size:
            return "it does not model a subGroupSize that leaves some of several kinds of pods out"
        for index in group.shapes:
            needs[index] = size if len(group.shapes) == 1 else pods[index].count
    return ""
