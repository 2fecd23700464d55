"""Whether a placement is one: the proof of a verdict is checked here, by code that shares nothing with the search."""

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from basalt.fit.problem import Counts, Gang, Key, Placement, Problem, Slot, Spread
from basalt.quantities import Amount


def fault(problem: Problem, placement: Placement) -> str | None:
    """What is wrong with the placement of these gangs, all at once; None where nothing is."""
    gangs = {gang.key: gang for gang in problem.gangs}
    for key, counts in placement.items():
        for each in _of_gang(problem, gangs[key], counts):
            return f"{key}: {each}"
    joint = (_of_nodes(problem, gangs, placement), _of_limits(problem, placement), _of_company(problem, placement))
    return next((found for part in joint for found in part), None)


def _of_gang(problem: Problem, gang: Gang, counts: Counts) -> Iterator[str]:
    total = 0
    for index, shape in enumerate(gang.shapes):
        here = {node: count for (which, node), count in counts.items() if which == index and count}
        pods = sum(here.values())
        total += pods
        if not shape.need <= pods <= shape.replicas:
            yield f"{pods} pods of {shape.name} are placed, between {shape.need} and {shape.replicas} are due"
        if strange := here.keys() - shape.nodes:
            yield f"{min(strange)} takes no pod of {shape.name}"
        if not _is_within(problem, here.keys(), shape.tier):
            yield f"no domain up to tier {shape.tier} holds the nodes of {shape.name}"
    if total < gang.minimum:
        yield f"{total} pods are placed, {gang.minimum} are needed"
    if min(counts.values(), default=0) < 0:
        yield "fewer pods than none are placed"
    if not _is_within(problem, {node for (_, node), count in counts.items() if count}, gang.tier):
        yield f"no domain up to tier {gang.tier} holds its nodes"
    yield from _of_bonds(gang, counts)


def _of_bonds(gang: Gang, counts: Counts) -> Iterator[str]:
    for bond in gang.bonds:
        bound = {node for (which, node), count in counts.items() if count and which in bond.shapes}
        if bound and not any(bound <= domain.nodes for domain in bond.domains):
            yield f"{bond.what}: no domain holds the nodes of its pods"
    for spread in gang.spreads:
        yield from _of_spread(spread, counts)


def _of_spread(spread: Spread, counts: Counts) -> Iterator[str]:
    spread_pods = {where: count for where, count in counts.items() if count and where[0] in spread.shapes}
    sums = [sum(count for (_, node), count in spread_pods.items() if node in each.nodes) for each in spread.domains]
    if sum(sums) != sum(spread_pods.values()):
        yield f"{spread.what}: some pods stand outside the domains"
    floor = min(sums, default=0) if spread.is_lifted else 0
    if max(sums, default=0) - floor > spread.skew:
        yield f"{spread.what}: one domain holds {max(sums)} pods, and the emptiest {floor}"


def _is_within(problem: Problem, nodes: AbstractSet[str], tier: int | None) -> bool:
    return tier is None or any(each.tier <= tier and nodes <= each.nodes for each in problem.domains)


def _of_nodes(problem: Problem, gangs: Mapping[Key, Gang], placement: Placement) -> Iterator[str]:
    taken: dict[str, Counter[str]] = {}
    for key, counts in placement.items():
        for (index, node), count in counts.items():
            for resource, amount in gangs[key].shapes[index].requests.items():
                taken.setdefault(node, Counter())[resource] += amount * count  # type: ignore[assignment]
    for node, amounts in taken.items():
        for resource, amount in amounts.items():
            if amount > problem.free[node].get(resource, 0):
                yield f"{node}: {amount} {resource} are taken, {problem.free[node].get(resource, 0)} are there"


def _of_limits(problem: Problem, placement: Placement) -> Iterator[str]:
    for limit in problem.limits:
        total: Amount = 0
        for key, counts in placement.items():
            if key in limit.costs:
                total += limit.beside.get(key, 0)
                total += sum(limit.costs[key][index] * count for (index, _), count in counts.items())
        if total > limit.amount:
            yield f"{limit.owner}: {total} {limit.resource} are taken, {limit.amount} are allowed"


def _of_company(problem: Problem, placement: Placement) -> Iterator[str]:
    """Whether the pods that may not share a place do."""
    nodes: dict[Slot, list[str]] = {}
    for key, counts in placement.items():
        for (index, node), count in counts.items():
            nodes.setdefault((key, index), []).extend([node] * count)
    for apart in problem.aparts:
        own = [apart.places[node] for node in nodes.get(apart.slot, ()) if node in apart.places]
        for other in apart.others:
            theirs = [apart.places[node] for node in nodes.get(other, ()) if node in apart.places]
            if len(set(own)) < len(own) if other == apart.slot else set(own) & set(theirs):
                yield f"{apart.slot[0]} and {other[0]}: {apart.what} keeps their pods apart, and they share a place"
