"""Kubernetes objects as rules see them: generated from a declaration or written by hand, all alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from basalt.api.charts import Chart
from basalt.findings import Ref, Source
from basalt.gathering.documents import Declaration, Document, ref_of
from basalt.pointers import Pointer

RELEASE = ("helm.sh/v3", "Release")
CHART_DIGEST = "basalt.dev/chart-digest"  # of the archive that a release is meant to install
SURVIVE = "basalt.dev/survive"  # of a job: the tier of which any one domain may fail, by name or number
MANAGED_BY = {"app.kubernetes.io/managed-by": "basalt"}
POD_SECURITY = "pod-security.kubernetes.io/enforce"  # of a namespace: the Pod Security level that its pods must keep
_PURPOSE = "basalt.dev/purpose"


Origins = dict[Pointer, Pointer]


class Manifest(NamedTuple):
    """What a module makes: a Kubernetes object, and for its parts the value of the document they follow from.

    origins maps pointers in the object to pointers in the document; a value without an entry follows its nearest
    ancestor that has one.
    """

    value: dict[str, Any]
    origins: Mapping[Pointer, Pointer]


def below(at: Pointer, origins: Mapping[Pointer, Pointer]) -> Origins:
    """The origins of a part, as those of what has it at the pointer."""
    return {(*at, *pointer): origin for pointer, origin in origins.items()}


@dataclass(frozen=True, slots=True, eq=False)
class KubeObject:
    """One object and where each of its values was written. module is None for a raw manifest."""

    value: Mapping[str, Any]
    written: Document | Declaration
    origins: Mapping[Pointer, Pointer] | None = None
    module: str | None = None
    ref: Ref = field(init=False)  # a slot, no property: every rule asks every object

    def __post_init__(self) -> None:
        object.__setattr__(self, "ref", ref_of(self.value) or Ref("", "", None, ""))

    @property
    def name(self) -> str:
        return self.ref.name

    @property
    def waiver(self) -> str | None:
        return self.written.waiver

    @property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.value.get("spec"))

    @property
    def labels(self) -> Mapping[str, Any]:
        return mapping(mapping(self.value.get("metadata")).get("labels"))

    def origin(self, pointer: Pointer) -> Pointer:
        """The pointer in the document that the value at the pointer follows from."""
        if self.origins is None:
            return pointer
        for length in range(len(pointer), -1, -1):
            if pointer[:length] in self.origins:
                return (*self.origins[pointer[:length]], *pointer[length:])
        return ()

    def position(self, pointer: Pointer) -> Source:
        return self.written.position(self.origin(pointer))


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a map, else an empty one: rules go on where object-matches-schema has spoken."""
    if type(value) is dict:  # what it mostly is; Mapping is slow to ask
        return value
    return value if value is not None and isinstance(value, Mapping) else {}


def sequence(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    """The texts in a list; anything else in it is left to object-matches-schema."""
    return [each for each in sequence(value) if isinstance(each, str)]


def pod_security(level: str) -> dict[str, str]:
    """The labels of a namespace that enforces a Pod Security level, and that warns and keeps records by the same."""
    return {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}


def is_for_development(labels: Mapping[str, Any]) -> bool:
    """Whether what has these labels is for development only."""
    return labels.get(_PURPOSE) == "development"


def defined_kind(definition: KubeObject) -> tuple[str, str]:
    """The group and the kind that a CustomResourceDefinition defines."""
    spec = definition.spec
    return str(spec.get("group")), str(mapping(spec.get("names")).get("kind"))


def release(
    chart: Chart, name: str, namespace: str, values: Mapping[str, Any], at: Pointer, origins: Mapping[Pointer, Pointer]
) -> Manifest:
    """A release of a chart, as Pulumi's helm.v3.Release spells it; at is what declares it, origins those of its values,
    with pointers into the values."""
    spec: dict[str, Any] = {
        "chart": chart.name,
        "version": chart.version,
        "repositoryOpts": {"repo": chart.repository},
        "values": values,
    }
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": MANAGED_BY}
    if chart.digest is not None:
        metadata["annotations"] = {CHART_DIGEST: chart.digest}
    value = {"apiVersion": RELEASE[0], "kind": RELEASE[1], "metadata": metadata, "spec": spec}
    moved = {("spec", "values", *pointer): origin for pointer, origin in origins.items()}
    return Manifest(value, {(): at, ("spec", "version"): (*at, "version"), **moved})


def generated(manifest: Manifest, written: Declaration, module: str) -> KubeObject:
    return KubeObject(manifest.value, written, manifest.origins, module)
