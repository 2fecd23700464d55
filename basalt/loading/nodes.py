"""Node inventories, as `kubectl get nodes -o json|yaml` prints them, decoded straight into the fields that matter.

A real node is about 9 kB of JSON, most of it images and addresses; decoding only what the compiler reads costs half
of what parsing all of it does.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from basalt.pointers import Pointer


class Taint(msgspec.Struct, frozen=True, gc=False):
    effect: str
    key: str
    value: str = ""


class Condition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str


class Metadata(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str] | None = None


class Spec(msgspec.Struct, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class Status(msgspec.Struct, frozen=True):
    allocatable: dict[str, str | int | float] | None = None
    capacity: dict[str, str | int | float] | None = None
    conditions: tuple[Condition, ...] | None = None


class Node(msgspec.Struct, frozen=True, eq=False):
    """One v1 Node: its labels, taints and what it offers. Amounts are quantities as written."""

    metadata: Metadata
    apiVersion: str = "v1"
    kind: str = "Node"
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    def carries(self, labels: Mapping[str, Any]) -> bool:
        """Whether it has every one of the labels, as a nodeSelector asks."""
        return all(self.labels.get(key) == value for key, value in labels.items())

    @property
    def allocatable(self) -> dict[str, str | int | float]:
        """What pods may request; the API server copies capacity where a Node has none (SetDefaults_NodeStatus)."""
        return self.status.allocatable or self.status.capacity or {}

    @property
    def takes_pods(self) -> bool:
        """Whether new pods may land: neither cordoned nor known to be not Ready."""
        ready = next((found.status for found in self.status.conditions or () if found.type == "Ready"), "True")
        return ready == "True" and not self.spec.unschedulable


class Listing(msgspec.Struct, frozen=True):
    """A v1 List or NodeList that holds nothing but Nodes."""

    kind: str
    apiVersion: str
    items: tuple[Node, ...]


def decode(data: bytes | memoryview) -> tuple[Node, ...] | None:
    """The nodes of a JSON inventory, in its order; None where the text is anything else (or has a fault, which the
    careful reader then finds)."""
    try:
        listing = msgspec.json.decode(data, type=Listing)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    nodes = listing.items
    return nodes if is_list(listing.apiVersion, listing.kind) and are_nodes(nodes) else None


def is_list(api_version: Any, kind: Any) -> bool:
    return api_version == "v1" and kind in ("List", "NodeList")


def are_nodes(items: tuple[Node, ...]) -> bool:
    return all(item.kind == "Node" and item.apiVersion == "v1" for item in items)


def from_value(value: Any) -> Node | str:
    """The node that a parsed document stands for, or why it is none: "Expected `str`, got `int` - at `$.spec`"."""
    try:
        return msgspec.convert({key: part for key, part in value.items() if part is not None}, Node)
    except msgspec.ValidationError as error:
        return str(error)


class _RawListing(msgspec.Struct):
    items: list[msgspec.Raw]


def raw_items(data: bytes | memoryview) -> list[msgspec.Raw]:
    """The text of each item of a JSON inventory, for finding where it stands."""
    return msgspec.json.decode(data, type=_RawListing).items


def pointer(path: str) -> Pointer:
    """msgspec's `$.spec.taints[0]` as a pointer; parts it leaves open ([...]) end it."""
    found: list[str | int] = []
    for part in path.strip("`$").replace("[", ".[").split("."):
        if part.startswith("["):
            if not part[1:-1].isdecimal():
                break
            found.append(int(part[1:-1]))
        elif part:
            found.append(part)
    return tuple(found)
