"""Nodes that are written one by one, or listed in YAML: to the fields that matter, or to what is wrong with them."""

from collections.abc import Iterator

from basalt import names
from basalt.api import metadata
from basalt.findings import Problem
from basalt.gathering.documents import Document
from basalt.gathering.expanding import newest
from basalt.loading import nodes
from basalt.loading.nodes import Node
from basalt.loading.sources import SourceFile
from basalt.objects import mapping

Noted = tuple[str, Problem]  # the rule that speaks, and what it says


def read(document: Document) -> tuple[Node | None, list[Noted]]:
    """The Node of a document, None where it cannot be used; and what is wrong with it."""
    node = nodes.from_value(document.value)
    if isinstance(node, Node):
        return node, [("name-is-valid", fault) for fault in _name_faults(document, node.name)]
    return None, list(_faults(document, node))


def in_inventory(file: SourceFile, index: int, node: Node) -> Document:
    """The place of a node in a JSON inventory, of which only the fields that matter were read."""
    value = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}}
    return Document(file, 0, value, ("items", index))


def names_in_inventory(file: SourceFile) -> Iterator[Noted]:
    """What is wrong with the names of a JSON inventory's nodes."""
    for index, node in enumerate(file.inventory or ()):
        if names.subdomain_fault(node.name) is not None:
            place = in_inventory(file, index, node)
            yield from (("name-is-valid", fault) for fault in _name_faults(place, node.name))


def _name_faults(document: Document, name: str) -> Iterator[Problem]:
    yield from metadata.wrong_name(document, ("metadata", "name"), name, names.subdomain_fault)
    yield from metadata.faults(document, document.value)


def _faults(document: Document, reason: str) -> Iterator[Noted]:
    """The words of the schema where it says something, else the decoder's own."""
    kind = newest().find("v1", "Node")
    faults = list(kind.shape.faults(document.value)) if kind else []
    for fault in faults:
        yield "object-matches-schema", Problem(document, fault.pointer, fault.message, fault.hint)
    if faults:
        return
    if "name" not in mapping(document.value.get("metadata")):
        yield "name-is-valid", Problem(document, ("metadata",), "no name", "add metadata.name")
        return
    fact, _, path = reason.partition(" - at ")
    message = f"not a Node that the API server prints: {fact[:1].lower()}{fact[1:]}" + (f" at {path}" if path else "")
    yield "object-matches-schema", Problem(document, nodes.pointer(path), message)
