"""What Basalt writes, read by the programs that it is for: Helm, the API server, the descheduler, Volcano's scheduler.
They are built from Go modules (tools/oracles); where one cannot be had, its tests are skipped and say why."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from basalt.api.versions import Version, known
from basalt.compiling import Compilation, compile_folder
from basalt.pointers import get
from basalt.views.releases import Release, releases
from tools import go_modules
from tools.oracles import programs

ROOT = Path(__file__).resolve().parent.parent
CHARTS = ROOT / "schemas" / "charts"
NOT_THERE = {"dex", "gpu-operator", "network-operator"}  # in no Go module
pytestmark = pytest.mark.slow

# Every part that installs a chart, and of each the providers that prod does not take.
ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {{name: case}}
spec:
  kubernetes: {{version: "{kubernetes}"}}
  volcano: {{version: {volcano}}}
  gpu: {{provider: device-plugin, pools: {{h100: {{nodeSelector: {{a: b}}}}}}}}
  identity: {identity}
  metrics: {{adapter: {{enabled: true}}, grafana: {{admin: {{existingSecret: grafana-admin}}}}}}
  descheduler: {{interval: 30m}}
  delivery: {{engine: {engine}}}
"""
IDENTITY = """
    issuer: https://dex.example.com
    connectors: {oidc: {name: OIDC, oidc: {issuer: "https://login.example.com", clientID: dex,
      clientSecret: {secretKeyRef: {name: dex, key: secret}}}}}
    clients: {kubectl: {name: kubectl, public: true, redirectURIs: ["http://localhost:8000"]}}"""


def compiled(
    folder: Path, kubernetes: object = "1.34", volcano: object = "1.15.1", engine: str = "pulumi"
) -> Compilation:
    text = ENVIRONMENT.format(kubernetes=kubernetes, volcano=volcano, engine=engine, identity=IDENTITY)
    (folder / "environment.yaml").write_text(text, encoding="utf-8")
    return compile_folder(folder)


@pytest.fixture(scope="module")
def prod() -> Compilation:
    return compile_folder(ROOT / "stacks" / "prod")


def objection(name: str, text: str) -> str | None:
    try:
        return programs.objection(name, text)
    except go_modules.Refusal as refusal:
        pytest.skip(str(refusal))


# Helm


class Installed(NamedTuple):
    """A release with the values that it gives, whichever engine installs it."""

    release: Release
    values: Mapping[str, Any]

    def rendered(self, kubernetes: str = "1.34") -> programs.Rendered:
        release = self.release
        source = json.loads((CHARTS / f"{release.chart}-{release.exact}.json").read_text(encoding="utf-8"))["source"]
        assert release.namespace is not None
        try:
            chart = go_modules.downloaded(source) / source["folder"]
            return programs.rendered(chart, release.object.name, release.namespace, kubernetes, self.values)
        except go_modules.Refusal as refusal:
            pytest.skip(str(refusal))


def by_chart(compilation: Compilation) -> dict[str, Installed]:
    found = {}
    for release in releases(compilation.objects):
        (values,) = (each.value for each in compilation.index.chart_values if release.gives(each))
        if release.chart not in NOT_THERE:
            found[release.chart] = Installed(release, values)
    return found


def config_map(made: programs.Rendered, name: str) -> dict[str, str]:
    (found,) = (each for each in made.objects if (each["kind"], each["metadata"]["name"]) == ("ConfigMap", name))
    data: dict[str, str] = found["data"]
    return data


def environments(folder: Path, prod: Compilation) -> Iterator[Compilation]:
    yield prod
    for engine in ("pulumi", "argocd", "flux"):
        yield compiled(folder, engine=engine)
    yield compiled(folder, kubernetes="1.33", volcano="1.14.1")


def test_helm_renders_every_chart_that_is_to_be_had(prod: Compilation, tmp_path: Path) -> None:
    seen = set()
    for compilation in environments(tmp_path, prod):
        for chart, installed in by_chart(compilation).items():
            seen.add(chart)
            made = installed.rendered()
            assert made.objects, chart
            assert made.left == (["grafana"] if chart == "kube-prometheus-stack" else [])

    assert seen == {
        "volcano", "descheduler", "metrics-server", "kube-prometheus-stack", "prometheus-adapter",
        "nvidia-device-plugin",
    }  # fmt: skip


def test_scheduler_mounts_our_configuration_byte_for_byte(prod: Compilation, tmp_path: Path) -> None:
    for compilation in environments(tmp_path, prod):
        volcano = by_chart(compilation)["volcano"]
        made = volcano.rendered()

        ours = volcano.values["custom"]["scheduler_config_override"].removesuffix("\n")  # Helm trims each manifest
        assert config_map(made, "volcano-scheduler-configmap") == {"volcano-scheduler.conf": ours}
        (pod,) = (
            each["spec"]["template"]["spec"]
            for each in made.objects
            if (each["kind"], each["metadata"]["name"]) == ("Deployment", "volcano-scheduler")
        )
        assert "volcano-scheduler-configmap" in [get(each, ("configMap", "name")) for each in pod["volumes"]]


def test_descheduler_gets_our_policy_and_takes_it(prod: Compilation, tmp_path: Path) -> None:
    for compilation in environments(tmp_path, prod):
        descheduler = by_chart(compilation)["descheduler"]
        text = config_map(descheduler.rendered(), "descheduler")["policy.yaml"]

        kind = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
        assert yaml.safe_load(text) == {**kind, **descheduler.values["deschedulerPolicy"]}
        assert objection("descheduler", text) is None


def test_helm_refuses_a_kubernetes_that_is_too_old_for_the_chart(prod: Compilation) -> None:
    with pytest.raises(ValueError, match="requires kubeVersion"):
        by_chart(prod)["kube-prometheus-stack"].rendered(kubernetes="1.20")


# The API server


def authentication(compilation: Compilation) -> str:
    (found,) = (each for each in compilation.objects if each.name == "authentication-configuration")
    (text,) = found.value["data"].values()
    assert isinstance(text, str)
    return text


def test_api_server_takes_the_authentication_of_prod(prod: Compilation) -> None:
    assert objection("authentication", authentication(prod)) is None


@pytest.mark.parametrize("version", [each for each in known("kubernetes") if each >= Version(1, 30)], ids=str)
def test_api_server_takes_the_authentication_for_each_kubernetes(version: Version, tmp_path: Path) -> None:
    text = authentication(compiled(tmp_path, kubernetes=version))

    assert objection("authentication", text) is None


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("https:", "http:", "URL scheme must be https"),
        ("audiences:", "audience:", 'unknown field "jwt[0].issuer.audience"'),
        ("claim: email", "expression: claims.emial +", "compilation failed"),
        ("MatchAny", "MatchAll", "audienceMatchPolicy"),
        ("AuthenticationConfiguration", "AuthorizationConfiguration", "unknown field"),
        ("https://dex.prod.example.com", "https://kubernetes.default.svc.cluster.local", "must not overlap"),
    ],
)
def test_api_server_refuses_what_is_broken(old: str, new: str, reason: str, prod: Compilation) -> None:
    text = authentication(prod)
    assert old in text

    assert reason in (objection("authentication", text.replace(old, new)) or "")


# The descheduler

POLICY: dict[str, Any] = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "a",
            "pluginConfig": [{"name": "DefaultEvictor"}, {"name": "RemoveDuplicates", "args": {}}],
            "plugins": {"balance": {"enabled": ["RemoveDuplicates"]}},
        }
    ],
}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("", "", None),
        ('["RemoveDuplicates"]', '["RemoveDuplicate"]', "RemoveDuplicate"),
        ('"args": {}', '"args": {"excludeOwnerKind": []}', "unknown field"),
        ('"profiles"', '"profile"', None),  # the outermost map is not decoded strictly: it would do nothing
        ("v1alpha2", "v1alpha1", "v1alpha1"),
    ],
)
def test_descheduler_refuses_what_is_broken(old: str, new: str, reason: str | None) -> None:
    text = json.dumps(POLICY)
    assert old in text

    found = objection("descheduler", text.replace(old, new) if old else text)

    assert found is None if reason is None else reason in (found or "")


# Volcano's scheduler: 1.14, because the API module of 1.15 is not on the Go proxy


@pytest.mark.parametrize("version", [each for each in known("volcano") if each < Version(1, 15)], ids=str)
def test_scheduler_takes_the_default_configuration(version: Version, tmp_path: Path) -> None:
    volcano = by_chart(compiled(tmp_path, volcano=f"{version}.1"))["volcano"]

    assert objection("volcano", volcano.values["custom"]["scheduler_config_override"]) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}]}]', None),
        ('actions: "enqueue, alocate"\n', "failed to find Action alocate"),
        ('actions: "enqueue, gangreclaim"\n', "failed to find Action gangreclaim"),  # since 1.15
        ('actions: "enqueue"\ntiers: [{plugins: [{name: gnag}]}]', "failed to get plugin gnag"),
        ('actions: "enqueue"\ntiers: {plugins: []}', "cannot unmarshal"),
    ],
)
def test_scheduler_refuses_what_is_broken(text: str, reason: str | None) -> None:
    found = objection("volcano", text)

    assert found is None if reason is None else reason in " ".join((found or "").split())
