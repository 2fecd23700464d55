"""The family Queues: the tree that jobs are sent to, and whether its amounts can be honoured."""

from collections.abc import Iterable, Iterator

from basalt import names
from basalt.findings import Place, Problem, Severity
from basalt.index import Fact, Index
from basalt.objects import mapping
from basalt.pointers import Pointer
from basalt.quantities import Amount, add, show
from basalt.queue_tree import BUILT_IN, DEFAULT, POINTERS, ROOT, Queue
from basalt.rules.rule import Rule

_DEPTH = 5  # below root: --max-queue-depth of the webhook manager, which the chart does not expose
_AMOUNTS = ("capability", "deserved", "guarantee")
_EVERYWHERE = ("cpu", "memory", "pods", "ephemeral-storage")  # what every node offers


def queue_exists(index: Index) -> Iterator[Problem]:
    known = index.queues.names()
    for place, pointer, queue in _named_queues(index):
        if queue not in known:
            hint = names.did_you_mean(queue, known)
            yield Problem(place, pointer, f"the queue {queue} is not declared", hint)


def _named_queues(index: Index) -> Iterator[tuple[Place, Pointer, str]]:
    """Every place where a job or a PodGroup names its queue."""
    for workload in index.workloads:
        if workload.queue is not None:
            yield workload.object, (*workload.pointer, "queue"), workload.queue
    for group in index.of_kind("PodGroup"):
        queue = group.spec.get("queue")
        if isinstance(queue, str) and queue:
            yield group, ("spec", "queue"), queue


def queue_parent_exists(index: Index) -> Iterator[Problem]:
    tree = index.queues
    for queue in tree:
        if queue.name == ROOT:
            continue
        if queue.parent == queue.name:
            yield Problem(
                queue.object, ("spec", "parent"), f"{queue.name} is its own parent", "name the queue above it"
            )
        elif queue.parent not in tree.names():
            hint = names.did_you_mean(queue.parent, tree.names() - {queue.name, DEFAULT})
            yield Problem(queue.object, ("spec", "parent"), f"the parent {queue.parent} is not declared", hint)


def queue_tree_has_no_cycle(index: Index) -> Iterator[Problem]:
    reported: set[str] = set()
    for queue in index.queues:
        circle = [] if queue.name in reported else index.queues.cycle(queue)
        if circle:
            reported.update(circle)
            message = f"the parents lead back: {' -> '.join(circle)}"
            yield Problem(queue.object, ("spec", "parent"), message, "hang one of them under root")


def queue_depth_within_limit(index: Index) -> Iterator[Problem]:
    for queue in index.queues:
        above = index.queues.ancestors(queue)
        depth = len(above) + 1
        if queue.name != ROOT and depth > _DEPTH and not index.queues.cycle(queue):
            trail = " > ".join([ROOT, *(each.name for each in reversed(above)), queue.name])
            message = f"{depth} levels below root, {_DEPTH} are allowed: {trail}"
            yield Problem(queue.object, ("spec", "parent"), message, "hang it under a higher queue")


def queue_takes_jobs(index: Index) -> Iterator[Problem]:
    for place, pointer, name in _named_queues(index):
        queue = index.queues.queues.get(name)
        state = mapping(queue.object.value.get("status")).get("state", "Open") if queue else "Open"
        if name == ROOT:
            yield Problem(place, pointer, "jobs cannot go to root", "name a queue below it")
        elif index.queues.has_children(name):
            children = sorted(each.name for each in index.queues.children[name])
            message = f"{name} has queues below it ({names.listed(children)}); only a queue without any takes jobs"
            yield Problem(place, pointer, message, f"name one of {names.listed(children)}")
        elif state != "Open":
            yield Problem(place, pointer, f"{name} is {state}, it takes no jobs", "open it, or name another queue")


def queue_amounts_are_ordered(index: Index) -> Iterator[Problem]:
    for queue in index.queues:
        for resource, guaranteed in queue.guarantee.items():
            if resource not in queue.deserved:
                message = f"guarantees {show(guaranteed, resource)} {resource} and has no deserved {resource}"
                hint = f"set deserved to {show(guaranteed, resource)} or more"
                yield Problem(queue.object, (*POINTERS["guarantee"], resource), message, hint)
        for lower, upper in (("guarantee", "deserved"), ("deserved", "capability"), ("guarantee", "capability")):
            yield from _out_of_order(queue, lower, upper)


def _out_of_order(queue: Queue, lower: str, upper: str) -> Iterator[Problem]:
    less, more = queue.amounts(lower), queue.amounts(upper)
    for resource in less.keys() & more.keys():
        is_said_already = lower == "guarantee" and upper == "capability" and resource in queue.deserved
        if less[resource] > more[resource] and not is_said_already:
            yield _above(queue, lower, upper, resource)


def _above(queue: Queue, lower: str, upper: str, resource: str) -> Problem:
    less, more = queue.amounts(lower)[resource], queue.amounts(upper)[resource]
    message = f"{lower} {show(less, resource)} {resource} is above {upper} {show(more, resource)}"
    hint = f"lower {lower} to {show(more, resource)}, or raise {upper}"
    return Problem(queue.object, (*POINTERS[lower], resource), message, hint)


def queue_within_ancestor(index: Index) -> Iterator[Problem]:
    for queue in index.queues:
        above = index.queues.ancestors(queue)
        for resource, amount in queue.capability.items():
            nearest = next((each for each in above if each.capability.get(resource, 0) > 0), None)
            if nearest is not None and amount > nearest.capability[resource]:
                limit = show(nearest.capability[resource], resource)
                message = f"capability {show(amount, resource)} {resource} is above that of {nearest.name}, {limit}"
                hint = f"lower it to {limit}, or raise {nearest.name}"
                yield Problem(queue.object, (*POINTERS["capability"], resource), message, hint)


def queue_children_fit_parent(index: Index) -> Iterator[Problem]:
    for name, children in index.queues.children.items():
        parent = index.queues.queues.get(name)
        if parent is None or name in BUILT_IN:
            continue  # root has what the cluster has: guarantees-fit-cluster
        for field in ("guarantee", "deserved"):
            for resource, total in add(*(child.amounts(field) for child in children)).items():
                limit = parent.amounts(field).get(resource, 0)
                if total > limit:
                    yield _overfull(parent, children, field, resource, limit)


def _overfull(parent: Queue, children: list[Queue], field: str, resource: str, limit: Amount) -> Problem:
    total, terms = _sum_of(children, field, resource)
    has = f"has {show(limit, resource)}" if resource in parent.amounts(field) else "sets none, which counts as 0"
    message = (
        f"the queues of {parent.name} have {field} {terms} = {show(total, resource)} {resource}; {parent.name} {has}"
    )
    largest = _largest(children, field, resource)
    less = show(total - limit, resource)
    hint = f"raise {field} of {parent.name} to {show(total, resource)}, or lower its queues by {less}"
    return Problem(largest.object, (*POINTERS[field], resource), message, hint)


def _sum_of(queues: Iterable[Queue], field: str, resource: str) -> tuple[Amount, str]:
    """The sum and how it comes about: 40 (research) + 16 (serving)."""
    amounts = {each.name: each.amounts(field)[resource] for each in queues if resource in each.amounts(field)}
    terms = [f"{show(amount, resource)} ({name})" for name, amount in amounts.items()]
    shown = terms if len(terms) <= 6 else [*terms[:5], f"{len(terms) - 5} more"]
    return sum(amounts.values()), " + ".join(shown)


def _largest(queues: Iterable[Queue], field: str, resource: str) -> Queue:
    having = [each for each in queues if resource in each.amounts(field)]
    return max(having, key=lambda each: (each.amounts(field)[resource], each.name))


def guarantees_fit_cluster(index: Index) -> Iterator[Problem]:
    yield from _fit_cluster(index, "guarantee")


def deserved_fits_cluster(index: Index) -> Iterator[Problem]:
    yield from _fit_cluster(index, "deserved")


def _fit_cluster(index: Index, field: str) -> Iterator[Problem]:
    """What the queues right below root claim together, against what the nodes have."""
    tops = [queue for queue in index.queues if queue.name != ROOT and queue.parent == ROOT]
    for resource in add(*(queue.amounts(field) for queue in tops)):
        total, terms = _sum_of(tops, field, resource)
        capacity = index.capacity.get(resource, 0)
        if total > capacity and resource in index.offered:
            ready = sum(1 for node in index.nodes if node.takes_pods and resource in node.allocatable)
            message = (
                f"{field} {terms} = {show(total, resource)} {resource}; the {ready} nodes that offer it have "
                f"{show(capacity, resource)}"
            )
            if field == "deserved" and capacity:
                message += f" ({float(total / capacity):.2f} times as much is promised)"
            hint = f"lower {field} by {show(total - capacity, resource)} in all, or add nodes"
            largest = _largest(tops, field, resource)
            yield Problem(largest.object, (*POINTERS[field], resource), message, hint)


def queue_resource_is_offered(index: Index) -> Iterator[Problem]:
    for queue in index.queues:
        for field in _AMOUNTS:
            for resource in queue.amounts(field):
                if fault := _not_offered(index, resource):
                    yield Problem(queue.object, (*POINTERS[field], resource), *fault)


def _not_offered(index: Index, resource: str) -> tuple[str, str] | None:
    if resource.startswith(("requests.", "limits.")):
        bare = resource.partition(".")[2]
        return f"{resource} is a quota's key; queues count {bare}", f"write {bare}"
    if not index.knows(Fact.NODES) or resource in index.offered or resource in _EVERYWHERE:
        return None
    hint = names.did_you_mean(resource, index.offered)
    return f"no declared node offers {resource}: the queue can never use it", hint


def queue_covers_its_jobs(index: Index) -> Iterator[Problem]:
    for workload in index.workloads:
        queue = index.queues.queues.get(workload.queue or DEFAULT)
        if queue is None:
            continue
        requested: dict[str, Pointer] = {}
        for task in workload.tasks():
            requested |= {each: task.pointer for each, amount in task.requests.items() if amount > 0}
        for field in ("capability", "deserved"):
            limits = queue.amounts(field)
            missing = sorted(resource for resource in requested if limits and resource not in limits)
            if missing:
                message = f"requests {names.listed(missing)}, which {field} of its queue {queue.name} does not name"
                hint = f"add {names.listed(missing)} to {field} of {queue.name}; it names {names.listed(limits)}"
                yield Problem(workload.object, requested[missing[0]], message, hint)
                break


def queue_fields_are_read(index: Index) -> Iterator[Problem]:
    scheduler = index.scheduler
    assert scheduler is not None  # the fact SCHEDULER
    for queue in index.queues:
        for pointer, message, hint in _unread(index, queue):
            yield Problem(queue.object, pointer, message, hint)


def _unread(index: Index, queue: Queue) -> Iterator[tuple[Pointer, str, str]]:
    scheduler = index.scheduler
    assert scheduler is not None
    spec = queue.object.spec
    has_capacity = scheduler.has_plugin("capacity")
    for field in ("deserved", "guarantee"):
        if queue.amounts(field) and not has_capacity:
            message = f"{field} is set and the scheduler lacks the plugin capacity, which reads it"
            yield POINTERS[field], message, "add capacity to the scheduler's plugins, in place of proportion"
    if has_capacity and spec.get("weight", 1) != 1:
        yield ("spec", "weight"), "weight is set and the plugin capacity does not read it", "say deserved instead"
    reads_hierarchy = scheduler.plugin_has("capacity", "enableHierarchy") or scheduler.plugin_has(
        "drf", "enableHierarchy"
    )
    if queue.parent != ROOT and not reads_hierarchy:
        message = f"hangs under {queue.parent}, and no plugin has enableHierarchy: the tree is read flat"
        yield ("spec", "parent"), message, "set enableHierarchy: true on the plugin capacity"
    if not scheduler.has_action("reclaim", "gangreclaim"):
        yield from _never_reclaimed(queue)


def _never_reclaimed(queue: Queue) -> Iterator[tuple[Pointer, str, str]]:
    """true is what Volcano's webhook fills in; only a false was said on purpose."""
    hint = "add gangreclaim (or reclaim, before Volcano 1.15) to the scheduler's actions"
    if queue.deserved:
        message = "deserved is set and no action reclaims: what others borrowed does not come back"
        yield POINTERS["deserved"], message, hint
    elif queue.object.spec.get("reclaimable") is False:
        yield ("spec", "reclaimable"), "reclaimable is set and no action reclaims", hint


def queue_root_is_untouched(index: Index) -> Iterator[Problem]:
    root = index.queues.queues.get(ROOT)
    if root is not None:
        for field in _AMOUNTS:
            if root.amounts(field):
                message = f"root has {field}: Volcano keeps root at what the cluster has, and refuses a change"
                yield Problem(root.object, POINTERS[field], message, "set it on the queues below root")


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
    Rule("queue-root-is-untouched", Severity.ERROR, queue_root_is_untouched),
)
