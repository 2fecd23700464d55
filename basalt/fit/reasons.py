"""Why a gang can never run: the constraint that binds, with its arithmetic."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from basalt import names
from basalt.fit.leftovers import leftover
from basalt.fit.packing import cheapest
from basalt.fit.problem import Bond, Domain, Gang, Limit, Problem, Spread, holds
from basalt.names import counted
from basalt.quantities import Amount, show, show_rounded


class Reason(NamedTuple):
    """The constraint that binds: the rule that speaks of it, the fact with its arithmetic, and the amounts."""

    rule: str
    message: str
    resource: str | None = None
    needed: str | None = None
    available: str | None = None


def why_never(problem: Problem, gang: Gang, why: str) -> Reason:
    """The constraint that keeps the gang from running on an empty cluster, the plainest first; why is what the search
    has to say, where no count does."""
    if (reason := plain(problem, gang)) is not None:
        return reason
    if (left := leftover(problem, gang)) is not None:
        return Reason("gang-fits-a-domain", left.message, left.resource, left.needed, left.available)
    return Reason("gang-fits-a-domain", f"no packing of its {counted(gang.minimum, 'pod')} exists: {why}")


def plain(problem: Problem, gang: Gang) -> Reason | None:
    """A reason that a count gives, each of which is a proof; None where only a search can tell."""
    return (
        _too_few(gang)
        or _no_node(problem, gang)
        or _too_small(problem, gang)
        or _beyond_limit(problem.limits, gang)
        or _unsociable(problem, gang)
        or _too_little(problem, gang)
    )


def _too_few(gang: Gang) -> Reason | None:
    """More must start together than there are: pods of a PodGroup that nobody declares."""
    total = sum(shape.replicas for shape in gang.shapes)
    if total >= gang.minimum:
        return None
    are = "is" if total == 1 else "are"
    message = f"{gang.minimum} pods must start together, and only {total} {are} declared"
    return Reason("gang-fits-a-domain", message, "pods", str(gang.minimum), str(total))


def _no_node(problem: Problem, gang: Gang) -> Reason | None:
    """A shape of which no node holds a single pod."""
    for shape in gang.shapes:
        if not shape.need and len(gang.shapes) > 1:
            continue
        best: tuple[int, str] | None = None
        for node in sorted(shape.nodes):
            lacking = [name for name, amount in shape.requests.items() if amount > problem.free[node].get(name, 0)]
            if not lacking:
                best = None
                break
            if best is None or len(lacking) < best[0]:
                best = len(lacking), node
        else:
            if not shape.nodes:
                return Reason("pod-fits-a-node", f"no node takes a pod of {shape.name}: labels, taints or cordons")
        if best is not None:
            node = best[1]
            lacking = [name for name, amount in shape.requests.items() if amount > problem.free[node].get(name, 0)]
            need, has = (show(each.get(lacking[0], 0), lacking[0]) for each in (shape.requests, problem.free[node]))
            message = f"a pod of {shape.name} needs {need} {lacking[0]}, and the nearest node, {node}, has {has} for it"
            return Reason("pod-fits-a-node", message, lacking[0], need, has)
    return None


def _beyond_limit(limits: Sequence[Limit], gang: Gang) -> Reason | None:
    for limit in limits:
        if gang.key not in limit.costs:
            continue
        need = cheapest(gang, limit.costs[gang.key]) + limit.beside.get(gang.key, 0)
        if need > limit.amount:
            needed, available = show_rounded(need, limit.resource, up=True), show_rounded(limit.amount, limit.resource)
            pods = f"its {counted(gang.minimum, 'pod')} need{'s' * (gang.minimum == 1)}"
            message = f"{pods} {needed} {limit.resource}, and {limit.owner} has {available}{limit.note}"
            return Reason(limit.rule, message, limit.resource, needed, available)
    return None


def _too_small(problem: Problem, gang: Gang) -> Reason | None:
    """No domain holds as many pods as must start together, of the whole gang or of one of its partitions."""
    parts = [(gang.tier, gang.minimum, gang, "")]
    for shape in gang.shapes:
        if shape.tier is not None and shape.need:
            alone = gang._replace(shapes=(shape,), minimum=shape.need, tier=shape.tier)
            parts.append((shape.tier, shape.need, alone, f" of {shape.name}"))
    for tier, pods, part, whose in parts:
        domains = problem.allowed(tier)
        if not domains:
            return Reason("gang-fits-a-domain", f"no domain up to tier {tier} has a node that takes pods")
        best = max(domains, key=lambda each: (_capacity(problem, part, each), each.name))
        most = _capacity(problem, part, best)
        if most < pods:
            where = f"{best.name}, the largest domain up to tier {tier}," if tier is not None else "the whole cluster"
            together = f"{pods} pods{whose} must start together" if pods > 1 else f"1 pod{whose} must start"
            return _short(problem, part, best, f"{together} and {where} holds {most}")
    return None


def _too_little(problem: Problem, gang: Gang) -> Reason | None:
    """In each domain there is too little of some resource for the cheapest mix of shapes."""
    found = [(domain, *_scarcest(problem, gang, domain)) for domain in problem.allowed(gang.tier)]
    if any(has >= need for _, _, need, has in found):
        return None
    domain, *_ = max(found, key=lambda each: (float(each[3] / each[2]), each[0].name))
    where = f"{domain.name}, the nearest domain up to tier {gang.tier}," if gang.tier is not None else "the cluster"
    return _short(problem, gang, domain, f"{gang.minimum} pods must start together, and {where} cannot hold them")


def _short(problem: Problem, gang: Gang, domain: Domain, fact: str) -> Reason:
    """The fact with what is short: a resource in all, or room on each single node."""
    resource, need, has = _scarcest(problem, gang, domain)
    if need > has:
        needed, available = show_rounded(need, resource, up=True), show_rounded(has, resource)
        message = f"{fact}: they need {needed} {resource}, it has {available}"
    else:
        counts = Counter(_pods_on(problem, gang, node) for node in domain.nodes)
        each = [f"{pods} on {'each of ' * (nodes > 1)}{counted(nodes, 'node')}"
                for pods, nodes in sorted(counts.items(), reverse=True) if pods]  # fmt: skip
        message = f"{fact}: {names.listed(each) or 'no node has room for any'}"
    return Reason("gang-fits-a-domain", message, resource, show(need, resource), show(has, resource))


def _capacity(problem: Problem, gang: Gang, domain: Domain) -> int:
    """At most how many pods of the gang the domain's nodes hold."""
    return sum(_pods_on(problem, gang, node) for node in domain.nodes)


def _pods_on(problem: Problem, gang: Gang, node: str) -> int:
    """At most how many pods of the gang the node holds: as if each took of every resource what the most modest of those
    does that could stand there. Of two shapes there may be more than of either alone."""
    free = problem.free[node]
    here = [shape.requests for shape in gang.shapes if node in shape.nodes and holds(free, shape.requests)]
    return holds(free, {name: min(each.get(name, 0) for each in here) for name in here[0]}) if here else 0


def _scarcest(problem: Problem, gang: Gang, domain: Domain) -> tuple[str, Amount, Amount]:
    """The resource of which the domain has least, measured by the need."""
    resources = sorted({name for shape in gang.shapes for name in shape.requests})
    found = []
    for resource in resources:
        need = cheapest(gang, tuple(shape.requests.get(resource, 0) for shape in gang.shapes))
        has = sum(problem.free[node].get(resource, 0) for node in domain.nodes)
        if need:
            found.append((float(has / need), resource, need, has))
    _, resource, need, has = min(found, default=(1.0, "", 0, 0))
    return resource, need, has


def _unsociable(problem: Problem, gang: Gang) -> Reason | None:
    """What its pods ask of each other, where no allowed domain has places enough for that."""
    domains = problem.allowed(gang.tier)
    every = (*_kept_apart(problem, gang, domains), *_bound(problem, gang, domains), *_spread(problem, gang, domains))
    return next((Reason("gang-fits-a-domain", message) for message in every), None)


def _kept_apart(problem: Problem, gang: Gang, domains: Sequence[Domain]) -> Iterator[str]:
    for apart in problem.aparts:
        key, index = apart.slot
        if key != gang.key or apart.slot not in apart.others:
            continue
        shape, pods = gang.shapes[index], _least(gang, (index,))
        open_ones = [{node for node in shape.nodes & each.nodes if holds(problem.free[node], shape.requests)}
                     for each in domains]  # fmt: skip
        most = max((len({apart.places.get(node, node) for node in nodes}) for nodes in open_ones), default=0)
        is_free = any(node not in apart.places for nodes in open_ones for node in nodes)
        if most < pods and not is_free:
            yield f"{apart.what} gives each of the {pods} pods of {shape.name} a place of its own, and {most} have room"


def _bound(problem: Problem, gang: Gang, domains: Sequence[Domain]) -> Iterator[str]:
    for bond in gang.bonds:
        pods = _least(gang, bond.shapes)
        most, name = max(
            ((_of_bond(problem, gang, bond, each, domain), each.name) for each in bond.domains for domain in domains),
            default=(0, ""),
        )
        if most < pods:
            largest = f"the largest, {name}, holds {most}" if name else "there is none"
            yield f"{bond.what} wants {counted(pods, 'pod')} in one domain, and {largest}"


def _of_bond(problem: Problem, gang: Gang, bond: Bond, place: Domain, domain: Domain) -> int:
    part = gang._replace(shapes=tuple(gang.shapes[index] for index in bond.shapes))
    return sum(_pods_on(problem, part, node) for node in place.nodes & domain.nodes & problem.free.keys())


def _spread(problem: Problem, gang: Gang, domains: Sequence[Domain]) -> Iterator[str]:
    for spread in gang.spreads:
        pods = _least(gang, spread.shapes)
        part = gang._replace(shapes=tuple(gang.shapes[index] for index in spread.shapes))
        best = max((_spread_over(problem, part, spread, domain) for domain in domains), key=lambda each: each[0])
        if best[0] < pods:
            most, floor, name = best
            emptiest = f"{name} has room for {floor}" if name else "there are too few domains"
            yield (
                f"{spread.what}: {counted(pods, 'pod')} must start together, {emptiest}, no other may hold more than "
                f"{spread.skew} beyond that, and so they hold {most} in all"
            )


def _spread_over(problem: Problem, part: Gang, spread: Spread, domain: Domain) -> tuple[int, int, str]:
    """How many pods all domains hold together, and which holds fewest."""
    nodes = domain.nodes & problem.free.keys()
    room = {each.name: sum(_pods_on(problem, part, node) for node in each.nodes & nodes) for each in spread.domains}
    emptiest = min(room, key=lambda name: (room[name], name), default="") if spread.is_lifted else ""
    floor = room.get(emptiest, 0)
    return sum(min(each, floor + spread.skew) for each in room.values()), floor, emptiest


def _least(gang: Gang, shapes: Sequence[int]) -> int:
    """How many pods of these shapes the gang needs in any case."""
    others = sum(shape.replicas for index, shape in enumerate(gang.shapes) if index not in shapes)
    return max(sum(gang.shapes[index].need for index in shapes), gang.minimum - others)
