"""Volcano's scheduler configuration as the ConfigMap that its chart mounts, and Basalt's own default for it."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.api.charts import Chart
from basalt.api.versions import Version
from basalt.objects import MANAGED_BY, Manifest, release
from basalt.pointers import Pointer
from basalt.rendering import yaml_writer

NAMESPACE = "volcano-system"
CONFIG_MAP = "volcano-scheduler-configmap"  # <release name>-scheduler-configmap in the chart's templates/scheduler.yaml
KEY = "volcano-scheduler.conf"
RELEASE_NAME = "volcano"
OVERRIDE = "scheduler_config_override"  # of the chart's custom values

_GANG_EVICTION = Version(1, 15)  # gangpreempt and gangreclaim exist since then

# Capacity stands in the first tier: a tier below gang, priority and conformance is never asked for victims, and
# `deserved` would not be looked at (volcano-sh/volcano#5896).
_TIERS: list[dict[str, Any]] = [
    {
        "plugins": [
            {"name": "priority"},
            {"name": "gang", "enablePreemptable": False},
            {"name": "conformance"},
            {"name": "capacity", "enableHierarchy": True},
        ]
    },
    {
        "plugins": [
            {"name": "predicates"},
            {"name": "resourcequota"},
            {"name": "nodeorder"},
            {"name": "binpack"},
            {"name": "network-topology-aware"},
        ]
    },
]


def default_configuration(version: Version) -> dict[str, Any]:
    """The configuration under which gangs, the queue hierarchy, quotas and topology all take effect.

    Before 1.15 Volcano cannot evict for a gang as a whole: only `reclaim` is on there, without which `deserved` would
    mean nothing.
    """
    evicting = ["gangreclaim", "gangpreempt"] if version >= _GANG_EVICTION else ["reclaim"]
    return {"actions": ["enqueue", "allocate", "backfill", *evicting], "tiers": _TIERS}


def scheduler(declared: Mapping[str, Any] | None, version: Version, chart: Chart | None = None) -> Iterator[Manifest]:
    """The namespace of Volcano's own parts and volcano-scheduler.conf: in the values of a release of the chart, or,
    without one, as the ConfigMap that somebody else's release mounts. What the declaration leaves out (actions, tiers)
    is Basalt's default."""
    at: Pointer = ("spec", "volcano")
    configuration = {**default_configuration(version), **(declared or {})}
    text = yaml_writer.document({**configuration, "actions": ", ".join(configuration["actions"])})
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": MANAGED_BY}}
    yield Manifest(namespace, {(): at})
    origin = (*at, "scheduler") if declared is not None else at
    if chart is not None:
        yield release(chart, RELEASE_NAME, NAMESPACE, {"custom": {OVERRIDE: text}}, at, {("custom", OVERRIDE): origin})
        return
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE, "labels": MANAGED_BY},
        "data": {KEY: text},
    }
    yield Manifest(value, {(): at, ("data",): origin, ("data", KEY): origin})
