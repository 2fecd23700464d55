"""A team's namespaces with their quota, defaults, Pod Security level, network policies and access."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt.objects import MANAGED_BY, Manifest, pod_security
from basalt.platform import prefixed
from basalt.pointers import Pointer
from basalt.quantities import as_written, is_extended, is_quota_key

TEAM_LABEL = "basalt.dev/team"
ROLE_PREFIX = "basalt-team-"
LEVELS = ("admin", "edit", "view")
_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "update", "patch", "delete", "deletecollection"]

# What a team works with in its own namespaces. Nothing here lets it change what the scheduler obeys: queues,
# PriorityClasses, HyperNodes, nodes, quotas, limit ranges, roles and bindings are only ever read.
_WORKLOADS: list[tuple[str, list[str]]] = [
    ("", ["pods", "configmaps", "services", "persistentvolumeclaims"]),
    ("batch", ["jobs", "cronjobs"]),
    ("batch.volcano.sh", ["jobs", "cronjobs"]),
    ("flow.volcano.sh", ["jobflows", "jobtemplates"]),
]
_READ_ONLY: list[tuple[str, list[str]]] = [
    ("", ["events", "pods/log", "pods/status", "resourcequotas", "limitranges", "serviceaccounts"]),
    ("scheduling.volcano.sh", ["podgroups"]),
    ("networking.k8s.io", ["networkpolicies"]),
]
_CLUSTER_READ: list[tuple[str, list[str]]] = [
    ("", ["nodes", "namespaces"]),
    ("scheduling.k8s.io", ["priorityclasses"]),
    ("scheduling.volcano.sh", ["queues"]),
    ("topology.volcano.sh", ["hypernodes"]),
]


def cluster_roles() -> Iterator[Manifest]:
    """The ClusterRoles that teams are bound to: view, edit, admin, and what everyone may read of the cluster."""
    view = [_rule(group, resources, _READ) for group, resources in (*_WORKLOADS, *_READ_ONLY)]
    edit = [
        *view,
        *(_rule(group, resources, _WRITE) for group, resources in _WORKLOADS),
        _rule("", ["pods/exec", "pods/portforward"], ["create", "get"]),
        _rule("bus.volcano.sh", ["commands"], ["create", *_READ]),
    ]
    admin = [
        *edit,
        _rule("", ["secrets", "serviceaccounts"], [*_READ, *_WRITE]),
        _rule("networking.k8s.io", ["networkpolicies"], _WRITE),
    ]
    cluster = [_rule(group, resources, _READ) for group, resources in _CLUSTER_READ]
    for name, rules in (("admin", admin), ("edit", edit), ("view", view), ("cluster-view", cluster)):
        value = {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": ROLE_PREFIX + name, "labels": MANAGED_BY},
            "rules": rules,
        }
        yield Manifest(value, {(): ()})


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def team(name: str, spec: Mapping[str, Any], groups_prefix: str = "") -> Iterator[Manifest]:
    """Everything of a team but its queue. Its groups are bound as the API server knows them: with the prefix."""
    access = spec.get("access", {})
    groups = {level: [prefixed(group, groups_prefix) for group in access.get(level, ())] for level in LEVELS}
    if any(groups.values()):
        yield _cluster_binding(name, groups)
    for namespace, declared in spec.get("namespaces", {}).items():
        yield from _namespace(name, namespace, declared, groups)


def _cluster_binding(team_name: str, groups: Mapping[str, list[str]]) -> Manifest:
    """What everyone of the team may read of the cluster. A group with two levels is bound once."""
    written = {group: ("spec", "access", level, index) for level in LEVELS for index, group in enumerate(groups[level])}
    every = sorted(written)
    name = f"{ROLE_PREFIX}{team_name}-cluster-view"
    value = _binding("ClusterRoleBinding", {"name": name, "labels": MANAGED_BY}, "cluster-view", every)
    return Manifest(value, {(): ("spec", "access"), **_subject_origins([written[group] for group in every])})


def _namespace(
    team_name: str, name: str, declared: Mapping[str, Any], groups: Mapping[str, list[str]]
) -> Iterator[Manifest]:
    at: Pointer = ("spec", "namespaces", name)
    labels = {**MANAGED_BY, TEAM_LABEL: team_name}
    security = declared.get("security", "baseline")
    levels = pod_security(security)
    metadata = {"name": name, "labels": {**labels, **levels}}
    origins: dict[Pointer, Pointer] = {("metadata", "labels", label): (*at, "security") for label in levels}
    yield Manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, {(): at, **origins})
    yield from _limits(name, declared, labels, at)
    for level in LEVELS:
        if groups[level]:
            metadata = {"name": ROLE_PREFIX + level, "namespace": name, "labels": labels}
            value = _binding("RoleBinding", metadata, level, groups[level])
            access: Pointer = ("spec", "access", level)
            written = [(*access, index) for index in range(len(groups[level]))]
            yield Manifest(value, {(): access, **_subject_origins(written)})
    if declared.get("network", "isolated") == "isolated":
        yield from _isolation(name, labels, (*at, "network"))


def _limits(name: str, declared: Mapping[str, Any], labels: dict[str, str], at: Pointer) -> Iterator[Manifest]:
    if declared.get("quota"):
        keys = _quota_keys(declared["quota"])
        amounts = as_written(declared["quota"])
        value = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "quota", "namespace": name, "labels": labels},
            "spec": {"hard": {legal: amounts[key] for key, legal in keys.items()}},
        }
        quota = (*at, "quota")
        hard: dict[Pointer, Pointer] = {("spec", "hard", legal): (*quota, key) for key, legal in keys.items()}
        yield Manifest(value, {(): quota, ("spec", "hard"): quota, **hard})
    if declared.get("defaults"):
        defaults = as_written(declared["defaults"])
        value = {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "defaults", "namespace": name, "labels": labels},
            "spec": {"limits": [{"type": "Container", "default": defaults, "defaultRequest": dict(defaults)}]},
        }
        origin = (*at, "defaults")
        limits: Pointer = ("spec", "limits", 0)
        yield Manifest(value, {(): origin, (*limits, "default"): origin, (*limits, "defaultRequest"): origin})


def _quota_keys(resources: Iterable[str]) -> dict[str, str]:
    """The legal key of each resource; where that is declared too, both stay, and quota-key-is-legal speaks of one."""
    own = set(resources)
    return {key: key if quota_key(key) in own else quota_key(key) for key in resources}


def quota_key(resource: str) -> str:
    """The key under which a ResourceQuota counts the resource: extended ones only with `requests.`. One that is wrong
    altogether stays as it is."""
    if is_quota_key(resource) or resource.startswith("limits.") or not is_extended(resource):
        return resource
    return f"requests.{resource}"


def _subject_origins(groups: Iterable[Pointer]) -> dict[Pointer, Pointer]:
    """From each subject, and its name, to the place that names the group."""
    return {("subjects", index, *part): group for index, group in enumerate(groups) for part in ((), ("name",))}


def _binding(kind: str, metadata: Mapping[str, Any], role: str, groups: list[str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ROLE_PREFIX + role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in groups],
    }


def _isolation(namespace: str, labels: dict[str, str], at: Pointer) -> Iterator[Manifest]:
    """Closed in both directions but for the namespace's own pods and the cluster's DNS. A gang's traffic uses any
    port (NCCL takes ephemeral ones), so inside the namespace all are open."""
    same_namespace: list[dict[str, Any]] = [{"podSelector": {}}]
    dns = {
        "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}],
        "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")],
    }
    policies: dict[str, dict[str, Any]] = {
        "default-deny": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        "allow-dns": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [dns]},
        "allow-same-namespace": {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": same_namespace}],
            "egress": [{"to": same_namespace}],
        },
    }
    for name, spec in policies.items():
        value = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": spec,
        }
        yield Manifest(value, {(): at})
