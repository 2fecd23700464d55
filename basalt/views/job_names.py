"""The names of jobs, and of all that is named after them: pods, Services, volumes.

A CronJob's and a JobFlow's jobs are named by Volcano's controllers, in part by what only they know.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from basalt import names
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.views.workloads import Task, Workload

LIMIT = names.LABEL_LENGTH  # of a Service, a volume, a hostname, and of a job (IsQualifiedName in admit_job.go)
CRON_LIMIT = 52  # validateCronJobName in pkg/webhooks/admission/cronjobs/validate
_MINUTES = 8  # digits of the minutes since 1970, until 2160: getJobName in pkg/controllers/cronjob
_RANDOM = 5  # what the API server adds to a generateName
_LONGEST_BASE = LIMIT - _RANDOM  # it cuts a longer one: k8s.io/apiserver/pkg/storage/names
_VOLUME_RANDOM = 12  # GenRandomStr in createJobPod


class Part(NamedTuple):
    """A piece of a job's name: as it is shown, its length, what it is, and where it is written, if it is."""

    shown: str
    length: int
    what: str
    pointer: Pointer | None = None


@dataclass(frozen=True, eq=False)
class NamedJob:
    """A job as it will be created: its name in parts, its tasks, plugins and volumes."""

    object: KubeObject
    parts: tuple[Part, ...]
    tasks: tuple[Task, ...]
    plugins: frozenset[str]
    has_volumes: bool

    @property
    def shown(self) -> str:
        return "".join(part.shown for part in self.parts)

    @property
    def length(self) -> int:
        return sum(part.length for part in self.parts)


class Derived(NamedTuple):
    """A name that is made from a job's: what bears it, and what is put behind the job's name, by a task's name perhaps.

    length is that of the suffix.
    """

    bearer: str
    suffix: str
    length: int
    pointer: Pointer | None = None


def derived(job: NamedJob) -> Iterator[Derived]:
    """Every name that must not be longer than the limit."""
    yield Derived("the job", "", 0)
    for plugin, bearer, suffix in _MADE_BY_PLUGINS:
        if plugin in job.plugins:
            yield Derived(bearer, suffix, len(suffix))
    if job.has_volumes:
        yield Derived("the volume", f"-<{_VOLUME_RANDOM} random>", _VOLUME_RANDOM + 1)
    for task in job.tasks:
        if names.label_fault(task.name) is None:  # else name-is-valid speaks
            yield _pod(task)


_MADE_BY_PLUGINS = (
    ("svc", "the Service", ""),
    ("svc", "the volume of svc's ConfigMap", "-svc"),
    ("ssh", "the volume of ssh's Secret", "-ssh"),
    ("ray", "the Service of ray's head", "-head-svc"),
)


def _pod(task: Task) -> Derived:
    """The longest name among the task's pods, which is their hostname too unless the template has one. The webhook
    tries the task's own position for the index."""
    position, last = int(task.pointer[-1]), (task.replicas or 0) - 1
    is_hostname = last >= 0 and not task.pod.get("hostname") and len(str(last)) >= len(str(position))
    suffix = f"-{task.name}-{last if is_hostname else position}"
    return Derived("the hostname" if is_hostname else "the pod name", suffix, len(suffix), (*task.pointer, "name"))


def named_jobs(workloads: Iterable[Workload], flows: Iterable[KubeObject]) -> Iterator[NamedJob]:
    """The jobs of Jobs, CronJobs and JobFlows, and those of the JobTemplates that no flow names."""
    every = list(workloads)
    templates = {each.object.ref[2:]: each for each in every if each.object.ref.kind == "JobTemplate"}
    patches = {(id(each.object), each.pointer[2]): each for each in every if each.is_patch}
    used: set[tuple[str | None, str]] = set()
    for flow in flows:
        for position, name in enumerate(mapping(each).get("name") for each in sequence(flow.spec.get("flows"))):
            if isinstance(name, str) and names.subdomain_fault(name) is None:
                used.add((flow.ref.namespace, name))
                sources = templates.get((flow.ref.namespace, name)), patches.get((id(flow), position))
                entry = Part(f"-{name}", len(name) + 1, f"-{name}", ("spec", "flows", position, "name"))
                own = _own_name(flow)
                yield from _named(flow, (*own, entry) if own else (), sources)
    for workload in every:
        declared = workload.object
        if workload.is_patch or (declared.ref.kind == "JobTemplate" and declared.ref[2:] in used):
            continue
        yield from _named(declared, _parts(declared), (workload,))


def _named(declared: KubeObject, parts: tuple[Part, ...], sources: Iterable[Workload | None]) -> Iterator[NamedJob]:
    """The job that the specs make together; later ones stand for earlier ones."""
    known = [each for each in sources if each is not None]
    if parts:
        tasks = next((each.tasks for each in reversed(known) if each.tasks), ())
        plugins = frozenset(name for each in known for name in each.plugins)
        has_volumes = any(sequence(each.spec.get("volumes")) for each in known)
        yield NamedJob(declared, parts, tasks, plugins, has_volumes)


def _parts(declared: KubeObject) -> tuple[Part, ...]:
    own = _own_name(declared)
    if own and declared.ref.kind == "CronJob":
        return (*own, Part(f"-<{_MINUTES} digits>", _MINUTES + 1, f"-<{_MINUTES} digits>"))
    if own and declared.ref.kind == "JobTemplate":
        return (Part("<flow>-", len("f-"), "the shortest <flow>-"), *own)
    return own


def _own_name(declared: KubeObject) -> tuple[Part, ...]:
    """The name; nothing where name-is-valid speaks."""
    metadata = mapping(declared.value.get("metadata"))
    name, base = metadata.get("name"), metadata.get("generateName")
    if isinstance(name, str) and name:
        is_sound = names.subdomain_fault(name) is None
        return (Part(name, len(name), "the name", ("metadata", "name")),) if is_sound else ()
    if name is None and isinstance(base, str) and base:
        kept = base[:_LONGEST_BASE]
        at = ("metadata", "generateName")
        return Part(kept, len(kept), "generateName", at), Part(f"<{_RANDOM} random>", _RANDOM, f"<{_RANDOM} random>")
    return ()
