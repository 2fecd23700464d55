"""The part `identity`: Dex, its connectors and clients, the API server's configuration, and the groups of teams."""

import base64
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from basalt.api.schemas import document_shape
from basalt.api.versions import Version, known
from basalt.compiling import compile_folder
from basalt.explaining import groups
from basalt.objects import Manifest
from basalt.platform import Platform
from modules import identity
from tests.test_modules import leads_somewhere, origin

Spec = dict[str, Any]
ISSUER = "https://dex.example.com"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
DIRECTORY: Spec = {
    "host": "ldap.example.com:636",
    "bindDN": "cn=dex",
    "bindPW": {"secretKeyRef": {"name": "dex-ldap", "key": "password"}},
    "userSearch": {"baseDN": "ou=people"},
    "groupSearch": {"baseDN": "ou=groups"},
}
PROVIDER: Spec = {
    "issuer": "https://login.example.com",
    "clientID": "dex",
    "clientSecret": {"secretKeyRef": {"name": "dex-upstream", "key": "secret"}},
}
GRAFANA: Spec = {
    "name": "Grafana",
    "clientSecret": {"secretKeyRef": {"name": "dex-grafana", "key": "secret"}},
    "redirectURIs": ["https://grafana.example.com/login/generic_oauth"],
}
KUBECTL: Spec = {"public": True, "redirectURIs": ["http://localhost:8000", "http://localhost:18000"]}
STAFF: Spec = {"issuer": ISSUER, "connectors": {"staff": {"ldap": DIRECTORY}}}
WHOLE: Spec = {
    **STAFF,
    "connectors": {"staff": {"name": "Staff", "ldap": DIRECTORY}, "partners": {"oidc": PROVIDER}},
    "clients": {"kubectl": KUBECTL, "grafana": GRAFANA},
    "ingress": {"className": "nginx"},
}


def made(declared: Spec, version: str = "1.34") -> list[Manifest]:
    kubernetes = Version(*map(int, version.split(".")))
    spec = {"identity": declared}
    platform = Platform("case", spec, {}, tuple, kubernetes, Version(1, 15), is_development=False)
    return list(identity.identity(declared, platform))


def values(declared: Spec) -> Spec:
    """What the release of Dex's chart gets."""
    [found] = [each.value["spec"]["values"] for each in made(declared) if each.value["kind"] == "Release"]
    return dict(found)


def config(declared: Spec) -> Spec:
    return dict(values(declared)["config"])


def trusted(declared: Spec, version: str = "1.34") -> Spec:
    """What the API server is told of the issuer."""
    text = made(declared, version)[-1].value["data"][identity.KEY]
    [found] = yaml.safe_load(text)["jwt"]
    return dict(found)


# what is installed


@pytest.mark.parametrize(
    ("declared", "kinds"),
    [
        ({}, []),
        ({"groupsPrefix": "corp:"}, []),
        ({"issuer": ISSUER}, ["ConfigMap"]),
        ({**STAFF, "provider": "external"}, ["ConfigMap"]),
        (STAFF, ["Namespace", "Release", "ConfigMap"]),
    ],
)
def test_dex_is_installed_where_there_are_connectors_for_it(declared: Spec, kinds: list[str]) -> None:
    assert [each.value["kind"] for each in made(declared)] == kinds


def test_namespace_and_release_are_where_the_declaration_says() -> None:
    namespace, release, config_map = made({**STAFF, "namespace": "login", "version": "0.23.1", "replicas": 3})

    assert namespace.value["metadata"]["name"] == release.value["metadata"]["namespace"] == "login"
    assert (release.value["spec"]["chart"], release.value["spec"]["version"]) == ("dex", "0.23.1")
    assert release.value["spec"]["values"]["replicaCount"] == 3
    assert config_map.value["metadata"]["namespace"] == "kube-system"


def test_configuration_of_dex_is_written_out() -> None:
    assert config(STAFF) == {
        "issuer": ISSUER,
        "storage": {"type": "kubernetes", "config": {"inCluster": True}},
        "web": {"http": "0.0.0.0:5556"},
        "oauth2": {"grantTypes": ["authorization_code", "refresh_token"], "responseTypes": ["code"]},
        "expiry": {"idTokens": "1h"},
        "connectors": [
            {
                "type": "ldap",
                "id": "staff",
                "name": "staff",
                "config": {
                    "host": "ldap.example.com:636",
                    "bindDN": "cn=dex",
                    "bindPW": "$DEX_CONNECTOR_STAFF_BINDPW",
                    "userSearch": {
                        "baseDN": "ou=people", "filter": "(objectClass=person)", "username": "uid", "nameAttr": "cn",
                        "preferredUsernameAttr": "uid",
                    },
                    "groupSearch": {
                        "baseDN": "ou=groups", "filter": "(objectClass=groupOfNames)", "nameAttr": "cn",
                        "userMatchers": [{"userAttr": "DN", "groupAttr": "member"}],
                    },
                },
            }
        ],
        "staticClients": [{"id": "kubectl", "name": "kubectl", **KUBECTL}],
    }  # fmt: skip


def test_secrets_come_by_variables() -> None:
    found = values(WHOLE)

    [_, partners], [_, grafana] = found["config"]["connectors"], found["config"]["staticClients"]
    assert partners["config"]["clientSecret"] == "$DEX_CONNECTOR_PARTNERS_CLIENTSECRET"
    assert grafana["secretEnv"] == "DEX_CLIENT_GRAFANA_SECRET"
    given = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in found["envVars"]}
    assert given == {
        "DEX_CONNECTOR_STAFF_BINDPW": {"name": "dex-ldap", "key": "password"},
        "DEX_CONNECTOR_PARTNERS_CLIENTSECRET": {"name": "dex-upstream", "key": "secret"},
        "DEX_CLIENT_GRAFANA_SECRET": {"name": "dex-grafana", "key": "secret"},
    }


IDS = ["a-b", "a_b", "a.b", "ab", "A-B", "a--b", "a-x2e-b", "ä"]


def test_no_two_ids_share_a_variable() -> None:
    found = values({**STAFF, "connectors": {each: {"ldap": DIRECTORY} for each in IDS}})

    names = [each["name"] for each in found["envVars"]]
    assert len(set(names)) == len(IDS)
    assert names[0] == "DEX_CONNECTOR_A_B_BINDPW"


def test_a_provider_gives_groups_and_comes_back_to_the_issuer() -> None:
    declared = {"issuer": f"{ISSUER}/dex/", "connectors": {"a": {"oidc": PROVIDER}}}

    [connector] = config(declared)["connectors"]

    assert connector["config"]["insecureEnableGroups"] is True
    assert connector["config"]["redirectURI"] == f"{ISSUER}/dex/callback"


def test_certificates_have_the_form_that_each_connector_reads() -> None:
    own = {"certificateAuthority": CERTIFICATE}
    connectors = {"a": {"ldap": {**DIRECTORY, **own}}, "b": {"oidc": {**PROVIDER, **own}}}

    ldap, oidc = config({**STAFF, "connectors": connectors})["connectors"]

    assert base64.b64decode(ldap["config"]["rootCAData"]).decode() == CERTIFICATE
    assert oidc["config"]["rootCAs"] == [CERTIFICATE]


def test_ingress_has_the_host_and_the_path_of_the_issuer() -> None:
    found = values({**STAFF, "issuer": f"{ISSUER}/login", "ingress": {"tlsSecretName": "own"}})["ingress"]

    assert found == {
        "enabled": True,
        "hosts": [{"host": "dex.example.com", "paths": [{"path": "/login", "pathType": "Prefix"}]}],
        "tls": [{"secretName": "own", "hosts": ["dex.example.com"]}],
    }


# the API server


@pytest.mark.parametrize("version", known("kubernetes"), ids=str)
def test_api_server_gets_the_version_that_it_reads(version: Version) -> None:
    text = made(STAFF, str(version))[-1].value["data"][identity.KEY]

    read = "v1" if version >= (1, 34) else "v1beta1" if version >= (1, 30) else "v1alpha1"
    found = yaml.safe_load(text)
    assert (found["apiVersion"], found["kind"]) == (f"apiserver.config.k8s.io/{read}", "AuthenticationConfiguration")


def test_api_server_is_told_of_the_issuer_and_its_claims() -> None:
    assert trusted(WHOLE) == {
        "issuer": {"url": ISSUER, "audiences": ["kubectl"], "audienceMatchPolicy": "MatchAny"},
        "claimMappings": {
            "username": {"claim": "email", "prefix": "oidc:"},
            "groups": {"claim": "groups", "prefix": "oidc:"},
        },
    }


def test_fields_that_came_later_are_not_given_to_1_29() -> None:
    server = {"audiences": ["a", "b"], "discoveryURL": "https://a/b", "certificateAuthority": CERTIFICATE}

    found = trusted({"issuer": ISSUER, "apiServer": server}, "1.29")["issuer"]

    assert found == {"url": ISSUER, "certificateAuthority": CERTIFICATE, "audiences": ["a"]}


@pytest.mark.parametrize(
    ("declared", "audiences"),
    [
        ({}, ["kubectl"]),
        ({"clients": {"a": GRAFANA, "b": KUBECTL, "c": KUBECTL}}, ["b", "c"]),
        ({"clients": {"a": GRAFANA, "b": GRAFANA}}, ["a", "b"]),
        ({"clients": {"a": GRAFANA, "b": KUBECTL}, "apiServer": {"audiences": ["a"]}}, ["a"]),
    ],
)
def test_audiences_are_the_clients_that_act_for_people(declared: Spec, audiences: list[str]) -> None:
    assert trusted({"issuer": ISSUER, **declared})["issuer"]["audiences"] == audiences


def test_users_without_a_prefix_cannot_be_the_clusters_own() -> None:
    [rule] = trusted({"issuer": ISSUER, "usernamePrefix": ""})["userValidationRules"]

    assert rule["expression"] == "!user.username.startsWith('system:')"


# the platform

TEAM = """apiVersion: basalt.dev/v1alpha1
kind: Team
metadata: {name: vision}
spec:
  access: {admin: [vision-leads], edit: [vision-research]}
  namespaces: {vision-train: {}}
"""


def compiled(folder: Path, declared: Spec, *texts: str, **spec: Any) -> Any:
    (folder / "Pulumi.yaml").touch()
    whole = {"kubernetes": {"version": "1.34"}, **spec, "identity": declared}
    header = {"apiVersion": "basalt.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "case"}}
    environment = yaml.safe_dump({**header, "spec": whole}, sort_keys=False)
    (folder / "input.yaml").write_text("---\n".join((environment, *texts)))
    return compile_folder(folder, needs_environment=True)


@pytest.mark.parametrize("engine", ["pulumi", "argocd", "flux"])
@pytest.mark.parametrize("declared", [{}, {"issuer": ISSUER}, STAFF, WHOLE], ids=["empty", "issuer", "staff", "whole"])
def test_nothing_is_wrong_with_what_is_made(tmp_path: Path, declared: Spec, engine: str) -> None:
    for version in ("1.29", "1.34", "1.35"):
        found = compiled(tmp_path, declared, TEAM, kubernetes={"version": version}, delivery={"engine": engine})

        assert [(each.rule, each.message) for each in found.findings] == []


def bound(tmp_path: Path, declared: Spec, text: str = TEAM) -> set[str]:
    objects = compiled(tmp_path, declared, text).index.of_kind("RoleBinding")
    return {subject["name"] for each in objects for subject in each.value["subjects"]}


@pytest.mark.parametrize(
    ("declared", "prefix"),
    [({}, "oidc:"), (STAFF, "oidc:"), ({"groupsPrefix": "g#"}, "g#"), ({"groupsPrefix": ""}, "")],
)
def test_groups_of_teams_are_bound_with_the_prefix(tmp_path: Path, declared: Spec, prefix: str) -> None:
    assert bound(tmp_path, declared) == {f"{prefix}vision-leads", f"{prefix}vision-research"}


def test_a_group_keeps_its_prefix_and_the_clusters_own_get_none(tmp_path: Path) -> None:
    text = TEAM.replace("vision-leads", "system:masters").replace("vision-research", "oidc:vision-research")

    assert bound(tmp_path, {}, text) == {"system:masters", "oidc:vision-research"}


@pytest.mark.parametrize("asked", ["vision-research", "oidc:vision-research"])
def test_a_group_is_explained_with_and_without_its_prefix(tmp_path: Path, asked: str) -> None:
    found = groups.explain(compiled(tmp_path, {}, TEAM).index, f"group/{asked}")

    assert found.group == "oidc:vision-research"
    assert [each.object.ref.kind for each in found.bound] == ["ClusterRoleBinding", "RoleBinding"]


BINDING = """apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: own, namespace: vision-train}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "%s"}]
"""


@pytest.mark.parametrize(
    ("group", "rules"),
    [
        ("oidc:vision-research", ["role-cannot-change-scheduling"]),
        ("vision-research", ["login-chain-closes", "role-cannot-change-scheduling"]),
        ("oidc:vision-reserch", ["group-belongs-to-a-team", "role-cannot-change-scheduling"]),
    ],
)
def test_rules_know_the_groups_with_their_prefix(tmp_path: Path, group: str, rules: list[str]) -> None:
    found = compiled(tmp_path, STAFF, TEAM, BINDING % group).findings

    assert sorted(each.rule for each in found) == rules


MISTAKES = [  # what is written, where, and the rule that finds it at its line
    (("tokenLifetime",), "24h", "token-lifetime-is-short"),
    (("groupsPrefix",), "", "groups-are-prefixed"),
    (("groupsPrefix",), "system:", "groups-are-prefixed"),
    (("usernameClaim",), "mail", "login-chain-closes"),
    (("groupsClaim",), "roles", "login-chain-closes"),
    (("apiServer",), {"audiences": ["kubctl"]}, "login-chain-closes"),
    (("connectors", "staff", "ldap", "insecureNoSSL"), True, "connector-is-encrypted"),
    (("connectors", "staff", "ldap", "insecureSkipVerify"), True, "connector-is-encrypted"),
    (("connectors", "partners", "oidc", "insecureSkipVerify"), True, "connector-is-encrypted"),
    (("connectors", "partners", "oidc", "issuer"), "http://login.example.com", "connector-is-encrypted"),
    (("clients", "grafana", "redirectURIs"), ["http://grafana.example.com"], "client-is-sound"),
    (("clients", "grafana", "trustedPeers"), ["kubctl"], "client-is-sound"),
    (("connectors", "staff", "ldap", "bindDn"), "cn=a", "document-matches-schema"),
]


@pytest.mark.parametrize("engine", ["pulumi", "argocd", "flux"])
@pytest.mark.parametrize(("at", "value", "rule"), MISTAKES)
def test_a_mistake_is_found_at_its_line(
    tmp_path: Path, at: tuple[str, ...], value: Any, rule: str, engine: str
) -> None:
    declared = deepcopy(WHOLE)
    place: Spec = declared
    for part in at[:-1]:
        place = place[part]
    place[at[-1]] = value

    found = compiled(tmp_path, declared, delivery={"engine": engine}).findings

    assert {each.rule for each in found} == {rule}
    lines = (tmp_path / "input.yaml").read_text().splitlines()
    [line] = {each.source.line for each in found}
    near = " ".join(lines[line - 2 : line])  # a list's item stands below its key
    assert at[-1] in near or "audiences" in near


@pytest.mark.parametrize(
    "declared", [{"connectors": {"a": {"ldap": DIRECTORY}}}, {"clients": {"kubectl": KUBECTL}}, {"apiServer": {}}]
)
def test_what_needs_an_issuer_asks_for_it(declared: Spec) -> None:
    document = {"kind": "Environment", "spec": {"identity": declared}}

    found = [fault.message for fault in document_shape("Environment").faults(document)]

    assert "issuer is missing" in found


# properties

SECRETS = st.fixed_dictionaries({"secretKeyRef": st.just({"name": "a", "key": "b"})})
NAMES = st.text("abc-._", min_size=1, max_size=4)
CLIENT = st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES,
        "public": st.booleans(),
        "clientSecret": SECRETS,
        "redirectURIs": st.lists(st.just("https://a/b"), max_size=2),
    },
)
CONNECTOR = st.one_of(
    st.fixed_dictionaries({"ldap": st.just(DIRECTORY)}, optional={"name": NAMES}),
    st.fixed_dictionaries({"oidc": st.just({**PROVIDER, "certificateAuthority": CERTIFICATE})}),
)
DECLARED = st.fixed_dictionaries(
    {"issuer": st.just(ISSUER)},
    optional={
        "connectors": st.dictionaries(NAMES, CONNECTOR, max_size=3),
        "clients": st.dictionaries(NAMES, CLIENT, max_size=3),
        "tokenLifetime": st.just("30m"),
        "usernamePrefix": st.sampled_from(["", "u:"]),
        "groupsPrefix": st.sampled_from(["", "g:"]),
        "ingress": st.just({"className": "nginx"}),
        "apiServer": st.fixed_dictionaries(
            {}, optional={"audiences": st.just(["a"]), "discoveryURL": st.just("https://a")}
        ),
    },
)


@given(DECLARED, st.sampled_from(["1.29", "1.30", "1.34", "1.36"]))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_same_declaration_same_objects_and_each_comes_from_it(declared: Spec, version: str) -> None:
    before = deepcopy(declared)
    assert list(document_shape("Environment").faults({
        "apiVersion": "basalt.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "a"},
        "spec": {"identity": declared},
    })) == []  # fmt: skip

    found = made(declared, version)

    assert declared == before
    assert found == made(deepcopy(declared), version)
    document = {"metadata": {"name": "case"}, "spec": {"identity": declared}}
    for each in found:
        leads_somewhere(each, document)


def test_values_inside_the_configuration_text_lead_to_their_fields() -> None:
    config_map = made(WHOLE)[-1]
    text = ("data", identity.KEY, "jwt", 0)

    assert origin(config_map, (*text, "issuer", "url")) == ("spec", "identity", "issuer")
    assert origin(config_map, (*text, "claimMappings", "groups", "prefix")) == ("spec", "identity", "groupsPrefix")
    assert origin(config_map, (*text, "issuer", "audiences", 0)) == ("spec", "identity", "clients", "kubectl")
