"""The tasks of a job: their names, numbers, partitions and dependencies.

Where one mistake breaks several of these claims, the first of them in the order below speaks.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from basalt import names
from basalt.api.versions import Version
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer, existing, get
from basalt.quantities import parse, show
from basalt.rules.bounds import joined
from basalt.rules.rule import Rule
from basalt.views.components import Components
from basalt.views.frameworks import Whole, whole
from basalt.views.misspelling import JOB_FIELDS, TASK_FIELDS, misspelt, place_of
from basalt.views.workloads import Task, Workload

_SHOWN = 6  # tasks named one by one
_COMPARING = Version(1, 14)  # validatePartitionPolicy compared minAvailable with minPartitions of 0, too
_NUMA_POLICIES = ("best-effort", "restricted", "single-numa-node")


def job_has_tasks(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        if job.spec.get("tasks") not in (None, []):
            yield from _without_pods(job) if _tells_counts(job) else ()
        elif not job.is_patch and get(job.object.value, job.pointer[:-1]) is not None:  # else its template is missing
            yield from _without_tasks(job)


def _tells_counts(job: Workload) -> bool:
    """Whether its numbers of pods are all that there will be: what a patch leaves out, its JobTemplate may have."""
    return not job.is_patch or not any(map(_says_none, job.tasks))


def _without_tasks(job: Workload) -> Iterator[Problem]:
    at = existing(job.object.value, job.pointer)
    if get(job.object.value, at) is None:
        yield Problem(job.object, at, "the job has no tasks", "add a task with replicas and a template")
    elif isinstance(get(job.object.value, at), Mapping):
        pointer, key = place_of(at, job.spec, "tasks", JOB_FIELDS)
        said = "" if key is None else f": no field is called {key}"
        hint = "add a task with replicas and a template" if key is None else "write tasks"
        yield Problem(job.object, pointer, f"the job has no tasks{said}", hint)


def _without_pods(job: Workload) -> Iterator[Problem]:
    counts = _counts(job)
    if not counts or any(counts):
        return
    meant = [(task, misspelt(task.value, ("replicas",), TASK_FIELDS)) for task in job.tasks if _says_none(task)]
    wrong = [(task, key) for task, key in meant if key is not None]
    for task, key in wrong:
        message = f"{task.name} has 0 replicas: no field is called {key}, and an absent replicas is 0"
        yield Problem(job.object, task.pointer, message, "write replicas")
    if wrong:
        return
    if len(job.tasks) == 1:
        task = job.tasks[0]
        absent = ": an absent replicas is 0" if _says_none(task) else ""
        pointer, _ = place_of(task.pointer, task.value, "replicas", TASK_FIELDS)
        yield Problem(job.object, pointer, f"the job has no pods, {task.name} has 0 replicas{absent}", _SET_REPLICAS)
    else:
        absent = ": an absent replicas is 0" if any(map(_says_none, job.tasks)) else ""
        message = f"the job has no pods, all {len(job.tasks)} tasks have 0 replicas{absent}"
        yield Problem(job.object, (*job.pointer, "tasks"), message, _SET_REPLICAS)


_SET_REPLICAS = "set replicas to the number of pods"


def _says_none(task: Task) -> bool:
    return task.value.get("replicas") is None


def _counts(job: Workload) -> list[int]:
    """The replicas of each task; none where one of them is no number of pods, which object-matches-schema tells."""
    tasks = sequence(job.spec.get("tasks"))
    counts = [task.replicas for task in job.tasks]
    known = [count for count in counts if count is not None and count >= 0]
    return known if len(known) == len(tasks) and all(isinstance(task, Mapping) for task in tasks) else []


def _has_no_pods(job: Workload) -> bool:
    """Whether job-has-tasks speaks: what else is wrong with its numbers follows from that."""
    counts = _counts(job)
    return not job.is_patch and bool(counts) and not any(counts)


def task_names_are_unique(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        for name, tasks in _by_name(job).items():
            if len(tasks) > 1:
                yield _repeated_name(job, name, tasks)


def _by_name(job: Workload) -> dict[str, list[Task]]:
    found: dict[str, list[Task]] = {}
    for task, raw in zip(job.tasks, sequence(job.spec.get("tasks")), strict=True):
        written = task.value.get("name")
        is_named = isinstance(written, str) and written
        if isinstance(raw, Mapping) and (is_named or (written in (None, "") and not job.is_patch)):
            found.setdefault(task.name, []).append(task)
    return found


def _repeated_name(job: Workload, name: str, tasks: Sequence[Task]) -> Problem:
    hint = f"give each its own name: the pods are called <job>-{name}-0 and so on"
    unnamed = next((task for task in tasks if not task.value.get("name")), None)
    if unnamed is not None:
        other = next(task for task in tasks if task is not unnamed)
        message = f"tasks[{unnamed.pointer[-1]}] has no name and gets {name}, which tasks[{other.pointer[-1]}] has"
        return Problem(job.object, unnamed.pointer, message, "give it a name")
    places = names.listed(f"tasks[{task.pointer[-1]}]" for task in tasks)
    return Problem(job.object, (*tasks[1].pointer, "name"), f"{len(tasks)} tasks are called {name}: {places}", hint)


def task_minimum_within_replicas(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        if _has_no_pods(job):
            continue
        for task in job.tasks:
            replicas = None if job.is_patch and _says_none(task) else _number(task.replicas)
            if replicas is not None:
                yield from _minimum(job, task, replicas)


def _minimum(job: Workload, task: Task, replicas: int) -> Iterator[Problem]:
    minimum = _number(task.value.get("minAvailable"))
    partitioned = _partitioned(task)
    fits = partitioned is None or partitioned == replicas  # else partitions-multiply speaks
    if minimum is not None:
        if minimum > replicas and (fits or minimum > (partitioned or 0)):
            yield _above_replicas(job, task, minimum, replicas)
    elif fits and partitioned is not None:
        policy = mapping(task.value["partitionPolicy"])
        least, size = _number(policy.get("minPartitions")) or 0, policy["partitionSize"]
        if least * size > replicas:
            message = f"minPartitions x partitionSize is {least} x {size} = {least * size}, replicas is {replicas}"
            hint = f"set minPartitions to at most totalPartitions, which is {policy['totalPartitions']}"
            yield Problem(job.object, (*task.pointer, "partitionPolicy", "minPartitions"), message, hint)


def _above_replicas(job: Workload, task: Task, minimum: int, replicas: int) -> Problem:
    key = misspelt(task.value, ("replicas",), TASK_FIELDS) if _says_none(task) else None
    absent = "absent, which counts as 0" if _says_none(task) else replicas
    message = f"minAvailable of {task.name} is {minimum}, replicas is {absent}"
    hint = f"set minAvailable to at most {replicas}, or raise replicas" if replicas else f"set replicas to {minimum}"
    if key is not None:
        message, hint = f"{message}: no field is called {key}", "write replicas"
    return Problem(job.object, (*task.pointer, "minAvailable"), message, hint)


def job_minimum_within_replicas(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        counts, minimum = _counts(job), _number(job.spec.get("minAvailable"))
        if minimum is None or not counts or not _tells_counts(job):
            continue
        # What a task asks for beyond its replicas has a rule of its own.
        if minimum > sum(max(task.replicas or 0, task.minimum or 0, _partitioned(task) or 0) for task in job.tasks):
            yield _above_sum(job, minimum, counts)


def _above_sum(job: Workload, minimum: int, counts: Sequence[int]) -> Problem:
    total = sum(counts)
    single = len(counts) == 1 or len(counts) > _SHOWN
    arithmetic = f"{total}" if single else f"{' + '.join(map(str, counts))} = {total}"
    message = f"minAvailable is {minimum}, the replicas of all tasks sum to {arithmetic}"
    hint = f"set minAvailable to at most {total}, or raise replicas" if total else "raise replicas"
    for task in filter(_says_none, job.tasks):
        if (key := misspelt(task.value, ("replicas",), TASK_FIELDS)) is not None:
            message, hint = f"{message}: no field is called {key}", "write replicas"
    return Problem(job.object, (*job.pointer, "minAvailable"), message, hint)


def gang_is_whole(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        needed = whole(job) if not job.is_patch or job.spec.get("minAvailable") else None
        if needed is not None and (problem := _partial(job, needed)) is not None:
            yield problem


def _partial(job: Workload, needed: Whole) -> Problem | None:
    own = _number(job.spec.get("minAvailable"))
    started = _started(job, needed, own)
    is_unknown = own is None and job.spec.get("minAvailable") is not None
    if is_unknown or started >= needed.pods:
        return None
    pointer, fact, allowed = _too_low(job, needed)
    parts = " + ".join(f"{task.name} {task.replicas}" for task in needed.tasks[:_SHOWN])
    of = f" ({parts})" if len(needed.tasks) <= _SHOWN else ""
    hint = f"set {pointer[-1]} to {allowed}: with fewer, those that start hold their nodes and wait for the rest"
    return Problem(job.object, pointer, f"{fact}, {needed.name} needs {needed.pods} pods at once{of}", hint)


def _started(job: Workload, needed: Whole, own: int | None) -> int:
    """With how many of these pods the gang may start: those of other tasks may be the rest of the job's minimum, unless
    the tasks' own minimums, which Volcano heeds where the job's is no lower than their sum, ask for more."""
    least = sum(min(task.minimum or 0, task.replicas or 0) for task in needed.tasks)
    if not own:
        return least
    if own < sum(task.minimum or 0 for task in job.tasks):
        return own
    named = {task.name for task in needed.tasks}
    return max(least, own - sum(task.replicas or 0 for task in job.tasks if task.name not in named))


def _too_low(job: Workload, needed: Whole) -> tuple[Pointer, str, int]:
    """Where the minimum was written, what it says, and what it may be; of a generated job, in its role."""
    at = (*job.pointer, "minAvailable")
    own = job.spec.get("minAvailable")
    short = (task for task in needed.tasks if (task.minimum or 0) < (task.replicas or 0))
    is_of_job = own and own < needed.pods and job.object.origin(at)[-1:] == ("minAvailable",)
    if is_of_job or (task := next(short, None)) is None:
        return at, f"minAvailable is {own}", needed.pods
    fact = f"{task.name} may start with {task.minimum} of its {task.replicas} pods"
    if task.value.get("minAvailable") is not None:
        return (*task.pointer, "minAvailable"), fact, task.replicas or 0
    total = mapping(task.value.get("partitionPolicy")).get("totalPartitions")
    return (*task.pointer, "partitionPolicy", "minPartitions"), fact, _number(total) or 0


def task_dependencies_form_a_dag(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        known = {task.name for task in job.tasks}
        graph: dict[str, dict[str, Pointer]] = {task.name: {} for task in job.tasks}
        for task in job.tasks:
            for pointer, name in _dependencies(task):
                message, hint = _wrong_dependency(task, name, graph[task.name], known)
                if message and (name in known or not job.is_patch):
                    yield Problem(job.object, pointer, message, hint)
                elif name in known and name != task.name:
                    graph[task.name][name] = pointer
        yield from _circles(job, graph)


def _dependencies(task: Task) -> Iterator[tuple[Pointer, str]]:
    for position, name in enumerate(sequence(mapping(task.value.get("dependsOn")).get("name"))):
        if isinstance(name, str):
            yield (*task.pointer, "dependsOn", "name", position), name


def _wrong_dependency(task: Task, name: str, earlier: Mapping[str, Pointer], known: set[str]) -> tuple[str, str]:
    if name == task.name:
        return f"{name} waits for itself", "take it out of dependsOn"
    if name not in known:
        hint = names.did_you_mean(name, known - {task.name}, otherwise="name a task of the job")
        return f"{task.name} waits for {name}, which is no task of the job", hint
    if name in earlier:  # makeGraph counts the name twice, and the task as done once
        return f"{task.name} waits for {name} twice, which Volcano takes for a circle", "name it once"
    return "", ""


def _circles(job: Workload, graph: Mapping[str, Mapping[str, Pointer]]) -> Iterator[Problem]:
    order = {name: position for position, name in enumerate(graph)}
    for component in Components({name: list(targets) for name, targets in graph.items()}).found:
        if len(component) > 1:
            circle = _circle(min(component, key=order.__getitem__), graph)
            message = f"the tasks wait for each other: {joined(circle, ' -> ')}"
            hint = "take one of them out of the other's dependsOn: no pod of them is ever made"
            yield Problem(job.object, graph[circle[0]][circle[1]], message, hint)


def _circle(start: str, graph: Mapping[str, Mapping[str, Pointer]]) -> list[str]:
    """The shortest way from the task back to itself."""
    came: dict[str, str] = {}
    waiting = deque([start])
    while start not in came:
        name = waiting.popleft()
        for target in graph[name]:
            if target not in came:
                came[target] = name
                waiting.append(target)
    trail = [start, came[start]]
    while trail[-1] != start:
        trail.append(came[trail[-1]])
    return trail[::-1]


def partitions_multiply(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        for task in job.tasks:
            if (partitioned := _partitioned(task)) is not None:
                yield from _partitions(job, task, partitioned, index.volcano)


def _partitioned(task: Task) -> int | None:
    """The pods in all partitions; None where there are none, or one number is none."""
    policy = mapping(task.value.get("partitionPolicy"))
    total, size = _number(policy.get("totalPartitions")), _number(policy.get("partitionSize"))
    return total * size if total and size else None


def _partitions(job: Workload, task: Task, partitioned: int, volcano: Version | None) -> Iterator[Problem]:
    policy = mapping(task.value["partitionPolicy"])
    total, size = policy["totalPartitions"], policy["partitionSize"]
    least, minimum = _number(policy.get("minPartitions")), _number(task.value.get("minAvailable"))
    replicas = None if job.is_patch and _says_none(task) else _number(task.replicas)
    if replicas is not None and replicas != partitioned:
        yield _uneven(job, task, f"{total} x {size} = {partitioned}", partitioned)
    elif least and minimum is not None and minimum != least * size:
        message = f"minAvailable of {task.name} is {minimum}, minPartitions x partitionSize is {least} x {size}"
        hint = f"set minAvailable to {least * size}, or leave it out"
        yield Problem(job.object, (*task.pointer, "minAvailable"), f"{message} = {least * size}", hint)
    elif volcano == _COMPARING and policy.get("minPartitions") in (None, 0) and minimum:
        message = f"minAvailable of {task.name} is {minimum}, minPartitions is 0: Volcano {volcano} takes only 0 there"
        hint = f"set minPartitions to {minimum // size}" if minimum % size == 0 else "leave minAvailable out"
        yield Problem(job.object, (*task.pointer, "minAvailable"), message, hint)


def _uneven(job: Workload, task: Task, arithmetic: str, partitioned: int) -> Problem:
    message = f"replicas of {task.name} is {task.replicas}, totalPartitions x partitionSize is {arithmetic}"
    pointer, key = place_of(task.pointer, task.value, "replicas", TASK_FIELDS)
    if key is not None:
        return Problem(job.object, pointer, f"{message}: no field is called {key}", "write replicas")
    return Problem(job.object, pointer, message, f"set replicas to {partitioned}, or change the partitions")


def numa_policy_has_integer_cpu(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        for task in job.tasks:
            policy = task.value.get("topologyPolicy")
            wrong = list(_fractional(job, task)) if policy in _NUMA_POLICIES else []
            if wrong:
                parts = names.listed(f"{amount} in {name}" for _, name, amount in wrong)
                message = f"topologyPolicy {policy} needs whole CPUs in every container, {task.name} requests {parts}"
                hint = "request a whole number of CPUs, at least 1, or say topologyPolicy: none"
                yield Problem(job.object, wrong[0][0], message, hint)


def _fractional(job: Workload, task: Task) -> Iterator[tuple[Pointer, str, str]]:
    """The containers without whole CPUs. Limits count only where nothing at all is requested, and init containers are
    judged too (validateTaskTopoPolicy in admit_job.go)."""
    for pointer, container in task.containers():
        resources = container.get("resources") or {}
        kind = "requests" if mapping(resources).get("requests") else "limits"
        amounts = mapping(resources).get(kind) or {}
        if not isinstance(amounts, Mapping) or not isinstance(resources, Mapping) or not container:
            continue
        amount = parse(amounts.get("cpu"))
        is_unknown = job.is_patch if amounts.get("cpu") is None else amount is None or amount < 0
        if not is_unknown and (amount is None or amount == 0 or amount != int(amount)):
            name = str(container.get("name") or pointer[-1])
            shown = "no cpu" if amount is None else show(amount)
            yield (*pointer, *existing(container, ("resources", kind, "cpu"))), name, shown


def _number(value: Any) -> int | None:
    """A number of pods or partitions; None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


RULES = (
    Rule("job-has-tasks", Severity.ERROR, job_has_tasks),
    Rule("task-names-are-unique", Severity.ERROR, task_names_are_unique),
    Rule("task-minimum-within-replicas", Severity.ERROR, task_minimum_within_replicas),
    Rule("job-minimum-within-replicas", Severity.ERROR, job_minimum_within_replicas),
    Rule("gang-is-whole", Severity.WARNING, gang_is_whole),
    Rule("task-dependencies-form-a-dag", Severity.ERROR, task_dependencies_form_a_dag),
    Rule("partitions-multiply", Severity.ERROR, partitions_multiply),
    Rule("numa-policy-has-integer-cpu", Severity.ERROR, numa_policy_has_integer_cpu),
)
