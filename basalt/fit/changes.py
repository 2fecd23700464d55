"""The way out: the smallest changes after which a gang runs, each tried by searching again with it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from basalt import names
from basalt.fit import pod_by_pod
from basalt.fit.packing import cheapest
from basalt.fit.pod_by_pod import Scoring
from basalt.fit.problem import Domain, Gang, Limit, Problem, Shape, holds
from basalt.names import counted
from basalt.quantities import Amount, show

_OWN = "gang-fits-a-domain"
_FRACTIONS = {1: "all", 2: "half", 3: "a third", 4: "a quarter"}

_MOST_NODES = 1000  # each that is tried is made; whoever lacks more has another mistake to mend

Runs = Callable[[Problem, Gang], bool]


def of_never(problem: Problem, gang: Gang, tier_names: Mapping[int, str | None], runs: Runs) -> str | None:
    """For a gang that can never run; None where nothing that is tried helps."""
    ways = (
        _higher_tier(problem, gang, tier_names, runs),
        _fewer_pods(problem, gang, runs),
        _more_nodes(problem, gang, runs),
        _raised(problem, gang, runs),
        _smaller_pods(problem, gang, runs),
    )
    return ", or ".join(filter(None, ways)) or None


def _higher_tier(problem: Problem, gang: Gang, tier_names: Mapping[int, str | None], runs: Runs) -> str:
    if gang.tier is None:
        return ""
    for tier in sorted({each.tier for each in problem.domains if each.tier > gang.tier}):
        if runs(problem, gang._replace(tier=tier)):
            return f"allow tier {tier_names.get(tier) or tier}"
    return "allow any tier: take the hard topology out" if runs(problem, gang._replace(tier=None)) else ""


def _fewer_pods(problem: Problem, gang: Gang, runs: Runs) -> str:
    """The most pods that could start together; a task's own minimum gives way."""
    loose = gang._replace(shapes=tuple(shape._replace(need=0) for shape in gang.shapes))
    lowest = _first(1, gang.minimum - 1, lambda fewer: runs(problem, loose._replace(minimum=gang.minimum - fewer)))
    field = "minMember" if gang.key.kind == "PodGroup" else "minAvailable"
    return f"lower {field} to {gang.minimum - lowest}" if lowest else ""


def _smaller_pods(problem: Problem, gang: Gang, runs: Runs) -> str:
    """The most that pods may request of one resource, where no node holds a single one of them."""
    for index, shape in enumerate(gang.shapes):
        if any(holds(problem.free[node], shape.requests) for node in shape.nodes):
            continue
        for resource in sorted(shape.requests):
            most = _left_beside(problem, shape, resource)
            asked = {**shape.requests, resource: most}
            shapes = tuple(shape._replace(requests=asked) if each is shape else each for each in gang.shapes)
            limits = tuple(_at_cost(limit, gang, index, asked) for limit in problem.limits)
            if most and runs(replace(problem, limits=limits), gang._replace(shapes=shapes)):
                return f"let the pods of {shape.name} request {show(most, resource)} {resource}"
    return ""


def _left_beside(problem: Problem, shape: Shape, resource: str) -> Amount:
    """The most of the resource that a node has which holds all else that a pod of the shape requests."""
    rest = {name: amount for name, amount in shape.requests.items() if name != resource}
    return max(
        (problem.free[node].get(resource, 0) for node in shape.nodes if holds(problem.free[node], rest)), default=0
    )


def _first(low: int, high: int, helps: Callable[[int], bool]) -> int:
    """The least number up to high that helps, as all above it do; 0 where none does."""
    if high < low or not helps(high):
        return 0
    while low < high:
        middle = (low + high) // 2
        if helps(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _more_nodes(problem: Problem, gang: Gang, runs: Runs) -> str:
    """More nodes like one that is there already, in the domain that comes nearest."""
    options = [(_most(problem, gang, each), each) for each in problem.allowed(gang.tier)]
    options = [each for each in options if each[0][0]]
    if not options:
        return ""
    (_, _, node), domain = max(options, key=lambda each: (each[0][1], each[1].name))
    count = _first(1, min(gang.minimum, _MOST_NODES), lambda more: runs(*_grown(problem, gang, node, more)))
    near = [each for each in problem.domains if node in each.nodes] if domain.name else []
    where = f" in {min(near, key=lambda each: (each.tier, each.name)).name}" if near else ""
    return f"add {counted(count, 'node')} like {node}{where}" if count else ""


def _most(problem: Problem, gang: Gang, domain: Domain) -> tuple[int, int, str]:
    """The most pods that one of its nodes holds, how many they hold in all, and that node."""
    held = {node: _held(problem, gang, node) for node in sorted(domain.nodes)}
    best = max(held, key=lambda node: held[node], default="")
    return held.get(best, 0), sum(held.values()), best


def _held(problem: Problem, gang: Gang, node: str) -> int:
    free = problem.free[node]
    return max((holds(free, shape.requests) for shape in gang.shapes if node in shape.nodes), default=0)


def _grown(problem: Problem, gang: Gang, like: str, more: int) -> tuple[Problem, Gang]:
    """The problem and the gang with so many more nodes like one, wherever it is. What shares a label's value with it
    does so with the new ones too, but for a host's own name."""
    new = [f"{like}+{number}" for number in range(1, more + 1)]

    def wider(nodes: frozenset[str]) -> frozenset[str]:
        return nodes.union(new) if like in nodes else nodes

    def widened(domains: tuple[Domain, ...]) -> tuple[Domain, ...]:
        return tuple(each._replace(nodes=wider(each.nodes)) for each in domains)

    offers = problem.offers.get(like, {})
    limits = tuple(_with_more(limit, offers.get(limit.resource, 0) * more) for limit in problem.limits)
    aparts = tuple(
        each._replace(places={**each.places, **{name: _place(each.places, like, name) for name in new}})
        for each in problem.aparts
        if like in each.places
    )
    wide = Problem(
        {**problem.free, **dict.fromkeys(new, problem.free[like])},
        widened(problem.domains),
        problem.gangs,
        limits,
        {**problem.offers, **dict.fromkeys(new, offers)},
        (*aparts, *(each for each in problem.aparts if like not in each.places)),
    )
    shapes = tuple(shape._replace(nodes=wider(shape.nodes)) for shape in gang.shapes)
    bonds = tuple(bond._replace(domains=widened(bond.domains)) for bond in gang.bonds)
    spreads = tuple(spread._replace(domains=widened(spread.domains)) for spread in gang.spreads)
    return wide, gang._replace(shapes=shapes, bonds=bonds, spreads=spreads)


def _place(places: Mapping[str, str], like: str, name: str) -> str:
    """A label that tells each node apart tells the new ones apart too."""
    value = places[like]
    return name if list(places.values()).count(value) == 1 else value


def _with_more(limit: Limit, amount: Amount) -> Limit:
    """What a queue may take grows with the cluster, up to what it may take at most."""
    return limit if limit.most is None else limit._replace(amount=min(limit.amount + amount, limit.most))


def _raised(problem: Problem, gang: Gang, runs: Runs) -> str:
    """The limits that would have to be higher, where that is all there is to it."""
    own = [(number, limit) for number, limit in enumerate(problem.limits) if gang.key in limit.costs]
    needs = {number: cheapest(gang, limit.costs[gang.key]) + limit.beside.get(gang.key, 0) for number, limit in own}
    over = {number: need for number, need in needs.items() if need > problem.limits[number].amount}
    if not over or any(problem.limits[number].rule == _OWN for number in over):
        return ""
    limits = tuple(limit._replace(amount=over.get(number, limit.amount)) for number, limit in enumerate(problem.limits))
    if not runs(replace(problem, limits=limits), gang):
        return ""
    amounts = ((problem.limits[number], need) for number, need in over.items())
    raised = (f"{limit.owner} to {show(need, limit.resource)} {limit.resource}" for limit, need in amounts)
    return f"raise {names.listed(raised)}"


def of_tight(problem: Problem, gang: Gang, weights: Scoring, runs: Runs) -> str | None:
    """For a gang that fits, but that the scheduler does not place by itself: an argument of the scheduler with which it
    would, or requests of one of its shapes, as an even part of a node."""
    if weights.keeps_errors and pod_by_pod.finds(problem, gang, weights._replace(keeps_errors=False)):
        return "set predicateErrorCacheEnable: false for the action allocate: it asks no node again that refused a pod"
    for index, shape in enumerate(gang.shapes):
        for parts, node, changed in _even(problem, shape):
            requests = {**shape.requests, **changed}
            shapes = [*gang.shapes]
            shapes[index] = shape._replace(requests=requests)
            other = gang._replace(shapes=tuple(shapes))
            limits = tuple(_at_cost(limit, gang, index, requests) for limit in problem.limits)
            dearer = replace(problem, limits=limits)
            if pod_by_pod.finds(dearer, other, weights) and runs(dearer, other):
                asked = names.listed(f"{show(amount, name)} {name}" for name, amount in changed.items())
                return f"let the pods of {shape.name} request {asked}, {_FRACTIONS.get(parts, f'1/{parts}')} of {node}"
    return None


def _even(problem: Problem, shape: Shape) -> Iterator[tuple[int, str, dict[str, Amount]]]:
    """What the shape would have to request to be an even part of one of its nodes: first the larger part, then the
    smaller; of its CPUs alone, of its devices, of both."""
    devices = [name for name in shape.requests if "/" in name]
    seen = set()
    for node in sorted(shape.nodes):
        free = problem.free[node]
        held = holds(free, shape.requests)
        for parts in (held, held + 1) if held else ():
            for some in (["cpu"], devices, ["cpu", *devices]):
                shares = {name: int(free[name] // parts) for name in some if name in shape.requests}
                changed: dict[str, Amount] = {
                    name: amount for name, amount in shares.items() if amount != shape.requests[name]
                }
                if changed and all(changed.values()) and (asked := repr(sorted(changed.items()))) not in seen:
                    seen.add(asked)
                    yield parts, node, changed


def _at_cost(limit: Limit, gang: Gang, index: int, requests: Mapping[str, Amount]) -> Limit:
    """The limit, as what the shape costs changes with its requests."""
    if gang.key not in limit.costs or not limit.costs[gang.key][index]:
        return limit
    costs = [*limit.costs[gang.key]]
    costs[index] = requests.get(limit.resource.removeprefix("requests.").removeprefix("limits."), costs[index])
    return limit._replace(costs={**limit.costs, gang.key: tuple(costs)})
