"""What a case's objects take for granted: it exists on the stage before they are sent. Pure.

A folder that has no queues says nothing of those of the cluster, so the queues that its jobs name stand there; where it
has some, they are all there are. So it is with namespaces, priority classes and definitions.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from basalt.compiling import Compilation
from basalt.facts import Fact
from basalt.objects import KubeObject, defined_kind
from basalt.rendering import layout
from basalt.sandbox import manifests

GIVEN = frozenset({"default", "kube-system", "kube-public", "kube-node-lease", "volcano-system"})
_ENGINES = ("argoproj.io", ".toolkit.fluxcd.io")  # their own namespaces are older than the folder that they apply
_QUEUED = frozenset({("batch.volcano.sh", "Job"), ("scheduling.volcano.sh", "PodGroup")})  # what the webhooks look up
UNINSTALLED = frozenset({"order-is-complete", "api-is-served"})

Value = dict[str, Any]


class Needs(NamedTuple):
    """The names that must exist, and those that must not."""

    namespaces: frozenset[str]
    no_namespaces: frozenset[str]
    queues: frozenset[str]
    priorities: frozenset[str]
    definitions: frozenset[str]  # stand-ins
    no_definitions: frozenset[str]


def sent(compilation: Compilation) -> list[KubeObject]:
    """The objects that the API server is asked about, in apply order."""
    return layout.in_apply_order(compilation.objects)


def needs(compilation: Compilation) -> Needs:
    index, objects = compilation.index, sent(compilation)
    used = frozenset(each.ref.namespace for each in objects if each.ref.namespace)
    declared = {each.name for each in index.of_kind("Namespace")}
    created = {each.namespace for each in index.releases if each.creates_namespace and each.namespace}
    strange = used - declared - GIVEN
    engines = {each.ref.namespace for each in objects if each.ref.group.endswith(_ENGINES)}
    existing = strange & (created | engines) if index.knows(Fact.NAMESPACES) else strange
    missing = _missing(compilation)
    stand_ins = list(_stand_ins(compilation, objects))
    return Needs(
        existing,
        strange - existing,
        frozenset() if index.knows(Fact.QUEUES) else frozenset(_texts(_queues(objects))),
        frozenset() if index.knows(Fact.PRIORITIES) else frozenset(_texts(_priorities(objects))),
        frozenset(_name(value) for key, value in stand_ins if key not in missing),
        frozenset(_name(value) for key, value in stand_ins if key in missing),
    )


def definitions(compilations: Iterable[Compilation]) -> dict[str, Value]:
    """The stand-ins for all kinds that neither Kubernetes nor Volcano serves, by name; the versions of one kind in one
    definition."""
    found: dict[str, Value] = {}
    for compilation in compilations:
        for _, value in _stand_ins(compilation, sent(compilation)):
            versions = found.setdefault(_name(value), value)["spec"]["versions"]
            own = value["spec"]["versions"][0]
            if own["name"] not in {each["name"] for each in versions}:
                versions.append({**own, "storage": False})
    return found


def stand_in(declared: KubeObject) -> Value | None:
    """The least object that has this one's name, for others to refer to where this one was refused."""
    least = {
        ("", "Namespace"): namespace,
        ("scheduling.k8s.io", "PriorityClass"): priority,
        ("scheduling.volcano.sh", "Queue"): queue,
    }
    make = least.get((declared.ref.group, declared.ref.kind))
    return make(declared.name) if make else None


def namespace(name: str) -> Value:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def queue(name: str) -> Value:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}


def priority(name: str) -> Value:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1}


def _queues(objects: Iterable[KubeObject]) -> Iterator[Any]:
    yield from (each.spec.get("queue") for each in objects if (each.ref.group, each.ref.kind) in _QUEUED)


def _priorities(objects: Iterable[KubeObject]) -> Iterator[Any]:
    yield from (each.spec.get("priorityClassName") for each in objects if each.ref[:2] == ("v1", "Pod"))


def _texts(values: Iterable[Any]) -> Iterator[str]:
    yield from (value for value in values if isinstance(value, str) and value)


def _missing(compilation: Compilation) -> set[tuple[str, str]]:
    """The kinds that, as a finding says, nothing installs."""
    return {
        found.object[:2]
        for found in compilation.findings
        if found.rule in UNINSTALLED and found.pointer == ("apiVersion",) and found.object
    }


def _stand_ins(compilation: Compilation, objects: Sequence[KubeObject]) -> Iterator[tuple[tuple[str, str], Value]]:
    """A definition for each kind that neither Kubernetes nor Volcano nor a declared definition serves."""
    catalog = compilation.index.catalog
    defined = {defined_kind(each) for each in objects if each.ref.kind == "CustomResourceDefinition"}
    kinds = {each.ref[:2]: each.ref.namespace is not None for each in objects}
    for (api_version, kind), is_namespaced in kinds.items():
        group = api_version.rpartition("/")[0]
        if catalog.product(api_version) is None and "." in group and (group, kind) not in defined:
            (made,) = manifests.stand_ins({(api_version, kind): is_namespaced})
            yield (api_version, kind), made


def _name(value: Value) -> str:
    name: str = value["metadata"]["name"]
    return name
