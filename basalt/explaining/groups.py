"""What a group of the identity provider comes to: its bindings, their namespaces, the queues of those, and the GPUs."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt import names
from basalt.findings import Source
from basalt.gathering.documents import Declaration
from basalt.index import Index
from basalt.loading.sources import Misuse
from basalt.objects import KubeObject, mapping
from basalt.platform import groups_prefix
from basalt.pointers import Pointer, get
from basalt.quantities import parse_map, show
from basalt.reporting import json_format
from basalt.views import authentication
from basalt.views.access import Binding, bindings
from basalt.views.devices import is_gpu
from basalt.views.queue_tree import DEFAULT, Queue
from basalt.views.workloads import QUEUE_NAME

KIND = "group"
_FIELDS = ("guarantee", "deserved", "capability")
_Amounts = dict[str, str]  # of GPUs, by resource


class Reached(NamedTuple):
    """A queue that jobs of a namespace go to, with its GPUs; object is None where it is not declared."""

    name: str
    object: KubeObject | None
    parent: str | None
    gpus: Mapping[str, _Amounts]  # field -> amounts

    def as_json(self) -> dict[str, Any]:
        source = _source(self.object) if self.object else None
        gpus = {field: dict(amounts) for field, amounts in self.gpus.items()}
        return {"name": self.name, "parent": self.parent, "source": source, "gpus": gpus}


class Place(NamedTuple):
    """A namespace that the group may work in; object is None where it is not declared."""

    name: str
    object: KubeObject | None
    team: str | None
    quota: _Amounts
    queues: tuple[Reached, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "team": self.team,
            "source": _source(self.object) if self.object else None,
            "quota": self.quota,
            "queues": [queue.as_json() for queue in self.queues],
        }


class Bound(NamedTuple):
    """One binding of the group: where it is named, what it gets, and where; namespace is None for the whole cluster."""

    object: KubeObject
    pointer: Pointer
    role: str
    namespace: Place | None

    def as_json(self) -> dict[str, Any]:
        return {
            "object": json_format.ref(self.object.ref),
            "source": self.object.position(self.pointer)._asdict(),
            "role": self.role,
            "namespace": self.namespace.as_json() if self.namespace else None,
        }


class Access(NamedTuple):
    """Everything that one group reaches."""

    group: str
    bound: tuple[Bound, ...]

    def as_json(self) -> dict[str, Any]:
        return {"group": self.group, "bindings": [each.as_json() for each in self.bound]}


def is_group(wanted: str) -> bool:
    """Whether KIND/NAME asks for a group."""
    return wanted.partition("/")[0].casefold() == KIND


def explain(index: Index, wanted: str) -> Access:
    """What the group that `group/<name>` names reaches."""
    group = wanted.partition("/")[2]
    meant = {group, *(prefix + group for prefix in _prefixes(index))}
    found = [each for each in _bound(index) if each[2] in meant]
    if not found:
        known = {name for _, _, name in _bound(index)}
        hint = names.did_you_mean(group, known)
        raise Misuse(f"no group {group} is bound; {hint}".rstrip("; "))
    places: dict[str, Place] = {}
    bound = tuple(_explained(index, binding, pointer, places) for binding, pointer, _ in found)
    called = {name for _, _, name in found}
    return Access(called.pop() if len(called) == 1 else group, bound)


def _prefixes(index: Index) -> set[str]:
    """What API servers put before the groups of the identity provider, which people leave out."""
    trusted = {trust.groups.prefix for trust in authentication.trusts(index.others) if trust.groups}
    declared = {groups_prefix(index.environment.spec)} if index.environment else set()
    return {prefix for prefix in trusted | declared if prefix}


def _bound(index: Index) -> Iterator[tuple[Binding, Pointer, str]]:
    for binding in bindings(index.others):
        yield from ((binding, pointer, name) for pointer, name in binding.groups)


def _explained(index: Index, binding: Binding, pointer: Pointer, places: dict[str, Place]) -> Bound:
    namespace = binding.namespace if binding.object.ref.kind == "RoleBinding" else None
    if namespace is not None and namespace not in places:
        places[namespace] = _place(index, namespace)
    role = f"{binding.role_kind}/{binding.role_name}"
    return Bound(binding.object, pointer, role, places[namespace] if namespace is not None else None)


def _place(index: Index, name: str) -> Place:
    declared = next((each for each in index.of_kind("Namespace") if each.name == name), None)
    team = next((each for each in index.teams if name in mapping(each.spec.get("namespaces"))), None)
    queues = (_reached(index, queue) for queue in _queues(index, name, declared, team))
    return Place(name, declared, team.name if team else None, _quota(index, name), tuple(queues))


def _queues(index: Index, namespace: str, declared: KubeObject | None, team: Declaration | None) -> list[str]:
    """The team's own queue, else the one that the namespace's annotation names, and those that its jobs name."""
    own = [team.name] if team is not None and team.name in index.queues.queues else []
    annotated = get(declared.value, ("metadata", "annotations", QUEUE_NAME)) if declared else None
    if not own and isinstance(annotated, str):
        own = [annotated]
    named = sorted({each.queue for each in index.workloads if each.object.ref.namespace == namespace and each.queue})
    return list(dict.fromkeys([*own, *named])) or [DEFAULT]


def _reached(index: Index, name: str) -> Reached:
    queue = index.queues.queues.get(name)
    if queue is None:
        return Reached(name, None, None, {})
    gpus = {field: _gpus(queue, field) for field in _FIELDS}
    return Reached(name, queue.object, queue.parent, {field: found for field, found in gpus.items() if found})


def _gpus(queue: Queue, field: str) -> _Amounts:
    return {resource: show(amount, resource) for resource, amount in queue.amounts(field).items() if is_gpu(resource)}


def _quota(index: Index, namespace: str) -> _Amounts:
    """The GPUs that the namespace's quotas allow: the least where several name one resource."""
    least: dict[str, Any] = {}
    for quota in index.of_kind("ResourceQuota"):
        hard = parse_map(quota.spec.get("hard")) if quota.ref.namespace == namespace else {}
        for key, amount in hard.items():
            resource = key.removeprefix("requests.")
            if is_gpu(resource):
                least[resource] = min(amount, least.get(resource, amount))
    return {resource: show(amount, resource) for resource, amount in least.items()}


def _source(declared: KubeObject) -> dict[str, Any]:
    return declared.position(())._asdict()


# text


def text(found: Access) -> str:
    lines = [f"Group {found.group}"]
    for each in found.bound:
        where = "" if each.namespace else ", in the whole cluster"
        lines.append(f"  {each.object.ref}  {_at(each.object.position(each.pointer))}  gives {each.role}{where}")
        if each.namespace:
            lines.extend(_of_namespace(each.namespace))
    return "\n".join(lines) + "\n"


def _of_namespace(place: Place) -> Iterator[str]:
    quota = f"  quota: {_amounts(place.quota)}" if place.quota else ""
    yield f"    Namespace/{place.name}  {_declared(place.object)}{quota}"
    for queue in place.queues:
        gpus = ", ".join(f"{field} {_amounts(amounts)}" for field, amounts in queue.gpus.items())
        below = f" below {queue.parent}" if queue.parent else ""
        yield f"      Queue/{queue.name}{below}  {_declared(queue.object)}  {gpus or 'no limit on GPUs'}"


def _declared(declared: KubeObject | None) -> str:
    return _at(declared.position(())) if declared else "(not declared)"


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{amount} {resource}" for resource, amount in amounts.items())


def _at(source: Source) -> str:
    return f"{source}"
