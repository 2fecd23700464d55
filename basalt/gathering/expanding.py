"""From a text as parsed to the documents in it: the items of Lists, and ambiguous scalars settled."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from basalt.api import versions
from basalt.api.kinds import Catalog
from basalt.api.schemas import Shape, document_shape
from basalt.findings import Problem
from basalt.gathering.documents import API_VERSION, GROUP, KINDS, Document
from basalt.gathering.places import Spot
from basalt.loading import scalars
from basalt.loading.sources import TextDocument
from basalt.pointers import Pointer, get

_LIST = "List"
_Entry = tuple[Pointer, str]  # where an ambiguous scalar stands, and its text


def expand(text: TextDocument) -> Iterator[Document]:
    """The document, or the items of a List, in which ambiguous scalars are what their schema asks for."""
    entries: dict[Pointer, list[_Entry]] = {}
    for entry in text.ambiguous:
        if not entry.is_key:
            entries.setdefault(_item(entry.pointer), []).append((entry.pointer, entry.text))
    for document in _items(Document(text.file, text.index, text.value)):
        yield _settled(document, entries.get(_item(document.prefix), ())) if entries else document


def _item(pointer: Pointer) -> Pointer:
    """The outermost item of a List that the pointer leads into."""
    return pointer[:2] if pointer[:1] == ("items",) else ()


def _items(document: Document) -> Iterator[Document]:
    """kubectl takes every kind that ends in List and has items for a list, and an API server leaves out the items'
    apiVersion and kind where the list's own tells them."""
    value = document.value
    if not is_list(value):
        yield document
        return
    kind = value["kind"].removesuffix(_LIST)
    typed = {"apiVersion": value["apiVersion"], "kind": kind} if kind else {}
    for index, item in enumerate(value.get("items") or []):
        is_bare = typed and isinstance(item, dict) and not {"apiVersion", "kind"} & item.keys()
        inner = {**typed, **item} if is_bare else item
        yield from _items(Document(document.file, document.index, inner, (*document.prefix, "items", index)))


def is_list(value: Any) -> bool:
    """Whether it is a list of objects; one whose items are something else is not."""
    if not isinstance(value, Mapping):
        return False
    api_version, kind, items = (value.get(key) for key in ("apiVersion", "kind", "items"))
    if not isinstance(api_version, str) or not isinstance(kind, str) or api_version.startswith(f"{GROUP}/"):
        return False
    return kind.endswith(_LIST) and (isinstance(items, list) or (items is None and is_plain_list(value)))


def is_plain_list(value: Mapping[str, Any]) -> bool:
    return value.get("apiVersion") == "v1" and value.get("kind") in (_LIST, "NodeList")


def faults(text: TextDocument) -> Iterator[tuple[str, Problem]]:
    """What the text was read in spite of, by rule; in a List at the item that it is about."""
    for fault in text.faults:
        document, pointer = item_at(text, fault.pointer)
        place = Spot(document, pointer, text.file.source(fault.mark))
        yield fault.rule, Problem(place, pointer, fault.message, fault.hint)


def item_at(text: TextDocument, pointer: Pointer) -> tuple[Document, Pointer]:
    """The item of a List that the pointer leads into and the rest of the pointer, else the document itself."""
    document = Document(text.file, text.index, text.value)
    while is_list(document.value) and pointer[:1] == ("items",) and len(pointer) > 1:
        prefix = (*document.prefix, *pointer[:2])
        document = Document(text.file, text.index, get(document.value, pointer[:2]), prefix)
        pointer = pointer[2:]
    return document, pointer


def _settled(document: Document, entries: Iterable[_Entry]) -> Document:
    length = len(document.prefix)
    own = [(pointer[length:], text) for pointer, text in entries if pointer[:length] == document.prefix]
    shape = _shape(document.value) if own else None
    if shape is None:
        return document
    return Document(document.file, document.index, settle(document.value, own, shape), document.prefix)


def _shape(value: Any) -> Shape | None:
    """The schema of a document's kind; None where there is none."""
    if not isinstance(value, Mapping):
        return None
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    if api_version == API_VERSION:
        return document_shape(kind) if kind in KINDS else None
    found = newest().find(api_version, kind)
    return found.shape if found else None


@cache
def newest() -> Catalog:
    """The kinds of the newest Kubernetes and Volcano: which versions are declared is not known yet."""
    return Catalog(versions.newest("kubernetes"), versions.newest("volcano"), is_declared=False)


def settle(value: Any, entries: Iterable[_Entry], shape: Shape) -> Any:
    """The value in which each ambiguous text is what kubectl reads, where the schema asks for a boolean or a number
    there; the value itself is not changed."""
    for pointer, text in entries:
        meant = _meant(text, shape.at(pointer) or {})
        if meant is not None and get(value, pointer) == text:
            value = _replaced(value, pointer, meant)
    return value


def _meant(text: str, schema: Mapping[str, Any]) -> bool | int | None:
    types = schema.get("type", ())
    wanted = {types} if isinstance(types, str) else set(types)
    if wanted & {"integer", "number"}:  # also beside text, as in quantities and ports: kubectl reads a number first
        return scalars.as_integer(text)
    return scalars.as_boolean(text) if "boolean" in wanted else None


def _replaced(value: Any, pointer: Pointer, leaf: Any) -> Any:
    if not pointer:
        return leaf
    copy = value.copy()
    copy[pointer[0]] = _replaced(value[pointer[0]], pointer[1:], leaf)
    return copy
