"""The family Tenancy, as far as it needs no jobs: namespaces, quotas, access, and the network."""

from collections.abc import Iterator

from basalt import names
from basalt.access import ALMIGHTY, SYSTEM, Binding, Grant, Roles, bindings
from basalt.documents import Declaration
from basalt.findings import Problem, Severity
from basalt.index import Fact, Index
from basalt.network_policies import allows_dns, isolates_egress, selector_of
from basalt.objects import KubeObject, mapping
from basalt.quantities import Amount, is_extended, parse, show
from basalt.queue_tree import POINTERS, Queue
from basalt.rules.rule import Rule

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
_SYSTEM_GROUPS = ("system:masters", "system:authenticated", "system:unauthenticated")


def namespace_has_one_team(index: Index) -> Iterator[Problem]:
    owners: dict[str, Declaration] = {}
    for team in index.teams:
        for name in mapping(team.spec.get("namespaces")):
            if owners.setdefault(name, team) is not team:
                message = f"the namespace {name} belongs to {owners[name].name} already"
                yield Problem(team, ("spec", "namespaces", name), message, "let one team have it")


def namespace_is_not_system(index: Index) -> Iterator[Problem]:
    for namespace in index.of_kind("Namespace"):
        name = namespace.name
        if TEAM_LABEL not in namespace.labels:
            continue
        if name == "default" or name.startswith("kube-"):
            message = f"{name} is a namespace of Kubernetes itself"
        elif name in _PLATFORM or name in _platform_namespaces(index):
            message = f"{name} holds a part of the platform"
        else:
            continue
        yield Problem(namespace, ("metadata", "name"), message, "give the team a namespace of its own")


def _platform_namespaces(index: Index) -> set[str]:
    """The namespaces that other modules than tenancy make."""
    return {each.name for each in index.of_kind("Namespace") if each.module not in (None, "tenancy")}


def quota_key_is_legal(index: Index) -> Iterator[Problem]:
    for quota in index.of_kind("ResourceQuota"):
        for key in mapping(quota.spec.get("hard")):
            if fault := _quota_key_fault(key):
                yield Problem(quota, ("spec", "hard", key), *fault)


def _quota_key_fault(key: str) -> tuple[str, str] | None:
    bare = key.removeprefix("limits.").removeprefix("requests.")
    if key.startswith("count/") or ".k8s.io/" in key:
        return None
    if is_extended(bare):
        if key.startswith("requests."):
            return None
        why = "an extended resource has no limits of its own" if key.startswith("limits.") else "counts nothing"
        return f"{key}: {why}", f"write requests.{bare}"
    if "/" in key or key in _STANDARD_QUOTAS or bare.startswith("hugepages-"):
        return None
    return f"{key} is not a resource that quotas count", names.did_you_mean(key, _STANDARD_QUOTAS, most=0)


def quota_is_enforced_early(index: Index) -> Iterator[Problem]:
    scheduler, quotas = index.scheduler, index.of_kind("ResourceQuota")
    if scheduler is not None and quotas and not scheduler.has_plugin("resourcequota"):
        named = names.listed(f"{each.ref.namespace}/{each.name}" for each in quotas)
        message = f"the scheduler lacks the plugin resourcequota, and there are {len(quotas)} quotas ({named})"
        hint = "add it: without it a gang is placed, and the API server then refuses the pods above the quota"
        yield Problem(scheduler.object, scheduler.pointer, message, hint)


def quota_reaches_entitlement(index: Index) -> Iterator[Problem]:
    for team in index.teams:
        queue = index.queues.queues.get(team.name)
        namespaces = mapping(team.spec.get("namespaces"))
        for resource, guaranteed in queue.guarantee.items() if queue else ():
            quotas = _quotas_for(index, frozenset(namespaces), resource)
            total = sum(amount for _, _, amount in quotas)
            if (
                quotas
                and len({quota.ref.namespace for quota, _, _ in quotas}) == len(namespaces)
                and total < guaranteed
            ):
                yield _short_of(queue, resource, guaranteed, quotas)


_Quota = tuple[KubeObject, str, Amount]


def _quotas_for(index: Index, namespaces: frozenset[str], resource: str) -> list[_Quota]:
    """The tightest quota on the resource's requests in each of the namespaces that has one."""
    tightest: dict[str, _Quota] = {}
    for quota in index.of_kind("ResourceQuota"):
        for key in (f"requests.{resource}", resource):
            amount = parse(mapping(quota.spec.get("hard")).get(key))
            namespace = quota.ref.namespace or ""
            if amount is None or namespace not in namespaces:
                continue
            if namespace not in tightest or amount < tightest[namespace][2]:
                tightest[namespace] = (quota, key, amount)
    return list(tightest.values())


def _short_of(queue: Queue | None, resource: str, guaranteed: Amount, quotas: list[_Quota]) -> Problem:
    assert queue is not None
    total = sum(amount for _, _, amount in quotas)
    terms = " + ".join(f"{show(amount, resource)} ({quota.ref.namespace})" for quota, _, amount in quotas)
    source = queue.object.position((*POINTERS["guarantee"], resource))
    message = (
        f"the quotas {terms} = {show(total, resource)} {resource} are below what the queue {queue.name} guarantees, "
        f"{show(guaranteed, resource)} ({source.file}:{source.line})"
    )
    quota, key, _ = max(quotas, key=lambda each: each[2])
    hint = f"raise the quotas by {show(guaranteed - total, resource)}, or lower the guarantee"
    return Problem(quota, ("spec", "hard", key), message, hint)


def network_allows_dns(index: Index) -> Iterator[Problem]:
    by_namespace: dict[str, list[KubeObject]] = {}
    for policy in index.of_kind("NetworkPolicy"):
        by_namespace.setdefault(policy.ref.namespace or "default", []).append(policy)
    for namespace, policies in by_namespace.items():
        for policy in policies:
            if isolates_egress(policy) and not any(_opens_dns(other, policy) for other in policies):
                message = f"{policy.name} closes egress in {namespace}, and no policy lets its pods ask the DNS"
                hint = "allow UDP and TCP 53 to kube-system: without names no rank finds its master"
                yield Problem(policy, ("spec",), message, hint)
                break


def _opens_dns(other: KubeObject, policy: KubeObject) -> bool:
    """Whether the other policy opens DNS for every pod that the policy isolates."""
    covers = not selector_of(other) or selector_of(other) == selector_of(policy)
    return covers and isolates_egress(other) and allows_dns(other)


def role_cannot_change_scheduling(index: Index) -> Iterator[Problem]:
    roles = Roles(index.objects)
    reported: set[tuple[int, object]] = set()
    for binding in bindings(index.objects):
        if not _is_tenants(index, binding):
            continue
        if binding.role_name == ALMIGHTY:
            message = f"{binding.object.name} gives a tenant cluster-admin"
            yield Problem(binding.object, ("roleRef",), message, "bind a role that lists what the team needs")
        for grant in roles.grants(binding):
            key = (id(grant.role), grant.pointer)
            if key not in reported and (powers := _powers(grant)):
                reported.add(key)
                message = f"a tenant, by {binding.object.ref}, may {names.listed(powers, 8)}"
                yield Problem(grant.role, grant.pointer, message, "leave these to the platform's own roles")


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


def _is_tenants(index: Index, binding: Binding) -> bool:
    """A tenant's binding: to a Team's group or in a Team's namespace; without Teams, one to a user or group outside
    the namespaces of the platform's parts."""
    if binding.is_kubernetes_own:
        return False
    subjects = [subject for _, subject in binding.subjects]
    if index.teams:
        namespaces = {name for team in index.teams for name in mapping(team.spec.get("namespaces"))}
        groups = team_groups(index)
        return binding.namespace in namespaces or any(
            subject.get("kind") == "Group" and subject.get("name") in groups for subject in subjects
        )
    if binding.namespace in _PLATFORM or str(binding.namespace).startswith("kube-"):
        return False
    people = (subject for subject in subjects if subject.get("kind") in ("User", "Group"))
    return any(not str(subject.get("name")).startswith(SYSTEM) for subject in people)


def team_groups(index: Index) -> set[str]:
    """Every group that some team gives access to."""
    access = [mapping(team.spec.get("access")) for team in index.teams]
    return {str(group) for levels in access for members in levels.values() for group in members or ()}


def binding_names_no_system_group(index: Index) -> Iterator[Problem]:
    for binding in bindings(index.objects):
        for pointer, subject in binding.subjects:
            name = subject.get("name")
            if subject.get("kind") == "Group" and name in _SYSTEM_GROUPS and not binding.is_kubernetes_own:
                message = f"binds {name}, which {_WHO[str(name)]}"
                yield Problem(binding.object, (*pointer, "name"), message, "name a group of the identity provider")


_WHO = {
    "system:masters": "passes every check of the API server and cannot be taken back",
    "system:authenticated": "is everyone who can log in",
    "system:unauthenticated": "is everyone on the network",
}


def group_belongs_to_a_team(index: Index) -> Iterator[Problem]:
    known = team_groups(index)
    for binding in bindings(index.objects):
        for pointer, subject in binding.subjects:
            name = str(subject.get("name"))
            is_own = name.startswith(SYSTEM) or binding.is_kubernetes_own
            if subject.get("kind") == "Group" and not is_own and name not in known:
                message = f"the group {name} is bound, and no team declares it"
                hint = names.did_you_mean(name, known, otherwise="add it to a team's access")
                yield Problem(binding.object, (*pointer, "name"), message, hint)
    for team in index.teams:
        access = mapping(team.spec.get("access"))
        if not any(access.values()):
            message = f"nobody may use the team {team.name}: it gives no group access"
            yield Problem(team, ("spec", "access"), message, "add a group to access.admin, edit or view")


RULES = (
    Rule("namespace-has-one-team", Severity.ERROR, namespace_has_one_team),
    Rule("namespace-is-not-system", Severity.ERROR, namespace_is_not_system),
    Rule("quota-key-is-legal", Severity.ERROR, quota_key_is_legal),
    Rule("quota-is-enforced-early", Severity.WARNING, quota_is_enforced_early, needs=(Fact.SCHEDULER,)),
    Rule("quota-reaches-entitlement", Severity.WARNING, quota_reaches_entitlement, needs=(Fact.TEAMS,)),
    Rule("network-allows-dns", Severity.ERROR, network_allows_dns),
    Rule("role-cannot-change-scheduling", Severity.ERROR, role_cannot_change_scheduling),
    Rule("binding-names-no-system-group", Severity.ERROR, binding_names_no_system_group),
    Rule("group-belongs-to-a-team", Severity.WARNING, group_belongs_to_a_team, needs=(Fact.TEAMS,)),
)
