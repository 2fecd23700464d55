"""The plugins of a job: what they are given, and what the job must have for them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt import names
from basalt.api.versions import Version
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping, sequence, strings
from basalt.pointers import Pointer
from basalt.rules.rule import Rule
from basalt.views import job_plugins
from basalt.views.job_plugins import FLAGS, ROLES, TASK_INDEX, Reading
from basalt.views.workloads import FRAMEWORK_PLUGINS, Task, Workload

_WITHOUT_MPI_WORKER = Version(1, 15)  # validateJobCreate asked for mpi's worker task too until 1.14
_WORKERS = ("worker",)
_MISSING = {
    "pytorch": "its pods get no MASTER_ADDR, WORLD_SIZE or RANK",
    "mpi": "Volcano's webhook refuses the job",
    "ray": "its pods are never created",
    "tensorflow": "TF_CONFIG names no host",
}
_NAME = r"(V[CK]_TASK_INDEX|VC_[A-Z0-9_]+_(?:NUM|HOSTS))(?![A-Za-z0-9_])"
# How a shell, Kubernetes ($(NAME)), and programs (os.environ["NAME"], getenv("NAME"), process.env.NAME) read one.
_READS = re.compile(
    rf"(?<![\\$])\$\{{?{_NAME}|(?<!\$)\$\({_NAME}\)|(?:environ|getenv|env|ENV)[\w.]*\s*[\[(]\s*[\"']{_NAME}|\benv\.{_NAME}"
)
_SETS = re.compile(r"(?<![A-Za-z0-9_${])(V[CK]_[A-Z0-9_]+)=(?!=)|\b(?:for|read|unset)\s+(?:-\w+\s+)*(V[CK]_[A-Z0-9_]+)")
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_HOOKS = (("lifecycle", "postStart"), ("lifecycle", "preStop"), ("livenessProbe",), ("readinessProbe",),
          ("startupProbe",))  # fmt: skip


def job_plugin_is_known(index: Index) -> Iterator[Problem]:
    for workload in index.workloads:
        for name in mapping(workload.spec.get("plugins")):
            if isinstance(name, str) and name not in FLAGS:
                hint = names.did_you_mean(name, FLAGS)
                yield Problem(workload.object, _plugin(workload, name), f"Volcano has no job plugin {name}", hint)


def _plugin(workload: Workload, name: str) -> Pointer:
    return (*workload.pointer, "plugins", name)


def job_plugin_flags_parse(index: Index) -> Iterator[Problem]:
    for workload, reading in _readings(index):
        for fault in reading.faults:
            at = (*_plugin(workload, reading.plugin), fault.at)
            yield Problem(workload.object, at, fault.message, fault.hint)


def _readings(index: Index) -> Iterator[tuple[Workload, Reading]]:
    """The arguments of every plugin that is known and whose list holds texts alone."""
    volcano = index.catalog.versions["volcano"] if index.catalog.is_declared else None
    for workload in index.workloads:
        for name, arguments in mapping(workload.spec.get("plugins")).items():
            given = [] if arguments is None else arguments
            if name in FLAGS and isinstance(given, list) and len(strings(given)) == len(given):
                yield workload, job_plugins.read(name, given, volcano)


def job_plugin_has_its_task(index: Index) -> Iterator[Problem]:
    catalog = index.catalog
    is_worker_wanted = catalog.is_declared and catalog.versions["volcano"] < _WITHOUT_MPI_WORKER
    for workload, reading in _roles(index):
        roles = ROLES[reading.plugin]
        wanted = [roles, _WORKERS] if reading.plugin == "mpi" and is_worker_wanted else [roles]
        tasks = {task.name for task in workload.tasks}
        for some in wanted:
            if tasks.isdisjoint(map(reading.text, some)):
                yield _without_task(workload, reading, some)
                break


def _roles(index: Index) -> Iterator[tuple[Workload, Reading]]:
    """The plugins that look for tasks, of the jobs whose tasks are written here."""
    for workload, reading in _readings(index):
        are_named = all(isinstance(task.value.get("name"), str | None) for task in workload.tasks)
        is_clear = not any(fault.is_unknown for fault in reading.faults)
        if reading.plugin in ROLES and workload.tasks and are_named and is_clear:
            yield workload, reading


def _without_task(workload: Workload, reading: Reading, roles: tuple[str, ...]) -> Problem:
    plugin, looked_for = reading.plugin, [reading.text(role) for role in roles]
    *others, last = (name or "(empty)" for name in looked_for)
    missing = f"no task is named {', '.join(others)}{' or ' if others else ''}{last}"
    tasks = [task.name for task in workload.tasks]
    meant = names.nearest(looked_for[0], tasks) or tasks[0]
    hint = f"rename one of its tasks ({names.listed(tasks)}), or say --{roles[0]}={meant}"
    if len(tasks) == 1 and workload.tasks[0].replicas != 1:
        hint = f"add a task {looked_for[0]} with replicas: 1"
    if roles == _WORKERS:
        hint = f"add a task {looked_for[0]}, or say by --worker which one it is"
    given = [position for role in roles if (position := reading.position(role)) is not None]
    at = (*_plugin(workload, plugin), *given[:1])
    return Problem(workload.object, at, f"{missing}, which the plugin {plugin} looks for: {_MISSING[plugin]}", hint)


def pytorch_has_one_master(index: Index) -> Iterator[Problem]:
    for workload, reading in _roles(index):
        if reading.plugin != "pytorch" or workload.replicas == 0:
            continue  # without any pod, job-has-tasks speaks
        master = next((task for task in workload.tasks if task.name == reading.text("master")), None)
        if master is not None and master.replicas not in (1, None) and not _is_left_open(workload, master):
            yield _not_one(workload, master)


def _is_left_open(workload: Workload, task: Task) -> bool:
    """Whether a patch leaves the number to its JobTemplate."""
    return workload.is_patch and "replicas" not in task.value


def _not_one(workload: Workload, master: Task) -> Problem:
    count = master.replicas or 0
    if "replicas" in master.value:
        at, said = (*master.pointer, "replicas"), f"{count} replicas"
    else:
        at, said = master.pointer, "no replicas, which counts as 0"
    why = "each of them gets rank 0" if count > 1 else "nothing answers at MASTER_ADDR"
    hint = "set replicas to 1" + (f", and leave the other {count - 1} to the worker task" if count > 1 else "")
    return Problem(workload.object, at, f"the master task {master.name} has {said}, pytorch takes 1: {why}", hint)


class _Use(NamedTuple):
    """A variable that a container reads, and where it does so first."""

    variable: str
    pointer: Pointer


def job_environment_has_its_plugin(index: Index) -> Iterator[Problem]:
    maps = _ConfigMaps(index)
    for workload in index.workloads:
        plugins = workload.spec.get("plugins")
        if workload.is_patch and plugins is None:
            continue  # they are the JobTemplate's
        if plugins is None or isinstance(plugins, Mapping):
            yield from _unset(workload, maps)


class _ConfigMaps:
    """The keys of the declared ConfigMaps, which envFrom turns into variables."""

    def __init__(self, index: Index) -> None:
        self._keys = {
            (each.ref.namespace, each.name): set(mapping(each.value.get("data"))) for each in index.of_kind("ConfigMap")
        }

    def knows(self, namespace: str | None, sources: Any) -> bool:
        """Whether it is known what every source holds."""
        named = (mapping(mapping(each).get("configMapRef")).get("name") for each in sequence(sources))
        return all((namespace, str(name)) in self._keys for name in named)

    def variables(self, namespace: str | None, sources: Any) -> Iterator[str]:
        for source in map(mapping, sequence(sources)):
            prefix, name = source.get("prefix") or "", mapping(source.get("configMapRef")).get("name")
            for key in self._keys.get((namespace, str(name)), ()):
                yield f"{prefix}{key}"


def _unset(workload: Workload, maps: _ConfigMaps) -> Iterator[Problem]:
    """The first use of each variable that nothing sets; of a missing plugin's variables, the first alone."""
    known = {variable for task in workload.tasks for variable in job_plugins.injected(task.name)}
    missing: dict[str, list[_Use]] = {"env": [], "svc": []}
    strange: dict[str, _Use] = {}
    for use in _uses(workload, maps):
        plugin = "env" if use.variable in TASK_INDEX else "svc"
        if plugin not in workload.plugins:
            missing[plugin].append(use)
        elif plugin == "svc" and use.variable not in known:
            strange.setdefault(use.variable, use)
    misspelt = _misspelt(workload)
    for plugin, uses in missing.items():
        if uses and plugin not in misspelt:
            variables = names.listed(dict.fromkeys(use.variable for use in uses))
            message = f"reads {variables}, which the plugin {plugin} sets, and the job has no {plugin}"
            yield Problem(workload.object, uses[0].pointer, message, f"add {plugin}: [] to the job's plugins")
    for use in strange.values():
        message = f"reads {use.variable}, and the job has no task of that name"
        hint = names.did_you_mean(use.variable, known, otherwise="name one of the job's tasks")
        yield Problem(workload.object, use.pointer, message, hint)


def _misspelt(workload: Workload) -> set[str | None]:
    """The plugins that unknown names stand for, and svc with those that bring it: job-plugin-is-known speaks."""
    unknown = [name for name in mapping(workload.spec.get("plugins")) if isinstance(name, str) and name not in FLAGS]
    meant = {names.nearest(name, FLAGS) for name in unknown}
    return meant | ({"svc"} if meant & FRAMEWORK_PLUGINS else set())


def _uses(workload: Workload, maps: _ConfigMaps) -> Iterator[_Use]:
    for task in workload.tasks:
        for at, container in task.containers():
            if not maps.knows(workload.object.ref.namespace, container.get("envFrom")):
                continue
            texts = [(pointer, _COMMENT.sub("", text)) for pointer, text in _texts(container)]
            own = set(strings([mapping(each).get("name") for each in sequence(container.get("env"))]))
            own |= set(maps.variables(workload.object.ref.namespace, container.get("envFrom")))
            own |= {each for _, text in texts for groups in _SETS.findall(text) for each in groups}
            for pointer, text in texts:
                found = (each for groups in _READS.findall(text) for each in groups if each)
                yield from (_Use(each, (*at, *pointer)) for each in found if each not in own)


def _texts(container: Mapping[str, Any]) -> Iterator[tuple[Pointer, str]]:
    """What a container runs, and the values of its variables."""
    for field in ("command", "args"):
        yield from _items((field,), container.get(field))
    for position, variable in enumerate(map(mapping, sequence(container.get("env")))):
        yield from _items(("env", position, "value"), [variable.get("value")], whole=True)
    for hook in _HOOKS:
        found: Any = container
        for key in (*hook, "exec", "command"):
            found = mapping(found).get(key)
        yield from _items((*hook, "exec", "command"), found)


def _items(at: Pointer, texts: Any, *, whole: bool = False) -> Iterable[tuple[Pointer, str]]:
    for position, text in enumerate(sequence(texts)):
        if isinstance(text, str) and "V" in text:
            yield (at if whole else (*at, position)), text


RULES = (
    Rule("job-plugin-is-known", Severity.ERROR, job_plugin_is_known),
    Rule("job-plugin-flags-parse", Severity.ERROR, job_plugin_flags_parse),
    Rule("job-plugin-has-its-task", Severity.ERROR, job_plugin_has_its_task),
    Rule("pytorch-has-one-master", Severity.ERROR, pytorch_has_one_master),
    Rule("job-environment-has-its-plugin", Severity.ERROR, job_environment_has_its_plugin),
)
