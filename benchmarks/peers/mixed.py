"""A mix of everyday objects, without findings: what a team has, so many times."""

from collections.abc import Iterator, Mapping
from typing import Any

_AMOUNTS = {"cpu": "4", "memory": "16Gi"}


def objects(count: int) -> Iterator[dict[str, Any]]:
    """So many objects, of ten kinds in turn."""
    for number in range(count // 10):
        yield from _team(f"team-{number:05}")


def _team(name: str) -> Iterator[dict[str, Any]]:
    yield _object("v1", "Namespace", {"name": name, "labels": {"example.com/team": name}})
    yield _own(
        "v1", "ResourceQuota", name, spec={"hard": {"requests.cpu": "512", "requests.memory": "4Ti", "pods": "500"}}
    )
    limits = {"type": "Container", "default": dict(_AMOUNTS), "defaultRequest": dict(_AMOUNTS)}
    yield _own("v1", "LimitRange", name, spec={"limits": [limits]})
    yield _own("v1", "ServiceAccount", name, automountServiceAccountToken=False)
    yield _own("v1", "ConfigMap", name, data={"epochs": "90", "config.yaml": "batch: 64\nworkers: 8\n"})
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    yield _own("v1", "Service", name, spec={"selector": {"app": name}, "ports": ports})
    yield _own("apps/v1", "Deployment", name, spec=_deployment(name))
    yield _own("networking.k8s.io/v1", "NetworkPolicy", name, spec={"podSelector": {}, "policyTypes": ["Ingress"]})
    queue = {"weight": 1, "capability": {"cpu": "512", "memory": "4Ti"}}
    yield _object("scheduling.volcano.sh/v1beta1", "Queue", {"name": name}, spec=queue)
    yield _own("batch.volcano.sh/v1alpha1", "Job", name, spec=_job(name))


def _deployment(name: str) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"serviceAccountName": name, "containers": [_container()]},
    }
    return {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}


def _job(queue: str) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [_container()]}
    task = {"name": "worker", "replicas": 4, "minAvailable": 4, "maxRetry": 3, "template": {"spec": pod}}
    return {"schedulerName": "volcano", "queue": queue, "minAvailable": 4, "maxRetry": 3, "tasks": [task]}


def _container() -> dict[str, Any]:
    resources = {"requests": dict(_AMOUNTS), "limits": dict(_AMOUNTS)}
    ports = [{"name": "http", "containerPort": 8080}]
    return {"name": "main", "image": "registry.example.com/team/main:1.4.2", "ports": ports, "resources": resources}


def _own(version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return _object(version, kind, {"name": name, "namespace": name}, **fields)


def _object(version: str, kind: str, metadata: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
