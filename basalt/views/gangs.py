"""The gangs that are declared, and of each group of their pods what a descheduler looks at: namespace, labels,
priority, volumes and owner."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import get
from basalt.quantities import Resources
from basalt.views.pod_templates import TEMPLATES
from basalt.views.requests import pod_requests
from basalt.views.workloads import Workload

_GROUP_NAME = "scheduling.k8s.io/group-name"  # KubeGroupNameAnnotationKey: the PodGroup that a pod belongs to
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
# The owner that a controller's pods have, and the field that says how many of them there are.
_OWNERS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("apps", "Deployment"): ("ReplicaSet", "replicas"),
    ("apps", "ReplicaSet"): ("ReplicaSet", "replicas"),
    ("apps", "StatefulSet"): ("StatefulSet", "replicas"),
    ("batch", "Job"): ("Job", "parallelism"),
    ("", "Pod"): ("", ""),
}


@dataclass(frozen=True, eq=False)
class Pods:
    """Pods that are alike. spec is None where nobody declares them; priority where its class is not declared;
    owner is the kind of their controller, empty for none. need is how many of them their gang needs in any case."""

    namespace: str
    count: int
    labels: Mapping[str, Any] | None
    spec: Mapping[str, Any] | None
    priority: int | None
    owner: str
    annotations: Mapping[str, Any] = field(default_factory=dict)
    has_claims: bool = False
    need: int = 0

    @cached_property
    def images(self) -> tuple[str, ...]:
        containers = map(mapping, sequence(mapping(self.spec).get("containers")))
        return tuple(sorted(str(container.get("image")) for container in containers))

    @cached_property
    def requests(self) -> Resources:
        return pod_requests(mapping(self.spec))

    def has_volume(self, *kinds: str) -> bool:
        volumes = map(mapping, sequence(mapping(self.spec).get("volumes")))
        return any(volume.get(kind) is not None for volume in volumes for kind in kinds)


class Gang(NamedTuple):
    """A declared gang: of its pods at least minimum run together."""

    object: KubeObject
    minimum: int
    pods: tuple[Pods, ...]

    @property
    def size(self) -> int:
        return sum(each.count for each in self.pods)


class Priorities:
    """The priorities that pods get from their classes."""

    def __init__(self, classes: Iterable[KubeObject]) -> None:
        declared = [(each, each.value.get("value")) for each in classes]
        known = [(each, value) for each, value in declared if isinstance(value, int)]
        self.values = _SYSTEM | {each.name: value for each, value in known}
        self._default = next((value for each, value in known if each.value.get("globalDefault") is True), 0)

    def of(self, name: Any) -> int | None:
        """None where the class is not declared."""
        if not isinstance(name, str) or not name:
            return self._default
        return self.values.get(name)


def gangs(
    workloads: Iterable[Workload], groups: Iterable[KubeObject], objects: Iterable[KubeObject], priorities: Priorities
) -> Iterator[Gang]:
    """The gangs of jobs, then those of PodGroups; JobFlow patches only change one that is declared elsewhere."""
    for workload in workloads:
        if not workload.is_patch and (gang := _of_job(workload, priorities)) is not None:
            yield gang
    declared = list(groups)
    members = _members(objects, priorities) if declared else {}
    for group in declared:
        minimum = group.spec.get("minMember")
        if not isinstance(minimum, int) or isinstance(minimum, bool) or minimum < 1 or _is_of_job(group):
            continue
        namespace = _namespace(group)
        priority = priorities.of(group.spec.get("priorityClassName"))
        unknown = Pods(namespace, minimum, None, None, priority, "")
        yield Gang(group, minimum, tuple(members.get((namespace, group.name), [unknown])))


def _is_of_job(group: KubeObject) -> bool:
    """Whether the job controller made it: the job tells more."""
    return _owner(mapping(group.value.get("metadata"))) == "Job"


def _owner(metadata: Mapping[str, Any]) -> str:
    return "".join(str(mapping(owner).get("kind")) for owner in sequence(metadata.get("ownerReferences"))[:1])


def _namespace(declared: KubeObject) -> str:
    return declared.ref.namespace or "default"


def _of_job(workload: Workload, priorities: Priorities) -> Gang | None:
    minimum, total = workload.minimum, workload.replicas
    needs = [task.minimum for task in workload.tasks]
    if not minimum or not total or None in needs:
        return None
    known = [need or 0 for need in needs]
    is_strict = minimum >= sum(known)  # Volcano ignores the tasks' own minimums where the job's is lower
    pods = []
    for task, need in zip(workload.tasks, known, strict=True):
        metadata = mapping(mapping(task.value.get("template")).get("metadata"))
        named = task.pod.get("priorityClassName") or workload.spec.get("priorityClassName")
        pods.append(
            Pods(
                _namespace(workload.object),
                task.replicas or 0,
                workload.pod_labels(task),
                task.pod,
                priorities.of(named),
                "Job",
                mapping(metadata.get("annotations")),
                has_claims=bool(sequence(workload.spec.get("volumes"))),
                need=min(need, task.replicas or 0) if is_strict else 0,
            )
        )
    return Gang(workload.object, min(minimum, total), tuple(pods))


def _members(objects: Iterable[KubeObject], priorities: Priorities) -> dict[tuple[str, str], list[Pods]]:
    """The pods that declared controllers put into PodGroups, by the group's namespace and name."""
    found: dict[tuple[str, str], list[Pods]] = {}
    for declared in objects:
        own = (declared.ref.group, declared.ref.kind)
        if own not in _OWNERS:
            continue
        kind, number = _OWNERS[own]
        template = mapping(get(declared.value, TEMPLATES[own]))
        metadata, spec = mapping(template.get("metadata")), mapping(template.get("spec"))
        annotations = mapping(metadata.get("annotations"))
        name, count = annotations.get(_GROUP_NAME), declared.spec.get(number, 1) if number else 1
        if isinstance(name, str) and isinstance(count, int):
            pods = Pods(
                _namespace(declared),
                count,
                mapping(metadata.get("labels")),
                spec,
                priorities.of(spec.get("priorityClassName")),
                kind or _owner(metadata),
                annotations,
            )
            found.setdefault((_namespace(declared), name), []).append(pods)
    return found
