"""How NCCL finds its way between pods: over RDMA devices, or over TCP.

Source: docs.nvidia.com/deeplearning/nccl, environment variables of NCCL 2.30.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt.pointers import Pointer
from basalt.quantities import is_extended, parse
from modules.jobs.context import Context, Variable

LOCK = "IPC_LOCK"
_INTERFACE = "eth0"  # the pod network's, in every pod
_DEVICES = {"shared": ("rdma", "hca_shared"), "sriov": ("nvidia.com", "hca")}  # prefix and default name, by type
_ATTACHMENTS = "k8s.v1.cni.cncf.io/networks"


class Network(NamedTuple):
    """What a role's pods use, and where that was declared."""

    declared: Mapping[str, Any]
    at: Pointer
    is_rdma: bool


def network(spec: Mapping[str, Any], name: str) -> Network | None:
    """The role's own, else the job's where the role has devices: a launcher or a parameter server has no NCCL."""
    role = spec["roles"][name]
    at: Pointer = ("spec", "network")
    if "network" in role:
        declared, at = role["network"], ("spec", "roles", name, "network")
    elif "network" in spec and any(is_extended(each) and parse(n) for each, n in role.get("resources", {}).items()):
        declared = spec["network"]
    else:
        return None
    return Network(declared, at, declared["transport"] == "rdma")


def variables(used: Network | None) -> Iterator[Variable]:
    """The settings; `=` in front makes NCCL take the names as they are, where mlx5_1 would mean mlx5_10 too."""
    if used is None:
        return
    interface = used.declared.get("interface", _INTERFACE)
    yield Variable("NCCL_SOCKET_IFNAME", f"={interface}", (*used.at, "interface"))
    yield Variable("GLOO_SOCKET_IFNAME", interface, (*used.at, "interface"))
    if not used.is_rdma:
        yield Variable("NCCL_IB_DISABLE", "1", (*used.at, "transport"))
        return
    yield Variable("NCCL_NET", "IB", (*used.at, "transport"))  # a missing device is an error, not slow sockets
    if used.declared.get("hca"):
        yield Variable("NCCL_IB_HCA", f"={','.join(used.declared['hca'])}", (*used.at, "hca"))


def devices(used: Network | None, role: Mapping[str, Any], context: Context) -> tuple[dict[str, Any], Pointer]:
    """The RDMA device that each pod requests beside what its role declares, and what names it."""
    if used is None or not used.is_rdma:
        return {}, ()
    resource = used.declared.get("resource", context.rdma_resource)
    if resource is None or resource in role.get("resources", {}):
        return {}, ()
    return {resource: 1}, (*used.at, "resource" if "resource" in used.declared else "transport")


def capabilities(used: Network | None, context: Context) -> list[str]:
    """What lets a container pin memory, which RDMA does, where the nodes have not raised the limit for all."""
    return [LOCK] if used is not None and used.is_rdma and not context.is_memlock_raised else []


def annotations(used: Network | None) -> dict[str, str]:
    """The further networks that Multus attaches the pod to."""
    attached = used.declared.get("attachments") if used is not None else None
    return {_ATTACHMENTS: ",".join(attached)} if attached else {}


def annotation_origins(used: Network | None) -> dict[Pointer, Pointer]:
    return {("annotations", _ATTACHMENTS): (*used.at, "attachments")} if used and annotations(used) else {}


def rdma_resource(declared: Mapping[str, Any] | None) -> str | None:
    """What pods request the RDMA devices by, of the Environment's network: the first that it offers; None where it has
    none. The names and prefixes are those of modules/network.py, which no other module may ask."""
    if declared is None or (kind := declared.get("type", "shared")) not in _DEVICES:
        return None
    prefix, name = _DEVICES[kind]
    named = (each["resourceName"] for each in declared.get("devices", ()))
    return f"{prefix}/{next(named, name)}"


def is_memlock_raised(declared: Mapping[str, Any] | None) -> bool:
    """Whether the Environment's network says that the nodes let every pod pin memory."""
    return declared is not None and declared.get("memlock") == "unlimited"
