"""Extended resources by what they are: GPUs and the like, what a GPU is shared out in, and RDMA devices."""

import re
from collections.abc import Iterable, Mapping

from basalt import names
from basalt.quantities import Amount, Resources, is_extended

# Counted in devices, or in slices that each count as one: by the part after the owner's name.
_GPU = re.compile(
    r"gpu|gpus|gpu\.shared|gpu-number|vgpu|vgpu-number|mig-[\w.+]+|[nx]pu|dcu|dcunum|mlu[0-9]*|gcu|gaudi2?|tpu|i915|xe"
    r"|neuron(?:core|device)?|Ascend[0-9]+[A-Z]?[0-9]*(?:-[0-9]+)?",
    re.IGNORECASE,
)
# What the device-sharing schedulers count and no node needs to offer; before the dash, what a node does offer.
_SHARES = re.compile(
    r"(volcano\.sh/vgpu)-(?:memory|memory-percentage|cores)|(huawei\.com/Ascend\w+(?:-[0-9]+)?)-(?:memory|core)"
)
_HAMI = {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", "nvidia.com/priority"}
_RDMA = re.compile(r"rdma|hca|infiniband|roce|mlnx|mlx[0-9]|(?<![a-z])ib(?![a-z])", re.IGNORECASE)
_NO_DEVICE = re.compile(r"fuse|kvm|tun|vhost-net|sgx|snd|video|gpumem|gpucores|priority|npu-core", re.IGNORECASE)
_PREFERRED = ("requests.", "limits.")
_CLASS = "deviceclass.resource.kubernetes.io/"  # IsExtendedResourceName of the feature DRAExtendedResource


def is_gpu(resource: str) -> bool:
    """Whether its unit is a GPU or another accelerator, or a slice of one: not memory or cores of one, nor a NIC."""
    return is_extended(resource) and _GPU.fullmatch(resource.rpartition("/")[2]) is not None


def gpus(resources: Mapping[str, Amount]) -> Resources:
    """The accelerators among the resources."""
    return {name: amount for name, amount in resources.items() if amount > 0 and is_gpu(name)}


def is_rdma(resource: str) -> bool:
    """Whether the name says that it is an RDMA device: rdma/hca_shared, nvidia.com/mlnxnics."""
    return is_extended(resource) and not is_gpu(resource) and _RDMA.search(resource) is not None


def may_be_rdma(resource: str) -> bool:
    """Whether it may be an RDMA device: sites name the resources of SR-IOV as they like."""
    name = resource.rpartition("/")[2]
    is_share = _SHARES.fullmatch(resource) is not None or _NO_DEVICE.search(name) is not None
    return is_rdma(resource) or (is_extended(resource) and not is_gpu(resource) and not is_share)


def is_granted_elsewhere(resource: str, offered: Iterable[str]) -> bool:
    """Whether no node needs to offer it, because the scheduler counts it itself: a share of a GPU, where GPUs are
    offered, or devices of a class.

    Source: pkg/scheduler/api/devices of Volcano; HAMi's scheduler extender.
    """
    if resource.startswith(_CLASS):
        return True
    known = set(offered)
    if resource in _HAMI:
        return "nvidia.com/gpu" in known
    shared = _SHARES.fullmatch(resource)
    return shared is not None and any(each.startswith(shared[1] or shared[2]) for each in known)


def nearest(resource: str, offered: Iterable[str]) -> str:
    """A hint: the offered resource that was most probably meant."""
    known = sorted(offered)
    bare = next((resource.removeprefix(each) for each in _PREFERRED if resource.startswith(each)), resource)
    if bare in known:
        return f"write {bare}"
    family = _family(bare)
    alike = [each for each in known if family and _family(each) == family]
    named = {each.rpartition("/")[2]: each for each in reversed(alike or known)}
    close = names.nearest(bare, alike or known) or named.get(bare.rpartition("/")[2])
    if close is not None or len(alike) == 1:
        return f"did you mean {close or alike[0]}?"
    extended = alike or [each for each in known if is_extended(each)]
    return f"the nodes offer {names.listed(extended)}" if extended else "name a resource of the nodes"


def _family(resource: str) -> str:
    if _RDMA.search(resource):
        return "rdma"
    return "gpu" if re.search(r"gpu|mig-", resource) or is_gpu(resource) else ""
