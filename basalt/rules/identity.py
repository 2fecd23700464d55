"""Who logs in and how: Dex, the API server's authentication, and the groups of the provider."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from basalt import names
from basalt.findings import Problem, Severity
from basalt.gathering import places
from basalt.gathering.documents import Declaration, Document
from basalt.index import Index
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.rules import login_chain
from basalt.rules.rule import Rule
from basalt.views import authentication, dex
from basalt.views.authentication import Trust
from basalt.views.dex import Client, Connector, Dex, is_filled_in

_EXAMPLE_HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAue"  # of Dex's own examples; the password is "password"
_COST = re.compile(r"\$2[abxy]?\$(\d\d)\$")
_LOWEST_COST, _HIGHEST_COST = 10, 16  # checkCost in server/api.go
_PROVIDER = "use a connector to the identity provider, or label it basalt.dev/purpose: development where it is that"
_UNVERIFIED = {
    "insecureSkipVerify": "does not verify its provider's certificate: anyone in between can take its place",
    "insecureCA": "does not verify its provider's certificate: anyone in between can take its place",
    "insecureSkipSignatureValidation": "does not check the signature of assertions: anyone can forge one",
}
_AUTHORITY = {"oidc": "rootCAs", "saml": "ca", "oauth": "rootCAs"}
# The fields of connectors that name their provider.
_URLS = ("issuer", "baseURL", "keystoneHost", "tokenURL", "authorizationURL", "userInfoURL", "ssoURL")


def _dexes(index: Index) -> Iterator[Dex]:
    return dex.configurations(index.others, index.chart_values)


# issuer-is-https


def issuer_is_https(index: Index) -> Iterator[Problem]:
    for each in _dexes(index):
        if each.issuer is not None and (fault := _url_fault(each.issuer, "the issuer")):
            yield each.written.problem(("issuer",), *fault)
    for trust in authentication.trusts(index.others):
        if trust.url is not None and (fault := _url_fault(trust.url, "the issuer")):
            yield trust.written.problem(trust.url_pointer, *fault)
        found = trust.discovery
        if found is not None and (fault := _url_fault(found, "the discoveryURL")):
            yield trust.written.problem((*trust.url_pointer[:-1], "discoveryURL"), *fault)


def _url_fault(url: str, what: str) -> tuple[str, str] | None:
    """What the API server refuses of a URL (validateURL in pkg/apis/apiserver/validation of k8s.io/apiserver). A
    password in it is not repeated."""
    if is_filled_in(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    _, has_user, host = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=host).geturl() if has_user else url
    if not url.lower().startswith("https://"):
        message = f"{what} {shown} is not https: the API server refuses it, and takes no token of it"
        return message, f"write https://{re.sub('^[a-z]+:/*', '', shown, flags=re.IGNORECASE)}"
    extra = {"a user": has_user, "a query": parts.query, "a fragment": parts.fragment}
    if not any(extra.values()):
        return None
    has = " and ".join(name for name, is_there in extra.items() if is_there)
    bare = parts._replace(netloc=host, query="", fragment="").geturl()
    return f"{what} {shown} has {has}: the API server refuses it, and takes no token of it", f"write {bare}"


# connector-is-encrypted


def connector_is_encrypted(index: Index) -> Iterator[Problem]:
    for each in _dexes(index):
        for connector in each.connectors():
            for key, message, hint in _open(connector):
                yield each.written.problem(connector.at(key), message, hint)


def _open(connector: Connector) -> Iterator[tuple[str, str, str]]:
    config = connector.config
    if connector.type == "ldap" and config.get("insecureNoSSL") is True:
        host = config.get("host")
        where = f" to {host}" if isinstance(host, str) and host else ""
        also = ", whatever startTLS says" if config.get("startTLS") is True else ""
        message = f"the connector {connector.name} sends every password{where} in clear text{also}"
        hint = "take insecureNoSSL out; where the server has no port for TLS, set startTLS: true and no insecureNoSSL"
        yield "insecureNoSSL", message, hint
        return
    for key, what in _UNVERIFIED.items():
        if config.get(key) is True:
            hint = f"take {key} out, and name the provider's CA in {_AUTHORITY.get(connector.type, 'rootCA')}"
            yield key, f"the connector {connector.name} {what}", hint
    for key in _URLS:
        url = config.get(key)
        if isinstance(url, str) and url.lower().startswith("http://") and not _is_loopback(url):
            message = f"the connector {connector.name} speaks to {url} in clear text"
            yield key, message, f"write https://{url[len('http://') :]}"


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# password-is-not-static


def password_is_not_static(index: Index) -> Iterator[Problem]:
    for each in _dexes(index):
        if _is_development(index, each):
            yield from _weak_passwords(each)
        else:
            yield from _passwords(each)
            yield from _mocks(each)


def _is_development(index: Index, found: Dex) -> bool:
    holder = found.written.holder
    if not isinstance(holder, KubeObject | Document | Declaration):
        return False
    if not isinstance(holder, KubeObject):
        holder = KubeObject(mapping(places.value(holder)), holder)
    return index.is_development(holder)


def _passwords(found: Dex) -> Iterator[Problem]:
    static = sequence(found.value.get("staticPasswords"))
    if static:
        emails = [each for each in (mapping(entry).get("email") for entry in static) if isinstance(each, str)]
        count = "1 password is" if len(static) == 1 else f"{len(static)} passwords are"
        of = f" (of {names.listed(emails)})" if emails else ""
        message = f"{count} written into the configuration{of}: never changed, and not locked by wrong guesses"
        yield found.written.problem(("staticPasswords",), message, _PROVIDER)
    elif found.value.get("enablePasswordDB") is True:
        message = "Dex keeps passwords of its own: never changed, and not locked by wrong guesses"
        yield found.written.problem(("enablePasswordDB",), message, _PROVIDER)


def _mocks(found: Dex) -> Iterator[Problem]:
    for connector in found.connectors():
        if connector.type.startswith("mock"):
            what = "has one user, whose password stands here" if connector.type == "mockPassword" else "asks nobody"
            message = f"the connector {connector.name} is a mock ({connector.type}): it {what}"
            yield found.written.problem((*connector.pointer, "type"), message, _PROVIDER)


def _weak_passwords(found: Dex) -> Iterator[Problem]:
    """What is wrong for development too: a password that everyone knows, or one that Dex itself refuses."""
    for at, each in enumerate(sequence(found.value.get("staticPasswords"))):
        fault = _weakness(mapping(each).get("hash"))
        if fault:
            hint = "make one: htpasswd -bnBC 10 '' PASSWORD"
            yield found.written.problem(("staticPasswords", at, "hash"), fault, hint)


def _weakness(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = value if value.startswith("$") else _decoded(value)
    if text.startswith(_EXAMPLE_HASH):
        return 'the hash is the one of Dex\'s examples: everyone knows its password, which is "password"'
    cost = _COST.match(text)
    if cost and not _LOWEST_COST <= int(cost[1]) <= _HIGHEST_COST:
        wanted = f"{_LOWEST_COST} to {_HIGHEST_COST}"
        return f"the hash has the bcrypt cost {int(cost[1])}, Dex takes {wanted}: it refuses the login"
    return None


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, ValueError):
        return ""


# client-is-sound


def client_is_sound(index: Index) -> Iterator[Problem]:
    elsewhere = any(each.ref.group == "dex.coreos.com" and each.ref.kind == "OAuth2Client" for each in index.others)
    for each in _dexes(index):
        known = None if elsewhere else each.client_ids()
        for client in each.clients():
            yield from _secrecy(each, client)
            yield from _redirects(each, client)
            if known is not None:
                yield from _peers(each, client, known)


def _secrecy(found: Dex, client: Client) -> Iterator[Problem]:
    value = client.value
    given = next((key for key in ("secret", "secretEnv") if value.get(key)), None)
    is_public = value.get("public", False)
    if is_public is True and given:
        message = f"the public client {client.name} has a secret, which everyone has who has the program"
        yield found.written.problem((*client.pointer, given), message, f"take {given} out, or public: true")
    elif is_public in (False, None) and not given:
        message = f"the client {client.name} is confidential and has no secret: Dex does not start"
        hint = "name a variable in secretEnv, or set public: true for a program on people's machines"
        yield found.written.problem(client.pointer, message, hint)


def _redirects(found: Dex, client: Client) -> Iterator[Problem]:
    for pointer, uri in client.redirects:
        if is_filled_in(uri) or _is_loopback(uri):
            continue
        if "*" in uri:
            message = f"the redirect {uri} has a wildcard, which Dex compares as it stands: no login comes back to it"
            yield found.written.problem(pointer, message, "write out each address")
        elif uri.lower().startswith("http://"):
            message = f"the redirect {uri} is not https: it carries what a login is worth in clear text"
            yield found.written.problem(pointer, message, f"write https://{uri[len('http://') :]}")
    if client.value.get("public") is True and not client.value.get("redirectURIs"):
        message = f"the public client {client.name} has no redirectURIs: any program on localhost may take its logins"
        yield found.written.problem(client.pointer, message, "write them out, for example http://localhost:8000")


def _peers(found: Dex, client: Client, known: frozenset[str]) -> Iterator[Problem]:
    for at, peer in enumerate(sequence(client.value.get("trustedPeers"))):
        if isinstance(peer, str) and peer not in known:
            message = f"the client {client.name} trusts {peer}, which is no client of this Dex"
            yield found.written.problem((*client.pointer, "trustedPeers", at), message, names.did_you_mean(peer, known))


# groups-are-prefixed

_CLAIMED = re.compile(r"""\bclaims(\.\w+|\[["'][^"']*["']\])|\.split\(["'][^"']*["']\)""")


def groups_are_prefixed(index: Index) -> Iterator[Problem]:
    found = list(_dexes(index))
    for trust in authentication.trusts(index.others):
        groups = trust.groups
        if groups is None or authentication.guards_system(trust) or _prefixes_itself(trust, found):
            continue
        hint = "set --oidc-groups-prefix=oidc:" if trust.by_flags else 'set its prefix, for example "oidc:"'
        if groups.expression is not None:
            if _adds_nothing(groups.expression):
                message = "the expression gives the groups of the provider without a prefix: " + _SYSTEM
                at = (*groups.pointer, "expression")
                yield trust.written.problem(at, message, f"put one before each: {_PREFIXING}")
        elif not groups.prefix:
            message = f"groups of the provider come without a prefix: {_SYSTEM}"
            yield trust.written.problem(groups.prefix_pointer, message, hint)
        elif groups.prefix.startswith("system:"):
            message = f"groups of the provider get the prefix {groups.prefix}, which is the cluster's own"
            yield trust.written.problem(groups.prefix_pointer, message, hint)


_SYSTEM = "one named system:masters there would be the cluster's own"
_PREFIXING = 'claims.groups.map(g, "oidc:" + g)'


def _adds_nothing(expression: str) -> bool:
    """Whether the expression has no text of its own that could be a prefix, or a group."""
    rest, count = _CLAIMED.subn("", expression)
    return count > 0 and '"' not in rest and "'" not in rest


def _prefixes_itself(trust: Trust, found: list[Dex]) -> bool:
    """Whether every connector of the Dex that is trusted puts a prefix before its groups."""
    connectors = [each for dex_ in found if dex_.issuer == trust.url for each in dex_.connectors()]
    return bool(connectors) and all(map(_prefix_of, connectors))


def _prefix_of(connector: Connector) -> bool:
    modified: Mapping[str, Any] = mapping(mapping(connector.config.get("claimModifications")).get("modifyGroupNames"))
    return bool(strings([modified.get("prefix")])) and modified.get("prefix") != ""


# token-lifetime-is-short


def token_lifetime_is_short(index: Index) -> Iterator[Problem]:
    for each in _dexes(index):
        lifetime = each.lifetime
        if lifetime is not None and lifetime > dex.HOUR:
            given = each.written.get(("expiry", "idTokens"))
            shown = given if given and dex.seconds(given) else "24h, which is Dex's default"
            message = (
                f"ID tokens are valid for {shown}; 1h is allowed: a removed member keeps the group's rights as long"
            )
            yield each.written.problem(("expiry", "idTokens"), message, "set expiry.idTokens: 1h; clients renew them")


RULES: tuple[Rule, ...] = (
    Rule("issuer-is-https", Severity.ERROR, issuer_is_https),
    Rule("connector-is-encrypted", Severity.ERROR, connector_is_encrypted),
    Rule("password-is-not-static", Severity.ERROR, password_is_not_static),
    Rule("client-is-sound", Severity.ERROR, client_is_sound),
    Rule("groups-are-prefixed", Severity.ERROR, groups_are_prefixed),
    *login_chain.RULES,
    Rule("token-lifetime-is-short", Severity.WARNING, token_lifetime_is_short),
)
