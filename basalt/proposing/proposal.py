"""The whole proposal: topology, pools, a queue and a team that fit them, and a first gang."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from basalt.loading.nodes import Node
from basalt.proposing import pools, topology
from basalt.proposing.pools import Pool
from basalt.proposing.topology import ProposedTier, Topology
from basalt.quantities import Amount, Resources, is_extended, parse_map
from basalt.views.domains import Tier

KUBERNETES, VOLCANO = "1.34", "1.15.1"
_OLDEST, _NEWEST = 29, 35  # minor versions that Basalt knows and Volcano 1.15 supports
_KUBELET = re.compile(rb"\bkubeletVersion\"?[ \t]*:[ \t]*\"?v1\.([0-9]{1,3})\b")
_GI, _MI = 1024**3, 1024**2
_OF_TORCH = ("nvidia.com/gpu", "amd.com/gpu")
TEAM, NAMESPACE, QUEUE = "team-a", "team-a-train", "research"


class Gang(NamedTuple):
    """The example job: so many pods, each with these amounts, in one domain of a tier where one is named."""

    replicas: int
    resources: Resources
    shared_memory: Amount
    tier: str | None
    tolerations: tuple[dict[str, str], ...]
    node_selector: dict[str, str]

    @property
    def device(self) -> str | None:
        return next((name for name in self.resources if is_extended(name)), None)

    @property
    def is_torch(self) -> bool:
        """Whether torchrun tells its workers from each other; one pod, or other devices, run a plain command."""
        return self.replicas > 1 and self.device in _OF_TORCH


class Proposal(NamedTuple):
    """What `basalt init` writes down. capacity: what the workers that take pods offer together."""

    name: str
    nodes: tuple[Node, ...]
    workers: tuple[Node, ...]
    topology: Topology
    pools: tuple[Pool, ...]
    capacity: Resources
    pods: int
    gang: Gang | None
    no_gang: str = "no node takes pods now"  # why there is none
    kubernetes: str = KUBERNETES
    kubelets: str = ""  # what the nodes' kubelets say, where they do


def propose(name: str, nodes: Iterable[Node], kubelets: bytes = b"") -> Proposal:
    """The proposal for an environment of that name; without nodes one to be filled in. kubelets: the text of the
    inventory, for the versions that it tells."""
    every = sorted(nodes, key=lambda node: node.name)
    workers = pools.workers(every)
    found = topology.propose(every, workers)
    kinds = pools.propose(every)
    ready = [node for node in workers if node.takes_pods]
    version, told = _version(kubelets)
    return Proposal(
        name,
        tuple(every),
        tuple(workers),
        found,
        kinds,
        _capacity(ready),
        int(sum(parse_map(node.allocatable).get("pods", 0) for node in ready)),
        _gang(kinds, found),
        kubernetes=version,
        kubelets=told,
    )


def _version(text: bytes) -> tuple[str, str]:
    """The Kubernetes version to declare, and the kubelets' own where they tell one: the API server is no older."""
    minors = [int(minor) for minor in _KUBELET.findall(text)]
    if not minors:
        return KUBERNETES, ""
    return f"1.{min(max(*minors, _OLDEST), _NEWEST)}", f"1.{max(minors)}"


def _capacity(nodes: Iterable[Node]) -> Resources:
    """CPUs, memory and devices of the nodes together, in whole CPUs and Gi."""
    total: Resources = {}
    for node in nodes:
        for name, amount in parse_map(node.allocatable).items():
            if name in ("cpu", "memory") or is_extended(name):
                total[name] = total.get(name, 0) + amount
    whole = {name: amount // (_GI if name == "memory" else 1) * (_GI if name == "memory" else 1)
             for name, amount in total.items()}  # fmt: skip
    ordered = sorted(whole, key=lambda name: (is_extended(name), name))
    return {name: whole[name] for name in ordered if whole[name] > 0}


def _gang(kinds: Sequence[Pool], found: Topology) -> Gang | None:
    """Two whole nodes of the first pool as close together as two of them are; one where there is only one."""
    taking_part = {node.name for node in found.participants} - {node.name for node in found.outside}
    for pool in kinds:
        ready = [node for node in pool.ready if not found.tiers or node.name in taking_part]
        amounts = _amounts(pool)
        if not ready or not amounts or (pool is not kinds[0] and not pool.accelerators and kinds[0].accelerators):
            continue
        tier = _closest(ready, found.tiers) if len(ready) > 1 else None
        selector = pool.selector if len(kinds) > 1 and pool.selector else {}
        tolerations = tuple(_toleration(taint.key, taint.value, taint.effect) for taint in pool.taints
                            if taint.effect != "PreferNoSchedule")  # fmt: skip
        shared = amounts.get("memory", 0) // 8 // _GI * _GI if pool.accelerators else 0
        return Gang(min(2, len(ready)), amounts, shared, tier, tolerations, selector)
    return None


def _closest(nodes: Sequence[Node], tiers: Sequence[ProposedTier]) -> str | None:
    """The lowest tier in one domain of which two of the nodes are."""
    for tier in tiers:
        read = Tier(1, tier.name, tier.label, tier.pattern, "{domain}").reader()
        domains = [domain for node in nodes if (domain := read(node.labels)) is not None]
        if len(set(domains)) < len(domains):
            return tier.name
    return None


def _amounts(pool: Pool) -> Resources:
    """What a pod of the gang requests: all accelerators of one sort, half of the CPUs and of the memory."""
    cpu, memory = int(pool.cpu // 2), int(pool.memory // 2)
    found: Resources = {"cpu": cpu} if cpu else {}
    unit = _GI if memory >= _GI else _MI
    if memory // unit:
        found["memory"] = memory // unit * unit
    most = max(pool.accelerators.items(), key=lambda each: (each[1], each[0]), default=None)
    return {**found, most[0]: int(most[1])} if most and int(most[1]) else found


def _toleration(key: str, value: str, effect: str) -> dict[str, Any]:
    if not value:
        return {"key": key, "operator": "Exists", "effect": effect}
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}
