"""The schemas of Basalt's documents as files that editors read."""

from typing import Any

from basalt.api.schemas import document_schema
from basalt.gathering.documents import API_VERSION, KINDS
from basalt.reporting import json_format

FOLDER = ".schemas"  # hidden, so that no environment reads it for documents
ANY = "Document.json"  # for files that hold documents of several kinds


def file_name(kind: str) -> str:
    return f"{kind}.json"


def text(kind: str) -> str:
    """The schema of a kind, complete in itself."""
    return json_format.text(document_schema(kind))


def files() -> dict[str, str]:
    """Every file by its name: one of each kind, and one that judges a document by its kind, and no other objects."""
    of_kind = [
        {
            "if": {"required": ["kind"], "properties": {"kind": {"const": kind}}},
            "then": {"$ref": file_name(kind)},
        }
        for kind in KINDS
    ]
    every: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A document of {API_VERSION}, or any Kubernetes object",
        "if": {"required": ["apiVersion"], "properties": {"apiVersion": {"const": API_VERSION}}},
        "then": {"properties": {"kind": {"enum": list(KINDS)}}, "allOf": of_kind},
    }
    return {**{file_name(kind): text(kind) for kind in KINDS}, ANY: json_format.text(every)}
