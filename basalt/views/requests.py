"""What pods request, as the schedulers of Kubernetes and Volcano count it."""

from collections.abc import Mapping
from typing import Any

from basalt.objects import mapping, sequence
from basalt.pointers import get
from basalt.quantities import Resources, add, parse_map


def pod_requests(pod: Mapping[str, Any]) -> Resources:
    """What the scheduler counts for a pod's spec: the sum over containers and sidecars, or the largest init container
    where that is more; for what the pod itself says, that; plus overhead. A limit without a request counts as one.

    Source: PodRequests in k8s.io/component-helpers/resource/helpers.go, setDefaultPodRequests in
    k8s.io/kubernetes/pkg/apis/core/v1/defaults.go.
    """
    total: Resources = {}
    sidecars: Resources = {}
    largest: Resources = {}
    for container in map(mapping, sequence(pod.get("initContainers"))):
        requests, is_sidecar = container_requests(container), container.get("restartPolicy") == "Always"
        if is_sidecar:
            sidecars = add(sidecars, requests)
        largest = _larger(largest, sidecars if is_sidecar else add(sidecars, requests))
    for container in map(mapping, sequence(pod.get("containers"))):
        total = add(total, container_requests(container))
    together = _larger(add(total, sidecars), largest)
    return add({**together, **_of_the_pod(pod, together)}, parse_map(pod.get("overhead")))


def container_requests(container: Mapping[str, Any]) -> Resources:
    resources = mapping(container.get("resources"))
    return {**parse_map(resources.get("limits")), **parse_map(resources.get("requests"))}


def _of_the_pod(pod: Mapping[str, Any], together: Resources) -> Resources:
    """What spec.resources of the pod says: its requests, and its limits where no container requests the resource."""
    limits, requests = (parse_map(get(pod, ("resources", kind))) for kind in ("limits", "requests"))
    found = {**{name: amount for name, amount in limits.items() if name not in together}, **requests}
    return {name: amount for name, amount in found.items() if _is_of_pods(name)}


def _is_of_pods(resource: str) -> bool:
    """IsSupportedPodLevelResource in k8s.io/component-helpers/resource/helpers.go."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _larger(one: Resources, other: Resources) -> Resources:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
