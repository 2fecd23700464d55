"""JobFlows: TrainingJobs of one namespace that start one after the other."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from basalt.objects import MANAGED_BY, Manifest
from basalt.pointers import Pointer

API_VERSION = "flow.volcano.sh/v1alpha1"
MEMBERS = "jobs"  # where the documents of a flow stand in the whole that its origins point into


class Flow(NamedTuple):
    """A flow's identity: every TrainingJob that names it belongs to it."""

    namespace: str
    name: str


def flow_of(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Flow | None:
    """The flow that a TrainingJob belongs to."""
    declared = spec.get("flow")
    return Flow(str(metadata["namespace"]), str(declared["name"])) if declared is not None else None


def flow(identity: Flow, members: Iterable[tuple[str, Mapping[str, Any]]]) -> Manifest:
    """The JobFlow of the jobs, given by their names and specs. Its origins point into a map of the jobs' documents by
    name, since it follows from all of them."""
    flows: list[dict[str, Any]] = []
    origins: dict[Pointer, Pointer] = {}
    for index, (name, spec) in enumerate(members):
        document: Pointer = (MEMBERS, name)
        declared: Pointer = (*document, "spec", "flow")
        at: Pointer = ("spec", "flows", index)
        origins |= {at: declared, (*at, "name"): (*document, "metadata", "name")}
        after = list(spec["flow"].get("after", ()))
        flows.append({"name": name, **({"dependsOn": {"targets": after}} if after else {})})
        origins[(*at, "dependsOn")] = origins[(*at, "dependsOn", "targets")] = (*declared, "after")
        if index == 0:
            origins |= {(): declared, ("metadata", "name"): (*declared, "name")}
            origins[("metadata", "namespace")] = (*document, "metadata", "namespace")
    value = {
        "apiVersion": API_VERSION,
        "kind": "JobFlow",
        "metadata": {"name": identity.name, "namespace": identity.namespace, "labels": MANAGED_BY},
        "spec": {"jobRetainPolicy": "retain", "flows": flows},
    }
    return Manifest(value, origins)
