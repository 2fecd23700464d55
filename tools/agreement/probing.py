"""Whether admission has seen a change: it reads caches of its own, which lag a little. Asked by dry runs."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from basalt.cluster.connection import Cluster
from basalt.findings import Ref
from tools.agreement.asking import Answer, Verdict, ask
from tools.agreement.needs import Value

_PATIENCE = 30  # seconds for one change to be seen; it takes some milliseconds
_PAUSE = 0.004
_NAME = "basalt-probe"
_NAMESPACE = "default"  # of the probes that could be anywhere
ENFORCE = "pod-security.kubernetes.io/enforce"
VERSION = f"{ENFORCE}-version"
_LEVELS = ("privileged", "baseline", "restricted")
_POD: Value = {"containers": [{"name": "main", "image": "a/b:1"}]}


class Stuck(Exception):
    """What the control plane did not do in time."""


def wait(what: str, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise Stuck(f"not in {_PATIENCE} s: {what}")
        time.sleep(_PAUSE)


class Probes:
    """What admission lets pass now."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def takes_jobs(self, queue: str) -> bool:
        """Whether the webhook knows the queue as an open one, with queues below it or without."""
        answer = self._job(queue)
        return not answer or "leaf queue" in answer

    def knows_queue(self, queue: str) -> bool:
        return "unable to find job queue" not in self._job(queue)

    def knows_class(self, priority_class: str) -> bool:
        return self._takes_pod(_NAMESPACE, {**_POD, "priorityClassName": priority_class})

    def enforces(self, namespace: str, labels: Mapping[str, Any]) -> bool:
        """Whether pods are held to the Pod Security level of the labels, and its version; True where that is none."""
        level = labels.get(ENFORCE, "privileged")
        if level not in _LEVELS:
            return True
        host = self._pod(namespace, {**_POD, "hostNetwork": True})
        if level == "privileged":
            return host.verdict is Verdict.TAKEN
        is_told = f'"{level}:{labels.get(VERSION, "latest")}"' in host.message
        return is_told and self._takes_pod(namespace, _POD) == (level != "restricted")

    def is_unlimited(self, namespace: str, labels: Mapping[str, Any]) -> bool:
        """Whether no quota and no limits keep a pod out that says nothing of resources."""
        return labels.get(ENFORCE) == "restricted" or self._takes_pod(namespace, _POD)

    def _takes_pod(self, namespace: str, spec: Value) -> bool:
        return self._pod(namespace, spec).verdict is Verdict.TAKEN

    def _pod(self, namespace: str, spec: Value) -> Answer:
        value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _NAME}, "spec": spec}
        return ask(self._cluster, value, Ref("v1", "Pod", namespace, _NAME))

    def _job(self, queue: str) -> str:
        """Why a job in the queue is refused."""
        ref = Ref("batch.volcano.sh/v1alpha1", "Job", _NAMESPACE, _NAME)
        tasks = [{"name": "main", "replicas": 1, "template": {"spec": {**_POD, "restartPolicy": "Never"}}}]
        spec = {"queue": queue, "minAvailable": 1, "tasks": tasks}
        value = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"name": ref.name}, "spec": spec}
        return ask(self._cluster, value, ref).message
