"""Who logs in: Dex by its chart, with the connectors and clients that are declared, and the configuration by which the
API server takes its tokens. Passwords and client secrets stay in Secrets: Dex reads them from its environment."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from basalt.api.charts import locked
from basalt.api.versions import Version
from basalt.objects import MANAGED_BY, Manifest, Origins, pod_security, release
from basalt.platform import Platform
from basalt.pointers import Pointer
from basalt.rendering import yaml_writer

AT: Pointer = ("spec", "identity")
CONFIG_MAP, KEY = "authentication-configuration", "authentication-config.yaml"
_GROUP = "apiserver.config.k8s.io"
# AuthenticationConfiguration: k8s.io/apiserver/pkg/apis/apiserver/v1 since 1.34, v1beta1 since 1.30. That of 1.29,
# v1alpha1, knows one audience, and neither discoveryURL nor audienceMatchPolicy.
_V1, _V1BETA1 = Version(1, 34), Version(1, 30)
_TAG = "v2.45.1"  # newer than the appVersion of the chart that is locked
_DEX_USER = 1001  # of Dex's Dockerfile
_CLIENTS = {"kubectl": {"public": True, "redirectURIs": ["http://localhost:8000", "http://localhost:18000"]}}
_GRANTS = ["authorization_code", "refresh_token"]
_MAIL = "email"
_PLAIN = re.compile(r"[a-z0-9]")
_LDAP = ("host", "startTLS", "insecureNoSSL", "insecureSkipVerify", "bindDN", "usernamePrompt")
_USERS = (
    "baseDN", "filter", "username", "scope", "idAttr", "emailAttr", "nameAttr", "preferredUsernameAttr", "emailSuffix",
)  # fmt: skip
_GROUPS = ("baseDN", "filter", "scope", "nameAttr")
_MATCHER = ("userAttr", "groupAttr", "recursionGroupAttr")
_OIDC = (
    "issuer", "clientID", "scopes", "insecureSkipVerify", "insecureSkipEmailVerified", "allowedGroups", "getUserInfo",
    "userIDKey", "userNameKey", "overrideClaimMapping", "claimMapping",
)  # fmt: skip


class _Made(NamedTuple):
    """A part of Dex's configuration: its value, where each part of that comes from, and the variables that it reads."""

    value: dict[str, Any]
    origins: Origins
    variables: list[tuple[dict[str, Any], Pointer]]


def identity(declared: Mapping[str, Any], platform: Platform) -> Iterator[Manifest]:
    """Dex, where there are connectors for it, and the API server's configuration, where there is an issuer."""
    if "issuer" not in declared:
        return
    if declared.get("connectors") and declared.get("provider", "dex") == "dex":
        yield from _dex(declared)
    yield _authentication(declared, platform)


def _clients(declared: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Pointer]]:
    """The clients by their ids, each with the place that declares it."""
    at: Pointer = (*AT, "clients")
    for name, client in (declared.get("clients") or _CLIENTS).items():
        yield name, client, (*at, name) if declared.get("clients") else at


# Dex


def _dex(declared: Mapping[str, Any]) -> Iterator[Manifest]:
    namespace = declared.get("namespace", "dex")
    metadata = {"name": namespace, "labels": {**MANAGED_BY, **pod_security("restricted")}}
    named = (*AT, "namespace")
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    yield Manifest(value, {(): AT, ("metadata", "name"): named})
    config = _config(declared)
    values = {**_pods(declared), "config": config.value, "envVars": [variable for variable, _ in config.variables]}
    origins: Origins = {("replicaCount",): (*AT, "replicas"), ("image", "tag"): (*AT, "tag"), **config.origins}
    origins |= {("envVars", index): origin for index, (_, origin) in enumerate(config.variables)}
    if "ingress" in declared:
        values["ingress"] = _ingress(declared["issuer"], declared["ingress"])
        origins[("ingress",)] = (*AT, "ingress")
    made = release(locked("dex", declared.get("version")), "dex", namespace, values, AT, origins)
    yield Manifest(made.value, {**made.origins, ("metadata", "namespace"): named})


def _config(declared: Mapping[str, Any]) -> _Made:
    connectors = [_connector(name, each, declared["issuer"]) for name, each in declared["connectors"].items()]
    clients = [_client(*each) for each in _clients(declared)]
    value = {
        "issuer": declared["issuer"],
        "storage": {"type": "kubernetes", "config": {"inCluster": True}},
        "web": {"http": "0.0.0.0:5556"},
        "oauth2": {"grantTypes": declared.get("grantTypes", _GRANTS), "responseTypes": ["code"]},
        "expiry": {"idTokens": declared.get("tokenLifetime", "1h")},
        "connectors": [each.value for each in connectors],
        "staticClients": [each.value for each in clients],
    }
    origins: Origins = {
        ("config",): AT,
        ("config", "oauth2", "grantTypes"): (*AT, "grantTypes"),
        ("config", "expiry", "idTokens"): (*AT, "tokenLifetime"),
    }
    for field, written, parts in (("connectors", "connectors", connectors), ("staticClients", "clients", clients)):
        origins["config", field] = (*AT, written)
        for index, each in enumerate(parts):
            origins |= {("config", field, index, *pointer): origin for pointer, origin in each.origins.items()}
    return _Made(value, origins, [variable for each in (*connectors, *clients) for variable in each.variables])


def _connector(name: str, declared: Mapping[str, Any], issuer: str) -> _Made:
    kind = "ldap" if "ldap" in declared else "oidc"
    at: Pointer = (*AT, "connectors", name)
    own = declared[kind]
    origins: Origins = {(): at, ("config",): (*at, kind)}
    config, field, authority = _ldap(own) if kind == "ldap" else _oidc(own, issuer)
    variable = _variable("CONNECTOR", name, field)
    config[field] = f"${variable}"
    secret: Pointer = (*at, kind, field, "secretKeyRef")
    origins["config", field] = secret
    if kind == "oidc":
        origins["config", "redirectURI"] = (*AT, "issuer")
    if authority in config:
        origins["config", authority] = (*at, kind, "certificateAuthority")
    value = {"type": kind, "id": name, "name": declared.get("name", name), "config": config}
    return _Made(value, origins, [(_from_secret(variable, own[field]["secretKeyRef"]), secret)])


def _ldap(declared: Mapping[str, Any]) -> tuple[dict[str, Any], str, str]:
    """The connector's config, the field that takes its password, and the one that has its certificates."""
    users = {"filter": "(objectClass=person)", "username": "uid", "nameAttr": "cn", "preferredUsernameAttr": "uid"}
    groups: dict[str, Any] = {"filter": "(objectClass=groupOfNames)", "nameAttr": "cn"}
    search = declared["groupSearch"]
    matchers = search.get("userMatchers", [{"userAttr": "DN", "groupAttr": "member"}])
    config = {
        **_only(_LDAP, declared),
        "userSearch": {**users, **_only(_USERS, declared["userSearch"])},
        "groupSearch": {
            **groups,
            **_only(_GROUPS, search),
            "userMatchers": [_only(_MATCHER, each) for each in matchers],
        },
    }
    if "certificateAuthority" in declared:
        config["rootCAData"] = base64.b64encode(declared["certificateAuthority"].encode()).decode()
    return config, "bindPW", "rootCAData"


def _oidc(declared: Mapping[str, Any], issuer: str) -> tuple[dict[str, Any], str, str]:
    """As for LDAP. Without insecureEnableGroups the connector gives no groups at all."""
    config = {
        **_only(_OIDC, declared),
        "redirectURI": f"{issuer.rstrip('/')}/callback",
        "insecureEnableGroups": True,
    }
    if "certificateAuthority" in declared:
        config["rootCAs"] = [declared["certificateAuthority"]]
    return config, "clientSecret", "rootCAs"


def _only(fields: Iterable[str], declared: Mapping[str, Any]) -> dict[str, Any]:
    """The known fields that are declared: of others the document's schema has spoken."""
    return {field: declared[field] for field in fields if field in declared}


def _client(name: str, declared: Mapping[str, Any], at: Pointer) -> _Made:
    value = {
        "id": name,
        "name": declared.get("name", name),
        **_only(("public", "redirectURIs", "trustedPeers"), declared),
    }
    origins: Origins = {(): at}
    if "clientSecret" not in declared:
        return _Made(value, origins, [])
    value["secretEnv"] = _variable("CLIENT", name, "secret")
    secret: Pointer = (*at, "clientSecret", "secretKeyRef")
    variable = _from_secret(value["secretEnv"], declared["clientSecret"]["secretKeyRef"])
    return _Made(value, {**origins, ("secretEnv",): secret}, [(variable, secret)])


def _variable(what: str, name: str, field: str) -> str:
    """The variable's name. No two ids have one name: what is no lower-case letter, digit or hyphen is escaped."""
    own = "".join("_" if each == "-" else each.upper() if _PLAIN.match(each) else f"_x{ord(each):x}_" for each in name)
    return f"DEX_{what}_{own}_{field.upper()}"


def _from_secret(variable: str, reference: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": variable, "valueFrom": {"secretKeyRef": _only(("name", "key"), reference)}}


def _pods(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Pods that a restricted namespace takes. Dex's image fills in its configuration into a file below /tmp."""
    replicas = declared.get("replicas", 2)
    return {
        "replicaCount": replicas,
        "image": {"tag": declared.get("tag", _TAG)},
        "podDisruptionBudget": {"enabled": True, "maxUnavailable": 1},
        "podSecurityContext": {
            "runAsNonRoot": True,
            "runAsUser": _DEX_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108  a path in the container
    }


def _ingress(issuer: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    url = urlsplit(issuer)
    host = url.hostname or ""
    return {
        "enabled": True,
        **_only(("className", "annotations"), declared),
        "hosts": [{"host": host, "paths": [{"path": url.path or "/", "pathType": "Prefix"}]}],
        "tls": [{"secretName": declared.get("tlsSecretName", "dex-tls"), "hosts": [host]}],
    }


# The API server


def _authentication(declared: Mapping[str, Any], platform: Platform) -> Manifest:
    issuer, origins = _issuer(declared, platform.kubernetes)
    username = {"claim": declared.get("usernameClaim", _MAIL), "prefix": declared.get("usernamePrefix", "oidc:")}
    groups = {"claim": declared.get("groupsClaim", "groups"), "prefix": platform.groups_prefix}
    trusted: dict[str, Any] = {"issuer": issuer, "claimMappings": {"username": username, "groups": groups}}
    for kind in ("username", "groups"):
        for field in ("claim", "prefix"):
            origins["claimMappings", kind, field] = (*AT, f"{kind}{field.title()}")
    if not username["prefix"]:
        expression = "!user.username.startsWith('system:')"
        trusted["userValidationRules"] = [{"expression": expression, "message": "system: is the cluster's own"}]
    configuration = {
        "apiVersion": f"{_GROUP}/{_version(platform.kubernetes)}",
        "kind": "AuthenticationConfiguration",
        "jwt": [trusted],
    }
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": "kube-system", "labels": MANAGED_BY},
        "data": {KEY: yaml_writer.document(configuration)},
    }
    text: Pointer = ("data", KEY)
    inner = {(*text, "jwt", 0, *pointer): origin for pointer, origin in origins.items()}
    return Manifest(value, {(): AT, text: AT, (*text, "jwt", 0): AT, **inner})


def _version(kubernetes: Version) -> str:
    if kubernetes >= _V1:
        return "v1"
    return "v1beta1" if kubernetes >= _V1BETA1 else "v1alpha1"


def _issuer(declared: Mapping[str, Any], kubernetes: Version) -> tuple[dict[str, Any], Origins]:
    """The issuer, and where each part comes from, with pointers into the entry of jwt."""
    server = declared.get("apiServer", {})
    is_first = kubernetes < _V1BETA1
    audiences, origins = _audiences(declared, server)
    issuer = {"url": declared["issuer"]}
    origins["issuer", "url"] = (*AT, "issuer")
    for field in ("certificateAuthority",) if is_first else ("discoveryURL", "certificateAuthority"):
        if field in server:
            issuer[field] = server[field]
            origins["issuer", field] = (*AT, "apiServer", field)
    if is_first:
        return {**issuer, "audiences": audiences[:1]}, origins
    return {**issuer, "audiences": audiences, "audienceMatchPolicy": "MatchAny"}, origins


def _audiences(declared: Mapping[str, Any], server: Mapping[str, Any]) -> tuple[list[str], Origins]:
    """Those that are declared, else the public clients, which act for people at the cluster; without any, all."""
    at: Pointer = ("issuer", "audiences")
    if server.get("audiences"):
        return server["audiences"], {at: (*AT, "apiServer", "audiences")}
    clients = list(_clients(declared))
    chosen = [each for each in clients if each[1].get("public")] or clients
    return [name for name, _, _ in chosen], {(*at, index): place for index, (_, _, place) in enumerate(chosen)}
