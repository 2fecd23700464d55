"""The family Tenancy, as far as it needs no jobs: namespaces, quotas, access, and the network."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity, Source
from basalt.gathering.documents import Declaration
from basalt.index import Index
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.platform import groups_prefix, prefixed
from basalt.quantities import Amount, is_extended, is_quota_key, parse, show
from basalt.rules import tenant_jobs
from basalt.rules.rule import Rule
from basalt.views.access import ALMIGHTY, SYSTEM, Binding, Grant, Roles, bindings
from basalt.views.network_policies import Labels, allows_dns, isolates_egress, selects
from basalt.views.queue_tree import POINTERS, Queue
from basalt.views.workloads import UNKNOWN_LABELS

TEAM_LABEL = "basalt.dev/team"
_PLATFORM = frozenset(
    "volcano-system volcano-monitoring gpu-operator nvidia-network-operator nvidia-gpu-operator kube-amd-gpu dex "
    "monitoring cert-manager argocd flux-system pulumi-system".split()
)
_STANDARD_QUOTAS = frozenset(
    "cpu memory ephemeral-storage pods services replicationcontrollers resourcequotas secrets configmaps "
    "persistentvolumeclaims services.nodeports services.loadbalancers requests.cpu requests.memory requests.storage "
    "requests.ephemeral-storage limits.cpu limits.memory limits.ephemeral-storage".split()
)  # IsStandardQuotaResourceName in k8s.io/kubernetes/pkg/apis/core/helper/helpers.go
_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection", "*"))
_POWERS = frozenset(("bind", "escalate"))
_SCHEDULING = (
    ("scheduling.volcano.sh", "queues"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("topology.volcano.sh", "hypernodes"),
    ("", "nodes"),
    ("", "resourcequotas"),
)
_ACCOUNTS = "system:serviceaccounts"  # the group of all ServiceAccounts; with a namespace, of those in it


def namespace_has_one_team(index: Index) -> Iterator[Problem]:
    owners: dict[str, Declaration] = {}
    for team in index.teams:
        for name in mapping(team.spec.get("namespaces")):
            owner = owners.setdefault(name, team)
            if owner is not team:
                first = owner.position(("spec", "namespaces", name))
                message = f"the namespace {name} belongs to the team {owner.name} already ({first})"
                yield Problem(team, ("spec", "namespaces", name), message, "let one team have it")


def namespace_is_not_system(index: Index) -> Iterator[Problem]:
    platform = _PLATFORM | {each.name for each in index.of_kind("Namespace") if each.module not in (None, "tenancy")}
    for namespace in index.of_kind("Namespace"):
        name = namespace.name
        if TEAM_LABEL not in namespace.labels:
            continue
        if name == "default" or name.startswith("kube-"):
            message = f"{name} is a namespace of Kubernetes itself"
        elif name in platform:
            message = f"{name} holds a part of the platform"
        else:
            continue
        yield Problem(namespace, ("metadata", "name"), message, "give the team a namespace of its own")


def quota_key_is_legal(index: Index) -> Iterator[Problem]:
    for quota in index.of_kind("ResourceQuota"):
        for key in mapping(quota.spec.get("hard")):
            if fault := _quota_key_fault(key):
                yield Problem(quota, ("spec", "hard", key), *fault)


def _quota_key_fault(key: str) -> tuple[str, str] | None:
    bare = key.removeprefix("limits.").removeprefix("requests.")
    if is_quota_key(key) or key in _STANDARD_QUOTAS or key.removeprefix("requests.").startswith("hugepages-"):
        return None
    if is_extended(bare):
        why = (
            "an extended resource has no limits of its own" if key.startswith("limits.") else "quotas take no bare name"
        )
        return f"{key} counts nothing: {why}", f"write requests.{bare}"
    if "/" in key:
        return None  # Kubernetes' own, and young: no list has all of them
    message = f"{key} is not a resource that quotas count"
    if "hugepages-" in key:
        return message, f"write requests.{bare}"
    otherwise = "write requests.<domain>/<name> for what a device plugin offers"
    known = () if "gpu" in key else _STANDARD_QUOTAS  # a cpu is near to a gpu in letters only
    return message, names.did_you_mean(key, known, otherwise=otherwise, most=0)


def quota_is_enforced_early(index: Index) -> Iterator[Problem]:
    scheduler, quotas = index.scheduler, index.of_kind("ResourceQuota")
    if scheduler is not None and quotas and not scheduler.has_plugin("resourcequota"):
        named = names.listed(str(each.ref).partition("/")[2] for each in quotas)
        count = "there is a quota" if len(quotas) == 1 else f"there are {len(quotas)} quotas"
        message = f"the scheduler lacks the plugin resourcequota, and {count} ({named})"
        hint = "add it: without it a gang is placed, and the API server then refuses the pods above the quota"
        yield scheduler.problem((), message, hint)


def quota_reaches_entitlement(index: Index) -> Iterator[Problem]:
    for team in index.teams:
        queue = index.queues.queues.get(team.name)
        namespaces = mapping(team.spec.get("namespaces"))
        for resource, guaranteed in queue.guarantee.items() if queue and namespaces else ():
            quotas = _quotas_for(index, namespaces.keys(), resource)
            is_bounded = len(quotas) == len(namespaces)
            if queue and is_bounded and sum(amount for _, _, amount in quotas) < guaranteed:
                yield _short_of(queue, resource, guaranteed, quotas)


_Quota = tuple[KubeObject, str, Amount]


def _quotas_for(index: Index, namespaces: Collection[str], resource: str) -> list[_Quota]:
    """The tightest quota on the resource's requests in each of the namespaces that has one. A quota with a scope is
    left out: it counts some of the pods only."""
    keys = (f"requests.{resource}", resource) if is_extended(resource) else _bounding(resource)
    tightest: dict[str, _Quota] = {}
    for quota in index.of_kind("ResourceQuota"):
        namespace = quota.ref.namespace or ""
        if namespace not in namespaces or quota.spec.get("scopes") or quota.spec.get("scopeSelector"):
            continue
        for key in keys:
            amount = parse(mapping(quota.spec.get("hard")).get(key))
            if amount is not None and (namespace not in tightest or amount < tightest[namespace][2]):
                tightest[namespace] = (quota, key, amount)
    return list(tightest.values())


def _bounding(resource: str) -> tuple[str, ...]:
    """The keys that bound a native resource's requests: a limit does too, because no request exceeds it."""
    return (f"requests.{resource}", resource, f"limits.{resource}")


def _short_of(queue: Queue, resource: str, guaranteed: Amount, quotas: list[_Quota]) -> Problem:
    total = sum(amount for _, _, amount in quotas)
    terms = " + ".join(f"{show(amount, resource)} ({quota.ref.namespace})" for quota, _, amount in quotas)
    source = queue.object.position((*POINTERS["guarantee"], resource))
    are = (
        f"quotas {terms} = {show(total, resource)} {resource} are"
        if len(quotas) > 1
        else f"quota {terms} {resource} is"
    )
    message = f"the {are} below what the queue {queue.name} guarantees, {show(guaranteed, resource)} ({source})"
    quota, key, _ = max(quotas, key=lambda each: each[2])
    hint = f"raise the quotas by {show(guaranteed - total, resource)}, or lower the guarantee"
    return Problem(quota, ("spec", "hard", key), message, hint)


def network_allows_dns(index: Index) -> Iterator[Problem]:
    policies: dict[str, list[KubeObject]] = {}
    for policy in index.of_kind("NetworkPolicy"):
        policies.setdefault(policy.ref.namespace or "default", []).append(policy)
    pods = _pods_by_namespace(index)
    for namespace, own in policies.items():
        closing = (_closing(own, labels) for labels in pods.get(namespace, [UNKNOWN_LABELS]))
        for policy in dict.fromkeys(found for found in closing if found is not None):
            message = f"{policy.name} closes egress in {namespace}, and no policy lets its pods ask the DNS"
            hint = "allow UDP and TCP 53 to kube-system: without names no rank finds its master"
            yield Problem(policy, ("spec", "egress") if "egress" in policy.spec else ("spec",), message, hint)


def _pods_by_namespace(index: Index) -> dict[str, list[Labels]]:
    """The labels of the pods of declared jobs."""
    found: dict[str, list[Labels]] = {}
    for workload in index.workloads:
        for task in () if workload.is_patch else workload.tasks:
            found.setdefault(workload.object.ref.namespace or "default", []).append(workload.pod_labels(task))
    return found


def _closing(policies: list[KubeObject], labels: Labels) -> KubeObject | None:
    """The policy that keeps such a pod from the DNS, the one that allows the least; None where one opens it."""
    closing = [policy for policy in policies if isolates_egress(policy) and selects(policy, labels)]
    if any(map(allows_dns, closing)):
        return None
    return min(closing, key=lambda policy: len(sequence(policy.spec.get("egress"))), default=None)


def role_cannot_change_scheduling(index: Index) -> Iterator[Problem]:
    roles, tenants = Roles(index.others), _Tenants(index)
    reported: set[tuple[int, object]] = set()
    for binding in bindings(index.others):
        if binding.is_kubernetes_own or not tenants.have(binding):
            continue
        if binding.role_name == ALMIGHTY:
            message = f"{binding.object.name} gives a tenant cluster-admin"
            yield Problem(binding.object, ("roleRef",), message, "bind a role that lists what the team needs")
            continue
        for grant in roles.grants(binding):
            key = (id(grant.role), grant.pointer)
            if key not in reported and (powers := _powers(grant)):
                reported.add(key)
                message = f"gives a tenant, by {binding.object.ref}, the power to {names.listed(powers, 9)}"
                yield Problem(grant.role, grant.pointer, message, "leave that to the platform's own roles")


def _powers(grant: Grant) -> list[str]:
    """What the rule allows that changes what the scheduler obeys: "write queues", "escalate roles"."""
    found = [
        f"write {resource}"
        for group, resource in _SCHEDULING
        if grant.verbs & _WRITES and grant.covers(group, resource)
    ]
    for resource in ("roles", "clusterroles"):
        if grant.covers("rbac.authorization.k8s.io", resource):
            verbs = _POWERS if "*" in grant.verbs else grant.verbs & _POWERS
            found.extend(f"{verb} {resource}" for verb in sorted(verbs))
    return found


class _Tenants:
    """Who is a tenant: a Team's groups, its namespaces and the ServiceAccounts in them; without Teams, every user and
    group that is bound outside the namespaces of the platform's parts."""

    def __init__(self, index: Index) -> None:
        self._has_teams = bool(index.teams)
        self._namespaces = {name for team in index.teams for name in mapping(team.spec.get("namespaces"))}
        self._groups = (
            team_groups(index) | _written_groups(index) | {f"{_ACCOUNTS}:{name}" for name in self._namespaces}
        )

    def have(self, binding: Binding) -> bool:
        """Whether the binding gives a tenant something."""
        subjects = list(binding.people)
        if self._has_teams:
            return (bool(subjects) and binding.namespace in self._namespaces) or any(map(self._is_one, subjects))
        if binding.namespace in _PLATFORM or str(binding.namespace).startswith("kube-"):
            return False
        people = (subject for subject in subjects if subject.get("kind") in ("User", "Group"))
        return any(not str(subject.get("name")).startswith(SYSTEM) for subject in people)

    def _is_one(self, subject: Mapping[str, Any]) -> bool:
        if subject.get("kind") == "ServiceAccount":
            return str(subject.get("namespace")) in self._namespaces
        return subject.get("kind") == "Group" and str(subject.get("name")) in self._groups


def team_groups(index: Index) -> set[str]:
    """Every group that some team gives access to, as the API server knows it."""
    prefix = groups_prefix(index.environment.spec) if index.environment else ""
    return {prefixed(group, prefix) for group in _written_groups(index)}


def _written_groups(index: Index) -> set[str]:
    """The same groups as teams write them."""
    access = [mapping(team.spec.get("access")) for team in index.teams]
    return {group for levels in access for members in levels.values() for group in strings(members)}


def binding_names_no_system_group(index: Index) -> Iterator[Problem]:
    reported: set[tuple[str, Source]] = set()
    for binding in bindings(index.others):
        for pointer, name in binding.groups:
            written = (name, binding.object.position(pointer))  # a team's group comes to be bound in many places
            if name in _WHO and not binding.is_kubernetes_own and written not in reported:
                reported.add(written)
                message = f"binds {name}, which {_WHO[name]}"
                yield Problem(binding.object, pointer, message, "name a group of the identity provider")


_WHO = {
    "system:masters": "passes every check of the API server and cannot be taken back",
    "system:authenticated": "is everyone who can log in",
    "system:unauthenticated": "is everyone on the network",
}


def group_belongs_to_a_team(index: Index) -> Iterator[Problem]:
    known = team_groups(index)
    written = _written_groups(index)  # login-chain-closes speaks of one that is bound without the prefix
    for binding in bindings(index.others):
        for pointer, name in binding.groups:
            if name not in known | written and not name.startswith(SYSTEM) and not binding.is_kubernetes_own:
                message = f"the group {name} is bound, and no team declares it"
                hint = names.did_you_mean(name, known, otherwise="add it to a team's access", most=0)
                yield Problem(binding.object, pointer, message, hint)
    for team in index.teams:
        if not any(mapping(team.spec.get("access")).values()):
            message = f"nobody may use the team {team.name}: it gives no group access"
            yield Problem(team, ("spec", "access"), message, "add a group to access.admin, edit or view")


RULES: tuple[Rule, ...] = (
    *tenant_jobs.RULES,
    Rule("namespace-has-one-team", Severity.ERROR, namespace_has_one_team),
    Rule("namespace-is-not-system", Severity.ERROR, namespace_is_not_system),
    Rule("quota-key-is-legal", Severity.ERROR, quota_key_is_legal),
    Rule("quota-is-enforced-early", Severity.WARNING, quota_is_enforced_early, needs=(Fact.SCHEDULER, Fact.QUOTAS)),
    Rule(
        "quota-reaches-entitlement",
        Severity.WARNING,
        quota_reaches_entitlement,
        needs=(Fact.TEAMS, Fact.QUEUES, Fact.QUOTAS),
    ),
    Rule("network-allows-dns", Severity.ERROR, network_allows_dns),
    Rule("role-cannot-change-scheduling", Severity.ERROR, role_cannot_change_scheduling),
    Rule("binding-names-no-system-group", Severity.ERROR, binding_names_no_system_group),
    Rule("group-belongs-to-a-team", Severity.WARNING, group_belongs_to_a_team, needs=(Fact.TEAMS,)),
)
