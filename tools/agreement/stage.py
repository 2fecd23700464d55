"""The stage on which cases are asked about: what they take for granted really exists, since a dry run keeps nothing.

What is made for a case is removed after it. Namespaces and the definitions of kinds that only operators serve stay for
the cases that follow, because they take long to end.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from basalt.cluster.connection import Cluster, Refusal
from basalt.findings import Ref
from basalt.gathering.documents import ref_of
from basalt.objects import mapping
from tools.agreement import needs
from tools.agreement.asking import send
from tools.agreement.needs import GIVEN, Needs, Value
from tools.agreement.probing import ENFORCE, VERSION, Probes, wait

_MANAGER = "basalt-agreement"
_DEFINITION = "CustomResourceDefinition"
_LIMITS = ("ResourceQuota", "LimitRange")
# Kinds that others refer to: once taken, they are made. Of the rest nothing depends on anything else.
KEPT = frozenset(
    {
        ("", "Namespace"),
        ("", "ResourceQuota"),
        ("", "LimitRange"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("scheduling.volcano.sh", "Queue"),
        ("apiextensions.k8s.io", _DEFINITION),
    }
)


class Stage:
    """The part of the cluster that changes from case to case."""

    def __init__(self, cluster: Cluster, stand_ins: Mapping[str, Value]) -> None:
        self._cluster = cluster
        self._probes = Probes(cluster)
        self._stand_ins = stand_ins
        self._definitions: dict[str, Mapping[str, Any]] = {}
        self._namespaces: dict[str, Mapping[str, Any]] = {}  # name -> the labels it was given
        self._made: list[Ref] = []

    def begin(self, *, absent: frozenset[str]) -> None:
        """Makes what every case may take for granted, and the stand-ins that are in no case's way, at once: a new
        definition makes its first objects wait."""
        for name in sorted(GIVEN):
            send(self._cluster, needs.namespace(name), Ref("v1", "Namespace", None, name), dry_run=False)
        for name in sorted(self._stand_ins.keys() - absent):
            self._define(self._stand_ins[name])

    def prepare(self, wanted: Needs) -> None:
        """Makes what the case takes for granted, and removes what must not be there."""
        for name in sorted(wanted.no_definitions & self._definitions.keys()):
            self._end_definition(name)
        for name in sorted(wanted.definitions - self._definitions.keys()):
            self._define(self._stand_ins[name])
        for name in sorted(wanted.no_namespaces & self._namespaces.keys()):
            self._end_namespace(name)
        self.add_namespaces(wanted.namespaces)
        for value in [*map(needs.priority, sorted(wanted.priorities)), *map(needs.queue, sorted(wanted.queues))]:
            with suppress(Refusal):
                self.make(value)

    def add_namespaces(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            with suppress(Refusal):  # of a name that is none; those in it are refused for it, too
                self._name_space(needs.namespace(name))

    def make(self, value: Mapping[str, Any]) -> None:
        """Really creates the object, unless it is the system's own; returns when admission has seen it. Refusal where
        it may not be."""
        ref = ref_of(value)
        assert ref is not None
        if ref.kind == "Namespace":
            self._name_space(value)
        elif ref.kind == _DEFINITION:
            if ref.name in self._definitions:
                self._end_definition(ref.name)
            self._define(value)
            self._made.append(ref)
        elif self._cluster.get(ref) is None:
            send(self._cluster, value, ref, validation="Ignore", dry_run=False)
            self._made.append(ref)
            wait(f"{ref} is seen", partial(self._is_seen, ref))

    def _is_seen(self, ref: Ref) -> bool:
        if ref.kind == "Queue":
            return self._probes.takes_jobs(ref.name)
        if ref.kind == "PriorityClass":
            return self._probes.knows_class(ref.name)
        # Until admission has seen that a quota is counted, it waits itself; limits are made before quotas.
        return ref.kind != "ResourceQuota" or "hard" in mapping((self._cluster.get(ref) or {}).get("status"))

    def clear(self) -> None:
        """Removes what was made, the last first: a queue cannot go before its children."""
        made, self._made = self._made[::-1], []
        for ref in made:
            if ref.kind == _DEFINITION:
                self._end_definition(ref.name)
            else:
                wait(f"{ref} is gone", partial(self._is_deleted, ref))
        for ref in made:
            wait(f"{ref} is forgotten", partial(self._is_forgotten, ref))

    def _is_deleted(self, ref: Ref) -> bool:
        try:
            self._cluster.delete(ref)
        except Refusal:  # the webhook still sees the children that have just gone
            return False
        return self._cluster.get(ref) is None

    def _is_forgotten(self, ref: Ref) -> bool:
        if ref.kind == "Queue":
            return not self._probes.knows_queue(ref.name)
        if ref.kind == "PriorityClass":
            return not self._probes.knows_class(ref.name)
        namespace = ref.namespace or "default"
        return ref.kind not in _LIMITS or self._probes.is_unlimited(namespace, self._namespaces.get(namespace, {}))

    def _name_space(self, value: Mapping[str, Any]) -> None:
        """The namespace with these labels, on which other objects' admission depends."""
        name, labels = value["metadata"]["name"], mapping(value["metadata"].get("labels"))
        if name in GIVEN or self._namespaces.get(name) == labels:
            return
        given = needs.namespace(name)
        given["metadata"]["labels"] = dict(labels)
        self._cluster.apply(given, Ref("v1", "Namespace", None, name), _MANAGER, force=True)
        before, self._namespaces[name] = self._namespaces.get(name, {}), labels
        if any(before.get(key) != labels.get(key) for key in (ENFORCE, VERSION)):
            wait(f"the level of {name} is enforced", partial(self._probes.enforces, name, labels))

    def _end_namespace(self, name: str) -> None:
        """Without waiting for the namespace controller, which has nothing to remove."""
        ref = Ref("v1", "Namespace", None, name)
        self._cluster.delete(ref)
        with suppress(Refusal):  # the controller was first
            ended = {**needs.namespace(name), "spec": {"finalizers": []}}
            self._cluster.request("PUT", f"/api/v1/namespaces/{name}/finalize", None, ended)
        wait(f"{name} has ended", lambda: self._cluster.get(ref) is None)
        del self._namespaces[name]

    def _define(self, value: Mapping[str, Any]) -> None:
        ref = ref_of(value)
        assert ref is not None
        send(self._cluster, value, ref, validation="Ignore", dry_run=False)
        wait(f"{ref} is served", lambda: all(self._are_served(value)))
        self._definitions[ref.name] = value

    def _end_definition(self, name: str) -> None:
        ref, value = Ref("apiextensions.k8s.io/v1", _DEFINITION, None, name), self._definitions.pop(name)
        self._cluster.delete(ref)
        wait(f"{ref} has ended", lambda: self._cluster.get(ref) is None and not any(self._are_served(value)))

    def _are_served(self, definition: Mapping[str, Any]) -> Iterator[bool]:
        """Of each version, whether the API server tells its clients of it."""
        self._cluster.forget_kinds()
        spec = definition["spec"]
        for version in spec["versions"]:
            if version.get("served", True):
                yield self._cluster.resource(f"{spec['group']}/{version['name']}", spec["names"]["kind"]) is not None
