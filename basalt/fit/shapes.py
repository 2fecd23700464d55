"""The largest gang of pods of one shape: in each tier's best domain, and in the whole cluster.

Pods that are alike leave nothing to search: the domain holds as many as its nodes do, one by one.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from basalt import names
from basalt.fit import reading
from basalt.fit.problem import PODS, Gang, Key, Problem, Shape, holds
from basalt.fit.reasons import Reason, why_never
from basalt.index import Index
from basalt.loading.sources import Misuse
from basalt.quantities import Amount, Resources, is_extended, parse, show

_EXAMPLE = "cpu=16,memory=128Gi,nvidia.com/gpu=8"
_ON_EVERY_NODE = ("cpu", "memory", "ephemeral-storage")


class Largest(NamedTuple):
    """How many pods of the shape a gang may have that keeps to one domain up to the tier, and the domain that holds
    them; None where none holds any."""

    tier: int
    name: str | None
    pods: int
    domain: str | None


class Fitting(NamedTuple):
    """The largest gangs of a shape: by tier, the lowest first, and in the whole cluster; the latter is None where there
    is no inventory of nodes. reason says what falls short where no node holds a single pod."""

    shape: Resources
    tiers: tuple[Largest, ...]
    cluster: int | None
    reason: Reason | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "requests": {name: show(amount, name) for name, amount in self.shape.items()},
            "tiers": [each._asdict() for each in self.tiers],
            "cluster": self.cluster,
            "reason": self.reason._asdict() if self.reason else None,
        }


def parse_shape(text: str) -> Resources:
    """What each pod requests, from cpu=16,memory=128Gi,nvidia.com/gpu=8. Raises Misuse."""
    found: Resources = {}
    for part in text.split(","):
        name, equals, written = (each.strip() for each in part.partition("="))
        if not name:
            raise Misuse(f"--shape: a resource has no name in {text!r}; write {_EXAMPLE}")
        if not equals or not written:
            raise Misuse(f"--shape: {name} has no amount; write {name}=8")
        if name in found:
            raise Misuse(f"--shape: {name} is given twice; keep one")
        found[name] = _amount(name, written)
    return found


def _amount(name: str, written: str) -> Amount:
    amount = parse(written)
    if amount is None:
        raise Misuse(f"--shape: {name}={written} is no quantity; write it as Kubernetes does: 8, 500m, 128Gi")
    if amount <= 0:
        raise Misuse(f"--shape: {name}={written} is not above 0; write what one pod requests, or leave it out")
    if is_extended(name) and amount != int(amount):
        raise Misuse(f"--shape: {name}={written} is no whole number, and {name} is counted in whole units")
    if name == PODS:
        raise Misuse(f"--shape: {PODS} is no request: every pod takes one; leave it out")
    return amount


def fitting(index: Index, shape: Resources) -> Fitting:
    """The largest gangs. Raises Misuse where the shape names what no node has."""
    if not index.nodes:
        return Fitting(shape, (), None)
    known = (index.offered | {*_ON_EVERY_NODE}) - {PODS}
    for name in shape:
        if name not in known:
            hint = names.did_you_mean(name, known, otherwise="basalt topology shows what they offer")
            raise Misuse(f"--shape: no node offers {name}; {hint}")
    problem = reading.read(index).problem
    requests = {**shape, PODS: 1}
    takers = frozenset(node.name for node in index.fleet.candidates({}))  # a shape tolerates nothing
    counts = {node: holds(problem.free[node], requests) for node in takers & problem.free.keys()}
    tier_names = index.job_tiers.numbers if index.job_tiers else {}
    tiers = tuple(each._replace(name=tier_names.get(each.tier)) for each in _by_tier(problem, counts))
    total = sum(counts.values())
    return Fitting(shape, tiers, total, None if total else _short(problem, requests, frozenset(counts)))


def _by_tier(problem: Problem, counts: dict[str, int]) -> Iterator[Largest]:
    """A gang may keep to a lower tier than it has to: what that holds counts, where it is more."""
    best = Largest(0, None, 0, None)
    for tier, domains in problem.of_tier.items():
        here = ((sum(counts.get(node, 0) for node in domain.nodes), domain.name) for domain in domains)
        pods, domain = min(here, key=_most_first)
        best = Largest(tier, None, pods, domain if pods else None) if pods >= best.pods else best._replace(tier=tier)
        yield best


def _most_first(found: tuple[int, str]) -> tuple[int, str]:
    return -found[0], found[1]


def _short(problem: Problem, requests: Resources, nodes: Iterable[str]) -> Reason:
    """What the nearest node has too little of."""
    key = Key("", "", "the shape")
    return why_never(problem, Gang(key, 1, (Shape("the shape", 1, 1, requests, frozenset(nodes)),), None), "")
