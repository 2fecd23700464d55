"""Which fields of an object the API server, or Volcano's webhook, refuses to change: what differs there takes a new
object in the old one's place."""

from collections.abc import Mapping

EVERY = "*"  # in a path: any item of a list

# By group and kind, as paths below the object. Sources: the kinds' ValidateUpdate in kubernetes/pkg/apis/*/validation,
# and validateJobUpdate of Volcano's pkg/webhooks/admission/jobs/validate, which lets minAvailable, priorityClassName
# and the tasks' replicas and minAvailable change.
_JOB = (
    "schedulerName volumes queue plugins policies maxRetry ttlSecondsAfterFinished minSuccess runningEstimate "
    "networkTopology"
)
_TASK = "name template policies maxRetry topologyPolicy dependsOn partitionPolicy"
_POD_JOB = "selector template completionMode podFailurePolicy backoffLimitPerIndex successPolicy managedBy"

Path = tuple[str, ...]
_PATHS: Mapping[tuple[str, str], tuple[Path, ...]] = {
    ("batch.volcano.sh", "Job"): (
        *(("spec", field) for field in _JOB.split()),
        *(("spec", "tasks", EVERY, field) for field in _TASK.split()),
    ),
    ("scheduling.k8s.io", "PriorityClass"): (("value",), ("preemptionPolicy",)),
    ("batch", "Job"): tuple(("spec", field) for field in _POD_JOB.split()),
    ("apps", "Deployment"): (("spec", "selector"),),
    ("apps", "DaemonSet"): (("spec", "selector"),),
    ("apps", "ReplicaSet"): (("spec", "selector"),),
    ("apps", "StatefulSet"): tuple(
        ("spec", field) for field in ("selector", "serviceName", "volumeClaimTemplates", "podManagementPolicy")
    ),
    ("", "Pod"): (
        ("spec", "nodeName"),
        ("spec", "schedulerName"),
        ("spec", "volumes"),
        ("spec", "priorityClassName"),
        ("spec", "containers", EVERY, "command"),
        ("spec", "containers", EVERY, "args"),
        ("spec", "containers", EVERY, "env"),
        ("spec", "containers", EVERY, "resources"),
        ("spec", "containers", EVERY, "volumeMounts"),
    ),
    ("", "PersistentVolumeClaim"): tuple(
        ("spec", field) for field in ("accessModes", "storageClassName", "selector", "volumeMode", "dataSource")
    ),
    ("", "ResourceQuota"): (("spec", "scopes"), ("spec", "scopeSelector")),
    ("", "Secret"): (("type",),),
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("storage.k8s.io", "StorageClass"): tuple(
        (field,) for field in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
    ),
    ("node.k8s.io", "RuntimeClass"): (("handler",),),
    ("networking.k8s.io", "IngressClass"): (("spec", "controller"),),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (("spec", "group"), ("spec", "scope")),
    ("resource.k8s.io", "ResourceClaim"): (("spec",),),
    ("resource.k8s.io", "ResourceClaimTemplate"): (("spec",),),
}
# Lists of these objects that can neither grow nor shrink.
_FIXED_LISTS: Mapping[tuple[str, str], tuple[Path, ...]] = {("batch.volcano.sh", "Job"): (("spec", "tasks"),)}
# Kinds that say themselves that their content is final.
_SEALABLE = {("", "ConfigMap"): ("data", "binaryData"), ("", "Secret"): ("data", "stringData", "type")}


def paths(group: str, kind: str, *, is_sealed: bool = False) -> tuple[Path, ...]:
    """The paths of the kind's immutable fields; is_sealed where the object says `immutable: true`."""
    sealed = _SEALABLE.get((group, kind), ()) if is_sealed else ()
    return tuple(dict.fromkeys((*_PATHS.get((group, kind), ()), *((field,) for field in sealed))))


def fixed_lists(group: str, kind: str) -> tuple[Path, ...]:
    """The paths of lists whose number of items is final, although some fields of the items are not."""
    return _FIXED_LISTS.get((group, kind), ())
