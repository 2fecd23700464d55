"""The fields that cannot be changed in place: the API server, or Volcano's webhook, refuses the update, so that the
object has to be deleted and made anew.

Source: the Validate…Update functions of k8s.io/kubernetes/pkg/apis/*/validation, and validateJobUpdate in Volcano's
pkg/webhooks/admission/jobs/validate/admit_job.go.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from basalt.findings import Ref
from basalt.pointers import Pointer
from basalt.quantities import parse

_Path = tuple[str, ...]  # "*" stands for any one step


class Fields(NamedTuple):
    """What of a kind stays as it was made: the fixed fields, but for what may change within them. One that is not
    there has its default."""

    fixed: tuple[str, ...]
    but: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}


_SELECTED = Fields(("spec.selector",))
_JOB_MAY = ("spec.minAvailable", "spec.priorityClassName", "spec.tasks.*.replicas", "spec.tasks.*.minAvailable")
_BINDING = Fields(("roleRef",))
FIELDS: Mapping[tuple[str, str], Fields] = {
    ("", "PersistentVolume"): Fields(("spec",), (
        "spec.accessModes", "spec.capacity", "spec.claimRef", "spec.mountOptions", "spec.nodeAffinity",
        "spec.persistentVolumeReclaimPolicy", "spec.storageClassName", "spec.volumeAttributesClassName",
    )),
    ("", "PersistentVolumeClaim"): Fields(
        ("spec",), ("spec.resources.requests", "spec.volumeAttributesClassName"), {"spec.volumeMode": "Filesystem"}
    ),
    ("", "Pod"): Fields(("spec",), (
        "spec.activeDeadlineSeconds", "spec.containers.*.image", "spec.initContainers.*.image", "spec.schedulingGates",
        "spec.tolerations",
    )),
    ("", "ResourceQuota"): Fields(("spec.scopes",)),
    ("", "Secret"): Fields(("type",), defaults={"type": "Opaque"}),
    ("", "Service"): Fields(("spec.clusterIP",)),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Fields(
        ("spec.group", "spec.names.kind", "spec.names.plural", "spec.scope")
    ),
    ("apps", "DaemonSet"): _SELECTED,
    ("apps", "Deployment"): _SELECTED,
    ("apps", "ReplicaSet"): _SELECTED,
    ("apps", "StatefulSet"): Fields(("spec",), (
        "spec.minReadySeconds", "spec.ordinals", "spec.persistentVolumeClaimRetentionPolicy", "spec.replicas",
        "spec.revisionHistoryLimit", "spec.template", "spec.updateStrategy",
    )),
    ("batch", "Job"): Fields((
        "spec.backoffLimitPerIndex", "spec.completionMode", "spec.completions", "spec.managedBy",
        "spec.podFailurePolicy", "spec.selector", "spec.successPolicy", "spec.template",
    ), defaults={"spec.completionMode": "NonIndexed"}),
    ("batch.volcano.sh", "Job"): Fields(
        ("spec",), _JOB_MAY, {"spec.maxRetry": 3, "spec.queue": "default", "spec.schedulerName": "volcano"}
    ),
    ("networking.k8s.io", "IngressClass"): Fields(("spec.controller",)),
    ("node.k8s.io", "RuntimeClass"): Fields(("handler",)),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("resource.k8s.io", "ResourceClaim"): Fields(("spec",)),
    ("resource.k8s.io", "ResourceClaimTemplate"): Fields(("spec",)),
    ("scheduling.k8s.io", "PriorityClass"): Fields(
        ("value", "preemptionPolicy"), defaults={"preemptionPolicy": "PreemptLowerPriority"}
    ),
    ("storage.k8s.io", "StorageClass"): Fields(
        ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
        defaults={"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    ),
}  # fmt: skip
# Of a ConfigMap or Secret that says that it is immutable.
_SEALED = Fields(("binaryData", "data", "immutable", "stringData"))
_NOTHING = Fields(())
_CLAIMED = ("", "PersistentVolumeClaim", ("spec", "resources", "requests", "storage"))  # it only grows


def refuses(ref: Ref, before: Mapping[str, Any], pointer: Pointer, old: Any, new: Any) -> bool:
    """Whether an object, as it was before, takes no other value at the pointer; None is a value that is not there."""
    fields = FIELDS.get((ref.group, ref.kind), _NOTHING)
    if (ref.group, ref.kind, pointer) == _CLAIMED:
        return _is_less(new, old)
    if _is_fixed(fields, pointer):
        default = fields.defaults.get(".".join(map(str, pointer)))
        return default is None or (old, new) not in ((None, default), (default, None))
    is_sealed = ref.group == "" and ref.kind in ("ConfigMap", "Secret") and before.get("immutable") is True
    return is_sealed and _is_fixed(_SEALED, pointer)


def _is_less(one: Any, other: Any) -> bool:
    """Whether one quantity is below the other; not, where one of them is none."""
    less, more = parse(one), parse(other)
    return less is not None and more is not None and less < more


def _is_fixed(fields: Fields, pointer: Pointer) -> bool:
    """Whether the value there is a fixed field, in one or around one, and in none that may change."""
    is_touched = any(_agree(path, pointer) for path in map(_steps, fields.fixed))
    return is_touched and not any(
        len(path) <= len(pointer) and _agree(path, pointer) for path in map(_steps, fields.but)
    )


def _steps(path: str) -> _Path:
    return tuple(path.split("."))


def _agree(path: _Path, pointer: Pointer) -> bool:
    return all(one in ("*", other) for one, other in zip(path, pointer, strict=False))
