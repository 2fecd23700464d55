"""Which label keys may tell a topology, how their tiers are called, and how far each is to be trusted.

Sources: the projects' own documentation, as of 2026 (see basalt/views/dialects.py).
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

FABRIC, ACCELERATOR, STALE, WORD, PLACE = 100, 60, 40, 30, 10  # how much the key's tiers are preferred to others'


class Key(NamedTuple):
    """A label key that may tell a domain. depth: the greater of two of one family is the narrower; volatile: its values
    change when the fabric restarts; counted: people make its values, and write several tiers into one."""

    label: str
    name: str
    family: str
    weight: int
    depth: int = 0
    volatile: bool = False
    counted: bool = False
    unused: str = ""  # why it tells no domain at all


def _family(family: str, prefix: str, names: str, weight: int = FABRIC, *, counted: bool = False) -> dict[str, Key]:
    """Keys of one dialect, the widest first: `suffix=name`, or a suffix that is the name."""
    pairs = (each.partition("=") for each in names.split())
    return {
        prefix + suffix: Key(prefix + suffix, name or suffix, family, weight, depth, counted=counted)
        for depth, (suffix, _, name) in enumerate(pairs)
    }


CLIQUE = "nvidia.com/gpu.clique"
_OLD_TOPOGRAPH = "network.topology.nvidia.com/"
_NEW_TOPOGRAPH = re.compile(r"(fabric|accelerator)\.topograph\.run/")
_AWS = "topology.k8s.aws/"
_RESERVATION = f"{_AWS}capacity-block-id"
_BY_KEY: dict[str, Key] = {
    **_family("Volcano", "volcano.sh/", "hypercluster hypernode rack tor", counted=True),
    **_family("Topograph", "fabric.topograph.run/", "tier-3=superspine tier-2=core tier-1=spine tier-0=leaf"),
    **_family(
        "Topograph accelerators", "accelerator.topograph.run/", "domain=nvlink sub-domain=nvlink-part", ACCELERATOR + 2
    ),
    **_family("old Topograph", _OLD_TOPOGRAPH, "datacenter core spine block leaf accelerator=nvlink", STALE),
    **_family("EKS", f"{_AWS}network-node-", "layer-1 layer-2 layer-3 layer-4"),
    **_family("EKS accelerators", _AWS, "ultraserver-id=ultraserver", ACCELERATOR),
    **_family("EKS zones", _AWS, "zone-id=zone", PLACE - 1),
    **_family("GKE", "cloud.google.com/gce-topology-", "block subblock host"),
    **_family("old GKE", "topology.gke.io/", "cluster rack host", STALE),
    **_family(
        "OKE", "oci.oraclecloud.com/rdma.",
        "hpc_island_id=hpc-island network_block_id=network-block local_block_id=local-block host_id=host",
    ),
    **_family("OKE hosts", "oci.oraclecloud.com/host.", "network_block_id=network-block rack_id=rack", FABRIC - 10),
    **_family("CoreWeave InfiniBand", "ib.coreweave.cloud/", "fabric superpod leafgroup", FABRIC + 1),
    **_family("CoreWeave", "backend.coreweave.cloud/", "fabric superpod leafgroup"),
    **_family("CoreWeave racks", "node.coreweave.cloud/", "rack", WORD),
    **_family("CoreWeave accelerators", "ds.coreweave.com/", "nvlink.domain=nvlink", ACCELERATOR + 1),
    **_family("ACK Lingjun", "alibabacloud.com/", "point-of-delivery=pod asw-id=asw"),
    **_family("Kubernetes", "topology.kubernetes.io/", "region zone", PLACE),
    **_family("old Kubernetes", "failure-domain.beta.kubernetes.io/", "region zone", PLACE - 2),
    CLIQUE: Key(CLIQUE, "nvlink", "NVIDIA", WORD - 5, volatile=True),  # what stays is better
    _RESERVATION: Key(_RESERVATION, "", "EKS", 0, unused="a reservation, which ends, and no distance"),
}  # fmt: skip
_TIER = re.compile(r"fabric\.topograph\.run/tier-[0-9]{1,2}")
_PARTED = re.compile(r"[^a-z0-9]+")
# Words that end the name of a label which people gave to a part of their network or building, the widest first.
_WORDS = (
    "region zone site datacenter dc building hall room floor island hypercluster fabric superpod su superspine core "
    "pod spine segment block subblock row aisle cage cell switch hypernode leafgroup leaf tor cabinet enclosure rack "
    "chassis nvlink ultraserver".split()
)
_FILLERS = frozenset("id name no number num label key".split())
# Keys that end in such a word and mean something else.
_NOT_THESE = re.compile(r"(feature\.node|beta)\.kubernetes\.io/|.*\.csi\.|nvidia\.com/|node\.kubernetes\.io/")


def keys(present: Iterable[str]) -> list[Key]:
    """The keys, of those that nodes carry, that may tell a domain; in the order of their names."""
    return [key for key in map(key_of, sorted(present)) if key is not None]


def key_of(label: str) -> Key | None:
    if label in _BY_KEY:
        return _BY_KEY[label]
    if _TIER.fullmatch(label):
        number = int(label.rpartition("-")[2])
        return Key(label, f"tier-{number}", "Topograph", FABRIC, -number)
    if _NOT_THESE.match(label):
        return None
    owner, _, last = label.rpartition("/")
    words = [word for word in _PARTED.split(last.lower()) if word and word not in _FILLERS]
    if not words or words[-1] not in _WORDS:
        return None
    return Key(label, words[-1], owner or "labels of your own", WORD, _WORDS.index(words[-1]), counted=True)


def replaced(found: Iterable[Key]) -> dict[str, str]:
    """Of the keys found those that another key has taken the place of, with that place's name."""
    every = {key.label for key in found}
    is_new = any(map(_NEW_TOPOGRAPH.match, every))
    gone = {label: "fabric.topograph.run/tier-*" for label in every if is_new and label.startswith(_OLD_TOPOGRAPH)}
    for old, new in (("failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"),):
        gone |= {label: label.replace(old, new) for label in every if label.replace(old, new) in every - {label}}
    return gone


# How a tier is called by the letters before its number: s0-s1-r3.
WORD_OF = {
    **{word: word for word in _WORDS},
    "s": "spine", "sp": "spine", "l": "leaf", "lf": "leaf", "r": "rack", "rk": "rack", "b": "block", "blk": "block",
    "p": "pod", "z": "zone", "az": "zone", "bldg": "building", "sw": "switch", "c": "cell", "n": "node",
}  # fmt: skip
LADDER = ("leaf", "spine", "core", "superspine")  # names of tiers that their letters do not tell, from the lowest
