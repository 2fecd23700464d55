"""Jobs that ask for company or for none: pod affinity, anti-affinity and topology spread, by host and by rack. Pure."""

from collections.abc import Iterable
from random import Random
from typing import Any

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HOST, _RACK = "kubernetes.io/hostname", "rack"

Value = dict[str, Any]


def label(node: Value, draw: Random) -> None:
    """A host is labelled as such, and nearly every one with its rack."""
    labels, name = node["metadata"]["labels"], node["metadata"]["name"]
    labels[_HOST] = name
    if draw.random() < 0.9:
        labels[_RACK] = name.rpartition("-")[0]


def ask(jobs: Iterable[Value], draw: Random) -> None:
    """Each job says one thing, of its own pods or of its environment's."""
    for job in jobs:
        name = job["metadata"]["name"]
        labels = {"job": name, "environment": name.partition("-")[0]}
        own = {"matchLabels": {"job": name}}
        every = {"matchLabels": {"environment": labels["environment"]}}
        asked: Value = draw.choice(
            [
                {},
                {"affinity": {"podAntiAffinity": {_REQUIRED: [{"topologyKey": _HOST, "labelSelector": own}]}}},
                {"affinity": {"podAntiAffinity": {_REQUIRED: [{"topologyKey": _HOST, "labelSelector": every}]}}},
                {"affinity": {"podAntiAffinity": {_REQUIRED: [{"topologyKey": _RACK, "labelSelector": own}]}}},
                {"affinity": {"podAffinity": {_REQUIRED: [{"topologyKey": _RACK, "labelSelector": own}]}}},
                {"topologySpreadConstraints": [_spread(_HOST, own, draw)]},
                {"topologySpreadConstraints": [_spread(_RACK, own, draw)]},
            ]
        )
        tasks = job["spec"]["tasks"]
        for task in tasks:
            if "topologySpreadConstraints" in asked:  # which counts the nodes that each pod may use
                task["template"]["spec"] = {**tasks[0]["template"]["spec"], **task["template"]["spec"]}
            task["template"]["metadata"] = {"labels": labels}
            task["template"]["spec"] |= asked


def _spread(key: str, own: Value, draw: Random) -> Value:
    skew = draw.choice([1, 1, 2])
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}
