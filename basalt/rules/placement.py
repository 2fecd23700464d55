"""The family Topology, last part: in which leaf HyperNode each node is, and with how many others."""

from collections.abc import Callable, Iterator

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.loading.nodes import Node
from basalt.objects import KubeObject
from basalt.pointers import Pointer
from basalt.quantities import is_extended, parse
from basalt.rules.bounds import MANY, bounded, joined
from basalt.rules.rule import Rule, Scope
from basalt.views.hyper_nodes import HyperNode, HyperNodes, one_letter_off

_LABELS = ("metadata", "labels")


def domain_has_several_nodes(index: Index) -> Iterator[Problem]:
    hyper_nodes = index.hyper_nodes
    leaves = [leaf for leaf in hyper_nodes if leaf.holds_nodes and hyper_nodes.is_known(leaf)]
    most: dict[int | None, int] = {}
    for leaf in leaves:
        most[leaf.tier] = max(most.get(leaf.tier, 0), len(hyper_nodes.leaf_members[leaf.name]))
    lonely = [leaf for leaf in leaves if most[leaf.tier] > 1 and _is_lonely(hyper_nodes, leaf)]
    generated = [leaf for leaf in lonely if leaf.object.module]
    explained = _explained(index, generated, most)
    by_hand = [leaf for leaf in lonely if not leaf.object.module]
    if sum(most[leaf.tier] - 1 for leaf in by_hand) <= len(_unplaced(index)):
        by_hand = []  # node-is-placed speaks of the nodes they lack
    told = (*(leaf for leaf in generated if leaf.name not in explained), *by_hand)
    yield from bounded(_alone(index, leaf, most[leaf.tier]) for leaf in told)


def _is_lonely(hyper_nodes: HyperNodes, leaf: HyperNode) -> bool:
    """Whether one sound member gives one node, which is in no other leaf."""
    nodes = hyper_nodes.leaf_members[leaf.name]
    return len(nodes) == len(leaf.members) == 1 and len(hyper_nodes.placements[nodes[0]]) == 1


def _alone(index: Index, leaf: HyperNode, most: int) -> Problem:
    node = index.hyper_nodes.leaf_members[leaf.name][0]
    message = f"{leaf.name} holds one node, {node}; others of its tier hold up to {most}"
    if leaf.object.module and node in index.hyper_nodes.node_by_name:
        label = index.domains.tiers[0].label
        place = index.place_of(index.hyper_nodes.node_by_name[node])
        return Problem(place, (*_LABELS, label), message, f"check {label} of {node}: a typo makes a domain")
    member = next(member for each, member in index.hyper_nodes.placements[node] if each is leaf)
    return Problem(leaf.object, member.pointer, message, "check its members: a node may be missing here")


def _explained(index: Index, lonely: list[HyperNode], most: dict[int | None, int]) -> set[str]:
    """The generated leaves whose missing nodes an error has told of already: they have no label for the tier, another
    spelling, or a label that contradicts."""
    domains = index.domains
    is_error = index.topology.get("unplaced", "error") == "error"
    unplaced = sum(len(nodes) for path, nodes in domains.paths.items() if is_error and path and path[0] is None)
    if sum(most[leaf.tier] - 1 for leaf in lonely) <= unplaced:
        return {leaf.name for leaf in lonely}
    disputed = {parent for sides in domains.split.values() for parent in sides}
    alike = {leaf.name: domains.named.get(leaf.name, []) for leaf in lonely}
    return {
        name
        for name, found in alike.items()
        if len(found) > 1 or any(not disputed.isdisjoint(domains.parents()[domain]) for domain in found)
    }


def node_is_in_one_leaf(index: Index) -> Iterator[Problem]:
    hyper_nodes = index.hyper_nodes
    odd = {leaf.name for leaf in hyper_nodes.odd_leaves}  # hypernode-leaves-share-a-tier speaks
    twice: dict[tuple[KubeObject, Pointer], list[str]] = {}  # the member that should not hold them -> the nodes
    for node, places in hyper_nodes.placements.items():
        members = {leaf.name: member for leaf, member in places if leaf.name not in odd} if len(places) > 1 else {}
        if len(members) > 1:
            for leaf in hyper_nodes.newcomers([hyper_nodes.by_name[name] for name in members]):
                member = members[leaf.name]
                pointer = member.name_pointer if member.exact else member.pointer
                twice.setdefault((leaf.object, pointer), []).append(node)
    unplaced = {node.name for node in _unplaced(index)} if twice else set()

    def finish(problem: Problem) -> Problem:
        assert isinstance(problem.place, KubeObject)
        return _in_two_leaves(problem, hyper_nodes, twice[problem.place, problem.pointer], unplaced)

    yield from bounded((Problem(*place, "") for place in twice), finish)


def _in_two_leaves(problem: Problem, hyper_nodes: HyperNodes, nodes: list[str], unplaced: set[str]) -> Problem:
    holders = list(dict.fromkeys(each.name for node in nodes for each, _ in hyper_nodes.placements[node]))
    some = f"the node {nodes[0]} is" if len(nodes) == 1 else f"{len(nodes)} nodes ({names.listed(nodes)}) are"
    meant = one_letter_off(nodes[0], unplaced) if problem.pointer[-1] == "name" else None
    hint = "keep each node in one leaf HyperNode"
    hint += f"; one of them may mean {meant}, which is in none" if meant else ""
    return problem._replace(message=f"{some} in {joined(holders, ' and in ')}", hint=hint)


def node_is_placed(index: Index) -> Iterator[Problem]:
    unplaced = _unplaced(index)
    is_spoken_of = _spoken_of(index, unplaced)
    yield from bounded(_nowhere_placed(index, node) for node in unplaced if not is_spoken_of(node))


def _unplaced(index: Index) -> list[Node]:
    """The GPU nodes that are in no HyperNode, where HyperNodes are declared or tiers that make them."""
    if not (len(index.hyper_nodes) or index.domains.tiers):
        return []
    placements = index.hyper_nodes.placements
    if placements.keys() >= {node.metadata.name for node in index.participants}:
        return []
    return [node for node in index.participants if node.name not in placements and _has_gpu(node)]


def _nowhere_placed(index: Index, node: Node) -> Problem:
    message = f"{node.name} has {_gpus(node)} and is in no HyperNode: no job with a hard topology will use it"
    label = index.domains.tiers[0].label if index.domains.tiers else None
    if label is None:
        return Problem(index.place_of(node), ("metadata", "name"), message, "add it to a HyperNode")
    pointer = (*_LABELS, label) if label in node.labels else _LABELS if node.labels else _LABELS[:1]
    hint = f"give it the label {label}, or add it to a HyperNode"
    if not any(label in each.labels for each in index.participants):
        hint = f"tier {index.domains.tiers[0].name} reads the label {label}, which no node has"
    return Problem(index.place_of(node), pointer, message, hint)


def _spoken_of(index: Index, unplaced: list[Node]) -> Callable[[Node], bool]:
    """Whether an error tells already why a node is in no HyperNode: its labels, or a member that meant to hold it."""
    if not unplaced or (index.domains.tiers and index.topology.get("unplaced", "error") == "error"):
        return lambda _: True  # node-has-every-tier, or one of the other rules of domains, speaks
    known = {key for node in unplaced for key in node.labels}
    wanted = {frozenset(member.label_keys & known) for _, member in index.hyper_nodes.barren_members()}
    if not all(wanted) or not all(each.is_readable for each in index.hyper_nodes):
        return lambda _: True  # it may have meant any of them
    by_label = {node.name for path, nodes in index.domains.paths.items() if path and path[0] for node in nodes}
    meant = by_label | _meant_by_name(index, unplaced)
    return lambda node: node.name in meant or any(keys <= node.labels.keys() for keys in wanted)


def _meant_by_name(index: Index, unplaced: list[Node]) -> set[str]:
    """The nodes whose names some member misspells: it gives what is not declared, or a node that another leaf has;
    or gives under the wrong type."""
    known = {node.name for node in unplaced}
    wrong = [str(member.exact) for _, member in index.hyper_nodes.missing_members()]
    wrong += [node for node, places in index.hyper_nodes.placements.items() if len(places) > 1]
    if len(wrong) > MANY * 5:
        return known
    return known.intersection(wrong).union(filter(None, (one_letter_off(name, known) for name in wrong)))


def _has_gpu(node: Node) -> bool:
    return any(is_accelerator(name) and parse(amount) for name, amount in node.allocatable.items())


_DEVICES = ("gpu", "mig-", "vgpu", "npu", "xpu", "dcu", "mlu", "gcu", "gaudi", "neuron", "tpu")


def is_accelerator(resource: str) -> bool:
    """Whether an extended resource is a GPU or the like: not a NIC, a FUSE device or a KVM."""
    owner, _, kind = resource.rpartition("/")
    named = kind.startswith(_DEVICES) or "ascend" in kind.casefold() or owner.startswith("gpu.")
    return is_extended(resource) and named


def _gpus(node: Node) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in node.allocatable.items() if is_accelerator(name))


RULES = (
    Rule(
        "domain-has-several-nodes",
        Severity.WARNING,
        domain_has_several_nodes,
        partly_needs=(Fact.NODES,),
        scope=Scope.FABRIC,
    ),
    Rule("node-is-in-one-leaf", Severity.ERROR, node_is_in_one_leaf, partly_needs=(Fact.NODES,), scope=Scope.FABRIC),
    Rule("node-is-placed", Severity.WARNING, node_is_placed, needs=(Fact.NODES, Fact.HYPER_NODES), scope=Scope.FABRIC),
)
