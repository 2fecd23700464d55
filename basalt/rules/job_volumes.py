"""The volumes of a job, as Volcano mounts them into every task."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt import names
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer
from basalt.rules.rule import Rule

_CLAIMS = "name one by volumeClaimName, or describe a new one in volumeClaim"
Fault = tuple[Pointer, str, str]  # where in the volume, what, and the way out


def job_volume_is_complete(index: Index) -> Iterator[Problem]:
    """validateIO in pkg/webhooks/admission/jobs/validate/util.go, which stops at the first fault."""
    for workload in index.workloads:
        mounted: set[str] = set()
        for position, volume in enumerate(sequence(workload.spec.get("volumes"))):
            for pointer, message, hint in (*_path(mapping(volume), mounted), *_claim(mapping(volume))):
                at = (*workload.pointer, "volumes", position, *pointer)
                yield Problem(workload.object, at, message, hint)


def _path(volume: Mapping[str, Any], mounted: set[str]) -> Iterator[Fault]:
    path = volume.get("mountPath")
    if volume and path in (None, ""):
        at = ("mountPath",) if path == "" else ()
        yield at, "a volume without mountPath", "set mountPath to where the containers read it"
    elif isinstance(path, str):
        if path in mounted:
            yield ("mountPath",), f"two volumes have the mountPath {path}", "mount each at a path of its own"
        mounted.add(path)


def _claim(volume: Mapping[str, Any]) -> Iterator[Fault]:
    name, claim = volume.get("volumeClaimName"), volume.get("volumeClaim")
    if not volume:
        return
    if name in (None, "") and claim is None:
        at = ("volumeClaimName",) if name == "" else ()
        yield at, "a volume without a claim", _CLAIMS
    elif isinstance(name, str) and name and claim is not None:
        message = f"a volume has both the claim {name} and a new one, in volumeClaim"
        yield ("volumeClaimName",), message, "keep volumeClaimName for a claim that exists, volumeClaim for a new one"
    elif isinstance(name, str) and name and (fault := names.subdomain_fault(name)):
        yield ("volumeClaimName",), f"the claim's name {name} {fault}", "name a PersistentVolumeClaim"


RULES = (Rule("job-volume-is-complete", Severity.ERROR, job_volume_is_complete),)
