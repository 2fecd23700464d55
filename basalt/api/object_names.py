"""The names in an object, and what they break of Kubernetes' rules: its own, its namespace, its labels and annotations,
and those of the templates, containers, volumes and tasks in it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt import names
from basalt.api import metadata
from basalt.api.kinds import Catalog
from basalt.api.metadata import Check
from basalt.api.versions import Version
from basalt.findings import Problem
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer

_RELAXED_SERVICE_NAMES = Version(1, 36)  # RelaxedServiceNameValidation is on in pkg/features/kube_features.go
_FILES = ("config.k8s.io", "kubeadm.k8s.io", "audit.k8s.io", "kind.x-k8s.io", "descheduler")  # of files, not objects
_RBAC = "rbac.authorization.k8s.io"
_NAME_RULES: dict[tuple[str, str], Check] = {
    ("", "Namespace"): names.label_fault,
    ("", "Service"): names.label_1035_fault,
    ("apps", "StatefulSet"): names.label_fault,
    ("certificates.k8s.io", "CertificateSigningRequest"): names.path_segment_fault,
    **dict.fromkeys(
        ((_RBAC, kind) for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
        names.path_segment_fault,
    ),
}  # Source: the Validate...Name functions in k8s.io/kubernetes/pkg/apis/*/validation
_LONGEST_NAMES = {
    ("batch", "CronJob"): 52,  # ValidateCronJobCreate: the Job's suffix must fit
    ("batch", "Job"): names.LABEL_LENGTH,  # its name becomes the label batch.kubernetes.io/job-name
}


def faults(declared: KubeObject, catalog: Catalog) -> Iterator[Problem]:
    """Every name in the object that the API server would refuse."""
    yield from _own_name(declared, catalog)
    for template in _templates(_Template((), declared.value)):
        yield from metadata.faults(declared, template.value, template.pointer)
        spec = mapping(template.value.get(template.field))
        yield from _inner_names(declared, spec, (*template.pointer, template.field))


def _own_name(declared: KubeObject, catalog: Catalog) -> Iterator[Problem]:
    ref = declared.ref
    found = declared.value.get("metadata")
    if found is not None and not isinstance(found, Mapping):
        return  # object-matches-schema speaks
    if ref.name:
        yield from metadata.wrong_name(declared, ("metadata", "name"), ref.name, _name_check(declared, catalog))
    elif not {"name", "generateName"} & _given(found) and not ref.group.endswith(_FILES):
        yield Problem(declared, ("metadata",), "no name", "add metadata.name")
    if ref.namespace is not None:
        yield from metadata.wrong_name(declared, ("metadata", "namespace"), ref.namespace, names.label_fault)


def _given(found: Any) -> set[str]:
    """The keys that have a value."""
    return {key for key, value in mapping(found).items() if value not in (None, "")}


def _name_check(declared: KubeObject, catalog: Catalog) -> Check:
    """What the API server asks of a name of this kind."""
    key = (declared.ref.group, declared.ref.kind)
    check = _NAME_RULES.get(key, names.subdomain_fault)
    if key == ("", "Service") and catalog.versions["kubernetes"] >= _RELAXED_SERVICE_NAMES:
        check = names.label_fault
    longest, wanted = _LONGEST_NAMES.get(key, names.SUBDOMAIN_LENGTH), _wanted_name(declared)

    def fault(name: str) -> str | None:
        if found := check(name):
            return found
        if len(name) > longest:
            return f"has {len(name)} characters, {longest} are allowed"
        return None if wanted in (None, name) else f"is not {wanted}, the only name that this one can have"

    return fault


def _wanted_name(declared: KubeObject) -> str | None:
    """The name that the API server asks for, of the kinds that have no choice."""
    spec = declared.spec
    if declared.ref.kind == "CustomResourceDefinition":
        parts = (mapping(spec.get("names")).get("plural"), spec.get("group"))
    elif declared.ref.kind == "APIService":
        parts = (spec.get("version"), spec.get("group"))
    else:
        return None
    return ".".join(map(str, parts)) if all(isinstance(part, str) and part for part in parts) else None


class _Template(NamedTuple):
    """What has metadata and the spec of a pod or a job: an object itself, or a template in it."""

    pointer: Pointer
    value: Mapping[str, Any]
    field: str = "spec"


def _templates(outer: _Template) -> Iterator[_Template]:
    """The given one and those inside it."""
    yield outer
    spec, at = mapping(outer.value.get(outer.field)), (*outer.pointer, outer.field)
    for key in ("template", "jobTemplate"):
        if isinstance(spec.get(key), Mapping):
            yield from _templates(_Template((*at, key), spec[key]))
    for position, task in enumerate(map(mapping, sequence(spec.get("tasks")))):
        if isinstance(task.get("template"), Mapping):
            yield from _templates(_Template((*at, "tasks", position, "template"), task["template"]))
    for position, flow in enumerate(map(mapping, sequence(spec.get("flows")))):
        if isinstance(flow.get("patch"), Mapping):
            yield from _templates(_Template((*at, "flows", position, "patch"), flow["patch"], "jobSpec"))


def _inner_names(declared: KubeObject, spec: Mapping[str, Any], at: Pointer) -> Iterator[Problem]:
    """The names inside a pod's or a job's spec."""
    yield from metadata.labels(declared, spec.get("nodeSelector"), (*at, "nodeSelector"))
    checks = {"containers": names.label_fault, "initContainers": names.label_fault, "volumes": names.label_fault}
    if declared.ref.group.endswith("volcano.sh"):
        checks["tasks"] = names.label_fault  # IsDNS1123Label in pkg/webhooks/admission/jobs/validate/admit_job.go
    for field, check in checks.items():
        for position, entry in enumerate(map(mapping, sequence(spec.get(field)))):
            name = entry.get("name")
            if isinstance(name, str) and name:
                yield from metadata.wrong_name(declared, (*at, field, position, "name"), name, check)
