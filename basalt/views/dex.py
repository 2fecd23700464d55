"""The configurations of Dex, wherever they stand: as texts in ConfigMaps and Secrets, and in values of its chart."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from basalt.api import durations
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.views import embedding
from basalt.views.charts import Values
from basalt.views.embedding import Embedded, Text
from basalt.views.written import Written

CHART = "dex"
# What Dex puts into an ID token: idTokenClaims in server/oauth2.go. Dex serves others only as part of these.
CLAIMS = frozenset(
    "iss sub aud exp iat azp nonce at_hash c_hash email email_verified groups name preferred_username "
    "federated_claims".split()
)
HOUR = 3600
DEFAULT_LIFETIME = 24 * HOUR  # idTokensValidFor in cmd/dex/serve.go
_SECONDS = {
    "ns": Fraction(1, 10**9),
    **dict.fromkeys(("us", "\u00b5s", "\u03bcs"), Fraction(1, 10**6)),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(HOUR),
}
_ELEMENT = re.compile(r"([0-9]*\.?[0-9]*)([^.0-9+-]+)")


class Connector(NamedTuple):
    """One connector: how people log in."""

    pointer: Pointer
    value: Mapping[str, Any]

    @property
    def type(self) -> str:
        found = self.value.get("type")
        return found if isinstance(found, str) else ""

    @property
    def name(self) -> str:
        """What a message calls it."""
        found = self.value.get("id") or self.value.get("name")
        return found if isinstance(found, str) else str(self.pointer[-1])

    @property
    def config(self) -> Mapping[str, Any]:
        return mapping(self.value.get("config"))

    def at(self, *keys: str) -> Pointer:
        return (*self.pointer, "config", *keys)


class Client(NamedTuple):
    """One static client: who may ask for tokens."""

    pointer: Pointer
    value: Mapping[str, Any]

    @property
    def id(self) -> str | None:
        """None where only the environment tells it."""
        found = self.value.get("id")
        return found if isinstance(found, str) and found else None

    @property
    def name(self) -> str:
        return self.id or str(self.value.get("idEnv") or self.value.get("name") or self.pointer[-1])

    @property
    def redirects(self) -> list[tuple[Pointer, str]]:
        found = sequence(self.value.get("redirectURIs"))
        return [((*self.pointer, "redirectURIs", at), each) for at, each in enumerate(found) if isinstance(each, str)]


class Dex(NamedTuple):
    """One configuration of Dex."""

    written: Written

    @property
    def value(self) -> Mapping[str, Any]:
        return self.written.value

    @property
    def issuer(self) -> str | None:
        """None where it is no text, or one that is filled in later."""
        found = self.value.get("issuer")
        return found if isinstance(found, str) and found and not is_filled_in(found) else None

    def connectors(self) -> Iterator[Connector]:
        for at, each in enumerate(sequence(self.value.get("connectors"))):
            yield Connector(("connectors", at), mapping(each))

    def clients(self) -> Iterator[Client]:
        for at, each in enumerate(sequence(self.value.get("staticClients"))):
            if isinstance(each, Mapping):
                yield Client(("staticClients", at), each)

    def client_ids(self) -> frozenset[str] | None:
        """The ids of its clients; None where others can come from elsewhere: the environment, or its gRPC API."""
        ids = [each.id for each in self.clients()]
        if not ids or None in ids or self.value.get("grpc"):
            return None
        return frozenset(each for each in ids if each is not None and not is_filled_in(each))

    @property
    def lifetime(self) -> Fraction | None:
        """How many seconds an ID token is valid; None where that cannot be read."""
        found = self.written.get(("expiry", "idTokens"))
        if found is None or found == "":
            return Fraction(DEFAULT_LIFETIME)
        amount = seconds(found) if isinstance(found, str) else None
        return Fraction(DEFAULT_LIFETIME) if amount == 0 else amount


def configurations(objects: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Dex]:
    """Those in the texts of objects, then those of charts."""
    for declared in objects:
        if declared.ref.api_version == "v1" and declared.ref.kind in ("ConfigMap", "Secret"):
            for text in texts(declared, "issuer"):
                if "connectors" in text.value or "storage" in text.value:
                    written = embedding.read(text)
                    if isinstance(written, Embedded) and is_configuration(written.value):
                        yield Dex(Written(written))
    for each in values:
        if each.chart == CHART and mapping(each.value.get("config")).get("issuer") is not None:
            yield Dex(Written(each, ("config",)))


def is_configuration(value: Any) -> bool:
    found = mapping(value)
    return "issuer" in found and ("connectors" in found or "storage" in found)


def texts(declared: KubeObject, *words: str) -> Iterator[Text]:
    """The texts that a ConfigMap or a Secret holds, of those with all the words; no lines has one in base64."""
    for field in ("data", "stringData"):
        is_coded = declared.ref.kind == "Secret" and field == "data"
        for key, value in mapping(declared.value.get(field)).items():
            said = _decoded(value) if is_coded else value
            if not isinstance(said, str) or not all(word in said for word in words):
                continue  # before its place is looked for: a map may have many keys
            text = embedding.text_at(declared, (field, key))
            if text is not None:
                yield text._replace(value=said, start=None) if is_coded else text


def _decoded(value: Any) -> str | None:
    try:
        return base64.b64decode(value).decode() if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def is_filled_in(text: str) -> bool:
    """Whether a template or a variable stands in the text, so that what it will say is unknown."""
    return "{{" in text or "${" in text or "$(" in text or text.startswith("$")


def seconds(text: str) -> Fraction | None:
    """A duration of Go's; None where the text is none."""
    if durations.fault(text) is not None:
        return None
    total = sum((_amount(number) * _SECONDS[unit] for number, unit in _ELEMENT.findall(text)), Fraction(0))
    return -total if text.startswith("-") else total


def _amount(number: str) -> Fraction:
    whole, _, fraction = number.partition(".")
    return Fraction(f"{whole or 0}.{fraction or 0}")
