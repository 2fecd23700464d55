"""Documents as the rest of the compiler sees them: one written down, or several merged into one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from basalt.findings import Ref, Source
from basalt.loading.sources import SourceFile
from basalt.pointers import Pointer, has

GROUP = "basalt.dev"
API_VERSION = f"{GROUP}/v1alpha1"
KINDS = ("Environment", "Team", "TrainingJob", "Guardrail")
WAIVER = f"{GROUP}/waive"
# Where a null says something itself: it removes a field of the generated object, or is a value of a Cerberus schema.
_KEEPING_NULLS = {"TrainingJob": "patch", "Guardrail": "schema"}


def ref_of(value: Any) -> Ref | None:
    """The identity that a document claims; None where it has no kind."""
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        return None
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    api_version = value.get("apiVersion")
    return Ref(
        api_version if isinstance(api_version, str) else "",
        value["kind"],
        namespace if isinstance(namespace, str) and namespace else None,
        name if isinstance(name, str) else "",
    )


def annotation(value: Any, key: str) -> str | None:
    metadata = value.get("metadata") if isinstance(value, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    text = annotations.get(key) if isinstance(annotations, Mapping) else None
    return text if isinstance(text, str) else None


class _Written:
    """What a document and a declaration have in common: a value that tells its identity and its waiver."""

    __slots__ = ()
    value: Any

    @property
    def ref(self) -> Ref | None:
        return ref_of(self.value)

    @property
    def waiver(self) -> str | None:
        return annotation(self.value, WAIVER)


@dataclass(frozen=True, slots=True, eq=False)
class Document(_Written):
    """One document of one file; prefix is its place in the file's document where it is an item of a List."""

    file: SourceFile
    index: int
    value: Any
    prefix: Pointer = ()

    def position(self, pointer: Pointer) -> Source:
        return self.file.position(self.index, (*self.prefix, *pointer))


@dataclass(frozen=True, slots=True, eq=False)
class Declaration(_Written):
    """A Basalt document after merging: the value, and the documents it came from, the last one counting most."""

    value: dict[str, Any]
    layers: tuple[Document, ...]

    @property
    def kind(self) -> str:
        return str(self.value["kind"])

    @property
    def name(self) -> str:
        ref = self.ref
        return ref.name if ref else ""

    @property
    def spec(self) -> dict[str, Any]:
        spec = self.value.get("spec")
        return spec if isinstance(spec, dict) else {}

    def position(self, pointer: Pointer) -> Source:
        """Where the value stands: in the last document that says it, else where the nearest value around it does."""
        for length in range(len(pointer), -1, -1):
            for layer in reversed(self.layers):
                if has(layer.value, pointer[:length]):
                    return layer.position(pointer[:length])
        return self.layers[-1].position(())


def merge(target: Any, patch: Any, *, keep_nulls: bool = False) -> Any:
    """The target with the JSON Merge Patch (RFC 7386) applied; neither argument is changed.

    keep_nulls composes two patches instead: a null stays, because it still has something to remove.
    """
    if not isinstance(patch, dict):
        return patch
    merged: dict[str, Any] = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None and not keep_nulls:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value, keep_nulls=keep_nulls)
    return merged


def merge_documents(documents: tuple[Document, ...]) -> Declaration:
    """The declaration that documents of one identity make together, in the order given."""
    value: dict[str, Any] = {}
    kept: Any = None
    for document in documents:
        value = merge(value, document.value)
        spec, field = document.value.get("spec"), _KEEPING_NULLS.get(document.value["kind"])
        if field is not None and isinstance(spec, dict) and spec.get(field) is not None:
            kept = merge(kept, spec[field], keep_nulls=True)
    if kept is not None and isinstance(value.get("spec"), dict):
        value = {**value, "spec": {**value["spec"], _KEEPING_NULLS[value["kind"]]: kept}}
    return Declaration(value, documents)
