"""The family Kubernetes objects: what the API server itself would refuse, or prune without a word."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt import names, quantities
from basalt.api import cel, metadata, object_names, structural
from basalt.api.kinds import Catalog, Kind
from basalt.api.schemas import Shape, ShapeFault, show
from basalt.api.versions import Version
from basalt.findings import Problem, Severity
from basalt.gathering import places
from basalt.index import Index
from basalt.objects import KubeObject
from basalt.pointers import get
from basalt.rules.rule import Rule, Scope, noted

_GROUPS = ("apps", "autoscaling", "batch", "extensions", "policy")  # those without a dot that there are or were
_OWN_KINDS = ("Environment", "Team", "Guardrail")  # what a TrainingJob says is judged in the Job that it becomes
_LABELLED = ("Environment", "Team")


def object_matches_schema(index: Index) -> Iterator[Problem]:
    yield from noted("object-matches-schema")(index)
    any_object = _any_object(index)  # built once: its validator is compiled when the first unknown kind is met
    for declared in index.objects:
        kind = index.catalog.find(*declared.ref[:2])
        shape = kind.shape if kind else any_object
        for fault in shape.faults(declared.value):
            if not _knowing_versions(index, declared, fault):
                yield Problem(declared, fault.pointer, fault.message, fault.hint)
    yield from _templates(index)


def _templates(index: Index) -> Iterator[Problem]:
    """The values in the pods of Volcano's jobs that Kubernetes does not take: Volcano's CRDs list their fields, without
    the values of enumerations."""
    deployment = index.catalog.find("apps/v1", "Deployment")
    if deployment is None:
        return
    shape = Shape({"$ref": _POD_TEMPLATE, "definitions": deployment.shape.schema["definitions"]})
    for job in index.workloads:
        for task in job.tasks:
            if isinstance(template := task.value.get("template"), Mapping):
                for fault in shape.faults(template):
                    if fault.is_enumeration:
                        at = (*task.pointer, "template", *fault.pointer)
                        yield Problem(job.object, at, fault.message, fault.hint)


def _any_object(index: Index) -> Shape:
    """What holds for an object of any kind: its metadata is an ObjectMeta."""
    known = index.catalog.find("v1", "ConfigMap")
    if known is None:
        return Shape({})
    definitions = known.shape.schema["definitions"]
    return Shape({"properties": {"metadata": {"$ref": _OBJECT_META}}, "definitions": definitions})


_POD_TEMPLATE = "#/definitions/io.k8s.api.core.v1.PodTemplateSpec"
_OBJECT_META = f"#/definitions/{structural.OBJECT_META}"


def api_is_served(index: Index) -> Iterator[Problem]:
    for declared in index.objects:
        kind = index.catalog.find(*declared.ref[:2])
        if kind is None:
            yield from _unserved(index, declared)
        elif index.catalog.is_declared:
            yield from _partly_served(index, declared, kind)


def _partly_served(index: Index, declared: KubeObject, kind: Kind) -> Iterator[Problem]:
    """An API that is off unless it is switched on; a field that only other versions know."""
    if not kind.default_on:
        message = f"{declared.ref.api_version} {declared.ref.kind} is off in an API server unless it is switched on"
        others = _on(index.catalog, declared.ref.kind, str(index.catalog.product(declared.ref.api_version)))
        yield Problem(declared, ("apiVersion",), message, others or "switch it on by --runtime-config")
    for fault in kind.shape.faults(declared.value):
        if found := _knowing_versions(index, declared, fault):
            product = str(index.catalog.product(declared.ref.api_version))
            version = index.catalog.versions[product]
            message = f"{product.title()} {version} does not know {fault.field}"
            raising = (
                f"{found[0]} does: raise spec.{product}.version, or" if found[0] > version else f"{found[-1]} did:"
            )
            hint = f"{product.title()} {raising} take the field out"
            yield Problem(declared, fault.pointer, message, hint)


def _unserved(index: Index, declared: KubeObject) -> Iterator[Problem]:
    catalog, ref = index.catalog, declared.ref
    if ref.api_version.count("/") > 1 or not all(ref.api_version.split("/")):
        message = f"{show(ref.api_version)} is no apiVersion"
        yield Problem(declared, ("apiVersion",), message, "write a group and a version, apps/v1, or v1 alone")
        return
    alternatives = catalog.alternatives(ref.kind)
    product = catalog.product(ref.api_version)
    if product is None and "." not in ref.group and (alternatives or names.nearest(ref.group, _GROUPS)):
        product = "kubernetes"  # a CustomResourceDefinition's group has a dot
    serving = catalog.serving(ref.api_version, ref.kind)
    if product is None and (versions := catalog.custom_versions(ref.group, ref.kind)):
        message = f"{ref.api_version} {ref.kind} is not served by its CustomResourceDefinition"
        yield Problem(declared, ("apiVersion",), message, f"use {' or '.join(versions)}")
    if product is None or (serving and not catalog.is_declared):
        return  # unknown, or some version serves it and nobody said which this is
    known = _on(catalog, ref.kind, product)
    if not known and not serving:
        known = names.did_you_mean(ref.kind, catalog.kind_names)
    where = catalog.versions[product] if catalog.is_declared else "of any version that Basalt knows"
    message = f"{ref.api_version} {ref.kind} is not served by {product.title()} {where}"
    hint = "; ".join(filter(None, (_serving(serving, catalog.versions[product], product), known)))
    yield Problem(declared, ("apiVersion",) if alternatives or serving else ("kind",), message, hint)


def _on(catalog: Catalog, kind: str, product: str) -> str:
    """The way out that other versions of the API offer: those that are on, of the same product before others."""
    found = [each for each in catalog.alternatives(kind) if (known := catalog.find(each, kind)) and known.default_on]
    same = [each for each in found if catalog.product(each) == product]
    return f"use {' or '.join(same or found)}" if found else ""


def _serving(found: tuple[Version, ...], declared: Version, product: str) -> str:
    """The way out that other versions than the declared one offer."""
    if not found:
        return ""
    if found[0] > declared:
        return f"{product.title()} {found[0]} serves it: raise spec.{product}.version"
    return f"{product.title()} {found[-1]} was the last to serve it"


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
        for pointer, (expression, message) in cel.broken(kind.cel, declared.value):
            demand = f"the API server asks for {expression}"
            yield Problem(declared, pointer, message or f"fails {expression}", demand if message else "")


def name_is_valid(index: Index) -> Iterator[Problem]:
    yield from noted("name-is-valid")(index)
    told: set[tuple[int, str]] = set()  # several objects may take one name from their document
    for problem in _all_names(index):
        place = problem.place
        name = (id(places.written(place)), str(_named(problem)))
        if not isinstance(place, KubeObject) or place.module is None or name not in told:
            yield problem
        told.add(name)


def _named(problem: Problem) -> Any:
    """The name that a problem is about: what stands at its pointer, or the key that does."""
    is_key = problem.pointer[-2:-1] in (("labels",), ("annotations",), ("nodeSelector",))
    return problem.pointer[-1] if is_key else get(places.value(problem.place), problem.pointer)


def _all_names(index: Index) -> Iterator[Problem]:
    for declaration in index.declarations:
        if declaration.kind in _LABELLED and declaration.name:
            yield from metadata.wrong_name(declaration, ("metadata", "name"), declaration.name, names.label_fault)
        if declaration.kind in _OWN_KINDS:
            yield from metadata.faults(declaration, declaration.value)
    for declared in index.objects:
        yield from object_names.faults(declared, index.catalog)


def quantity_is_valid(index: Index) -> Iterator[Problem]:
    for declared, kind in _known(index):
        for pointer, resource, value in structural.quantities(kind.trie, declared.value):
            if fault := _quantity_fault(resource, value):
                yield Problem(declared, pointer, *fault)
    yield from _node_quantities(index)


def _node_quantities(index: Index) -> Iterator[Problem]:
    """Of all nodes, each resource and amount looked at once: an inventory of thousands repeats a few."""
    written: set[tuple[str, Any]] = set()
    for node in index.nodes:
        written.update((node.status.allocatable or {}).items(), (node.status.capacity or {}).items())
    wrong = {entry: fault for entry in written if (fault := _quantity_fault(*entry))}
    for node in index.nodes if wrong else ():
        for field in ("allocatable", "capacity"):
            for entry in (getattr(node.status, field) or {}).items():
                if entry in wrong:
                    yield Problem(index.place_of(node), ("status", field, entry[0]), *wrong[entry])


def _quantity_fault(resource: str | None, value: Any) -> tuple[str, str] | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None  # object-matches-schema speaks
    amount, shown = quantities.parse(value), show(value).strip('"')
    if amount is None:
        return f"{shown or 'an empty text'} is not a quantity", _QUANTITIES
    if amount < 0:
        return f"{shown} is negative", "resources are counted from 0"
    name = (resource or "").removeprefix("requests.").removeprefix("limits.")
    if quantities.is_extended(name) and not isinstance(amount, int):
        return f"{shown} of {name}, which is only given out whole", "write a whole number"
    return None


_QUANTITIES = "write a number, with one of n u m k M G T P E or Ki Mi Gi Ti Pi Ei behind it: 500m, 64Gi"

RULES = (
    Rule("object-matches-schema", Severity.ERROR, object_matches_schema, is_general=True, scope=Scope.APART),
    Rule("object-passes-cel", Severity.ERROR, object_passes_cel, scope=Scope.APART),
    Rule("api-is-served", Severity.ERROR, api_is_served, scope=Scope.APART),
    Rule("name-is-valid", Severity.ERROR, name_is_valid, scope=Scope.APART),
    Rule("quantity-is-valid", Severity.ERROR, quantity_is_valid, is_general=True, scope=Scope.APART),
)
