"""From the nodes' labels to the tiers of a topology: which of them nest, which do not, and why the rest is left out."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from basalt.loading.nodes import Node
from basalt.names import counted
from basalt.proposing import levels, reasons, vocabulary
from basalt.proposing.levels import Kinds, Level
from basalt.proposing.selecting import selector

_TEMPLATE = "{tier}-{domain}"


class ProposedTier(NamedTuple):
    """A tier as the document declares it, and the numbers that speak for it. smallest and largest: the nodes of its
    domains; above: the next tier, in one domain of which each of these lies."""

    name: str
    label: str
    pattern: str | None
    template: str | None
    domains: int
    nodes: int
    smallest: int
    largest: int
    above: str | None = None
    is_single: bool = False
    is_volatile: bool = False


class LeftOut(NamedTuple):
    """A label, or a part of its value, that became no tier, and why."""

    label: str
    reason: str


class Topology(NamedTuple):
    """What is proposed. outside: nodes that take part and lack a tier's label."""

    tiers: tuple[ProposedTier, ...]
    left_out: tuple[LeftOut, ...]
    node_selector: dict[str, str]
    participants: tuple[Node, ...]
    outside: tuple[Node, ...]
    remarks: tuple[str, ...] = ()

    @property
    def unplaced(self) -> str:
        return "allow" if self.outside else "error"

    @property
    def members(self) -> str:
        return "label" if any(tier.is_volatile for tier in self.tiers) else "exact"


def propose(nodes: Sequence[Node], workers: Sequence[Node]) -> Topology:
    """The topology of the nodes; workers are those that training runs on."""
    chosen = {node.name for node in workers}
    by_label = selector(workers, [node for node in nodes if node.name not in chosen])
    found = _over(list(workers) if by_label else list(nodes), chosen, nodes, may_select=True)
    return found if found.node_selector else found._replace(node_selector=by_label or {})


def _over(taking_part: list[Node], workers: set[str], nodes: Sequence[Node], *, may_select: bool) -> Topology:
    """The topology of those that take part, or of fewer where a label tells those that carry the tiers' labels."""
    kinds, candidates = levels.read(taking_part)
    left_out: dict[Level, str] = {}
    usable = _usable(candidates, kinds, workers, left_out)
    chain = _without_lonely_top(_best_chain(usable))
    while lacking := _lacking(kinds, chain):
        lost = {node.name for node in lacking}
        placed = [node for node in taking_part if node.name not in lost]
        found = _telling(placed, nodes, workers) if may_select else None
        if found:
            return _narrowed(_over(placed, workers, nodes, may_select=False), found, candidates, placed)
        if placed and 4 * _count(placed, workers) >= 3 * _count(taking_part, workers):
            break
        worst = min(chain, key=lambda level: (level.carried, level.key.weight))
        left_out[worst] = (
            f"{worst.carried} of {counted(len(taking_part), 'node')} carry it, and no label tells these from the others"
        )
        usable.remove(worst)
        chain = _without_lonely_top(_best_chain(usable))
    for level in candidates:
        if level not in chain and level not in left_out:
            left_out[level] = reasons.why_not(level, chain, kinds)
    return Topology(
        tuple(_tiers(chain)),
        tuple(LeftOut(level.title, reason) for level, reason in left_out.items() if _is_told(level, chain)),
        {},
        tuple(taking_part),
        tuple(sorted(lacking, key=lambda node: node.name)),
        tuple(reasons.slips(kinds, candidates)),
    )


def _is_told(level: Level, chain: Iterable[Level]) -> bool:
    """Whether one should know why the level is no tier: a part of a value that tells nothing new is not missed."""
    return level.pattern is None or any(not level.lies_in(each) and not each.lies_in(level) for each in chain)


def _count(nodes: Iterable[Node], workers: set[str]) -> int:
    return sum(node.name in workers for node in nodes)


def _telling(placed: Sequence[Node], nodes: Sequence[Node], workers: set[str]) -> dict[str, str] | None:
    """The labels that tell those in all tiers from all others; None where none do, or too few workers would be left."""
    inside = {node.name for node in placed}
    if not placed or 2 * _count(placed, workers) < len(workers):
        return None
    return selector(placed, [node for node in nodes if node.name not in inside])


def _narrowed(
    found: Topology, node_selector: dict[str, str], before: Iterable[Level], placed: Sequence[Node]
) -> Topology:
    """The topology of the nodes that the selector selects, with a word for the labels that only others carry."""
    present = set[str]().union(*(node.labels for node in placed))
    elsewhere = dict.fromkeys(level.label for level in before if level.label not in present)
    others = [LeftOut(label, "only nodes carry it that lack the tiers' labels") for label in elsewhere]
    return found._replace(node_selector=node_selector, left_out=(*found.left_out, *others))


def _usable(candidates: Sequence[Level], kinds: Kinds, workers: set[str], left_out: dict[Level, str]) -> list[Level]:
    """The candidates that can be a tier at all; the others, with why not, go to left_out."""
    gone = vocabulary.replaced(level.key for level in candidates)
    of_workers = [sum(node.name in workers for node in nodes) for nodes in kinds.nodes.values()]
    every = sum(of_workers)
    usable: list[Level] = []
    for level in candidates:
        carrying = sum(count for count, domain in zip(of_workers, level.of, strict=True) if domain is not None)
        reason = level.key.unused or None
        if level.label in gone:
            reason = f"outdated: {gone[level.label]} is there too, and takes its place"
        reason = reason or _unusable(level, carrying, every)
        if reason is None and (twin := next(filter(level.holds_the_same, usable), None)) is not None:
            loser, winner = sorted(
                (level, twin), key=lambda each: (each.key.weight, each.pattern is None, each.key.depth, each is twin)
            )
            left_out[loser] = f"holds the same nodes together as {winner.title}"
            usable = [winner if each is twin else each for each in usable]
        elif reason is None:
            usable.append(level)
        else:
            left_out[level] = reason
    anew = {level: upper for level in usable if (upper := _counted_anew_in(level, usable)) is not None}
    left_out |= {level: reasons.counted_anew(level, upper) for level, upper in anew.items()}
    return [level for level in usable if level not in anew]


def _counted_anew_in(level: Level, others: Iterable[Level]) -> Level | None:
    """The level of the same dialect, by which the dialect means a wider one, whose domains each count their own of
    this one: rack 1 is there in every block."""
    wider = (each for each in others if each.key.family == level.key.family and each.key.depth < level.key.depth)
    crossed = (each for each in wider if not each.lies_in(level))
    return next((each for each in crossed if 2 * level.splits_over(each) >= len(level.domains)), None)


def _unusable(level: Level, carrying: int, every: int) -> str | None:
    sizes = level.domains.values()
    if not level.domains:
        return "no node has a value that it can read"
    if every and carrying * 2 < every:
        return f"{carrying} of {counted(every, 'worker node')} carry it: jobs could use those only"
    if len(sizes) == 1 and not level.is_part and level.key.weight <= vocabulary.PLACE:
        return f"one value on {counted(level.carried, 'node')}: it keeps nothing apart"
    if max(sizes) == 1:
        return f"{counted(len(sizes), 'value')} on as many nodes: a domain of one node keeps nothing together"
    return level.name_fault()


def _best_chain(usable: Sequence[Level]) -> list[Level]:
    """The levels, from the lowest up, each of which lies in the next: of all such chains the one to be preferred."""
    left = list(usable)
    while True:
        chain = _longest(sorted(left, key=lambda level: (len(level.domains), level.title)))
        bad = [
            (lower, upper)
            for at, lower in enumerate(chain)
            for upper in chain[at + 2 :]
            if not lower.lies_in(upper)  # nodes without a label between may tell
        ]
        if not bad:
            return chain
        left.remove(min(bad[0], key=lambda level: (level.carried, level.key.weight, level.title)))


def _longest(ordered: Sequence[Level]) -> list[Level]:
    """Of the chains of levels that each lie in the next the one that weighs most, then the one of most domains."""
    best: list[tuple[tuple[int, int], list[Level]]] = []
    for level in ordered:
        above = [
            found for found in best if len(found[1][0].domains) < len(level.domains) and level.lies_in(found[1][0])
        ]
        (weight, _), chain = max(above, key=lambda found: found[0], default=((0, 0), []))
        best.append(((weight + level.key.weight, len(level.domains)), [level, *chain]))
    return max(best, key=lambda found: found[0], default=((0, 0), []))[1]


def _without_lonely_top(chain: list[Level]) -> list[Level]:
    """Without a top of one domain that no lower tiers of the same fabric, or of the same label, give a reason for."""
    while chain and len(chain[-1].domains) == 1 and not any(_is_kin(chain[-1], level) for level in chain[:-1]):
        chain = chain[:-1]
    return chain


def _is_kin(top: Level, lower: Level) -> bool:
    """Whether the top is the lower level's own: of a value's parts one further part is, since a first part that never
    changes may only be a name."""
    if top.is_part:
        return top.label == lower.label and lower.pattern is not None
    return top.key.family == lower.key.family


def _lacking(kinds: Kinds, chain: Sequence[Level]) -> list[Node]:
    """The nodes that lack one of the chain's tiers."""
    complete = [all(level.of[at] is not None for level in chain) for at in range(len(kinds.nodes))]
    return [node for nodes, is_complete in zip(kinds.nodes.values(), complete, strict=True) if not is_complete
            for node in nodes]  # fmt: skip


def _tiers(chain: Sequence[Level]) -> list[ProposedTier]:
    called = _distinct_names(chain)
    templates = _templates(chain, called)
    return [
        ProposedTier(
            called[at],
            level.label,
            level.pattern,
            templates[at],
            len(level.domains),
            level.carried,
            min(level.domains.values()),
            max(level.domains.values()),
            called[at + 1] if at + 1 < len(chain) else None,
            len(level.domains) == 1,
            level.key.volatile,
        )
        for at, level in enumerate(chain)
    ]


def _distinct_names(chain: Sequence[Level]) -> list[str]:
    found: list[str] = []
    for level in chain:
        same = (f"{level.name}-{number}" for number in range(2, len(chain) + 2))
        found.append(level.name if level.name not in found else next(each for each in same if each not in found))
    return found


def _templates(chain: Sequence[Level], called: Sequence[str]) -> list[str | None]:
    """The tier goes into the HyperNodes' names where two tiers share a domain's name."""
    every = [{level.hyper_node(domain) for domain in level.domains} for level in chain]
    found = [_TEMPLATE if any(own & other for other in every if other is not own) else None for own in every]
    spelt = [
        {dataclasses.replace(level, name=name).hyper_node(domain, template or "{domain}") for domain in level.domains}
        for level, name, template in zip(chain, called, found, strict=True)
    ]
    is_clear = len(set().union(*spelt)) == sum(map(len, spelt))
    return found if is_clear else [_TEMPLATE] * len(chain)
