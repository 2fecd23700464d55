"""The question to the API server: a server-side dry run, and its answer. Nothing is kept."""

import enum
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from basalt.cluster.connection import Cluster, Refusal
from basalt.findings import Ref

_STRICT = "strict decoding error: "
WEBHOOK = re.compile(r'admission webhook "[^"]*" denied the request: ')
_MENU = " valid events are ["  # what Volcano adds to everything that is wrong with policies
_MERGE = "application/merge-patch+json"

Value = Mapping[str, Any]


class Verdict(enum.Enum):
    """What becomes of an object that is applied."""

    TAKEN = "taken"
    PRUNED = "pruned"  # refused by strict field validation alone: without it, unknown fields are dropped
    REFUSED = "refused"


class Answer(NamedTuple):
    """The verdict, and the API server's words where it is a refusal. lacking are its words where the object's namespace
    was not there; the verdict is then that with the namespace."""

    verdict: Verdict
    message: str = ""
    lacking: str = ""


def ask(cluster: Cluster, value: Value, ref: Ref) -> Answer:
    """What the API server says to the object."""
    try:
        send(cluster, value, ref)
    except Refusal as strict:
        if _STRICT not in strict.message:
            return Answer(Verdict.REFUSED, words(strict))
        try:
            send(cluster, value, ref, validation="Ignore")
        except Refusal as refusal:
            return Answer(Verdict.REFUSED, words(refusal))
        return Answer(Verdict.PRUNED, words(strict))
    return Answer(Verdict.TAKEN)


def words(refusal: Refusal) -> str:
    """The API server's words on one line, the same every time: several reasons come in the order of a Go map."""
    text = " ".join(refusal.message.split())
    webhook = WEBHOOK.match(text)
    if webhook:
        reasons = text[webhook.end() :].partition(_MENU)[0].removesuffix(";").split(";")
        return webhook[0] + "; ".join(sorted(each.strip() for each in reasons))
    if len(refusal.fields) > 1 and " is invalid: [" in text:
        reasons = sorted({": ".join(filter(None, each)) for each in refusal.fields})
        return f"{text.partition('[')[0]}{', '.join(reasons)}"
    return text


def send(
    cluster: Cluster, value: Value, ref: Ref, *, validation: str = "Strict", dry_run: bool = True
) -> dict[str, Any]:
    """Creates the object, or changes the one of its name, as the API server has it then. Refusal where it may not."""
    path = collection(cluster, ref)
    query = {"fieldValidation": validation, **({"dryRun": "All"} if dry_run else {})}
    try:
        return cluster.request("POST", path, query, value)
    except Refusal as refusal:
        if refusal.reason != "AlreadyExists":
            raise
        # One of the system's own, or one that is declared twice.
        return cluster.request("PATCH", f"{path}/{quote(ref.name, safe='')}", query, value, _MERGE)


def collection(cluster: Cluster, ref: Ref) -> str:
    """The path under which objects of that kind are created. Refusal where the kind is not served."""
    if cluster.resource(ref.api_version, ref.kind) is None:
        message = f'no matches for kind "{ref.kind}" in version "{ref.api_version}"'  # kubectl's words
        raise Refusal(404, "UnknownKind", message)
    return cluster.collection(ref.api_version, ref.kind, ref.namespace or "default")
