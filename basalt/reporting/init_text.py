"""What `basalt init` proposed and why, as people read it and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from basalt.fit.verdicts import Verdict
from basalt.names import counted
from basalt.proposing import documents
from basalt.proposing.pools import Pool
from basalt.proposing.proposal import NAMESPACE, QUEUE, Proposal
from basalt.proposing.topology import ProposedTier, Topology
from basalt.quantities import show
from basalt.reporting.text import Paint, argument, printable

_MOST = 20  # pools, or labels left out, that are listed


def report(proposal: Proposal, verdict: Verdict | None, folder: str, paths: Sequence[str], paint: Paint) -> str:
    """The summary: topology, what was left out and why, pools, queue, job, files, and what to do next."""
    known = (
        f"proposed from {counted(len(proposal.nodes), 'node')}" if proposal.nodes else "nothing is known of its nodes"
    )
    lines = [f"{paint.bold(printable(proposal.name))}: {known}"]
    if proposal.nodes:
        lines += [*_topology(proposal, paint), *_pools(proposal, paint), *_rest(proposal, verdict, paint)]
    lines.append(f"{paint.bold('written:')} {', '.join(printable(f'{folder}/{path}') for path in paths)}")
    lines += [paint.bold("next:"), *(f"  {printable(step)}" for step in steps(proposal, folder))]
    return "\n".join(lines) + "\n"


def _topology(proposal: Proposal, paint: Paint) -> Iterator[str]:
    found = proposal.topology
    yield paint.bold("topology:") if found.tiers else paint.bold("topology: none")
    width = max((len(tier.name) for tier in found.tiers), default=0)
    for tier in found.tiers:
        read = tier.label + (f" by {tier.pattern}" if tier.pattern else "")
        yield printable(f"  {tier.name:{width}}  {read}: {documents.tier_numbers(tier)}")
    if found.tiers and found.node_selector:
        selector = ",".join(f"{key}={value}" for key, value in found.node_selector.items())
        yield printable(f"  {len(found.participants)} of {len(proposal.nodes)} nodes take part: {selector}")
    if found.outside:
        yield f"  {counted(len(found.outside), 'node')} without a tier's label: unplaced: allow"
    if found.members == "label":
        yield "  members: label, since the ids change when the fabric restarts"
    yield from _left_out(found, paint)


def _left_out(found: Topology, paint: Paint) -> Iterator[str]:
    if found.left_out:
        yield paint.bold("left out:")
    for each in found.left_out[:_MOST]:
        yield f"  {printable(f'{each.label}: {each.reason}')}"
    if len(found.left_out) > _MOST:
        yield f"  and {len(found.left_out) - _MOST} more"
    for remark in found.remarks:
        yield f"{paint.bold('look at this:')} {printable(remark)}"


def _pools(proposal: Proposal, paint: Paint) -> Iterator[str]:
    yield paint.bold("pools:")
    for pool in proposal.pools[:_MOST]:
        yield f"  {printable(f'{pool.name}: {documents.pool_numbers(pool)}')}"
    if len(proposal.pools) > _MOST:
        yield f"  and {len(proposal.pools) - _MOST} more shapes"


def _rest(proposal: Proposal, verdict: Verdict | None, paint: Paint) -> Iterator[str]:
    sums = [documents.arithmetic(proposal, name) for name in proposal.capacity if name not in ("cpu", "memory")]
    amounts = [
        f"{show(proposal.capacity[name], name)} {name}" for name in ("cpu", "memory") if name in proposal.capacity
    ]
    yield printable(
        f"{paint.bold(f'queue {QUEUE}:')} {'; '.join([*sums, *amounts]) or 'no worker node offers anything'}"
    )
    if verdict is None:
        yield printable(f"{paint.bold('job:')} none: {proposal.no_gang}")
    else:
        where = f" in {verdict.domain}" if verdict.domain else ""
        pods = counted(sum(verdict.placement.values()), "pod")
        yield printable(f"{paint.bold(f'job {NAMESPACE}/first-gang:')} {verdict.state.value}: {pods}{where}")


def steps(proposal: Proposal, folder: str) -> list[str]:
    """Commands that one would run next."""
    folder = argument(folder)
    first = [] if proposal.nodes else [f"kubectl get nodes -o json > {folder}/nodes.json"]
    return [*first, f"basalt check {folder}", f"basalt fit {folder}", f"basalt compile {folder}"]


def as_json(proposal: Proposal, verdict: Verdict | None, folder: str, paths: Sequence[str]) -> dict[str, Any]:
    """The same, for programs."""
    return {
        "output": folder,
        "written": list(paths),
        "nodes": len(proposal.nodes),
        "topology": _topology_json(proposal.topology),
        "pools": [_pool_json(pool) for pool in proposal.pools],
        "capacity": {name: show(amount, name) for name, amount in proposal.capacity.items()},
        "job": verdict.as_json() if verdict is not None else None,
        "next": steps(proposal, folder),
    }


def _topology_json(found: Topology) -> dict[str, Any]:
    return {
        "nodeSelector": found.node_selector if found.tiers else {},
        "participants": len(found.participants),
        "unplaced": [node.name for node in found.outside],
        "members": found.members,
        "tiers": [_tier_json(tier) for tier in found.tiers],
        "leftOut": [{"label": each.label, "reason": each.reason} for each in found.left_out],
        "remarks": list(found.remarks),
    }


def _tier_json(tier: ProposedTier) -> dict[str, Any]:
    return {
        "name": tier.name,
        "label": tier.label,
        "pattern": tier.pattern,
        "nameTemplate": tier.template,
        "domains": tier.domains,
        "nodes": tier.nodes,
        "smallest": tier.smallest,
        "largest": tier.largest,
        "above": tier.above,
    }


def _pool_json(pool: Pool) -> dict[str, Any]:
    return {
        "name": pool.name,
        "nodes": len(pool.nodes),
        "ready": len(pool.ready),
        "product": pool.product,
        "instanceType": pool.instance,
        "nodeSelector": pool.selector,
        "devices": {name: show(amount) for name, amount in pool.devices.items()},
        "cpu": show(pool.cpu),
        "memory": show(pool.memory, "memory"),
    }
