"""The environment against the cluster: what is missing, what differs and whose it is."""

import enum
from collections.abc import Iterable
from typing import NamedTuple

from basalt.cluster import comparing, parallel
from basalt.cluster.comparing import Change, Owned
from basalt.cluster.connection import Cluster, Refusal
from basalt.cluster.planning import MANAGER
from basalt.objects import KubeObject, mapping


class State(enum.StrEnum):
    """How an object of the environment is in the cluster."""

    SAME = "same"
    DRIFTED = "drifted"
    MISSING = "missing"
    REFUSED = "refused"  # the cluster would not take it as it is declared


class Drift(NamedTuple):
    """A value that is not as declared, and the managers that own it in the cluster."""

    change: Change  # from the cluster's value to the declared one
    managers: list[str]


class Verdict(NamedTuple):
    """One object: its state, what drifted, what others have added, and why the cluster would refuse it, or counts as
    missing though it is there."""

    object: KubeObject
    state: State
    drifts: tuple[Drift, ...] = ()
    foreign: tuple[Owned, ...] = ()
    refusal: str = ""


def verify(cluster: Cluster, objects: Iterable[KubeObject]) -> list[Verdict]:
    """A verdict on every object, in their order."""
    return parallel.each(lambda each: _verdict(cluster, each), objects)


def _verdict(cluster: Cluster, declared: KubeObject) -> Verdict:
    ref = declared.ref
    live = cluster.get(ref) if cluster.resource(ref.api_version, ref.kind) else None
    if live is None:
        return Verdict(declared, State.MISSING)
    if mapping(live.get("metadata")).get("deletionTimestamp"):
        return Verdict(declared, State.MISSING, refusal="it is being deleted")
    others = comparing.strangers(live, MANAGER)
    try:
        after = cluster.apply(declared.value, ref, MANAGER, dry_run=True, force=True)
    except Refusal as refusal:
        if refusal.is_of_account:
            raise
        return Verdict(declared, State.REFUSED, (), tuple(others), refusal.message)
    drifts = tuple(_drift(each, others) for each in comparing.changes(live, after))
    foreign = tuple(each for each in others if not any(each.touches(drift.change.pointer) for drift in drifts))
    return Verdict(declared, State.DRIFTED if drifts else State.SAME, drifts, foreign)


def _drift(change: Change, others: Iterable[Owned]) -> Drift:
    return Drift(change, sorted({each.manager for each in others if each.touches(change.pointer)}))
