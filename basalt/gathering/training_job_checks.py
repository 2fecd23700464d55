"""What the fields of a TrainingJob say of each other, which a JSON Schema cannot judge."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.api.schemas import show
from basalt.findings import Problem
from basalt.gathering.documents import Declaration
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer
from modules.jobs import seconds

_SOURCES = ("claim", "emptyDir", "ephemeral")
# What modules/jobs mounts of its own: names and paths.
_SHARED_MEMORY, _CHECKPOINT, _HOSTFILE = "shared-memory", "checkpoint", "hostfile"
_MEMORY, _CHECKPOINTS, _HOSTS = "/dev/shm", "/checkpoints", "/etc/mpi"  # noqa: S108  # in the pod


_Faults = Iterator[tuple[Pointer, str, str]]  # where, what, and the way out


def check(declaration: Declaration) -> Iterator[Problem]:
    for judge in (_duration, _images, _starts, _elastic, _frameworks, _volumes):
        for pointer, message, hint in judge(declaration.spec):
            yield Problem(declaration, pointer, message, hint)


def _duration(spec: Mapping[str, Any]) -> _Faults:
    ttl = spec.get("ttlAfterFinished")
    at: Pointer = ("spec", "ttlAfterFinished")
    if isinstance(ttl, str) and seconds(ttl) is None:
        yield at, f"{show(ttl)} is not a duration", "write 24h, 90m, 1h30m or seconds"
    elif ttl is not None and "flow" in spec:
        message = "a flow starts a job again that was deleted, and this one is deleted after its end"
        yield at, message, "take ttlAfterFinished out of the jobs of a flow"


def _images(spec: Mapping[str, Any]) -> _Faults:
    for name, role in mapping(spec.get("roles")).items() if "image" not in spec else ():
        if isinstance(role, Mapping) and "image" not in role:
            message = f"image is missing: neither the job nor its role {name} names one"
            yield ("spec", "roles", name), message, "add spec.image"


def _starts(spec: Mapping[str, Any]) -> _Faults:
    if "schedule" in spec and "flow" in spec:
        message = "the job starts by its schedule or in its flow, not by both"
        yield ("spec", "schedule"), message, "take one of schedule and flow out"
    if "flow" in spec and "survive" in mapping(spec.get("topology")):
        message = "a step of a flow gets no verdict, so nobody would see that it does not survive"
        yield ("spec", "topology", "survive"), message, "take survive out, or flow"
    if "cron" in spec and "schedule" not in spec:
        yield ("spec", "cron"), "there is no schedule that cron could be about", 'add schedule, such as "0 2 * * *"'


def _elastic(spec: Mapping[str, Any]) -> _Faults:
    at: Pointer = ("spec", "elastic")
    elastic, roles = mapping(spec.get("elastic")), mapping(spec.get("roles"))
    worker = mapping(roles.get("worker"))
    if "elastic" not in spec:
        return
    if spec.get("framework") != "pytorch":
        yield at, f"elastic is for the framework pytorch, this is {show(spec.get('framework'))}", "take elastic out"
        return
    if "worker" not in roles:
        yield at, "an elastic job has a role worker, this one has none", "name the role worker"
    if "master" in roles:
        message = "an elastic job has no master: its workers agree on a leader"
        yield ("spec", "roles", "master"), message, "take the role master out"
    if "minAvailable" in worker:
        message = "the job has elastic.min, which is the worker's minAvailable"
        yield ("spec", "roles", "worker", "minAvailable"), message, "take minAvailable out"
    if "schedule" in spec and worker and "command" not in worker:
        message = "the worker of an elastic job with a schedule needs a command: it is told its leader in front of it"
        yield ("spec", "roles", "worker"), message, "add command: [torchrun, ...]"
    yield from _bounds(elastic, worker)


def _bounds(elastic: Mapping[str, Any], worker: Mapping[str, Any]) -> _Faults:
    least, most, replicas = (_whole(each) for each in (elastic.get("min"), elastic.get("max"), worker.get("replicas")))
    if replicas is None:
        return
    if least is not None and least > replicas:
        message = f"elastic.min is {least}, the worker's replicas are {replicas}"
        yield ("spec", "elastic", "min"), message, f"set it to {replicas} or less, or raise the replicas"
    if most is not None and most < replicas:
        message = f"elastic.max is {most}, the worker's replicas are {replicas}"
        yield ("spec", "elastic", "max"), message, f"set it to {replicas} or more, or lower the replicas"


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _frameworks(spec: Mapping[str, Any]) -> _Faults:
    if "mpi" in spec and spec.get("framework") != "mpi":
        yield ("spec", "mpi"), f"mpi is for the framework mpi, this is {show(spec.get('framework'))}", "take mpi out"


def _volumes(spec: Mapping[str, Any]) -> _Faults:
    for index, volume in enumerate(map(mapping, sequence(spec.get("volumes")))):
        sources = [each for each in _SOURCES if each in volume]
        if len(sources) > 1:
            message = f"a volume comes from one source, this one has {' and '.join(sources)}"
            yield ("spec", "volumes", index, sources[1]), message, f"keep one of {', '.join(sources)}"
    taken = _taken(spec)
    for index, volume in enumerate(map(mapping, sequence(spec.get("volumes")))):
        for field, others in taken.items():
            value = str(volume.get(field, "")).rstrip("/")
            if value and value in others:
                message = f"{others[value]} has the {_WORDS[field]} {value} already"
                yield ("spec", "volumes", index, field), message, f"give each volume its own {_WORDS[field]}"
            others.setdefault(value, f"the volume {volume.get('name')}")


def _taken(spec: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The names and paths of volumes that other fields lead to, each with what takes it."""
    found: dict[str, dict[str, str]] = {"name": {}, "mountPath": {}}
    for role in map(mapping, mapping(spec.get("roles")).values()):
        path = str(mapping(role.get("checkpoint")).get("mountPath", _CHECKPOINTS))
        for field, name, place in (("sharedMemory", _SHARED_MEMORY, _MEMORY), ("checkpoint", _CHECKPOINT, path)):
            if field in role:
                found["name"][name] = found["mountPath"][place.rstrip("/")] = field
    if spec.get("framework") == "mpi":
        found["name"][_HOSTFILE] = found["mountPath"][_HOSTS] = "the host file of mpi"
    return found


_WORDS = {"name": "name", "mountPath": "path"}
