"""What applying would do, found out by a server-side dry run before anything is changed."""

import enum
from collections.abc import Iterable
from typing import NamedTuple

from basalt.cluster import comparing, parallel
from basalt.cluster.comparing import Change
from basalt.cluster.connection import Cluster, Refusal
from basalt.findings import Ref
from basalt.objects import KubeObject
from basalt.rendering.layout import Phase

MANAGER = "basalt"
_NAMESPACE = ("v1", "Namespace")


class Action(enum.StrEnum):
    """What applying does to one object."""

    CREATE = "create"
    CHANGE = "change"
    ADOPT = "adopt"  # it is as declared, but nobody applied it for Basalt yet
    KEEP = "keep"
    REFUSED = "refused"


class Step(NamedTuple):
    """One object: what applying does to it, what changes, and why the cluster refuses."""

    object: KubeObject
    action: Action
    changes: tuple[Change, ...] = ()
    refusal: Refusal | None = None


def plan(cluster: Cluster, phases: Iterable[Phase], *, force: bool) -> list[tuple[Phase, list[Step]]]:
    """A step for every object, in their order. force: fields of other managers are taken over."""
    every = list(phases)
    objects = (each for phase in every for each in phase.objects)
    steps = iter(parallel.each(lambda each: step(cluster, each, force=force), objects))
    return [(phase, [next(steps) for _ in phase.objects]) for phase in every]


def step(cluster: Cluster, declared: KubeObject, *, force: bool) -> Step:
    """What applying the object would do now."""
    ref = declared.ref
    if cluster.resource(ref.api_version, ref.kind) is None:
        return Step(declared, Action.CREATE)
    live = cluster.get(ref)
    try:
        after = cluster.apply(declared.value, ref, MANAGER, dry_run=True, force=force)
    except Refusal as refusal:
        # What a new object needs may be applied before it: its namespace, its queue, its class.
        is_new = live is None and not refusal.is_final
        return Step(declared, Action.CREATE if is_new else Action.REFUSED, (), None if is_new else refusal)
    if live is None:
        return Step(declared, Action.CREATE)
    if changes := tuple(comparing.changes(live, after)):
        return Step(declared, Action.CHANGE, changes)
    # Of an object that says nothing but its name no manager owns anything.
    is_ours = comparing.is_managed(live, MANAGER) or not comparing.is_managed(after, MANAGER)
    return Step(declared, Action.KEEP if is_ours else Action.ADOPT)


def strange_namespaces(cluster: Cluster, phases: Iterable[Phase]) -> dict[str, list[KubeObject]]:
    """The objects in namespaces that the cluster does not have and nobody declares, by namespace."""
    found: dict[str, list[KubeObject]] = {}
    objects = [each for phase in phases for each in phase.objects]
    declared = {each.name for each in objects if (each.ref.api_version, each.ref.kind) == _NAMESPACE}
    for each in objects:
        if each.ref.namespace is not None and each.ref.namespace not in declared:
            found.setdefault(each.ref.namespace, []).append(each)
    return {name: each for name, each in found.items() if cluster.get(Ref(*_NAMESPACE, None, name)) is None}


def strange_kinds(cluster: Cluster, phases: Iterable[Phase]) -> dict[tuple[str, str], list[KubeObject]]:
    """The objects whose kinds the cluster does not have, by API version and kind."""
    found: dict[tuple[str, str], list[KubeObject]] = {}
    for each in (each for phase in phases for each in phase.objects):
        kind = (each.ref.api_version, each.ref.kind)
        if kind in found or cluster.resource(*kind) is None:
            found.setdefault(kind, []).append(each)
    return found
