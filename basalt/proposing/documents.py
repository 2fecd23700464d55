"""A proposal as the documents of an environment, each line of which says where it comes from. The text is YAML that a
person would write: comments, short maps on one line."""

import textwrap
from collections.abc import Mapping
from typing import Any

from basalt import names
from basalt.names import counted
from basalt.proposing import inventory
from basalt.proposing.pools import Pool
from basalt.proposing.proposal import NAMESPACE, QUEUE, TEAM, VOLCANO, Gang, Proposal
from basalt.proposing.topology import ProposedTier, Topology
from basalt.quantities import Resources, show, show_rounded
from basalt.rendering import yaml_writer

SCHEMAS = ".schemas"  # hidden, so that it is not read for documents
_WIDTH = 118
_MOST = 40  # lines of a list in a comment
_GATHER = "kubectl get nodes -o json > nodes.json"
_HEAD = "apiVersion: basalt.dev/v1alpha1"
_EXAMPLE = {"cpu": 64, "memory": 512 * 1024**3, "nvidia.com/gpu": 16}  # amounts where the nodes are not known


def files(proposal: Proposal) -> dict[str, str]:
    """The documents by their path in the environment's folder; the schemas are not among them."""
    found = {"environment.yaml": _environment(proposal), f"teams/{TEAM}.yaml": _team(proposal)}
    if proposal.gang or not proposal.nodes:
        found["jobs/first-gang.yaml"] = _job(proposal, proposal.gang)
    if proposal.nodes:
        found["nodes.json"] = inventory.text(proposal.nodes)
    return found


def tier_numbers(tier: ProposedTier) -> str:
    """16 values over 64 nodes, 4 each; each in one spine."""
    each = f"{tier.smallest} each" if tier.smallest == tier.largest else f"{tier.smallest} to {tier.largest} each"
    text = f"{counted(tier.domains, 'value')} over {counted(tier.nodes, 'node')}, {each}"
    return text + (f"; each in one {tier.above}" if tier.above else "")


def pool_numbers(pool: Pool) -> str:
    """64 nodes (NVIDIA-H100-80GB-HBM3, h100.8x), each 8 nvidia.com/gpu, 190 cpu, 2010Gi memory."""
    what = ", ".join(text(each) for each in (pool.product, pool.instance) if each)
    devices = [f"{show(amount)} {text(name)}" for name, amount in pool.devices.items()]
    amounts = ", ".join([*devices, f"{show(pool.cpu)} cpu", f"{show_rounded(pool.memory, 'memory')} memory"])
    kept = [
        f"{text(taint.key)}{f'={text(taint.value)}' if taint.value else ''}:{taint.effect}" for taint in pool.taints
    ]
    away = len(pool.nodes) - len(pool.ready)
    notes = [f"taints {', '.join(kept)}"] * bool(kept) + [f"{away} cordoned or not Ready"] * bool(away)
    shown = f"{counted(len(pool.nodes), 'node')}{f' ({what})' if what else ''}, each {amounts}"
    return "; ".join([shown, *notes])


def arithmetic(proposal: Proposal, resource: str) -> str:
    """56 nodes x 8 + 8 nodes x 4 = 480: where the capacity of a resource comes from."""
    chosen = {node.name for node in proposal.workers}
    parts = []
    for pool in proposal.pools:
        ready = [node for node in pool.ready if node.name in chosen]
        if ready and pool.devices.get(resource):
            parts.append(f"{counted(len(ready), 'node')} x {show(pool.devices[resource])}")
    shown = " + ".join(parts if len(parts) <= 6 else [*parts[:5], f"{len(parts) - 5} more pools"])
    return f"{shown} = {show(proposal.capacity[resource])} {text(resource)}"


def text(value: str) -> str:
    """A text of the cluster's own, safe within a comment, a line of a terminal or a document."""
    return yaml_writer.text(value)


def _environment(proposal: Proposal) -> str:
    lines = [_schema_line("Environment", ""), *_introduction(proposal), _HEAD, "kind: Environment"]
    lines += [f"metadata: {{name: {text(proposal.name)}}}", "spec:"]
    lines += _versions(proposal)
    lines += _topology(proposal.topology) if proposal.nodes else _topology_to_fill_in()
    lines += _priorities()
    lines += _queues(proposal)
    lines += _gpu(proposal) if proposal.nodes else []
    return "\n".join(lines) + "\n"


def _schema_line(kind: str, above: str) -> str:
    return f"# yaml-language-server: $schema={above}{SCHEMAS}/{kind}.json"


def _introduction(proposal: Proposal) -> list[str]:
    if not proposal.nodes:
        said = (
            "An environment to fill in: what its nodes are is not known yet. `basalt init DIR --nodes FILE` proposes "
            "the topology, and amounts that fit, from what kubectl prints; or write that into this folder:"
        )
        return [*_comment(said), f"#     {_GATHER}"]
    said = (
        f"Proposed by `basalt init` from the labels of {counted(len(proposal.nodes), 'node')}. nodes.json holds of "
        "each its name, labels, taints, allocatable amounts and readiness, which is all that Basalt reads; the whole "
        "of what kubectl prints is read as well. When nodes have come or gone, write it anew:"
    )
    return [*_comment(said), f"#     {_GATHER}", "#", *_comment("Nodes by shape:"), *_pools(proposal)]


def _pools(proposal: Proposal) -> list[str]:
    lines = [line for pool in proposal.pools[:_MOST] for line in _comment(f"{pool.name}: {pool_numbers(pool)}", "- ")]
    more = len(proposal.pools) - _MOST
    return lines + ([f"# - and {more} more shapes"] if more > 0 else [])


def _versions(proposal: Proposal) -> list[str]:
    known = f"the kubelets say {proposal.kubelets}" if proposal.kubelets else "your cluster's, from `kubectl version`"
    if proposal.kubelets and proposal.kubelets != proposal.kubernetes:
        known += "; this is the nearest that Basalt and Volcano know"
    return [
        f'  kubernetes: {{version: "{proposal.kubernetes}"}} # {known}',
        "  # The scheduler's configuration is left to Basalt's default: gangs, queues, quotas and topology work.",
        f"  volcano: {{version: {VOLCANO}}}",
    ]


def _topology(found: Topology) -> list[str]:
    lines = []
    if found.tiers:
        lines.append("  topology:")
        if found.node_selector:
            lines += _comment(
                f"{counted(len(found.participants), 'node')} take part; the others stay outside the tree.", "", 4
            )
            lines.append(f"    nodeSelector: {_flow(found.node_selector)}")
        if found.outside:
            lines += _outside(found)
            lines.append("    unplaced: allow")
        if found.members == "label":
            said = "The ids change when the fabric restarts: leaves select their nodes by label, not by name."
            lines += [*_comment(said, "", 4), "    members: label"]
        lines.append("    tiers: # from the leaf up; each is a HyperNode tier that jobs can name")
        lines += [line for tier in found.tiers for line in _tier(tier)]
    else:
        lines += _comment("No topology: no label tells which nodes are close to each other.", "", 2)
    lines += _left_out(found)
    return lines


def _outside(found: Topology) -> list[str]:
    listed = names.listed((text(node.name) for node in found.outside), 4)
    some = counted(len(found.outside), "node")
    return _comment(f"{some} without a tier's label, which no job with a hard topology will use: {listed}.", "", 4)


def _tier(tier: ProposedTier) -> list[str]:
    fields = f"name: {tier.name}, label: {text(tier.label)}"
    if tier.pattern is not None:
        fields += f", pattern: {_quoted(tier.pattern)}"
    if tier.template is not None:
        fields += f', nameTemplate: "{tier.template}"'
    said = tier_numbers(tier)
    if tier.is_single:
        said += "; jobs that may run anywhere under it name it, and a second one joins it as it comes"
    return [*_comment(f"{tier.name}: {said}", "", 6), f"      - {{{fields}}}"]


def _left_out(found: Topology) -> list[str]:
    if not found.left_out and not found.remarks:
        return []
    lines = ["  # Labels that became no tier:"] if found.left_out else []
    for each in found.left_out[:_MOST]:
        lines += _comment(f"{text(each.label)}: {shown(each.reason)}", "- ", 2)
    for remark in found.remarks:
        lines += _comment(f"Look at this: {shown(remark)}", "", 2)
    return lines


def shown(sentence: str) -> str:
    """A sentence that may hold values of the cluster's own, on one line and without what a terminal obeys."""
    return sentence if sentence.isascii() and sentence.isprintable() else text(sentence)


def _topology_to_fill_in() -> list[str]:
    return [
        "  # The network's tiers, from the leaf up, each read from a label of the nodes: see what labels there are by",
        "  # `kubectl get nodes --show-labels`.",
        "  # topology:",
        "  #   tiers:",
        "  #     - {name: rack, label: topology.example.com/rack}",
        "  #     - {name: block, label: topology.example.com/block}",
    ]


def _priorities() -> list[str]:
    return [
        "  priorities: # the higher goes first, and may evict the lower",
        "    low: {value: 1000, default: true, description: Work that may wait}",
        "    high: {value: 1000000, description: Work that a deadline hangs on}",
    ]


def _queues(proposal: Proposal) -> list[str]:
    lines = ["  queues:"]
    amounts = capacity(proposal)
    if proposal.nodes:
        said = "All that the worker nodes offer together, less those that are cordoned or not Ready."
        devices = [arithmetic(proposal, name) for name in amounts if name not in ("cpu", "memory")]
        lines += [*_comment(said, "", 4), *(line for each in devices for line in _comment(each, "- ", 4))]
    else:
        lines += _comment("What the nodes offer together: change these amounts to your cluster's.", "", 4)
    lines.append(f"    {QUEUE}:")
    if amounts:
        lines += [f"      capability: {_flow(_shown(amounts))}", f"      deserved: {_flow(_shown(amounts))}"]
    return lines if amounts else [*lines[:-1], f"    {QUEUE}: {{}}"]


def capacity(proposal: Proposal) -> Resources:
    """What queue and quota give out: the nodes' capacity, or amounts to change where there are no nodes."""
    return proposal.capacity if proposal.nodes else dict(_EXAMPLE)


def _gpu(proposal: Proposal) -> list[str]:
    """The part gpu, to be taken in by whoever wants it: the nodes offer their GPUs already."""
    own = [pool for pool in proposal.pools if any(name.startswith("nvidia.com/") for name in pool.accelerators)]
    if not own:
        return []
    said = (
        "The nodes offer their GPUs, so something installs the device plugin already. To let Basalt install drivers "
        "and plugin (NVIDIA's operator) remove that from the cluster, and the `# ` before these lines:"
    )
    lines = [*_comment(said, "", 2), "  # gpu:"]
    if not all(pool.selector for pool in own) and len(own) > 1:
        said = "gpu: {} (pools would need a label that tells these nodes apart)"
        return [*lines[:-1], f"  # {said}"]
    lines.append("  #   pools:")
    for pool in own:
        lines.append(f"  #     {pool.name}:")
        lines += [f"  #       {key}: {_flow(value)}" for key, value in _gpu_pool(pool, is_only=len(own) == 1).items()]
    return lines


def _gpu_pool(pool: Pool, *, is_only: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {} if is_only or not pool.selector else {"nodeSelector": pool.selector}
    tolerations = [
        {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        for taint in pool.taints
        if taint.key != "nvidia.com/gpu"
    ]
    fields |= {"tolerations": tolerations} if tolerations else {}
    fields["driver"] = {"version": pool.driver} if pool.driver else {"preinstalled": True}
    labels = pool.nodes[0].labels
    profile = labels.get("nvidia.com/mig.config", "").removeprefix("all-")
    if any("/mig-" in name for name in pool.accelerators) and profile not in ("", "disabled"):
        fields["mig"] = {"strategy": labels.get("nvidia.com/mig.strategy", "mixed"), "profile": profile}
    return fields


def _team(proposal: Proposal) -> str:
    amounts = _shown(capacity(proposal))
    pods = min(max(proposal.pods, 1), 500) if proposal.nodes else 500
    lines = [_schema_line("Team", "../")]
    lines += _comment(
        "The first team, which may use all there is. Put in the name, the groups of your identity provider, and with a "
        "second team shares of the amounts: what the teams' queues deserve adds up to no more than their parent's."
    )
    lines += [_HEAD, "kind: Team", f"metadata: {{name: {TEAM}}}", "spec:"]
    lines += [f"  access: {{admin: [{TEAM}-leads], edit: [{TEAM}-members]}}", "  namespaces:", f"    {NAMESPACE}:"]
    lines.append(f"      quota: {_flow({**amounts, 'pods': pods})}")
    lines.append("      defaults: {cpu: 1, memory: 2Gi} # of containers that ask for nothing")
    lines.append(f"  queue: # named {TEAM}, like the team")
    lines.append(f"    parent: {QUEUE}")
    if amounts:
        lines += [f"    deserved: {_flow(amounts)}", f"    capability: {_flow(amounts)}"]
    lines.append("  priorities: [low, high] # the first is what its jobs get that name none")
    return "\n".join(lines) + "\n"


_UNKNOWN = Gang(2, {"cpu": 8, "memory": 64 * 1024**3, "nvidia.com/gpu": 8}, 8 * 1024**3, None, (), {})


def _job(proposal: Proposal, gang: Gang | None) -> str:
    gang = gang or _UNKNOWN
    lines = [_schema_line("TrainingJob", "../"), *_comment(_about(gang, is_known=bool(proposal.nodes)))]
    lines += [_HEAD, "kind: TrainingJob", f"metadata: {{name: first-gang, namespace: {NAMESPACE}}}", "spec:"]
    lines.append(f"  framework: {'pytorch' if gang.is_torch else 'plain'}")
    lines.append("  image: registry.example.com/team-a/train:1.0.0 # your image")
    if gang.tier is not None:
        lines.append(
            f"  topology: {{mode: hard, highestTier: {gang.tier}}} # all pods within one {gang.tier}, or it waits"
        )
    lines += ["  roles:", "    worker:", f"      replicas: {gang.replicas}"]
    lines += _command(gang)
    lines.append(f"      resources: {_flow(_shown(gang.resources))}")
    if gang.shared_memory:
        lines.append(f"      sharedMemory: {show(gang.shared_memory, 'memory')} # of the memory above")
    if gang.node_selector:
        lines.append(f"      nodeSelector: {_flow(gang.node_selector)}")
    if gang.tolerations:
        lines += ["      tolerations:", *(f"        - {_flow(each)}" for each in gang.tolerations)]
    lines.append("  volumes: [{name: checkpoints, mountPath: /checkpoints, claim: checkpoints}] # a claim of your own")
    return "\n".join([*lines, "  ttlAfterFinished: 24h"]) + "\n"


def _about(gang: Gang, *, is_known: bool) -> str:
    what = f"{counted(gang.replicas, 'pod')} that start together" if gang.replicas > 1 else "One pod"
    device = (
        f"each with all {show(gang.resources[gang.device])} {text(gang.device)} of a node"
        if gang.device
        else "each with half a node"
    )
    if not is_known:
        return f"A first gang: {what}. Change the amounts to what a node of yours offers."
    return f"A first gang: {what}, {device}, half of its CPUs and of its memory. `basalt fit` says where it would run."


def _command(gang: Gang) -> list[str]:
    if not gang.is_torch:
        return ["      command: [python, train.py]"]
    assert gang.device is not None  # or it would be no torchrun
    arguments = [
        f"--nnodes={gang.replicas}",
        f"--nproc-per-node={show(gang.resources[gang.device])}",
        "--node-rank=$(RANK)",
        "--master-addr=$(MASTER_ADDR)",
        "--master-port=$(MASTER_PORT)",
    ]
    words = ["torchrun", *arguments, "train.py"]
    return ["      command:", *(f"        - {word}" for word in words)]


def _shown(amounts: Resources) -> dict[str, Any]:
    """Amounts as people write them: numbers as numbers, memory in its shortest exact text."""
    return {name: int(amount) if name != "memory" else show(amount, "memory") for name, amount in amounts.items()}


def _flow(value: Any) -> str:
    """The value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{text(str(key))}: {_flow(child)}" for key, child in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(child) for child in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return text(value) if isinstance(value, str) else str(value)


def _quoted(pattern: str) -> str:
    """A regular expression as one writes it in YAML, without doubled backslashes."""
    if pattern.isascii() and pattern.isprintable():
        return "'" + pattern.replace("'", "''") + "'"
    return text(pattern)


def _comment(said: str, dash: str = "", indent: int = 0) -> list[str]:
    """Lines of a comment; dash begins an item of a list, whose further lines are indented."""
    first = " " * indent + "# " + dash
    rest = " " * indent + "# " + " " * len(dash)
    return textwrap.wrap(said, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False)  # fmt: skip
