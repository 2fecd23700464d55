"""The topology drawn for a terminal."""

from collections.abc import Iterator, Sequence

from basalt import names
from basalt.quantities import Resources, show
from basalt.reporting.text import Paint, printable
from basalt.rules.topology import is_accelerator
from basalt.tree import Branch, Drawn, TierSummary

_SIBLINGS = 24  # domains under one parent that are drawn; the rest is counted
_PLAIN = ("cpu", "memory")


def tree(name: str, drawn: Drawn, paint: Paint) -> str:
    """The tree, then per tier the largest gang that each resource allows."""
    nodes = "no node inventory" if drawn.node_count is None else f"{drawn.node_count} nodes"
    offers = f", {_offers(drawn.cluster)}" if drawn.cluster else ""
    lines = [f"{paint.bold(name)}: {nodes}{offers}", ""]
    if not drawn.roots:
        lines.append("no HyperNodes: jobs are placed without regard to topology")
    for root in drawn.roots:
        lines.append(_line(root, paint))
        lines.extend(_below(root, "", paint))
    if drawn.unplaced:
        lines.extend(["", f"in no HyperNode: {names.listed(drawn.unplaced, 8)}"])
    if drawn.tiers:
        lines.extend(["", *_table(drawn.tiers, paint)])
    return "\n".join(lines) + "\n"


def _below(branch: Branch, indent: str, paint: Paint) -> Iterator[str]:
    shown = branch.children[:_SIBLINGS]
    rest = len(branch.children) - len(shown)
    for position, child in enumerate(shown):
        is_last = position == len(branch.children) - 1
        yield f"{indent}{'└── ' if is_last else '├── '}{_line(child, paint)}"
        yield from _below(child, indent + ("    " if is_last else "│   "), paint)
    if rest:
        yield f"{indent}└── {rest} more (see --format json)"


def _line(branch: Branch, paint: Paint) -> str:
    tier = f"tier {branch.tier}" + (f" {branch.tier_name}" if branch.tier_name else "")
    parts = [f"{branch.node_count} node{'' if branch.node_count == 1 else 's'}"]
    if branch.offers:
        parts.append(_offers(branch.offers))
    if branch.nodes:
        parts.append(names.listed(branch.nodes, 4))
    return f"{paint.bold(printable(branch.name))}  {paint.dim(printable(f'[{tier}]'))}  {printable('; '.join(parts))}"


def _offers(offers: Resources) -> str:
    """The accelerators, else CPU and memory."""
    chosen = [resource for resource in sorted(offers) if is_accelerator(resource)] or [*_PLAIN]
    return ", ".join(f"{show(offers[resource], resource)} {resource}" for resource in chosen if resource in offers)


def _table(tiers: Sequence[TierSummary], paint: Paint) -> Iterator[str]:
    """largest gang per tier: a row for each tier, a column for each resource."""
    resources = sorted({resource for tier in tiers for resource, (amount, _) in tier.largest.items() if amount != "0"})
    head = ["largest gang", "domains", "nodes each", *resources]
    rows = [head]
    for tier in tiers:
        spread = f"{tier.nodes[0]}" if tier.nodes[0] == tier.nodes[1] else f"{tier.nodes[0]}-{tier.nodes[1]}"
        label = f"tier {tier.tier}" + (f" {tier.name}" if tier.name else "")
        found = (tier.largest.get(resource, ("-", ""))[0] for resource in resources)
        rows.append([label, str(tier.domains), spread, *found])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for index, row in enumerate(rows):
        cells = [
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield paint.dim("  ".join(cells)) if not index else printable("  ".join(cells))
