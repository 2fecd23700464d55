"""The family Queues: the tree that jobs are sent to, and whether its amounts can be honoured."""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from basalt import names
from basalt.api.versions import Version
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.loading.nodes import Node
from basalt.objects import mapping
from basalt.plan.pair import Pair
from basalt.pointers import Pointer, has
from basalt.quantities import Amount, add, parse, show, show_rounded
from basalt.rules.rule import Rule
from basalt.views.queue_tree import BUILT_IN, DEFAULT, POINTERS, ROOT, Queue, largest_of, total_of
from basalt.views.scheduler_configuration import Configuration
from basalt.views.workloads import destinations, queue_demands

_DEPTH = 5  # below root: --max-queue-depth of the webhook manager, which the chart does not expose
_AMOUNTS = ("capability", "deserved", "guarantee")
_EVERYWHERE = ("cpu", "memory", "pods", "ephemeral-storage")  # what every node offers
_DEVICE_CLASS = "deviceclass/"  # in the keys of claimed devices: capacity.go, parseDRAResourceList
_AFTER_QUOTAS = ("requests.", "limits.")
# Until then the webhook's validateResourceOfQueue and, since 1.14, validateChildAgainstParent counted a resource that a
# capability leaves out as 0 of it.
_LENIENT, _HIERARCHY = Version(1, 15), Version(1, 14)


def queue_exists(index: Index) -> Iterator[Problem]:
    known = index.queues.names()
    for each in destinations(index.others):
        if each.queue not in known:
            hint = names.did_you_mean(each.queue, index.queues.takers(), otherwise="name a declared queue")
            yield Problem(each.object, each.pointer, f"the queue {each.queue} is not declared", hint)


def queue_parent_exists(index: Index) -> Iterator[Problem]:
    tree = index.queues
    for queue in tree:
        if queue.name == ROOT:
            continue
        if queue.parent == queue.name:
            message = f"{queue.name} is its own parent"
            yield Problem(queue.object, ("spec", "parent"), message, "name the queue above it")
        elif queue.parent not in tree.names():
            hint = names.did_you_mean(queue.parent, tree.names() - {queue.name, DEFAULT})
            yield Problem(queue.object, ("spec", "parent"), f"the parent {queue.parent} is not declared", hint)


def queue_tree_has_no_cycle(index: Index) -> Iterator[Problem]:
    reported: set[str] = set()
    for queue in index.queues:
        circle = index.queues.cycle(queue)
        if queue.name not in reported and len(circle) > 2:  # a queue that is its own parent has another rule
            reported.update(circle)
            message = f"the parents lead back: {' -> '.join(circle)}"
            yield Problem(queue.object, ("spec", "parent"), message, "hang one of them under root")


def queue_depth_within_limit(index: Index) -> Iterator[Problem]:
    for queue in index.queues:
        trail = [each.name for each in reversed(index.queues.ancestors(queue))]
        depth = len(trail) + 1
        if queue.name != ROOT and depth > _DEPTH and index.queues.circular.isdisjoint([*trail, queue.name]):
            shown = trail if depth <= 2 * _DEPTH else [*trail[:_DEPTH], "...", trail[-1]]
            message = f"{depth} levels below root, {_DEPTH} are allowed: {' > '.join([ROOT, *shown, queue.name])}"
            yield Problem(queue.object, ("spec", "parent"), message, f"hang it under {trail[_DEPTH - 2]} or higher")


def queue_takes_jobs(index: Index) -> Iterator[Problem]:
    tree = index.queues
    for each in destinations(index.others):
        if (message := tree.refusal(each.queue)) is not None:
            is_above = each.queue == ROOT or tree.has_children(each.queue)
            hint = _instead(tree.leaves(each.queue)) if is_above else "open it, or name another queue"
            yield Problem(each.object, each.pointer, message, hint)


def _instead(leaves: list[str]) -> str:
    if not leaves:
        return "name a queue below it"
    return f"name {leaves[0]}" if len(leaves) == 1 else f"name one of {names.listed(leaves)}"


def queue_amounts_are_ordered(index: Index) -> Iterator[Problem]:
    known = _Resources(index)
    for queue in index.queues:
        if queue.name == ROOT:
            continue  # queue-root-is-untouched
        for resource, guaranteed in queue.guarantee.items():
            if not known.may_be_in(queue, "deserved", resource):
                message = f"guarantees {show(guaranteed, resource)} {resource} and has no deserved {resource}"
                hint = f"set deserved to {show(guaranteed, resource)} or more"
                yield Problem(queue.object, (*POINTERS["guarantee"], resource), message, hint)
        for lower, upper in (("guarantee", "deserved"), ("deserved", "capability")):
            yield from _out_of_order(queue, lower, upper)
        if index.volcano is not None and index.volcano < _LENIENT and queue.capability:
            yield from _beyond_capability(queue, known)


def _out_of_order(queue: Queue, lower: str, upper: str) -> Iterator[Problem]:
    less, more = queue.amounts(lower), queue.amounts(upper)
    for resource in less.keys() & more.keys():
        if less[resource] > more[resource]:
            above, limit = show(less[resource], resource), show(more[resource], resource)
            message = f"{lower} {above} {resource} is above {upper} {limit}"
            hint = f"lower {lower} to {limit}, or raise {upper} to {above}"
            yield Problem(queue.object, (*POINTERS[lower], resource), message, hint)


def _beyond_capability(queue: Queue, known: "_Resources") -> Iterator[Problem]:
    """What is deserved or guaranteed of a resource that the capability leaves out."""
    for resource in {**queue.deserved, **queue.guarantee}:
        field = "deserved" if resource in queue.deserved else "guarantee"
        if not known.may_be_in(queue, "capability", resource):
            amount = show(queue.amounts(field)[resource], resource)
            message = (
                f"{field} {amount} {resource} is above capability, which has none: Volcano before 1.15 counts it as 0"
            )
            hint = f"set capability to {amount} {resource} or more"
            yield Problem(queue.object, (*POINTERS[field], resource), message, hint)


def queue_within_ancestor(index: Index) -> Iterator[Problem]:
    known = _Resources(index)
    is_strict = index.volcano is not None and _HIERARCHY <= index.volcano < _LENIENT
    for queue in index.queues:
        above = index.queues.ancestors(queue) if queue.name not in index.queues.circular else []
        for resource, amount in queue.capability.items():
            nearest = next((each for each in above if is_strict or _limits(each, resource)), None)
            if nearest is None:
                continue
            limit = nearest.capability.get(resource)
            if limit is None and known.may_be_in(nearest, "capability", resource):
                continue
            if limit is None or amount > limit:
                yield _above_ancestor(queue, resource, nearest, limit)


def _above_ancestor(queue: Queue, resource: str, above: Queue, limit: Amount | None) -> Problem:
    amount = show(queue.capability[resource], resource)
    message = f"capability {amount} {resource} is above that of {above.name}, "
    if limit is None:
        message += f"which has none: Volcano {_HIERARCHY} counts it as 0"
        hint = f"set that of {above.name} to {amount} or more"
    else:
        message += show(limit, resource)
        hint = f"lower it to {show(limit, resource)}, or raise that of {above.name} to {amount}"
    return Problem(queue.object, (*POINTERS["capability"], resource), message, hint)


def _limits(queue: Queue, resource: str) -> bool:
    """Whether the capacity plugin takes the queue's capability for a limit: 0 CPUs or bytes are none to it."""
    return queue.capability.get(resource, 0) > (0 if resource in ("cpu", "memory") else -1) and (
        resource in queue.capability
    )


def queue_children_fit_parent(index: Index) -> Iterator[Problem]:
    tree, known = index.queues, _Resources(index)
    for name, children in tree.children.items():
        if name == ROOT or name not in tree.names():
            continue  # root has what the cluster has: guarantees-fit-cluster
        parent = tree.queues.get(name)
        for field in ("guarantee", "deserved"):
            for resource, total in add(*(child.amounts(field) for child in children)).items():
                limit = parent.amounts(field).get(resource) if parent else None
                is_unread = limit is None and parent is not None and known.may_be_in(parent, field, resource)
                if total > (limit or 0) and not is_unread:
                    yield _overfull(name, children, field, resource, limit)


def _overfull(parent: str, children: list[Queue], field: str, resource: str, limit: Amount | None) -> Problem:
    total, terms = total_of(children, field, resource)
    if limit is None:
        has, hint = "sets none, which counts as 0", f"set {field} of {parent} to {show(total, resource)} or more"
    else:
        less = show(total - limit, resource)
        has = f"has {show(limit, resource)}"
        hint = f"raise {field} of {parent} to {show(total, resource)}, or lower that of its queues by {less}"
    message = f"the queues of {parent} have {field} {terms} {resource}; {parent} {has}"
    return Problem(largest_of(children, field, resource).object, (*POINTERS[field], resource), message, hint)


def guarantees_fit_cluster(index: Index) -> Iterator[Problem]:
    yield from _fit_cluster(index, "guarantee")


def deserved_fits_cluster(index: Index) -> Iterator[Problem]:
    yield from _fit_cluster(index, "deserved")


def _fit_cluster(index: Index, field: str) -> Iterator[Problem]:
    """What the queues right below root claim together, against what the nodes have."""
    tops = index.queues.children.get(ROOT, [])
    for resource, claimed in add(*(queue.amounts(field) for queue in tops)).items():
        capacity = index.capacity.get(resource)  # None where a node's amount cannot be read, or none has the resource
        if capacity is not None and claimed > capacity and _is_offered(index, resource):
            total, terms = total_of(tops, field, resource)
            message = f"{field} {terms} {resource}; {_nodes_have(index, resource)}"
            if field == "deserved" and capacity:
                message += f" ({_ratio(total, capacity)} times as much is promised)"
            hint = f"lower {field} by {show_rounded(total - capacity, resource, up=True)} in all, or add nodes"
            yield Problem(largest_of(tops, field, resource).object, (*POINTERS[field], resource), message, hint)


def _nodes_have(index: Index, resource: str) -> str:
    """What the nodes that offer the resource have, and which of them do not count."""
    offering = [node for node in index.nodes if _offers(node, resource)]
    closed = names.listed(node.name for node in offering if not node.takes_pods)
    count = sum(1 for node in offering if node.takes_pods)
    if not count:
        return f"every node that offers it is cordoned or not ready ({closed})"
    has = show_rounded(index.capacity[resource], resource)
    nodes = "the node that offers it has" if count == 1 else f"the {count} nodes that offer it have"
    return f"{nodes} {has}" + (f" ({closed} left out: cordoned or not ready)" if closed else "")


def _ratio(total: Amount, capacity: Amount) -> str:
    whole, rest = divmod(round(Fraction(total * 100) / capacity), 100)
    return f"{show(whole)}.{rest:02}"


def queue_resource_is_offered(index: Index) -> Iterator[Problem]:
    resources = _Resources(index)
    for queue in index.queues:
        for field in _AMOUNTS:
            for resource in queue.amounts(field):
                if fault := resources.fault(resource):
                    yield Problem(queue.object, (*POINTERS[field], resource), *fault)


class _Resources:
    """What the nodes offer, each name looked up once: they are many, and so are the queues."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known = {*index.offered, *_EVERYWHERE}
        self._faults: dict[str, tuple[str, str] | None] = {}

    def fault(self, resource: str) -> tuple[str, str] | None:
        """Why the queues' amounts cannot be about it."""
        if resource not in self._faults:
            self._faults[resource] = self._find_fault(resource)
        return self._faults[resource]

    def _find_fault(self, resource: str) -> tuple[str, str] | None:
        if resource.startswith(_AFTER_QUOTAS):
            bare = resource.partition(".")[2]
            return f"{resource} is a quota's key; queues count {bare}", f"write {bare}"
        if not self._index.knows(Fact.NODES) or _is_offered(self._index, resource) or _DEVICE_CLASS in resource:
            return None
        if resource in self._index.offered:
            return f"every declared node offers 0 {resource}: the queue can never use it", "take it out of the queue"
        hint = names.did_you_mean(resource, self._known, otherwise="name a resource of the nodes")
        return f"no declared node offers {resource}: the queue can never use it", hint

    def may_be_in(self, queue: Queue, field: str, resource: str) -> bool:
        """Whether the field names the resource, be one of the two misspelt: queue-resource-is-offered speaks then."""
        if queue.may_name(field, resource):
            return True
        meant = self._meant(resource)
        return any(meant == self._meant(each) for each in queue.amounts(field))

    def _meant(self, resource: str) -> str:
        """What a key was meant to be; itself where nothing is wrong with it."""
        if not self.fault(resource):
            return resource
        bare = resource.partition(".")[2] if resource.startswith(_AFTER_QUOTAS) else resource
        return names.nearest(bare, self._known) or bare


def _is_offered(index: Index, resource: str) -> bool:
    if resource in _EVERYWHERE or index.capacity.get(resource, 0) > 0:
        return True
    return resource in index.offered and any(_offers(node, resource) for node in index.nodes)


def _offers(node: Node, resource: str) -> bool:
    return (parse(node.allocatable.get(resource)) or 0) > 0


def queue_covers_its_jobs(index: Index) -> Iterator[Problem]:
    known = _Resources(index)
    for demand in queue_demands(index.others):
        queue = index.queues.queues.get(demand.queue)
        missing = {field: _uncovered(known, queue, field, demand.requests) for field in ("capability", "deserved")}
        if queue is None or not any(missing.values()):
            continue
        if missing["capability"] == missing["deserved"]:
            missing = {"capability and deserved": missing["capability"]}
        for fields, resources in missing.items():
            if resources:
                does = "do" if " and " in fields else "does"
                message = (
                    f"requests {names.listed(resources)}, which {fields} of its queue {queue.name} {does} not name"
                )
                hint = f"add {names.listed(resources)} to {fields} of {queue.name}"
                yield Problem(demand.object, demand.requests[resources[0]], message, hint)


def _uncovered(known: _Resources, queue: Queue | None, field: str, requested: Iterable[str]) -> list[str]:
    if queue is None or not queue.amounts(field):
        return []
    return sorted(each for each in requested if not known.may_be_in(queue, field, each))


def queue_fields_are_read(index: Index) -> Iterator[Problem]:
    scheduler = index.scheduler
    assert scheduler is not None  # the fact SCHEDULER
    for queue in index.queues:
        for pointer, message, hint in (*_unread(scheduler, queue), *_never_reclaimed(scheduler, queue)):
            yield Problem(queue.object, pointer, message, hint)


def _unread(scheduler: Configuration, queue: Queue) -> Iterator[tuple[Pointer, str, str]]:
    if not scheduler.has_plugin("capacity"):
        hint = "add capacity to the scheduler's plugins, in place of proportion"
        missing = "is set, and the scheduler lacks the plugin capacity"
        if queue.written("deserved"):
            yield POINTERS["deserved"], f"deserved {missing}, which reads it", hint
        if queue.written("guarantee"):
            does = (
                "proportion adds up parents and children" if scheduler.has_plugin("proportion") else "nothing reads it"
            )
            yield POINTERS["guarantee"], f"guarantee {missing}: {does}", hint
    if queue.object.spec.get("weight", 1) != 1 and not scheduler.has_plugin("proportion"):
        message = "weight is set, and only the plugin proportion reads it"
        yield ("spec", "weight"), message, "say deserved instead, which the plugin capacity reads"
    if ROOT not in (queue.parent, queue.name) and not scheduler.plugin_has("capacity", "enableHierarchy"):
        message = f"hangs under {queue.parent}, and the scheduler has no plugin capacity with enableHierarchy"
        yield (
            ("spec", "parent"),
            message,
            "without it every queue stands alone: add {name: capacity, enableHierarchy: true}",
        )


def _never_reclaimed(scheduler: Configuration, queue: Queue) -> Iterator[tuple[Pointer, str, str]]:
    if scheduler.has_action("reclaim", "gangreclaim"):
        return
    hint = "add gangreclaim (before Volcano 1.15: reclaim) to the scheduler's actions"
    if queue.written("deserved"):
        if scheduler.has_plugin("capacity"):
            message = "deserved is set, and no action reclaims: what others borrow never comes back"
            yield POINTERS["deserved"], message, hint
    elif _says_reclaimable(queue):
        yield ("spec", "reclaimable"), "reclaimable is set, and no action reclaims", hint


def _says_reclaimable(queue: Queue) -> bool:
    """Whether somebody wrote it: Volcano's webhook fills in true, which a queue that was read from a cluster shows."""
    at: Pointer = ("spec", "reclaimable")
    is_read_back = "uid" in mapping(queue.object.value.get("metadata"))
    return not is_read_back and has(queue.object.written.value, queue.object.origin(at))


def queue_root_is_untouched(index: Index) -> Iterator[Problem]:
    root = index.queues.queues.get(ROOT)
    for field in _AMOUNTS if root else ():
        if root is not None and root.written(field):
            message = f"root has {field}: Volcano keeps root at what the cluster has, and refuses a change"
            yield Problem(root.object, POINTERS[field], message, "set it on the queues below root")


def built_in_queues_stay(pair: Pair) -> Iterator[Problem]:
    for name in BUILT_IN:
        removed = pair.base.queues.queues.get(name)
        if removed is not None and name not in pair.head.queues.queues:
            message = f"{name} is removed: Volcano's own, which its webhook lets nobody delete"
            yield Problem(removed.object, (), message, "keep it declared, or leave it to Volcano without deleting it")


RULES = (
    Rule("queue-exists", Severity.ERROR, queue_exists, needs=(Fact.QUEUES,)),
    Rule("queue-parent-exists", Severity.ERROR, queue_parent_exists, needs=(Fact.QUEUES,)),
    Rule("queue-tree-has-no-cycle", Severity.ERROR, queue_tree_has_no_cycle),
    Rule("queue-depth-within-limit", Severity.ERROR, queue_depth_within_limit),
    Rule("queue-takes-jobs", Severity.ERROR, queue_takes_jobs, partly_needs=(Fact.QUEUES,)),
    Rule("queue-amounts-are-ordered", Severity.ERROR, queue_amounts_are_ordered),
    Rule("queue-within-ancestor", Severity.ERROR, queue_within_ancestor),
    Rule("queue-children-fit-parent", Severity.ERROR, queue_children_fit_parent),
    Rule("guarantees-fit-cluster", Severity.ERROR, guarantees_fit_cluster, needs=(Fact.NODES,)),
    Rule("deserved-fits-cluster", Severity.WARNING, deserved_fits_cluster, needs=(Fact.NODES,)),
    Rule("queue-resource-is-offered", Severity.ERROR, queue_resource_is_offered, partly_needs=(Fact.NODES,)),
    Rule("queue-covers-its-jobs", Severity.WARNING, queue_covers_its_jobs, needs=(Fact.QUEUES,)),
    Rule("queue-fields-are-read", Severity.WARNING, queue_fields_are_read, needs=(Fact.SCHEDULER,)),
    Rule("queue-root-is-untouched", Severity.ERROR, queue_root_is_untouched, on_plan=built_in_queues_stay),
)
