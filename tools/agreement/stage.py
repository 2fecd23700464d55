"""The stage on which cases are asked about: what they take for granted really exists, since a dry run keeps nothing.

What is made for a case is removed after it. Namespaces and the definitions of kinds that only operators serve stay for
the cases that follow, because they take long to end. Admission reads its own caches, which lag a little: after a change
we wait until a probe shows that it has been seen.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from basalt.cluster.connection import Cluster, Refusal
from basalt.findings import Ref
from basalt.gathering.documents import ref_of
from basalt.objects import mapping
from basalt.sandbox.control_plane import has_condition
from tools.agreement import needs
from tools.agreement.asking import Answer, Verdict, ask, send
from tools.agreement.needs import GIVEN, Needs, Value

_PATIENCE = 30  # seconds for one change to be seen; it takes some milliseconds
_PAUSE = 0.004
_PROBES = "default"  # the namespace in which probes are asked about
_ENFORCE = "pod-security.kubernetes.io/enforce"
_ENFORCING = "pod-security.kubernetes.io/enforce-version"
_LEVELS = ("privileged", "baseline", "restricted")
_POD: Value = {"containers": [{"name": "main", "image": "a/b:1"}]}
# Kinds that others refer to: once taken, they are made. Of the rest nothing depends on anything else.
KEPT = frozenset(
    {
        ("", "Namespace"),
        ("", "ResourceQuota"),
        ("", "LimitRange"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("scheduling.volcano.sh", "Queue"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)


class Stuck(Exception):
    """What the control plane did not do in time."""


class Stage:
    """The part of the cluster that changes from case to case."""

    def __init__(self, cluster: Cluster, definitions: Mapping[str, Value]) -> None:
        self._cluster = cluster
        self._stand_ins = definitions
        self._namespaces: dict[str, Mapping[str, Any]] = {}  # name -> the labels it was given
        self._definitions: set[str] = set()
        self._made: list[Ref] = []

    def define_all(self, *, absent: frozenset[str]) -> None:
        """Makes the stand-ins that are in no case's way, at once: a new definition makes its first objects wait."""
        for name in sorted(self._stand_ins.keys() - absent):
            self.define(self._stand_ins[name])

    def prepare(self, wanted: Needs, *, has_pods: bool) -> None:
        """Makes what the case takes for granted, and removes what must not be there."""
        self._has_pods = has_pods
        for name in sorted(wanted.no_definitions & self._definitions):
            self._end_definition(name)
        for name in sorted(wanted.definitions - self._definitions):
            self.define(self._stand_ins[name])
        for name in sorted(wanted.no_namespaces & self._namespaces.keys()):
            self._end_namespace(name)
        self.add_namespaces(wanted.namespaces)
        for value in [*map(needs.priority, sorted(wanted.priorities)), *map(needs.queue, sorted(wanted.queues))]:
            with suppress(Refusal):
                self.make(value)

    def add_namespaces(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            with suppress(Refusal):  # of a name that is none; those in it are refused for it, too
                self._namespace({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def make(self, value: Mapping[str, Any]) -> None:
        """Really creates the object, unless it is the system's own; returns when admission has seen it. Refusal where
        it may not be."""
        ref = ref_of(value)
        assert ref is not None
        if (ref.group, ref.kind) == ("", "Namespace"):
            self._namespace(value)
        elif ref.kind == "CustomResourceDefinition":
            if ref.name in self._definitions:
                self._end_definition(ref.name)
            self.define(value)
            self._made.append(ref)
        elif not self._is_there(ref):
            send(self._cluster, value, ref, validation="Ignore", dry_run=False)
            self._made.append(ref)
            _SEEN.get(ref.kind, lambda *_: None)(self, ref, value)

    def clear(self) -> None:
        """Removes what was made, the last first: a queue cannot go before its children."""
        made, self._made = self._made[::-1], []
        for ref in made:
            if ref.kind == "CustomResourceDefinition":
                self._end_definition(ref.name)
            elif ref.kind == "Queue":
                self._until(f"{ref} is gone", lambda ref=ref: self._is_deleted(ref))
                self._until(f"{ref} is forgotten", lambda ref=ref: "unable to find job queue" in self._queued(ref.name))
            else:
                self._cluster.delete(ref)
        if any(ref.kind in ("ResourceQuota", "LimitRange") for ref in made):
            for namespace in {ref.namespace or "default" for ref in made if ref.namespace or ref.kind in _QUOTAS}:
                self._until(f"{namespace} is free", lambda namespace=namespace: self._is_free(namespace))
        if classes := [ref for ref in made if ref.kind == "PriorityClass"]:
            self._until("no class is left", lambda: not self._has_class(classes[-1].name))

    # namespaces

    def _namespace(self, value: Mapping[str, Any]) -> None:
        name = value["metadata"]["name"]
        if name in GIVEN:
            return
        labels = mapping(value["metadata"].get("labels"))
        if self._namespaces.get(name) == labels:
            return
        ref = Ref("v1", "Namespace", None, name)
        given = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}
        self._cluster.apply(given, ref, "basalt-agreement", force=True)
        before, self._namespaces[name] = self._namespaces.get(name, {}), labels
        if self._has_pods or _ENFORCE in before:
            self._until(f"{name} is enforced", lambda: self._is_enforced(name, labels))

    def _is_enforced(self, namespace: str, labels: Mapping[str, Any]) -> bool:
        level = labels.get(_ENFORCE, "privileged")
        if level not in _LEVELS:
            return True
        host, plain = (self._pod(namespace, {**_POD, **more}) for more in ({"hostNetwork": True}, {}))
        is_host, is_plain = level == "privileged", level != "restricted"
        return (host is Verdict.TAKEN, plain is Verdict.TAKEN) == (is_host, is_plain)

    def _is_free(self, namespace: str) -> bool:
        labels = self._namespaces.get(namespace, {})
        return _ENFORCE in labels or self._pod(namespace, _POD) is Verdict.TAKEN

    def _pod(self, namespace: str, spec: Value) -> Verdict:
        ref = Ref("v1", "Pod", namespace, "basalt-probe")
        value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ref.name}, "spec": spec}
        return ask(self._cluster, value, ref).verdict

    def _end_namespace(self, name: str) -> None:
        """Without waiting for the namespace controller, which has nothing to remove."""
        ref = Ref("v1", "Namespace", None, name)
        self._cluster.delete(ref)
        ended = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
        with suppress(Refusal):  # the controller was first
            self._cluster.request("PUT", f"/api/v1/namespaces/{name}/finalize", None, ended)
        self._until(f"{name} has ended", lambda: self._cluster.get(ref) is None)
        del self._namespaces[name]

    # queues, classes, quotas

    def _is_there(self, ref: Ref) -> bool:
        with suppress(Refusal):
            return self._cluster.get(ref) is not None
        return False

    def _is_deleted(self, ref: Ref) -> bool:
        try:
            self._cluster.delete(ref)
        except Refusal:  # the webhook still sees the children that have just gone
            return False
        return self._cluster.get(ref) is None

    def _queued(self, queue: str) -> str:
        """What the webhook says of a job in the queue."""
        ref = Ref("batch.volcano.sh/v1alpha1", "Job", _PROBES, "basalt-probe")
        tasks = [{"name": "main", "replicas": 1, "template": {"spec": {**_POD, "restartPolicy": "Never"}}}]
        metadata = {"name": ref.name, "namespace": ref.namespace}
        spec = {"queue": queue, "minAvailable": 1, "tasks": tasks}
        value = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec}
        return ask(self._cluster, value, ref).message

    def _see_queue(self, ref: Ref, value: Mapping[str, Any]) -> None:
        self._until(f"{ref} is open", lambda: not self._queued(ref.name))

    def _has_class(self, name: str) -> bool:
        return self._pod(_PROBES, {**_POD, "priorityClassName": name}) is Verdict.TAKEN

    def _see_class(self, ref: Ref, value: Mapping[str, Any]) -> None:
        self._until(f"{ref} is seen", lambda: self._has_class(ref.name))

    def _see_quota(self, ref: Ref, value: Mapping[str, Any]) -> None:
        """The quota's controller has seen it; until admission has, too, it says that the status is not known."""
        self._until(f"{ref} is counted", lambda: "hard" in ((self._cluster.get(ref) or {}).get("status") or {}))

    # definitions

    def define(self, value: Mapping[str, Any]) -> None:
        ref = ref_of(value)
        assert ref is not None
        send(self._cluster, value, ref, validation="Ignore", dry_run=False)
        self._until(f"{ref} is established", lambda: has_condition(self._cluster.get(ref) or {}, "Established"))
        self._definitions.add(ref.name)
        self._cluster.forget_kinds()

    def _end_definition(self, name: str) -> None:
        ref = Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name)
        self._cluster.delete(ref)
        self._until(f"{ref} has ended", lambda: self._cluster.get(ref) is None)
        self._definitions.discard(name)
        self._cluster.forget_kinds()

    def _until(self, what: str, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while not is_so():
            if time.monotonic() > end:
                raise Stuck(f"not in {_PATIENCE} s: {what}")
            time.sleep(_PAUSE)


_QUOTAS = ("ResourceQuota", "LimitRange")
_SEEN: dict[str, Callable[[Stage, Ref, Mapping[str, Any]], None]] = {
    "Queue": Stage._see_queue,  # noqa: SLF001
    "PriorityClass": Stage._see_class,  # noqa: SLF001
    "ResourceQuota": Stage._see_quota,  # noqa: SLF001
}
