"""How the engine treats each kind of object: what it may not delete, what it replaces, what it leaves to controllers,
and what it waits for. Decided by the object alone."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pulumi

from basalt.api import immutable
from basalt.api.schemas import Shape
from basalt.gathering.expanding import newest
from basalt.objects import KubeObject
from basalt.pointers import get
from basalt.rendering import layout
from basalt.views import chart_catalogue
from basalt.views.releases import releases

# Deleting one takes along what nobody can make again: everything in a namespace, the data of a claim, every object of a
# kind.
_HOLDING_DATA = frozenset(
    (
        ("", "Namespace"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    )
)
# What controllers write into objects that others declare. Certificates are put in by whoever signs them.
_OF_CONTROLLERS = {
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): ("webhooks[*].clientConfig.caBundle",),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): ("webhooks[*].clientConfig.caBundle",),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("spec.conversion.webhook.clientConfig.caBundle",),
    ("apiregistration.k8s.io", "APIService"): ("spec.caBundle",),
    ("", "PersistentVolumeClaim"): ("spec.volumeName",),
    ("", "ServiceAccount"): ("secrets",),
}
_SCALED = (("apps", "Deployment"), ("apps", "StatefulSet"))
# Under another of these the engine still knows the object: a new apiVersion is no new object.
_VERSIONS = {
    "admissionregistration.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "autoscaling": ("v2", "v1"),
    "flowcontrol.apiserver.k8s.io": ("v1", "v1beta3"),
    "helm.toolkit.fluxcd.io": ("v2", "v2beta2", "v2beta1"),
    "resource.k8s.io": ("v1", "v1beta2", "v1beta1"),
    "source.toolkit.fluxcd.io": ("v1", "v1beta2"),
}
_SEALED = ("data", "binaryData", "stringData")
_Path = tuple[str, ...]
MANAGER = "pulumi.com/patchFieldManager"
OURSELVES = "pulumi-basalt"
WAIT = "pulumi.com/waitFor"
OPEN = "jsonpath={.status.state}=Open"


class Options(NamedTuple):
    """What all objects of a kind have in common."""

    type: str
    is_kept: bool
    ignored: list[str]
    replacing: list[str]
    aliases: tuple[pulumi.Alias, ...]


@cache
def of_kind(api_version: str, kind: str, *, is_sealed: bool = False) -> Options:
    """is_sealed where the object says `immutable: true`."""
    group = api_version.rpartition("/")[0]
    return Options(
        type_token(api_version, kind),
        (group, kind) in _HOLDING_DATA,
        ["status", *_OF_CONTROLLERS.get((group, kind), ())],
        [*_replacing(api_version, kind), *(_SEALED if is_sealed else ())],
        tuple(
            pulumi.Alias(type_=type_token(f"{group}/{version}", kind))
            for version in _VERSIONS.get(group, ())
            if f"{group}/{version}" != api_version
        ),
    )


def type_token(api_version: str, kind: str) -> str:
    """As pulumi-kubernetes spells a kind: the core group has a name there."""
    return f"kubernetes:{api_version if '/' in api_version else f'core/{api_version}'}:{kind}"


def _replacing(api_version: str, kind: str) -> Iterator[str]:
    """What cannot change in place, as Pulumi writes paths: spec.tasks[*].template. A fixed field in which something may
    change is told by those in it that may not, which the schema knows."""
    fields = immutable.FIELDS.get((api_version.rpartition("/")[0], kind))
    known = newest().find(api_version, kind)
    for path in fields.fixed if fields else ():
        for found in _without(tuple(path.split(".")), _steps(fields), known.shape if known else None):
            yield ".".join(found).replace(".*", "[*]")


def _steps(fields: immutable.Fields | None) -> tuple[_Path, ...]:
    return tuple(tuple(path.split(".")) for path in fields.but) if fields else ()


def _without(path: _Path, exceptions: tuple[_Path, ...], shape: Shape | None) -> Iterator[_Path]:
    inside = [each for each in exceptions if each[: len(path)] == path]
    if path in inside:
        return
    below = _below(path, shape) if inside else ()
    if not below:
        yield path
    for step in below:
        yield from _without((*path, step), exceptions, shape)


def _below(path: _Path, shape: Shape | None) -> tuple[str, ...]:
    """The fields that the schema has there; * for the items of a list."""
    schema = shape.at(tuple(0 if step == "*" else step for step in path)) if shape else None
    return ("*",) if schema and "items" in schema else tuple(schema.get("properties", ()) if schema else ())


def _fixed_lists(group: str, kind: str) -> Iterator[_Path]:
    """The lists whose number of items is final, although something in the items may change."""
    passing = (path for path in _steps(immutable.FIELDS.get((group, kind))) if "*" in path)
    yield from dict.fromkeys(path[: path.index("*")] for path in passing)


def of(declared: KubeObject, *, scaled: frozenset[tuple[str, str | None, str]]) -> dict[str, Any]:
    """What the object's ResourceOptions say beside its parent, its provider and what it depends on; scaled are those
    whose replicas an autoscaler sets, by kind, namespace and name."""
    ref = declared.ref
    common = of_kind(ref.api_version, ref.kind, is_sealed=declared.value.get("immutable") is True)
    ignored = common.ignored
    if (ref.kind, ref.namespace, ref.name) in scaled:
        ignored = [*ignored, "spec.replicas"]
    found: dict[str, Any] = {"ignore_changes": ignored}
    if common.is_kept or _holds_definitions(declared):
        found |= {"protect": True, "retain_on_delete": True}
    if common.replacing:
        found |= {"replace_on_changes": common.replacing, "delete_before_replace": True}
    if fixed := tuple(_fixed_lists(ref.group, ref.kind)):
        sizes = [len(items) if isinstance(items := get(declared.value, path), list) else 0 for path in fixed]
        found["replacement_trigger"] = sizes
    if common.aliases:
        found["aliases"] = list(common.aliases)
    return found


def _holds_definitions(declared: KubeObject) -> bool:
    """Whether it is a chart with CustomResourceDefinitions: those that are templates go with it, and their objects."""
    if not layout.is_release(declared):
        return False
    return any(chart_catalogue.has_definitions(each.chart) for each in releases((declared,)))


def scaled(objects: Iterable[KubeObject]) -> frozenset[tuple[str, str | None, str]]:
    """What HorizontalPodAutoscalers scale, by kind, namespace and name."""
    found = set()
    for each in objects:
        if each.ref.kind == "HorizontalPodAutoscaler":
            target = each.spec.get("scaleTargetRef")
            kind, name = get(target, ("kind",)), get(target, ("name",))
            if any(kind == known for _, known in _SCALED):
                found.add((str(kind), each.ref.namespace, str(name)))
    return frozenset(found)


def told(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
    """A transform that tells the provider how to treat an object, while what is registered stays what `basalt compile`
    writes. It applies under the name of one manager: else it makes up a name for each object that only the state knows,
    and after a state was lost, with a killed run that wrote none, it quarrels with itself. And it waits for a queue to
    open, as Volcano's webhook asks before it takes a job."""
    waits = {WAIT: OPEN} if ":Queue" in args.type_ else {}
    given: dict[str, Any] = dict(args.props)
    metadata = given.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), MANAGER: OURSELVES, **waits}
    return _with({**given, "metadata": {**metadata, "annotations": annotations}})


def unsaid(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
    """A transform that leaves to the provider's environment what its class would read there when the program runs."""
    return _with({key: value for key, value in args.props.items() if key != "upsertExistingObjects"})


def _with(props: dict[str, Any]) -> pulumi.ResourceTransformResult:
    """Those properties, and the options as they are: the SDK cannot give a replacement_trigger back."""
    return pulumi.ResourceTransformResult(props, None)  # type: ignore[arg-type]
