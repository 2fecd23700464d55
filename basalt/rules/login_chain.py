"""Whether a login comes through: from Dex by the API server to the groups and users that are bound."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from basalt import names
from basalt.findings import Problem, Severity, Source
from basalt.index import Index
from basalt.objects import mapping, sequence, strings
from basalt.pointers import Pointer
from basalt.rules.rule import Rule
from basalt.views import authentication, dex
from basalt.views.access import SYSTEM, Binding, bindings
from basalt.views.authentication import Claim, Trust
from basalt.views.dex import Connector, Dex, is_filled_in

_KUBEADM = "kubeadm:"  # its groups are those of certificates
_READ = re.compile(r"""\bclaims(?:\.(\w+)|\[["']([^"']+)["']\])""")
_ASKS_FIRST = re.compile(r"\bhas\(|\.\?|\[\?|\bin claims\b")  # whether there is the claim at all
_PREFIXING = re.compile(r"""["']([^"']+)["']\s*\+""")
_PREFIXED_MAIL = re.compile(r"([^@]*[:#])[^@:#]+@[^@]+")


def login_chain_closes(index: Index) -> Iterator[Problem]:
    trusts = list(authentication.trusts(index.others))
    dexes = [each for each in dex.configurations(index.others, index.chart_values) if each.issuer] if trusts else []
    for found in dexes:
        meant = _counterparts(found, dexes, trusts)
        for trust in meant:
            yield from _issuer(found, trust)
            yield from _audiences(found, trust)
            yield from _claims(trust)
        if any(trust.groups for trust in meant):
            yield from _silent_connectors(found, _awaited(index, found, meant, trusts))
    if trusts:
        yield from _bound_groups(index, trusts)
        yield from _bound_users(index, trusts)


# Dex and the API server


def _counterparts(found: Dex, dexes: Sequence[Dex], trusts: Sequence[Trust]) -> list[Trust]:
    """The entries of the API server's that are meant for this Dex: of its issuer, else of one much like it, else the
    only one that there is."""
    same = [trust for trust in trusts if trust.url == found.issuer]
    if same:
        return same
    issuers = {each.issuer for each in dexes}
    rest = [trust for trust in trusts if trust.url and not is_filled_in(trust.url) and trust.url not in issuers]
    near = [trust for trust in rest if _host(trust.url) == _host(found.issuer)]
    is_only = len(issuers) == 1 and len({trust.url for trust in trusts}) == 1
    return near or (rest if is_only else [])


def _host(url: str | None) -> str | None:
    try:
        return urlsplit(url or "").hostname
    except ValueError:
        return None


def _issuer(found: Dex, trust: Trust) -> Iterator[Problem]:
    ours, theirs = str(found.issuer), str(trust.url)
    if ours == theirs or _scheme_alone(ours, theirs):
        return  # issuer-is-https speaks of the scheme
    where = found.written.line(("issuer",))
    apart = ""
    if ours.rstrip("/") == theirs.rstrip("/"):
        apart = ", a slash at the end apart"
    elif ours.lower() == theirs.lower():
        apart = ", capital letters apart"
    message = f"the API server trusts {theirs}, Dex calls itself {ours} ({where}){apart}: it refuses every token"
    wanted = ours.replace("http://", "https://", 1)  # issuer-is-https speaks of Dex's own
    yield trust.written.problem(trust.url_pointer, message, f"write {wanted}, byte for byte as in Dex")


def _scheme_alone(one: str, other: str) -> bool:
    return one != other and one.partition("://")[2] == other.partition("://")[2] != ""


def _audiences(found: Dex, trust: Trust) -> Iterator[Problem]:
    known = found.client_ids()
    for pointer, audience in trust.audiences if known else ():
        if known and audience not in known and not is_filled_in(audience):
            where = found.written.line(("staticClients",))
            message = f"the audience {audience} is no client of Dex ({where}): it gives no token for it"
            yield trust.written.problem(pointer, message, names.did_you_mean(audience, known))


def _claims(trust: Trust) -> Iterator[Problem]:
    needed = [(*each, "so it refuses every token") for each in trust.required]
    if trust.username:
        needed += [(pointer, name, "so nobody gets a name") for pointer, name in _read(trust.username)]
    if trust.groups:
        needed += [(pointer, name, "so nobody is in a group") for pointer, name in _read(trust.groups)]
    for pointer, expression in trust.rules:
        needed += [(pointer, name, "so it refuses every token") for name in _named(expression)]
    for pointer, name, effect in needed:
        if name not in dex.CLAIMS:
            hint = names.did_you_mean(name, dex.CLAIMS, most=0, otherwise=_usual(trust, pointer))
            yield trust.written.problem(pointer, f"Dex gives no claim {name}, {effect}", hint)


def _silent_connectors(found: Dex, awaited: str | None) -> Iterator[Problem]:
    """The connectors that are told about groups, and give none all the same; all, where none of them gives any and
    awaited is a group that somebody bound."""
    silent = [(connector, fault) for connector in found.connectors() if (fault := _silence(connector)) is not None]
    are_all = len(silent) == len(list(found.connectors()))
    for connector, (key, why, hint) in silent:
        is_told = bool(connector.config.get(key)) if connector.type == "ldap" else _means_groups(connector.config)
        if is_told or (are_all and awaited):
            message = f"the connector {connector.name} gives no groups: {why}"
            effect = "" if is_told else f", and {awaited} is empty"
            yield found.written.problem(connector.at(key), message + effect, hint)


def _silence(connector: Connector) -> tuple[str, str, str] | None:
    """Why a connector gives no groups: the field, the fact, the way out (connector/ldap and connector/oidc of Dex)."""
    config = connector.config
    search = config.get("groupSearch") or {}
    if connector.type == "ldap" and isinstance(search, Mapping) and not search.get("baseDN"):
        why = "groupSearch has no baseDN" if search else "it has no groupSearch"
        return "groupSearch", why, "add the DN below which the groups are"
    if connector.type == "oidc" and config.get("insecureEnableGroups") in (None, False):
        made = mapping(config.get("claimModifications")).get("newGroupFromClaims")
        fault = ("insecureEnableGroups", "insecureEnableGroups is not set", "set insecureEnableGroups: true")
        return fault if not made else None
    return None


def _awaited(index: Index, found: Dex, meant: Sequence[Trust], trusts: Sequence[Trust]) -> str | None:
    """A bound group that can only come from this Dex, and where it is bound; None where there is none."""
    own = _prefixes([trust.groups for trust in meant])
    others = [trust.groups for trust in trusts if trust not in meant and trust.groups]
    theirs = _prefixes(others)
    if not own or not all(map(_is_of_dex, meant)) or _has_others(index, found) or (others and not theirs):
        return None
    for binding, pointer, name in _provided(index):
        if name.startswith(tuple(own)) and not name.startswith(tuple(theirs)):
            source = binding.object.position(pointer)
            return f"the group {name} ({source})"
    return None


def _is_of_dex(trust: Trust) -> bool:
    """Whether the groups of a token are those of its claim groups, and no others."""
    groups = trust.groups
    if groups is None or groups.claim is not None:
        return groups is None or groups.claim == "groups"
    return groups.expression is not None and _named(groups.expression) == ["groups"] and "[" not in groups.expression


def _has_others(index: Index, found: Dex) -> bool:
    """Whether groups may come from elsewhere in Dex: from its own passwords, or connectors in its storage."""
    if any(each.ref.group == "dex.coreos.com" and each.ref.kind == "Connector" for each in index.others):
        return True
    passwords = sequence(found.value.get("staticPasswords"))
    return bool(found.value.get("grpc")) or any(mapping(each).get("groups") for each in passwords)


def _means_groups(config: Mapping[str, Any]) -> bool:
    mapped = mapping(config.get("claimMapping")).get("groups")
    modified = mapping(config.get("claimModifications"))
    return bool(config.get("allowedGroups") or mapped or modified or "groups" in strings(config.get("scopes")))


def _read(claim: Claim) -> Iterator[tuple[Pointer, str]]:
    if claim.claim is not None:
        yield claim.claim_pointer, claim.claim
    elif claim.expression is not None:
        yield from (((*claim.pointer, "expression"), name) for name in _named(claim.expression))


def _named(expression: str) -> list[str]:
    """The claims that an expression cannot do without."""
    if _ASKS_FIRST.search(expression):
        return []
    return list(dict.fromkeys(one or other for one, other in _READ.findall(expression)))


def _usual(trust: Trust, pointer: Pointer) -> str:
    is_of_groups = trust.groups is not None and pointer[: len(trust.groups.pointer)] == trust.groups.pointer
    return "use groups" if is_of_groups else "use email, preferred_username, name or sub"


# the API server and who is bound


def _bound_groups(index: Index, trusts: Sequence[Trust]) -> Iterator[Problem]:
    bound = list(_provided(index))
    claims = [trust.groups for trust in trusts]
    if bound and not any(claims):
        yield _without_groups(trusts[0], bound[0])
        return
    prefixes = _prefixes(claims)
    if not prefixes:
        yield from _needless(bound, trusts)
    for binding, pointer, name in bound if prefixes else ():
        if not name.startswith(tuple(prefixes)):
            wanted = names.listed(prefixes)
            where = _where_prefixed(trusts)
            message = f"the group {name} lacks the prefix {wanted}, which the API server gives ({where}): it is empty"
            yield Problem(binding.object, pointer, message, f"write {_prefixed(name, prefixes)}")


def _needless(bound: Sequence[tuple[Binding, Pointer, str]], trusts: Sequence[Trust]) -> Iterator[Problem]:
    """Groups that are bound with the prefix of the only issuer's users, which groups do not get, and need not."""
    trust = trusts[0]
    prefix = trust.username.prefix if trust.username else None
    is_plain = trust.groups is not None and trust.groups.claim is not None and not trust.groups.prefix
    if len(trusts) > 1 or not prefix or not is_plain or not authentication.guards_system(trust):
        return  # without a guard groups-are-prefixed asks for the prefix
    for binding, pointer, name in bound:
        if name.startswith(prefix):
            message = f"the group {name} has the prefix {prefix}, which the API server gives to users only: it is empty"
            yield Problem(
                binding.object, pointer, message, f"write {name[len(prefix) :]}, or give groups the prefix too"
            )


def _provided(index: Index) -> Iterator[tuple[Binding, Pointer, str]]:
    """The bound groups that only the identity provider can have, each place of writing once."""
    told: set[tuple[str, Source]] = set()
    for binding in bindings(index.others):
        if binding.is_kubernetes_own:
            continue
        for pointer, name in binding.groups:
            written = (name, binding.object.position(pointer))
            if name and not name.startswith((SYSTEM, _KUBEADM)) and not is_filled_in(name) and written not in told:
                told.add(written)
                yield binding, pointer, name


def _without_groups(trust: Trust, bound: tuple[Binding, Pointer, str]) -> Problem:
    binding, pointer, name = bound
    source = binding.object.position(pointer)
    message = f"the API server takes no groups from tokens, and {name} is bound ({source})"
    at = trust.pointer if trust.by_flags else (*trust.pointer, "claimMappings")
    prefix = name[: name.index(":") + 1] if ":" in name else "oidc:"
    flags = f"--oidc-groups-claim=groups and --oidc-groups-prefix={prefix}"
    hint = flags if trust.by_flags else f'claimMappings.groups: {{claim: groups, prefix: "{prefix}"}}'
    return trust.written.problem(at, message, f"add {hint}")


def _prefixes(claims: Sequence[Claim | None]) -> list[str]:
    """What every group of the provider begins with; nothing where some may have no prefix, or an unknown one."""
    found: list[str] = []
    for claim in claims:
        if claim is None:
            continue
        own = [claim.prefix or ""] if claim.expression is None else _PREFIXING.findall(claim.expression)
        if not own or not all(own):
            return []
        found.extend(own)
    return list(dict.fromkeys(found))


def _where_prefixed(trusts: Sequence[Trust]) -> str:
    claims = ((trust, trust.groups) for trust in trusts if trust.groups)
    trust, claim = next(claims)
    return trust.written.line(claim.prefix_pointer if claim.expression is None else claim.pointer)


def _prefixed(name: str, prefixes: Sequence[str]) -> str:
    """The name with the prefix, in place of one that resembles it."""
    own, colon, rest = name.partition(":")
    near = names.nearest(own + colon, prefixes) if colon else None
    return f"{near}{rest}" if near and rest else f"{prefixes[0]}{name}"


def _bound_users(index: Index, trusts: Sequence[Trust]) -> Iterator[Problem]:
    """Only users by their mail address, where that is what everyone is called: others may have a certificate."""
    claims = [trust.username for trust in trusts]
    if not all(claim is not None and claim.claim == "email" and claim.prefix is not None for claim in claims):
        return
    prefixes = list(dict.fromkeys(str(claim.prefix) for claim in claims if claim))
    where = trusts[0].written.line(claims[0].prefix_pointer) if claims[0] else ""
    for binding in bindings(index.others):
        for pointer, subject in binding.subjects:
            name = subject.get("name")
            if subject.get("kind") == "User" and isinstance(name, str) and (fault := _misnamed(name, prefixes)):
                yield Problem(binding.object, (*pointer, "name"), f"{fault[0]} ({where}): nobody has it", fault[1])


def _misnamed(name: str, prefixes: Sequence[str]) -> tuple[str, str] | None:
    """What is wrong with a user's name that is a mail address, and the way out."""
    own = _PREFIXED_MAIL.fullmatch(name)
    if "@" not in name or name.startswith(SYSTEM) or is_filled_in(name):
        return None
    if "" in prefixes:
        others = [prefix for prefix in prefixes if prefix]
        if own is None or name.startswith(tuple(others)):
            return None
        return f"the user {name} has a prefix, and the API server gives none", f"write {name[len(own[1]) :]}"
    if name.startswith(tuple(prefixes)):
        return None
    message = f"the user {name} lacks the prefix {names.listed(prefixes)}, which the API server gives"
    return message, f"write {_prefixed(name, prefixes)}"


RULES: tuple[Rule, ...] = (Rule("login-chain-closes", Severity.ERROR, login_chain_closes),)
