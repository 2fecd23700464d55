"""What a cluster runs, as `kubectl get nodes,pods,podgroups -A -o json|yaml` prints it: nodes, pods and PodGroups,
decoded straight into the fields that matter. Other kinds in the list are passed over."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypedDict

import msgspec

from basalt.loading import nodes
from basalt.loading.inventories import Places
from basalt.loading.limits import YAML_BYTES, Fault
from basalt.loading.nodes import Node
from basalt.loading.sources import Misuse, SourceFile
from basalt.pointers import Pointer

_WAY_OUT = "give what kubectl get nodes,pods,podgroups -A -o json prints"
_GROUP = "scheduling.volcano.sh"
_Amounts = dict[str, str | int | float]


class Resources(TypedDict, total=False):
    requests: _Amounts | None
    limits: _Amounts | None


class Port(TypedDict, total=False):
    containerPort: int
    hostPort: int
    protocol: str


class Container(TypedDict, total=False):
    resources: Resources | None
    ports: list[Port] | None
    restartPolicy: str


class PodSpec(TypedDict, total=False):
    """Of a pod's spec what says how much of a node it takes."""

    nodeName: str
    containers: list[Container]
    initContainers: list[Container] | None
    overhead: _Amounts | None
    resources: Resources | None
    hostNetwork: bool


class Owner(msgspec.Struct, frozen=True):
    kind: str
    name: str


class Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = "default"
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: tuple[Owner, ...] | None = None
    deletionTimestamp: str | None = None


class PodStatus(msgspec.Struct, frozen=True):
    phase: str = ""


class Pod(msgspec.Struct, frozen=True, eq=False):
    """One v1 Pod: whose it is, where it stands, and what it takes there."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def node(self) -> str | None:
        return self.spec.get("nodeName") or None

    @property
    def has_ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    def mark(self, key: str) -> str | None:
        """Its annotation, or label, of that name."""
        return (self.metadata.annotations or {}).get(key) or (self.metadata.labels or {}).get(key)


class PodGroupSpec(msgspec.Struct, frozen=True):
    queue: str = ""


class PodGroup(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)


class Snapshot(NamedTuple):
    """A cluster at one moment; each name once."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    groups: tuple[PodGroup, ...]


class _Head(msgspec.Struct):
    apiVersion: str = ""
    kind: str = ""


class _Listing(msgspec.Struct):
    apiVersion: str
    kind: str
    items: list[msgspec.Raw]


_Item = Node | Pod | PodGroup


def read(file: SourceFile) -> Snapshot:
    """The nodes, pods and PodGroups of the file. Raises Misuse, with file and line, where it is no such list: the file
    is an argument, not part of what is declared."""
    listing = _listing(file)
    items = list(_of_texts(file, listing) if listing else _of_documents(file))
    every = {(type(item), item.metadata.namespace if not isinstance(item, Node) else "", item.metadata.name): item
             for item in reversed(items)}  # fmt: skip
    found = list(reversed(every.values()))
    return Snapshot(
        tuple(item for item in found if isinstance(item, Node)),
        tuple(item for item in found if isinstance(item, Pod)),
        tuple(item for item in found if isinstance(item, PodGroup)),
    )


def _listing(file: SourceFile) -> _Listing | None:
    """The texts of the list's items, where the file is one list in JSON; None sends it to the careful reader."""
    try:
        listing = msgspec.json.decode(memoryview(file.data), type=_Listing) if file.is_json else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return listing if listing is not None and _is_list(listing.apiVersion, listing.kind) else None


def _is_list(api_version: Any, kind: Any) -> bool:
    return isinstance(kind, str) and (kind == "List" or _type(api_version, kind.removesuffix("List")) is not None)


def _type(api_version: Any, kind: Any) -> type[_Item] | None:
    if api_version == "v1":
        return Node if kind == "Node" else Pod if kind == "Pod" else None
    return PodGroup if kind == "PodGroup" and str(api_version).partition("/")[0] == _GROUP else None


def _of_texts(file: SourceFile, listing: _Listing) -> Iterator[_Item]:
    whose = listing.apiVersion, listing.kind.removesuffix("List")  # items of a PodList need not say what they are
    for index, text in enumerate(listing.items):
        try:
            head = msgspec.json.decode(text, type=_Head)
            meant = _type(head.apiVersion, head.kind) if head.kind else _type(*whose)
            if meant is not None:
                yield msgspec.json.decode(text, type=meant)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            fact, pointer = _fault(error)
            mark = Places(file.data).mark(("items", index, *pointer))
            raise Misuse(f"{file.source(mark)}: {fact}; {_WAY_OUT}") from None


def _of_documents(file: SourceFile) -> Iterator[_Item]:
    """The same, of YAML and of several lists one after the other."""
    if not bytes(file.data[:YAML_BYTES]).strip():
        raise Misuse(f"{file.name}:1: nothing in it; {_WAY_OUT}")
    if len(file.data) > YAML_BYTES:
        raise Misuse(
            f"{file.name}:1: not one list in JSON, and of other texts {YAML_BYTES:,} bytes are read; {_WAY_OUT}"
        )
    try:
        for index, parsed in enumerate(file.parse()):
            for pointer, value in _values(file, index, parsed.value):
                yield from _of_value(file, index, pointer, value)
    except Fault as fault:
        raise Misuse(f"{file.source(fault.mark)}: {fault.message}") from None
    except UnicodeDecodeError as error:
        line = bytes(file.data[: error.start]).count(b"\n") + 1
        raise Misuse(f"{file.name}:{line}: not UTF-8; {_WAY_OUT}") from None


def _values(file: SourceFile, index: int, value: Any) -> Iterator[tuple[Pointer, Any]]:
    head = value if isinstance(value, Mapping) else {}
    if _type(head.get("apiVersion"), head.get("kind")) is not None:
        yield (), value
    elif _is_list(head.get("apiVersion"), head.get("kind")) and isinstance(head.get("items"), list):
        kind = str(head["kind"]).removesuffix("List")
        whose = {"apiVersion": head.get("apiVersion"), "kind": kind} if kind else {}
        for number, item in enumerate(head["items"]):
            yield ("items", number), {**whose, **item} if isinstance(item, Mapping) else item
    else:
        raise Misuse(f"{file.position(index, ())}: {_strange(head.get('kind'))}; {_WAY_OUT}")


def _strange(kind: Any) -> str:
    """Why a document with that kind is no list that can be read."""
    if kind == "List":
        return "its items are no list"
    return "no list of Kubernetes objects" + (f": its kind is {kind}" if kind else "")


def _of_value(file: SourceFile, index: int, at: Pointer, value: Any) -> Iterator[_Item]:
    try:
        head = msgspec.convert(value, _Head)
        meant = _type(head.apiVersion, head.kind)
        if meant is not None:
            yield msgspec.convert(value, meant)
    except msgspec.ValidationError as error:
        fact, pointer = _fault(error)
        raise Misuse(f"{file.position(index, (*at, *pointer))}: {fact}; {_WAY_OUT}") from None


def _fault(error: Exception) -> tuple[str, Pointer]:
    """The decoder's words, and the place in the item that they speak of."""
    fact, _, path = str(error).partition(" - at ")
    return f"{fact[:1].lower()}{fact[1:]}" + (f" at {path.strip('`$').lstrip('.')}" if path else ""), nodes.pointer(
        path
    )
