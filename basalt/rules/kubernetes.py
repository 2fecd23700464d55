"""The family Kubernetes objects: what the API server itself would refuse, or prune without a word."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt import cel, names, quantities, structural
from basalt.findings import Place, Problem, Severity
from basalt.index import Index
from basalt.kinds import Kind
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.rules.rule import Rule, noted
from basalt.schemas import ShapeFault

_OWN_NAMES = {"Environment": names.label_fault, "Team": names.label_fault}
_NAME_RULES = {
    ("", "Namespace"): names.label_fault,
    ("", "Service"): names.label_1035_fault,
    ("rbac.authorization.k8s.io", "Role"): names.path_segment_fault,
    ("rbac.authorization.k8s.io", "RoleBinding"): names.path_segment_fault,
    ("rbac.authorization.k8s.io", "ClusterRole"): names.path_segment_fault,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): names.path_segment_fault,
}


def object_matches_schema(index: Index) -> Iterator[Problem]:
    yield from noted("object-matches-schema")(index)
    for declared, kind in _known(index):
        for fault in kind.shape.faults(declared.value):
            if not _knowing_versions(index, declared, fault):
                yield Problem(declared, fault.pointer, fault.message, fault.hint)


def api_is_served(index: Index) -> Iterator[Problem]:
    for declared in index.objects:
        kind = index.catalog.find(*declared.ref[:2])
        if kind is None:
            yield from _unserved(index, declared)
        elif not kind.default_on:
            message = f"{declared.ref.api_version} {declared.ref.kind} is off in an API server unless it is switched on"
            yield Problem(declared, ("apiVersion",), message, "use a served version; see --runtime-config")
    for declared, kind in _known(index):
        for fault in kind.shape.faults(declared.value):
            if found := _knowing_versions(index, declared, fault):
                product = str(index.catalog.product(declared.ref.api_version))
                message = f"{product.title()} {index.catalog.versions[product]} does not know {fault.field}"
                hint = f"{product.title()} {_span(found)} does: raise spec.{product}.version, or take the field out"
                yield Problem(declared, fault.pointer, message, hint)


def _unserved(index: Index, declared: KubeObject) -> Iterator[Problem]:
    catalog, ref = index.catalog, declared.ref
    product = catalog.product(ref.api_version)
    if product is None or not ref.kind or not ref.api_version:
        return
    serving = catalog.serving(ref.api_version, ref.kind)
    if serving and not catalog.is_declared:
        return  # some version serves it, and nobody said which this is
    alternatives = catalog.alternatives(ref.kind)
    known = f"use {' or '.join(alternatives)}" if alternatives else names.did_you_mean(ref.kind, catalog.kind_names)
    where = f"{product.title()} {catalog.versions[product]}" if catalog.is_declared else f"no {product.title()} here"
    message = f"{ref.api_version} {ref.kind} is not served by {where}"
    hint = f"{_span(serving)} served it; {known}" if serving else known
    yield Problem(declared, ("apiVersion",) if alternatives or serving else ("kind",), message, hint)


def _span(found: tuple[Any, ...]) -> str:
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _known(index: Index) -> Iterator[tuple[KubeObject, Kind]]:
    for declared in index.objects:
        kind = index.catalog.find(*declared.ref[:2])
        if kind is not None:
            yield declared, kind


def _knowing_versions(index: Index, declared: KubeObject, fault: ShapeFault) -> tuple[Any, ...]:
    """The versions that know a field which the declared one does not."""
    if fault.field is None:
        return ()
    return index.catalog.knowing(*declared.ref[:2], fault.pointer)


def object_passes_cel(index: Index) -> Iterator[Problem]:
    for declared, kind in _known(index):
        for pointer, message in cel.broken(kind.cel, declared.value):
            yield Problem(declared, pointer, message, "see the kind's CustomResourceDefinition")


def name_is_valid(index: Index) -> Iterator[Problem]:
    for declaration in index.declarations:
        if declaration.kind in _OWN_NAMES and declaration.name:
            if fault := _OWN_NAMES[declaration.kind](declaration.name):
                yield Problem(declaration, ("metadata", "name"), f"{declaration.name} {fault}")
            yield from _metadata_faults(declaration, declaration.value, ())
    for declared in index.objects:
        yield from _object_names(declared)


def _object_names(declared: KubeObject) -> Iterator[Problem]:
    ref = declared.ref
    check = _NAME_RULES.get((ref.group, ref.kind), names.subdomain_fault)
    metadata = mapping(declared.value.get("metadata"))
    if ref.name and (fault := check(ref.name)):
        yield Problem(declared, ("metadata", "name"), f"{ref.name} {fault}")
    elif not ref.name and not isinstance(metadata.get("generateName"), str):
        yield Problem(declared, ("metadata",), "no name", "add metadata.name")
    if ref.namespace is not None and (fault := names.label_fault(ref.namespace)):
        yield Problem(declared, ("metadata", "namespace"), f"{ref.namespace} {fault}")
    yield from _metadata_faults(declared, declared.value, ())
    for pointer, template in _templates(declared.value.get("spec"), ("spec",)):
        yield from _metadata_faults(declared, template, pointer)


def _templates(spec: Any, pointer: Pointer) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
    """The templates inside a spec whose metadata is a pod's or a job's."""
    for key in ("template", "jobTemplate"):
        template = mapping(spec).get(key)
        if isinstance(template, Mapping):
            yield (*pointer, key), template
            yield from _templates(template.get("spec"), (*pointer, key, "spec"))
    for position, task in enumerate(sequence(mapping(spec).get("tasks"))):
        yield from _templates(task, (*pointer, "tasks", position))


def _metadata_faults(place: Place, value: Mapping[str, Any], pointer: Pointer) -> Iterator[Problem]:
    metadata = mapping(value.get("metadata"))
    for field in ("labels", "annotations"):
        for key, text in mapping(metadata.get(field)).items():
            at = (*pointer, "metadata", field, key)
            if fault := names.qualified_fault(key):
                yield Problem(place, at, f"the key {key}: {fault}")
            elif field == "labels" and isinstance(text, str) and (fault := names.label_value_fault(text)):
                yield Problem(place, at, f"the value {text} {fault}")


def quantity_is_valid(index: Index) -> Iterator[Problem]:
    for declared, kind in _known(index):
        for pointer, resource, value in structural.quantities(kind.trie, declared.value):
            if fault := _quantity_fault(resource, value):
                yield Problem(declared, pointer, *fault)
    for node in index.nodes:
        for resource, value in node.allocatable.items():
            if quantities.parse(value) is None:
                pointer = ("status", "allocatable", resource)
                yield Problem(index.place_of(node), pointer, f"{value} is not a quantity")


def _quantity_fault(resource: str | None, value: Any) -> tuple[str, str] | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None  # object-matches-schema speaks
    amount = quantities.parse(value)
    if amount is None:
        return (
            f"{value} is not a quantity",
            "write a number with one of n u m k M G T P E or Ki Mi Gi Ti Pi Ei: 500m, 64Gi",
        )
    if amount < 0:
        return f"{value} is negative", "resources are counted from 0"
    name = (resource or "").removeprefix("requests.").removeprefix("limits.")
    if quantities.is_extended(name) and not isinstance(amount, int):
        return f"{value} of {name}, which is only given out whole", "write a whole number"
    return None


RULES = (
    Rule("object-matches-schema", Severity.ERROR, object_matches_schema, is_general=True),
    Rule("object-passes-cel", Severity.ERROR, object_passes_cel),
    Rule("api-is-served", Severity.ERROR, api_is_served),
    Rule("name-is-valid", Severity.ERROR, name_is_valid),
    Rule("quantity-is-valid", Severity.ERROR, quantity_is_valid, is_general=True),
)
