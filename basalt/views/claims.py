"""The PersistentVolumeClaims that pods mount."""

from collections.abc import Iterable

from basalt.objects import KubeObject, mapping, sequence
from basalt.views.pods import pods
from basalt.views.quotas import namespace_of
from basalt.views.workloads import workloads

Claim = tuple[str, str]  # its namespace and name


def users(objects: Iterable[KubeObject]) -> dict[Claim, list[KubeObject]]:
    """For each claim that some pod mounts, be it declared or not, what makes these pods, each once."""
    every = list(objects)
    found: dict[Claim, dict[int, KubeObject]] = {}
    for pod in pods(every):
        for volume in sequence(pod.spec.get("volumes")):
            name = mapping(mapping(volume).get("persistentVolumeClaim")).get("claimName")
            found.setdefault((namespace_of(pod.object), str(name or "")), {})[id(pod.object)] = pod.object
    for job in workloads(every):
        for volume in sequence(job.spec.get("volumes")):
            name = mapping(volume).get("volumeClaimName")
            found.setdefault((namespace_of(job.object), str(name or "")), {})[id(job.object)] = job.object
    return {claim: [*using.values()] for claim, using in found.items() if claim[1]}
