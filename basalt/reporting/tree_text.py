"""The topology drawn for a terminal."""

import unicodedata
from collections.abc import Iterator, Sequence

from basalt import names
from basalt.quantities import Resources, parse, show_rounded
from basalt.reporting.text import Paint, printable
from basalt.rules.placement import is_accelerator
from basalt.tree import Branch, Drawn, TierSummary

_SIBLINGS = 24  # domains under one parent that are drawn; the rest is counted
_MANY = 200  # domains in all: above that few siblings are drawn, so that the whole still fits a screen or two
_FEW = 4
_PLAIN = ("cpu", "memory")


def tree(name: str, drawn: Drawn, paint: Paint) -> str:
    """The tree, then per tier the largest gang that each resource allows."""
    nodes = "no node inventory" if drawn.node_count is None else _count(drawn.node_count, "node")
    offers = f", {_offers(drawn.cluster)}" if drawn.cluster else ""
    lines = [f"{paint.bold(printable(name))}: {printable(nodes + offers)}", ""]
    if not drawn.roots:
        lines.append("no HyperNodes: jobs are placed without regard to topology")
    siblings = _FEW if sum(tier.domains for tier in drawn.tiers) > _MANY else _SIBLINGS
    for root in drawn.roots[:siblings]:
        lines.append(_line(root, paint))
        lines.extend(_below(root, "", siblings, paint))
    if len(drawn.roots) > siblings:
        lines.append(_rest(len(drawn.roots) - siblings))
    if drawn.unplaced:
        lines.extend(["", f"in no HyperNode: {printable(names.listed(drawn.unplaced, 8))}"])
    if drawn.tiers:
        lines.extend(["", *_table(drawn.tiers, paint)])
    return "\n".join(lines) + "\n"


def _below(branch: Branch, indent: str, siblings: int, paint: Paint) -> Iterator[str]:
    shown = branch.children[:siblings]
    rest = [_rest(len(branch.children) - len(shown))] if len(branch.children) > len(shown) else []
    rest += [f"{_count(branch.hidden, 'member')} not drawn here"] if branch.hidden else []
    for position, child in enumerate(shown):
        is_last = position == len(shown) - 1 and not rest
        yield f"{indent}{'└── ' if is_last else '├── '}{_line(child, paint)}"
        yield from _below(child, indent + ("    " if is_last else "│   "), siblings, paint)
    for position, line in enumerate(rest):
        yield f"{indent}{'└── ' if position == len(rest) - 1 else '├── '}{line}"


def _rest(number: int) -> str:
    return f"{number} more (see --format json)"


def _line(branch: Branch, paint: Paint) -> str:
    tier = "no tier" if branch.tier is None else f"tier {branch.tier}"
    tier += f" {branch.tier_name}" if branch.tier_name else ""
    closed = f", {branch.closed} of them cordoned or not Ready" if branch.closed else ""
    parts = [_count(branch.node_count, "node") + closed]
    if branch.offers:
        parts.append(_offers(branch.offers))
    if branch.nodes:
        parts.append(names.listed(branch.nodes, 4))
    return f"{paint.bold(printable(branch.name))}  {paint.dim(printable(f'[{tier}]'))}  {printable('; '.join(parts))}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _offers(offers: Resources) -> str:
    """The accelerators, else CPU and memory."""
    chosen = [resource for resource in sorted(offers) if is_accelerator(resource)] or [*_PLAIN]
    return ", ".join(
        f"{show_rounded(offers[resource], resource)} {resource}" for resource in chosen if resource in offers
    )


def _table(tiers: Sequence[TierSummary], paint: Paint) -> Iterator[str]:
    """largest gang per tier: a row for each tier, a column for each resource."""
    resources = sorted({resource for tier in tiers for resource, (amount, _) in tier.largest.items() if amount != "0"})
    rows = [["largest gang", "domains", "nodes each", *map(printable, resources)]]
    for tier in tiers[:_SIBLINGS]:
        spread = f"{tier.nodes[0]}" if tier.nodes[0] == tier.nodes[1] else f"{tier.nodes[0]}-{tier.nodes[1]}"
        label = printable(f"tier {tier.tier}" + (f" {tier.name}" if tier.name else ""))
        found = (_largest(tier, resource) for resource in resources)
        rows.append([label, str(tier.domains), spread, *found])
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        blanks = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [row[0] + blanks[0], *(blank + cell for blank, cell in zip(blanks[1:], row[1:], strict=True))]
        line = "  ".join(cells).rstrip()
        yield line if number else paint.dim(line)
    if len(tiers) > _SIBLINGS:
        yield _rest(len(tiers) - _SIBLINGS)


def _largest(tier: TierSummary, resource: str) -> str:
    amount = parse(tier.largest[resource][0]) if resource in tier.largest else None
    return "-" if amount is None else show_rounded(amount, resource)


def _width(text: str) -> int:
    """How many columns a terminal gives the text."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
