"""Who may do what: roles, what bindings give, and which of them are tenants'. Pure views of RBAC objects."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer

RBAC = "rbac.authorization.k8s.io"
SYSTEM = "system:"
_ACCOUNT = "system:serviceaccount:"  # a ServiceAccount by the name that the API server gives its user
_AGGREGATE = f"{RBAC}/aggregate-to-"
_BUILT_IN = ("admin", "edit", "view")  # aggregated: their rules grow by labelled ClusterRoles
ALMIGHTY = "cluster-admin"


class Grant(NamedTuple):
    """One rule of a role: where it stands, and what it allows."""

    role: KubeObject
    pointer: Pointer
    groups: frozenset[str]
    resources: frozenset[str]
    verbs: frozenset[str]

    def covers(self, group: str, resource: str) -> bool:
        """Whether the rule is about the resource, or a subresource of it."""
        if not self.groups & {group, "*"}:
            return False
        return any(each.partition("/")[0] in ("*", resource) for each in self.resources)


class Binding(NamedTuple):
    """One RoleBinding or ClusterRoleBinding."""

    object: KubeObject
    role_kind: str
    role_name: str

    @property
    def subjects(self) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
        for index, subject in enumerate(sequence(self.object.value.get("subjects"))):
            yield ("subjects", index), mapping(subject)

    @property
    def people(self) -> Iterator[Mapping[str, Any]]:
        """The subjects without parts of the platform: users of Kubernetes itself, and those that go by the name of a
        ServiceAccount beside them, as upstream's components are bound when they run outside the cluster too."""
        subjects = [subject for _, subject in self.subjects]
        accounts = [subject.get("name") for subject in subjects if subject.get("kind") == "ServiceAccount"]
        for subject in subjects:
            name, is_account = str(subject.get("name")), subject.get("kind") == "ServiceAccount"
            is_system = subject.get("kind") == "User" and name.startswith(SYSTEM) and not name.startswith(_ACCOUNT)
            if is_account or not (is_system or name in accounts):
                yield subject

    @property
    def namespace(self) -> str | None:
        return self.object.ref.namespace

    @property
    def groups(self) -> Iterator[tuple[Pointer, str]]:
        """The groups that it binds, and where it names them."""
        for pointer, subject in self.subjects:
            name = subject.get("name")
            if subject.get("kind") == "Group" and isinstance(name, str):
                yield (*pointer, "name"), name

    @property
    def is_kubernetes_own(self) -> bool:
        """Whether the API server makes it: it is labelled so, names system: on both sides, or is its cluster-admin."""
        if self.object.ref.kind == "ClusterRoleBinding" and self.object.name == self.role_name == ALMIGHTY:
            return all(subject.get("name") == "system:masters" for _, subject in self.subjects)
        is_system = self.object.name.startswith(SYSTEM) and self.role_name.startswith(SYSTEM)
        return is_system or "kubernetes.io/bootstrapping" in self.object.labels


def bindings(objects: Iterable[KubeObject]) -> Iterator[Binding]:
    for declared in objects:
        if declared.ref.group == RBAC and declared.ref.kind in ("RoleBinding", "ClusterRoleBinding"):
            role = mapping(declared.value.get("roleRef"))
            yield Binding(declared, str(role.get("kind")), str(role.get("name")))


class Roles:
    """The declared Roles and ClusterRoles, with what aggregation adds to them."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._roles: dict[tuple[str, str | None, str], KubeObject] = {}
        for declared in objects:
            if declared.ref.group == RBAC and declared.ref.kind in ("Role", "ClusterRole"):
                self._roles[declared.ref.kind, declared.ref.namespace, declared.name] = declared

    def grants(self, binding: Binding) -> Iterator[Grant]:
        """What the bound role allows, as far as it is declared."""
        namespace = binding.namespace if binding.role_kind == "Role" else None
        role = self._roles.get((binding.role_kind, namespace, binding.role_name))
        if role is not None:
            yield from _grants(role)
        if binding.role_kind == "ClusterRole":
            for each in self._aggregated(binding.role_name, role):
                yield from _grants(each)

    def _aggregated(self, name: str, role: KubeObject | None) -> Iterator[KubeObject]:
        selectors = sequence(mapping(role.value.get("aggregationRule") if role else None).get("clusterRoleSelectors"))
        wanted = [mapping(mapping(each).get("matchLabels")) for each in selectors]
        if name in _BUILT_IN:
            wanted.append({_AGGREGATE + name: "true"})
        for each in self._roles.values() if wanted else ():
            if each is not role and any(labels and labels.items() <= each.labels.items() for labels in wanted):
                yield each


def _grants(role: KubeObject) -> Iterator[Grant]:
    for index, rule in enumerate(map(mapping, sequence(role.value.get("rules")))):
        parts = (frozenset(strings(rule.get(key))) for key in ("apiGroups", "resources", "verbs"))
        yield Grant(role, ("rules", index), *parts)
