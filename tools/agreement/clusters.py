"""Small environments to compare verdicts on: racks of unequal size, taints, queues, and two to six jobs. The number of
an environment is its seed, so that it is the same everywhere. Pure.

A new ingredient gets new numbers and draws last, as company does; else all environments are others, and have to be
played again.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from tools.agreement import company, shapes
from tools.agreement.shapes import GPU, Shape

COUNT = 540
COMPANY = 500  # from this number on, jobs ask for company too
JOB = ("batch.volcano.sh/v1alpha1", "Job")
QUEUE = ("scheduling.volcano.sh/v1beta1", "Queue")
HYPER_NODE = ("topology.volcano.sh/v1alpha1", "HyperNode")
PRIORITY = ("scheduling.k8s.io/v1", "PriorityClass")
NODE = ("v1", "Node")
ENVIRONMENT = {
    "apiVersion": "basalt.dev/v1alpha1",
    "kind": "Environment",
    "metadata": {"name": "cases"},
    "spec": {"kubernetes": {"version": "1.34"}, "volcano": {"version": "1.14.1"}},
}
PRIORITIES = {"low": 1000, "high": 1_000_000}
BALLAST = "ballast"  # the name, label and taint of a node that no job runs on
_PLENTY = "10000000"

Value = dict[str, Any]


class Drawn(NamedTuple):
    """An environment: its number, its nodes and HyperNodes, its queues, parents first, and its jobs."""

    number: int
    nodes: list[Value]
    hyper_nodes: list[Value]
    queues: list[Value]
    jobs: list[Value]

    def job_names(self) -> list[str]:
        return [_name(each) for each in self.jobs]

    def documents(self) -> list[Value]:
        """All that a folder of it holds."""
        return [ENVIRONMENT, *priorities(), ballast(), *self.nodes, *self.hyper_nodes, *self.queues, *self.jobs]


class _Rack(NamedTuple):
    name: str
    nodes: list[Value]


def drawn(number: int) -> Drawn:
    """The environment of that number."""
    draw, name = Random(number), f"e{number}"
    racks = [_rack(name, each, draw) for each in range(draw.randint(2, 4))]
    leaves = _leaves(name, racks, draw)
    hyper_nodes = [_hyper_node(each.name, 1, "Node", map(_name, each.nodes)) for each in racks]
    hyper_nodes += [_hyper_node(leaf, 2, "HyperNode", (each.name for each in inside)) for leaf, inside in leaves]
    queues = _queues(name, racks, draw)
    names = _leaf_queues(queues)
    jobs = []
    for each in range(draw.choice([2, 2, 2, 2, 3, 3, 4, 5, 6])):
        job = _job(f"{name}-j{each}", draw.choice(names), draw)
        tier = job["spec"].get("networkTopology", {}).get("highestTierAllowed")
        job["spec"]["tasks"] = _tasks(name, _domain(tier, racks, leaves, draw), draw)
        _set_minimum(job, draw)
        jobs.append(job)
    nodes = [node for each in racks for node in each.nodes]
    if number >= COMPANY:
        for node in nodes:
            company.label(node, draw)
        company.ask(jobs, draw)
    return Drawn(number, nodes, hyper_nodes, queues, jobs)


# nodes


def _rack(name: str, number: int, draw: Random) -> _Rack:
    return _Rack(f"{name}-r{number}", [_node(name, f"r{number}-n{each}", draw) for each in range(draw.randint(1, 4))])


def _node(environment: str, name: str, draw: Random) -> Value:
    amounts = {"cpu": str(draw.choice([8, 16, 24])), "memory": "64Gi", "pods": "110", GPU: str(draw.choice([4, 8, 8]))}
    labels = {"environment": environment, "kind": draw.choice(["a", "a", "a", "b"])}
    spec: Value = {"taints": [_taint("closed")]} if draw.random() < 0.1 else {}
    if draw.random() < 0.03:
        spec["unschedulable"] = True
    return _as_node(f"{environment}-{name}", labels, spec, amounts)


def ballast() -> Value:
    """What all clusters side by side have more than enough of: one's jobs never use up what the root queue takes for
    all there is."""
    amounts = {"cpu": _PLENTY, "memory": f"{_PLENTY}Gi", "pods": "110", GPU: _PLENTY}
    return _as_node(BALLAST, {BALLAST: "true"}, {"taints": [_taint(BALLAST)]}, amounts)


def _as_node(name: str, labels: dict[str, str], spec: Value, amounts: dict[str, str]) -> Value:
    status = {"allocatable": amounts, "capacity": amounts}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": NODE[0], "kind": NODE[1], "metadata": metadata, "spec": spec, "status": status}


def _taint(key: str) -> Value:
    return {"key": key, "effect": "NoSchedule"}


# topology


def _leaves(name: str, racks: Sequence[_Rack], draw: Random) -> list[tuple[str, list[_Rack]]]:
    """One domain of tier 2 over all racks, or two."""
    if len(racks) < 3 or draw.random() < 0.5:
        return [(f"{name}-top", list(racks))]
    return [(f"{name}-left", list(racks[:2])), (f"{name}-right", list(racks[2:]))]


def _hyper_node(name: str, tier: int, kind: str, members: Iterator[str]) -> Value:
    found = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    return {"apiVersion": HYPER_NODE[0], "kind": HYPER_NODE[1], "metadata": {"name": name},
            "spec": {"tier": tier, "members": found}}  # fmt: skip


def _domain(
    tier: int | None, racks: Sequence[_Rack], leaves: Sequence[tuple[str, list[_Rack]]], draw: Random
) -> list[Value]:
    """The nodes of one of the domains that a job could get."""
    if tier == 1:
        return draw.choice(racks).nodes
    inside = draw.choice(leaves)[1] if tier == 2 else racks
    return [node for each in inside for node in each.nodes]


# queues


def _queues(name: str, racks: Sequence[_Rack], draw: Random) -> list[Value]:
    """None; two side by side; or a parent that holds the whole cluster, with one child that is guaranteed a part."""
    total = {key: sum(_amount(node, key) for each in racks for node in each.nodes) for key in ("cpu", GPU)}
    some = {key: str(draw.randint(max(1, amount // 4), amount)) for key, amount in total.items()}
    kind = draw.choice(["none", "none", "flat", "tree", "deep"])
    if kind == "none":
        return []
    if kind == "flat":
        return [_queue(f"{name}-a", capability={GPU: some[GPU]}), _queue(f"{name}-b", capability={"cpu": some["cpu"]})]
    whole = {**{key: str(amount) for key, amount in total.items()}, "memory": "4Ti"}
    part = {key: str(int(amount) // 2) for key, amount in some.items() if int(amount) > 1}
    found = [
        _queue(name, capability=whole, guarantee=part),
        _queue(f"{name}-a", parent=name, guarantee=part),
        _queue(f"{name}-b", parent=name, capability=some),
    ]
    if kind == "deep":
        found.append(_queue(f"{name}-c", parent=f"{name}-b"))
    return found


def _queue(name: str, parent: str = "root", **amounts: dict[str, str]) -> Value:
    spec: Value = {"weight": 1, "reclaimable": True, "parent": parent}
    if "capability" in amounts:
        spec["capability"] = amounts["capability"]
    if amounts.get("guarantee"):
        spec |= {"guarantee": {"resource": amounts["guarantee"]}, "deserved": amounts["guarantee"]}
    return {"apiVersion": QUEUE[0], "kind": QUEUE[1], "metadata": {"name": name}, "spec": spec}


def _leaf_queues(queues: Sequence[Value]) -> list[str]:
    parents = {each["spec"]["parent"] for each in queues}
    return [_name(each) for each in queues if _name(each) not in parents] or ["default"]


# jobs


def _job(name: str, queue: str, draw: Random) -> Value:
    spec: Value = {"schedulerName": "volcano", "queue": queue, "priorityClassName": draw.choice([*PRIORITIES])}
    kind = draw.choice(["none", "soft", "rack", "rack", "rack", "leaf", "leaf"])
    if kind == "soft":
        spec["networkTopology"] = {"mode": "soft"}
    elif kind != "none":
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1 if kind == "rack" else 2}
    return {"apiVersion": JOB[0], "kind": JOB[1], "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _tasks(environment: str, nodes: Sequence[Value], draw: Random) -> list[Value]:
    """One kind of pods or two; half of the pairs fill the nodes of a domain, or nearly so: some of these are tight."""
    rooms = [(_amount(node, "cpu"), _amount(node, GPU)) for node in nodes]
    found = shapes.snug(rooms, draw) if draw.random() < 0.5 else None
    if found is None:
        found = [shapes.any_shape(draw) for _ in range(draw.randint(1, 2))]
    return [_task(f"w{number}", environment, each, draw) for number, each in enumerate(found)]


def _task(name: str, environment: str, shape: Shape, draw: Random) -> Value:
    requests = {"cpu": str(shape.cpus), "memory": "1Gi", GPU: str(shape.gpus)}
    container = {
        "name": "a",
        "image": "registry.example.com/a:1",
        "resources": {"requests": requests, "limits": requests},
    }
    selector = {"environment": environment, **({"kind": "a"} if draw.random() < 0.05 else {})}
    pod: Value = {"containers": [container], "nodeSelector": selector, "terminationGracePeriodSeconds": 0}
    if draw.random() < 0.3:
        pod["tolerations"] = [{"key": "closed", "operator": "Exists"}]
    return {"name": name, "replicas": shape.pods, "minAvailable": shape.pods, "template": {"spec": pod}}


def _set_minimum(job: Value, draw: Random) -> None:
    """All pods start together, or fewer; now and then fewer than the tasks' own minima add up to, which then count for
    nothing."""
    tasks = job["spec"]["tasks"]
    if draw.random() < 0.3:
        for each in tasks:
            each["minAvailable"] = draw.randint(1, each["replicas"])
    least = sum(each["minAvailable"] for each in tasks)
    most = sum(each["replicas"] for each in tasks)
    lowest = max(1, least - 1) if draw.random() < 0.1 else least
    job["spec"]["minAvailable"] = draw.randint(lowest, most) if least < most else lowest


# what all environments share


def priorities() -> Iterator[Value]:
    for name, value in PRIORITIES.items():
        yield {"apiVersion": PRIORITY[0], "kind": PRIORITY[1], "metadata": {"name": name}, "value": value}


def _amount(node: Value, resource: str) -> int:
    return int(node["status"]["allocatable"][resource])


def _name(value: Value) -> str:
    name: str = value["metadata"]["name"]
    return name
