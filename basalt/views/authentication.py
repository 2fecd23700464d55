"""Whose tokens the API server takes, and what it makes of them: an AuthenticationConfiguration wherever it stands, or
the flags --oidc-* of kube-apiserver."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, get
from basalt.views import embedding
from basalt.views.dex import texts
from basalt.views.embedding import Embedded
from basalt.views.pods import pods
from basalt.views.written import Written

GROUP = "apiserver.config.k8s.io"
KIND = "AuthenticationConfiguration"
_KUBEADM = ("kubeadm.k8s.io", "ClusterConfiguration")
_RUNNERS = (("", "Pod"), ("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "StatefulSet"))
_SERVER = "kube-apiserver"
_FLAG = "oidc-"
_Flags = Mapping[str, tuple[Pointer, str]]


class Claim(NamedTuple):
    """What the API server takes of a token: a claim with a prefix, or an expression. None is what is not said."""

    pointer: Pointer
    claim: str | None
    prefix: str | None
    expression: str | None
    claim_pointer: Pointer
    prefix_pointer: Pointer


class Trust(NamedTuple):
    """One issuer whose tokens the API server takes. expressions are those that may refuse a token or a user, or read
    its claims, each with its place."""

    written: Written
    pointer: Pointer
    url: str | None
    url_pointer: Pointer
    audiences: tuple[tuple[Pointer, str], ...]
    username: Claim | None
    groups: Claim | None
    rules: tuple[tuple[Pointer, str], ...] = ()
    required: tuple[tuple[Pointer, str], ...] = ()  # claims without which it refuses a token
    discovery: str | None = None
    by_flags: bool = False


def trusts(objects: Iterable[KubeObject]) -> Iterator[Trust]:
    """Every issuer that some declared API server trusts."""
    for declared in objects:
        key = (declared.ref.group, declared.ref.kind)
        if key == (GROUP, KIND):
            yield from _configured(Written(declared))
        elif key in (("", "ConfigMap"), ("", "Secret")):
            yield from _in_texts(declared)
        elif key in _RUNNERS:
            yield from _in_commands(declared)
        elif key == _KUBEADM:
            yield from _kubeadm(Written(declared, ("apiServer", "extraArgs")))


def _in_texts(declared: KubeObject) -> Iterator[Trust]:
    for text in texts(declared, GROUP, KIND):
        written = embedding.read(text)
        if isinstance(written, Embedded) and mapping(written.value).get("kind") == KIND:
            yield from _configured(Written(written))


def _configured(written: Written) -> Iterator[Trust]:
    for at, each in enumerate(map(mapping, sequence(written.value.get("jwt")))):
        issuer, mappings, here = mapping(each.get("issuer")), mapping(each.get("claimMappings")), ("jwt", at)
        audiences = sequence(issuer.get("audiences"))
        yield Trust(
            written,
            here,
            _text(issuer.get("url")),
            (*here, "issuer", "url"),
            tuple(
                ((*here, "issuer", "audiences", number), found)
                for number, found in enumerate(audiences)
                if isinstance(found, str)
            ),
            _claim(mappings.get("username"), (*here, "claimMappings", "username")),
            _claim(mappings.get("groups"), (*here, "claimMappings", "groups")),
            tuple(_entries(each, here, ("userValidationRules", "claimValidationRules"), "expression")),
            tuple(_entries(each, here, ("claimValidationRules",), "claim")),
            _text(issuer.get("discoveryURL")),
        )


def _entries(value: Mapping[str, Any], at: Pointer, lists: Iterable[str], key: str) -> Iterator[tuple[Pointer, str]]:
    for field in lists:
        for number, rule in enumerate(map(mapping, sequence(value.get(field)))):
            if (found := _text(rule.get(key))) is not None:
                yield (*at, field, number, key), found


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _claim(value: Any, at: Pointer) -> Claim | None:
    found = mapping(value)
    claim, expression, prefix = _text(found.get("claim")), _text(found.get("expression")), found.get("prefix")
    if claim is None and expression is None:
        return None
    return Claim(at, claim, prefix if isinstance(prefix, str) else None, expression, (*at, "claim"), (*at, "prefix"))


# flags


def _in_commands(declared: KubeObject) -> Iterator[Trust]:
    for pod in pods((declared,)):
        for number, container in enumerate(map(mapping, sequence(pod.spec.get("containers")))):
            at = (*pod.pointer, "containers", number)
            words = [(field, place, word) for field in ("command", "args") for place, word in _words(container, field)]
            if any(word.rpartition("/")[2] == _SERVER for _, _, word in words):
                flags = {name: ((field, place), value) for field, place, name, value in _given(words)}
                yield from _flagged(Written(declared, at), flags)


def _words(container: Mapping[str, Any], field: str) -> Iterator[tuple[int, str]]:
    return ((at, word) for at, word in enumerate(sequence(container.get(field))) if isinstance(word, str))


def _given(words: list[tuple[str, int, str]]) -> Iterator[tuple[str, int, str, str]]:
    """The flags with their values: --name=value, or --name and the word that follows."""
    for number, (field, place, word) in enumerate(words):
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith(f"--{_FLAG}"):
            yield field, place, name, value if equals else next((each[2] for each in words[number + 1 :]), "")


def _kubeadm(written: Written) -> Iterator[Trust]:
    """extraArgs are a map up to v1beta3, a list of names and values since v1beta4."""
    found = get(written.source.value, written.base) if isinstance(written.source, KubeObject) else None
    flags: dict[str, tuple[Pointer, str]] = {
        str(name): ((name,), value) for name, value in mapping(found).items() if isinstance(value, str)
    }
    for at, each in enumerate(map(mapping, sequence(found))):
        name, value = each.get("name"), each.get("value")
        if isinstance(name, str) and isinstance(value, str):
            flags[name] = (at, "value"), value
    yield from _flagged(written, flags)


def _flagged(written: Written, flags: _Flags) -> Iterator[Trust]:
    """What the API server makes of its flags: ToAuthenticationConfig in pkg/kubeapiserver/options/authentication.go."""
    at, url = flags.get("oidc-issuer-url", ((), ""))
    if not url:
        return
    client = flags.get("oidc-client-id")
    name_at, name = flags.get("oidc-username-claim", (at, "sub"))
    prefix_at, prefix = flags.get("oidc-username-prefix", (name_at, ""))
    given = prefix or ("" if name == "email" else f"{url}#")
    username = Claim(name_at, name, "" if given == "-" else given, None, name_at, prefix_at)
    groups_at, groups = flags.get("oidc-groups-claim", (at, ""))
    groups_prefix_at, groups_prefix = flags.get("oidc-groups-prefix", (groups_at, ""))
    taken = Claim(groups_at, groups, groups_prefix, None, groups_at, groups_prefix_at) if groups else None
    audiences = (client,) if client and client[1] else ()
    yield Trust(written, at, url, at, audiences, username, taken, by_flags=True)


def guards_system(trust: Trust) -> bool:
    """Whether a rule keeps groups out that begin with system:."""
    written = [expression for _, expression in trust.rules]
    written += [trust.groups.expression or ""] if trust.groups else []
    return any("system:" in each and "groups" in each for each in written)
