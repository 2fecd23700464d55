"""Which pods of a job train together or not at all, by its plugins and by the command its containers run.

Silent where that cannot be known: a job without a framework, a launcher that takes any number of pods, Ray.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import mapping, sequence, strings
from basalt.views.job_plugins import read
from basalt.views.workloads import Task, Workload

# The flags that name a plugin's tasks, with their defaults (the plugins in pkg/controllers/job/plugins). The mpi
# master is not among the pods that must be there: Volcano's guide asks for as many pods as there are workers.
_ROLES = {
    "mpi": ("worker",),
    "pytorch": ("master", "worker"),
    "tensorflow": ("chief", "ps", "worker"),
    "hcclrank": ("master", "worker"),
}
_NODES = re.compile(r"--(nnodes|num[-_]machines)(?:=|\s+)[\"']?([^\s\"';]+)")
_ELASTIC = re.compile(r"--(?:rdzv|standalone|(?:min|max)[-_]np|host-discovery-script|(?:min|max)_elastic_nodes)")
_RENDEZVOUS = ("PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_STANDALONE")
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_RANGE = re.compile(r"([0-9]+):([0-9]+)")
_VARIABLE = re.compile(r"\$[({]?([A-Za-z_][A-Za-z0-9_]*)[)}]?")
_OF_TASK = re.compile(r"VC_[A-Z0-9_]+_NUM")  # set by the plugin svc
_MPI = re.compile(r"\b(mpirun|mpiexec|horovodrun)\b")
_HOSTS = re.compile(r"/etc/volcano/([a-z0-9-]+)\.host|\bVC_([A-Z0-9_]+)_HOSTS\b")


class Whole(NamedTuple):
    """Tasks whose pods are needed all at once, who says so, and how many pods that is."""

    name: str
    tasks: tuple[Task, ...]
    pods: int


class _Launch(NamedTuple):
    """What a container's command says of the pods that take part; nodes is 0 where it means all there are."""

    text: str
    nodes: int = 0
    is_open: bool = False


def whole(job: Workload) -> Whole | None:
    """The part of the job that cannot run with fewer pods; None where there is none, or none that can be known."""
    if "ray" in job.plugins:
        return None
    for plugin, roles in _ROLES.items():
        if plugin in job.plugins:
            arguments = read(plugin, job.plugins[plugin])
            named = {arguments.text(role) for role in roles}
            launchers = {*named, arguments.text("master")} if plugin == "mpi" else named
            said = [each for task in job.tasks if task.name in launchers for each in _launches(job, task)]
            return _of_launches(plugin, [task for task in job.tasks if task.name in named], said)
    launched = [task for task in job.tasks if any(each.text for each in _launches(job, task))]
    return _of_launches("", launched, [each for task in launched for each in _launches(job, task)]) or _of_hosts(job)


def _of_launches(plugin: str, tasks: Iterable[Task], said: Iterable[_Launch]) -> Whole | None:
    """A task that waits for another has no pods at the start, when the gang is placed."""
    launches = list(said)
    started = tuple(task for task in tasks if not _waits(task))
    if not started or any(each.is_open for each in launches):
        return None
    total = sum(max(task.replicas or 0, 0) for task in started)
    named = [each.nodes for each in launches if each.nodes]
    name = plugin or next(each.text for each in launches if each.text)
    return Whole(name, started, min([total, *named]))


def _of_hosts(job: Workload) -> Whole | None:
    """mpirun, given the host file that the plugin svc writes for a task."""
    hosts: dict[str, str] = {}
    for task in job.tasks:
        for text, _ in _commands(task):
            if (started := _MPI.search(text)) is not None and not _ELASTIC.search(text):
                for found in _HOSTS.finditer(text):
                    hosts[found[1] or found[2].lower().replace("_", "-")] = started[1]
    tasks = tuple(task for task in job.tasks if task.name in hosts and not _waits(task))
    total = sum(max(task.replicas or 0, 0) for task in tasks)
    return Whole(hosts[tasks[0].name], tasks, total) if tasks else None


def _waits(task: Task) -> bool:
    return bool(sequence(mapping(task.value.get("dependsOn")).get("name")))


def _commands(task: Task) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What each container runs, and its environment as far as it is written out."""
    for container in map(mapping, sequence(task.pod.get("containers"))):
        text = " ".join((*strings(container.get("command")), *strings(container.get("args"))))
        yield text, dict(_environment(container))


def _environment(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in map(mapping, sequence(container.get("env"))):
        name, value = each.get("name"), each.get("value")
        if isinstance(name, str) and isinstance(value, str):
            yield name, value


def _launches(job: Workload, task: Task) -> Iterator[_Launch]:
    for text, env in _commands(task):
        nodes = _NODES.search(text)
        if nodes is not None:
            yield _launch(job, f"--{nodes[1]}={nodes[2]}", nodes[2], env)
        elif (value := env.get("PET_NNODES")) is not None:
            yield _launch(job, f"PET_NNODES={value}", value, env)
        elif _ELASTIC.search(text) or any(each in env for each in _RENDEZVOUS):
            yield _Launch("", is_open=True)


def _launch(job: Workload, text: str, value: str, env: Mapping[str, str]) -> _Launch:
    variable = _VARIABLE.fullmatch(value)
    if variable is not None and variable[1] not in env:
        is_world = variable[1] == "WORLD_SIZE" and "pytorch" in job.plugins
        return _Launch(text, is_open=not is_world and _OF_TASK.fullmatch(variable[1]) is None)
    if variable is not None:
        value = env[variable[1]]
    bounds = _RANGE.fullmatch(value)
    if bounds is not None:
        value = bounds[1] if bounds[1] == bounds[2] else ""
    is_fixed = _NUMBER.fullmatch(value) is not None and value != "1"  # one node: each pod trains for itself
    return _Launch(text, int(value) if is_fixed else 0, is_open=not is_fixed)
