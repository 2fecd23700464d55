"""What the pods of training jobs ask of nodes and queues."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, mapping
from basalt.pointers import Pointer, get, has
from basalt.quantities import Amount, Resources, is_extended, parse, parse_map, show, show_rounded
from basalt.rules import job_containers
from basalt.rules.rule import Rule
from basalt.views import containers, devices, gangs, kubelets, minimum_gang, node_fit
from basalt.views.containers import Container, Pod
from basalt.views.minimum_gang import MinimumGang, Part
from basalt.views.node_fit import Fleet, Lack
from basalt.views.queue_tree import Queue
from basalt.views.workloads import Workload

_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})  # what every node offers
_IN_GROUPS = ("requests.", "limits.", "count/")


def gpu_request_equals_limit(index: Index) -> Iterator[Problem]:
    yield from containers.once(
        problem for pod in index.pods for container in pod.containers for problem in _unequal(container)
    )


def _unequal(container: Container) -> Iterator[Problem]:
    at: Pointer = (*container.pointer, "resources", "requests")
    resources = mapping(container.value.get("resources"))
    limits = mapping(resources.get("limits"))
    for resource, amount in parse_map(resources.get("requests")).items():
        if not is_extended(resource) or amount < 0:
            continue
        if resource not in limits:
            if not container.is_patch:
                hint = f"set its limit to {show(amount)} too"
                yield Problem(
                    container.object, (*at, resource), f"requests {show(amount)} {resource} without a limit", hint
                )
        elif (limit := parse(limits[resource])) is not None and limit != amount:
            message = (
                f"requests {show(amount)} {resource} with a limit of {show(limit)}: for devices the two must be equal"
            )
            hint = f"set both to {show(amount)}, or both to {show(limit)}"
            yield Problem(container.object, (*at, resource), message, hint)


def resource_is_offered(index: Index) -> Iterator[Problem]:
    told, claimed = set(), _claimable(index.others)
    for pod in index.pods:
        if (fleet := index.fleet).is_silent:
            return
        for container in pod.containers:
            for resource, amount in container.requests.items():
                is_new = (id(pod.object), resource) not in told
                if amount > 0 and is_new and resource not in claimed and not _is_offered(fleet, resource):
                    told.add((id(pod.object), resource))
                    yield _not_offered(fleet, container, resource)


def _is_offered(fleet: Fleet, resource: str) -> bool:
    is_known = resource in _STANDARD or resource in fleet.offered
    return is_known or devices.is_granted_elsewhere(resource, fleet.offered)


def _not_offered(fleet: Fleet, container: Container, resource: str) -> Problem:
    is_empty = any(resource in node.allocatable for node in fleet.nodes)
    message = f"every declared node offers 0 {resource}" if is_empty else f"no declared node offers {resource}"
    hint = "take it out, or let nodes offer it" if is_empty else devices.nearest(resource, fleet.offered | _STANDARD)
    return Problem(container.object, container.place_of(resource), f"{message}: the pod stays Pending", hint)


def _claimable(objects: Iterable[KubeObject]) -> set[str]:
    """The resources that DeviceClasses hand out, whatever nodes offer."""
    classes = (each for each in objects if each.ref.kind == "DeviceClass")
    return {str(each.spec["extendedResourceName"]) for each in classes if each.spec.get("extendedResourceName")}


def pod_fits_a_node(index: Index) -> Iterator[Problem]:
    every = index.pods
    yield from containers.once(problem for pod in every if not pod.is_idle for problem in _unfit(index.fleet, pod))


def _unfit(fleet: Fleet, pod: Pod) -> Iterator[Problem]:
    """Of the first thing that keeps the pod off all nodes: labels, cordons, taints, or what it requests."""
    selected = fleet.selected(pod.spec)
    with_taints = not pod.is_patch or "tolerations" in pod.spec
    candidates = fleet.candidates(pod.spec, with_taints=with_taints)
    if not selected:
        yield _selects_nothing(fleet, pod)
    elif not candidates:
        yield _shut_out(fleet, pod, selected)
    else:
        wanted = {name: each for name, each in pod.requests.items() if name in fleet.offered or name in _STANDARD}
        if (lack := fleet.lack(candidates, wanted)) is not None:
            is_free = len(candidates) == len(fleet.nodes)
            elsewhere = ("", "") if is_free else _elsewhere(fleet, pod, wanted)
            yield _too_large(pod, lack, len(candidates), elsewhere)


def _selects_nothing(fleet: Fleet, pod: Pod) -> Problem:
    at: Pointer = (*pod.pointer, "nodeSelector")
    selector = mapping(pod.spec.get("nodeSelector"))
    for key, value in selector.items():
        known = fleet.values(str(key))
        if isinstance(value, str) and value not in known:
            hint = names.did_you_mean(str(value), known) if known else ""
            hint = hint or names.did_you_mean(str(key), fleet.label_keys, otherwise="label a node, or select others")
            return Problem(pod.object, (*at, key), f"no declared node has the label {key}: {value}", hint)
    terms = get(pod.spec, node_fit.TERMS)
    if selector and not fleet.selected({"nodeSelector": selector}):
        pairs = names.listed(f"{key}: {value}" for key, value in selector.items())
        return Problem(pod.object, at, f"no declared node has all of its labels: {pairs}", "take one of them out")
    message = "no declared node meets its required node affinity"
    return Problem(pod.object, (*pod.pointer, *node_fit.TERMS), message, _unmet(fleet, terms))


def _unmet(fleet: Fleet, terms: object) -> str:
    """The values that a label has, where some expression of the terms asks for others only."""
    for term in map(mapping, terms if isinstance(terms, list) else ()):
        for each in map(mapping, term.get("matchExpressions") or ()):
            if not any(node_fit.holds(each, node.labels) for node in fleet.nodes):
                key = str(each.get("key"))
                known = sorted(fleet.values(key))
                return f"the nodes' values of {key}: {names.listed(known)}" if known else f"no node has the label {key}"
    return "ask for labels that one node has together"


def _shut_out(fleet: Fleet, pod: Pod, selected: list[Node]) -> Problem:
    able = [node for node in selected if node.takes_pods]
    shown = names.listed(node.name for node in able or selected)
    which = "the declared nodes" if len(selected) == len(fleet.nodes) else "the nodes that it selects"
    if not able:
        at = (*pod.pointer, "nodeSelector") if pod.spec.get("nodeSelector") else pod.pointer
        return Problem(pod.object, at, f"{which} are cordoned or not ready: {shown}", "uncordon one, or select others")
    taint = next(found for node in able if (found := fleet.intolerable(node, pod.spec)) is not None)
    text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
    at = (*pod.pointer, "tolerations") if has(pod.spec, ("tolerations",)) else pod.pointer
    value = f"operator: Equal, value: {taint.value}" if taint.value else "operator: Exists"
    hint = f"tolerate it: tolerations: [{{key: {taint.key}, {value}, effect: {taint.effect}}}]"
    return Problem(pod.object, at, f"{which} have taints that it does not tolerate: {text} ({shown})", hint)


def _elsewhere(fleet: Fleet, pod: Pod, wanted: Resources) -> tuple[str, str]:
    """A node that would hold the pod and is closed to it, with the reason, and how it may be opened."""
    node = fleet.holder(wanted)
    if node is None:
        return "", ""
    if not node.takes_pods:
        return f"; {node.name} would hold it, and is cordoned or not ready", f"open {node.name}"
    if node not in fleet.selected(pod.spec):
        return f"; {node.name} would hold it, and is not selected", f"select {node.name}"
    taint = fleet.intolerable(node, pod.spec)
    text = f"{taint.key}:{taint.effect}" if taint is not None else "a taint"
    return f"; {node.name} would hold it, and has the taint {text}", f"tolerate {text}"


def _too_large(pod: Pod, lack: Lack, count: int, elsewhere: tuple[str, str]) -> Problem:
    needs, offers, less = [], [], []
    for resource, (need, offered) in lack.missing.items():
        needs.append(f"{show_rounded(need, resource, up=True)} {resource}")
        offers.append(show_rounded(offered, resource))
        less.append(f"{show_rounded(need - offered, resource, up=True)} {resource}")
    which = "the only node it may use" if count == 1 else f"the nearest of {count} nodes"
    closed, opening = elsewhere
    message = f"one pod needs {' and '.join(needs)}; {lack.node.name}, {which}, has {' and '.join(offers)}{closed}"
    hint = f"{opening or 'add larger nodes'}, or request {' and '.join(less)} less for each pod"
    return Problem(pod.object, pod.place_of(next(iter(lack.missing))), message, hint)


def gang_fits_its_queue(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        gang = minimum_gang.minimum_gang(job) if job.queue is not None else None
        queue = index.queues.queues.get(job.queue or "")
        if gang is not None and queue is not None:
            yield from _beyond_queue(index, job, gang, queue)
    yield from _groups(index)


def _beyond_queue(index: Index, job: Workload, gang: MinimumGang, queue: Queue) -> Iterator[Problem]:
    """One finding for the first queue upwards that the gang exceeds, of the resource that is exceeded most."""
    for limit in _limits(index, queue):
        over = {resource: gang.needs(resource) for resource in gang.resources}
        over = {resource: need for resource, need in over.items() if _exceeds(limit, resource, need)}
        if over:
            resource = max(over, key=lambda each: (Fraction(over[each]) / max(limit.capability[each], 1), each))
            how = minimum_gang.arithmetic(gang.cheapest(resource), resource)
            pods = f"all {gang.pods} pods" if gang.pods == gang.total else f"{gang.pods} of {gang.total} pods"
            pods = "one pod" if gang.total == 1 else pods
            message = f"the minimum gang, {pods}, needs {how} {resource}; {_of_queue(limit, queue)}"
            at = _size_of(job, gang, resource)
            yield Problem(job.object, at, f"{message} allows {_cap(limit, resource)}", _raise(limit, over, resource))
            return


def _size_of(job: Workload, gang: MinimumGang, resource: str) -> Pointer:
    """Where the gang's size is written: minAvailable, else the replicas of the task that needs most."""
    if job.spec.get("minAvailable"):
        return (*job.pointer, "minAvailable")
    costs = [minimum_gang.cost([part], resource) for part in gang.cheapest(resource)]
    return (*job.tasks[costs.index(max(costs))].pointer, "replicas")


def _limits(index: Index, queue: Queue) -> Iterator[Queue]:
    yield queue
    yield from index.queues.ancestors(queue)


def _exceeds(queue: Queue, resource: str, need: Amount) -> bool:
    """Whether the need is above the queue's capability: 0 CPUs or bytes are no limit to the capacity plugin."""
    limit = queue.capability.get(resource)
    return limit is not None and need > limit and not (limit == 0 and resource in ("cpu", "memory"))


def _of_queue(limit: Queue, queue: Queue) -> str:
    return f"its queue {queue.name}" if limit is queue else f"{limit.name}, above its queue {queue.name},"


def _cap(limit: Queue, resource: str) -> str:
    return show(limit.capability[resource], resource)


def _raise(limit: Queue, over: Mapping[str, Amount], resource: str) -> str:
    need = show(over[resource], resource)
    others = [f"{each} to {show(over[each], each)}" for each in sorted(over) if each != resource]
    more = f" and {names.listed(others)}" if others else ""
    return f"lower minAvailable, or raise capability of {limit.name} to {need} {resource}{more}"


def _groups(index: Index) -> Iterator[Problem]:
    """PodGroups that no job made: by what they say they need, else by the pods that are declared for them."""
    priorities = gangs.Priorities(())
    for gang in gangs.gangs((), index.of_kind("PodGroup"), index.others, priorities):
        queue = index.queues.queues.get(str(gang.object.spec.get("queue") or "default"))
        if queue is None:
            continue
        stated = parse_map(gang.object.spec.get("minResources"))
        needs = {key.removeprefix("requests."): (amount, key) for key, amount in stated.items() if _is_amount(key)}
        if needs:
            yield from _stated(index, gang.object, queue, needs)
        elif all(each.spec is not None for each in gang.pods) and gang.size >= gang.minimum:
            parts = tuple(Part("", each.count, 0, each.requests) for each in gang.pods)
            yield from _of_members(index, gang.object, MinimumGang(gang.minimum, parts), queue)


def _is_amount(key: str) -> bool:
    return key.startswith("requests.") or not key.startswith(_IN_GROUPS)


def _stated(
    index: Index, group: KubeObject, queue: Queue, needs: Mapping[str, tuple[Amount, str]]
) -> Iterator[Problem]:
    for limit in _limits(index, queue):
        for resource, (need, key) in needs.items():
            if _exceeds(limit, resource, need):
                message = f"minResources is {show(need, resource)} {resource}; {_of_queue(limit, queue)} allows"
                at = ("spec", "minResources", key)
                hint = _raise(limit, {resource: need}, resource).replace("minAvailable", "it")
                yield Problem(group, at, f"{message} {_cap(limit, resource)}", hint)
                return


def _of_members(index: Index, group: KubeObject, gang: MinimumGang, queue: Queue) -> Iterator[Problem]:
    for limit in _limits(index, queue):
        for resource in gang.resources:
            if _exceeds(limit, resource, gang.needs(resource)):
                how = minimum_gang.arithmetic(gang.cheapest(resource), resource)
                message = f"{gang.pods} pods need {how} {resource}; {_of_queue(limit, queue)} allows"
                hint = _raise(limit, {resource: gang.needs(resource)}, resource).replace("minAvailable", "minMember")
                yield Problem(group, ("spec", "minMember"), f"{message} {_cap(limit, resource)}", hint)
                return


def static_cpu_is_integer(index: Index) -> Iterator[Problem]:
    if kubelets.has_static_cpus(index.others):
        yield from containers.once(
            problem for pod in index.volcano_pods if _is_guaranteed(pod) for problem in _fractions(pod)
        )


def _fractions(pod: Pod) -> Iterator[Problem]:
    for container in pod.containers:
        amount = container.requests.get("cpu", 0)
        if amount != int(amount):
            message = (
                f"{container.name} requests {show(amount)} CPUs in a Guaranteed pod; with cpuManagerPolicy: static "
                "only whole ones are its own"
            )
            hint = f"request {int(amount) + 1}, with the same limit"
            yield Problem(container.object, container.place_of("cpu"), message, hint)
            return


def _is_guaranteed(pod: Pod) -> bool:
    """ComputePodQOS in k8s.io/kubernetes/pkg/apis/core/v1/helper/qos: every container has limits on CPUs and memory,
    and requests no less; or the pod as a whole."""
    own = mapping(pod.spec.get("resources"))
    if mapping(own.get("requests")) or mapping(own.get("limits")):
        return _is_fixed(parse_map(own.get("requests")), parse_map(own.get("limits")))
    return bool(pod.containers) and all(_is_fixed(each.requests, each.limits) for each in pod.containers)


def _is_fixed(requests: Mapping[str, Amount], limits: Mapping[str, Amount]) -> bool:
    return all(
        limits.get(name, 0) > 0 and requests.get(name, limits[name]) == limits[name] for name in ("cpu", "memory")
    )


RULES: tuple[Rule, ...] = (
    Rule("gpu-request-equals-limit", Severity.ERROR, gpu_request_equals_limit),
    Rule("resource-is-offered", Severity.ERROR, resource_is_offered, needs=(Fact.NODES,)),
    Rule("pod-fits-a-node", Severity.ERROR, pod_fits_a_node, needs=(Fact.NODES,)),
    Rule("gang-fits-its-queue", Severity.ERROR, gang_fits_its_queue, needs=(Fact.QUEUES,)),
    Rule("static-cpu-is-integer", Severity.WARNING, static_cpu_is_integer, needs=(Fact.KUBELET,)),
    *job_containers.RULES,
)
