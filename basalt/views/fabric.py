"""Nodes, HyperNodes and the topology by themselves: what of an environment tells of them."""

from basalt.api.groups import GROUPS
from basalt.gathering.documents import Declaration
from basalt.objects import KubeObject, mapping


def is_hyper_node(declared: KubeObject) -> bool:
    return declared.ref.kind == "HyperNode" and declared.ref.group == GROUPS["HyperNode"]


def of_topology(environment: Declaration) -> Declaration:
    """The Environment, with what tells of the topology alone."""
    told = {"topology": environment.spec.get("topology")}
    for product in ("kubernetes", "volcano"):
        told[product] = {"version": mapping(environment.spec.get(product)).get("version")}
    spec = {key: value for key, value in told.items() if key in environment.spec}
    return Declaration({**environment.value, "spec": spec}, environment.layers)
