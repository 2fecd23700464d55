"""The Pulumi program of an environment, under Pulumi's mocks."""

import gc
import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from basalt.compiling import compile_folder
from basalt.gathering.documents import Document
from basalt.loading.sources import SourceFile
from basalt.objects import KubeObject
from basalt.rendering import layout
from basalt.rendering.needs import in_order
from pulumi_basalt import components, options, program, registering, settings
from tests.engine.stacks import FAST
from tests.golden import ENVIRONMENTS
from tests.mock_engine import Engine, plain, secrets_in

ROOT = Path(__file__).resolve().parent.parent
_ENVIRONMENT = """
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: case}
spec: {kubernetes: {version: "1.34"}}
"""


def stack(name: str) -> Engine:
    return Engine().run(lambda: program.register(compile_folder(ROOT / "stacks" / name)), stack=name)


def environment(folder: Path, **files: str) -> Path:
    """A folder with an Environment and these files."""
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").touch()
    for name, text in {"environment": _ENVIRONMENT, **files}.items():
        path = folder / "stacks" / "case" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "stacks" / "case"


def registered(folder: Path, provider: Mapping[str, Any] | None = None, **options_: Any) -> Engine:
    return Engine().run(lambda: program.register(compile_folder(folder), provider, **options_))


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def registered_stack(request: pytest.FixtureRequest) -> tuple[str, Engine]:
    return request.param, stack(request.param)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Production, with Pulumi to install the charts."""
    return registered(production_with_pulumi(tmp_path_factory.mktemp("platform")))


def production_with_pulumi(root: Path) -> Path:
    (root / "Pulumi.yaml").touch()
    for name in ("base", "prod"):
        for path in sorted((ROOT / "stacks" / name).rglob("*")):
            if path.is_file():
                target = root / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                text = path.read_text(encoding="utf-8")
                text = (
                    text.partition("    engine: argocd")[0] + "    engine: pulumi\n"
                    if "engine: argocd" in text
                    else text
                )
                target.write_text(text, encoding="utf-8")
    return root / "stacks" / "prod"


# what is registered


def test_every_object_that_compile_writes_is_registered_with_the_same_content(
    registered_stack: tuple[str, Engine],
) -> None:
    name, engine = registered_stack
    text = layout.stream(compile_folder(ROOT / "stacks" / name).objects)
    written = {
        (each["apiVersion"], each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]): each
        for each in yaml.load_all(text, yaml.CSafeLoader)
    }

    assert {each.identity: plain(each.inputs) for each in engine.objects} == written
    assert len(engine.objects) == len(written)


def test_every_object_stands_under_its_module(registered_stack: tuple[str, Engine]) -> None:
    name, engine = registered_stack
    modules = {
        registering.name_of(each): each.module or "manifests" for each in compile_folder(ROOT / "stacks" / name).objects
    }

    assert {each.name: each.parent for each in engine.objects} == modules
    components = [each for each in engine.registered if each.type == "basalt:modules:Module"]
    assert {each.name for each in components} == set(modules.values())
    assert {each.parent for each in components} == {f"basalt-{name}"}


def test_what_is_needed_is_registered_first(registered_stack: tuple[str, Engine]) -> None:
    _, engine = registered_stack
    seen: set[str] = set()
    for each in engine.registered:
        assert each.dependencies <= seen, each.name  # so that there is no circle
        seen.add(each.name)


def test_edges_are_about_as_many_as_objects(registered_stack: tuple[str, Engine]) -> None:
    _, engine = registered_stack

    assert sum(len(each.dependencies) for each in engine.objects) < 3 * len(engine.objects)


def test_every_object_waits_for_what_it_names(registered_stack: tuple[str, Engine]) -> None:
    _, engine = registered_stack
    for each in engine.objects:
        behind, spec = engine.behind(each.name), each.inputs.get("spec", {})
        named = [
            ("namespace/" + each.inputs["metadata"].get("namespace", "")),
            *([f"queue.scheduling.volcano.sh/{spec.get('parent')}"] if each.inputs["kind"] == "Queue" else []),
            f"queue.scheduling.volcano.sh/{spec.get('queue')}",
            f"priorityclass.scheduling.k8s.io/{spec.get('priorityClassName')}",
            *(f"hypernode.topology.volcano.sh/{name}" for name in members(spec)),
        ]
        assert {name for name in named if name in engine.by_name} <= behind, each.name


def members(spec: Mapping[str, Any]) -> list[str]:
    every = spec.get("members", []) if isinstance(spec.get("members"), list) else []
    return [each["selector"]["exactMatch"]["name"] for each in every if each.get("type") == "HyperNode"]


def test_jobs_wait_for_their_namespace_as_a_whole_and_for_the_tree() -> None:
    engine = stack("seed")

    behind = engine.behind("job.batch.volcano.sh/vision-train/allreduce")
    settings = {
        each.name for each in engine.objects if "/vision-train/" in each.name and ".volcano.sh/" not in each.name
    }
    tree = {each.name for each in engine.objects if each.name.startswith("hypernode.")}
    assert len(settings) > 6
    assert settings | tree <= behind
    assert not tree & engine.behind("job.batch.volcano.sh/vision-train/resnet")  # it says nothing of the network


def test_names_do_not_depend_on_what_else_there_is(tmp_path: Path) -> None:
    both = registered(environment(tmp_path / "both", one=config_map("a"), two=config_map("b")))
    one = registered(environment(tmp_path / "one", two=config_map("b")))

    assert set(both.by_name) - set(one.by_name) == {"configmap/default/a"}


def config_map(name: str, **more: Any) -> str:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, **more}
    return yaml.safe_dump(value)


def test_an_object_keeps_its_urn_when_another_module_declares_it(tmp_path: Path) -> None:
    queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: research}, spec: {weight: 1}}"
    raw = registered(environment(tmp_path / "raw", queue=queue))
    declared = registered(
        environment(tmp_path / "own", environment=_ENVIRONMENT.replace('"1.34"}', '"1.34"}, queues: {research: {}}'))
    )

    before, after = (each.by_name["queue.scheduling.volcano.sh/research"] for each in (raw, declared))
    assert (before.parent, after.parent) == ("manifests", "queues")
    urns = [
        f"{str(each.request.parent).split('::')[2]}${each.type}::{each.name}" for each in (before, after)
    ]  # a URN has the types of the parents, not their names
    assert urns[0] == urns[1]


# charts


def test_charts_are_helm_releases(platform: Engine) -> None:
    found = {each.name: each for each in platform.objects if each.type == "kubernetes:helm.sh/v3:Release"}

    assert {name.rpartition("/")[2] for name in found} >= {"volcano", "gpu-operator", "kube-prometheus-stack", "dex"}
    volcano = found["release.helm.sh/volcano-system/volcano"]
    inputs = plain(volcano.inputs)
    assert (inputs["name"], inputs["namespace"], inputs["chart"]) == ("volcano", "volcano-system", "volcano")
    assert inputs["repositoryOpts"] == {"repo": "https://volcano-sh.github.io/helm-charts"}
    assert "volcano-scheduler.conf" not in inputs["values"]
    assert (volcano.request.protect, volcano.request.retainOnDelete) == (True, True)  # its CRDs go with it
    server = found["release.helm.sh/monitoring/metrics-server"]
    assert (server.request.protect, server.request.retainOnDelete) == (False, False)
    assert "namespace/volcano-system" in volcano.dependencies


def test_objects_wait_for_the_chart_that_defines_their_kind(platform: Engine) -> None:
    charts = {
        "queue.scheduling.volcano.sh/research": "release.helm.sh/volcano-system/volcano",
        "hypernode.topology.volcano.sh/rack-01": "release.helm.sh/volcano-system/volcano",
        "clusterpolicy.nvidia.com/cluster-policy": "release.helm.sh/gpu-operator/gpu-operator",
        "prometheusrule.monitoring.coreos.com/monitoring/basalt-gangs": (
            "release.helm.sh/monitoring/kube-prometheus-stack"
        ),
    }

    assert {name: chart for name, chart in charts.items() if chart not in platform.by_name[name].dependencies} == {}
    settings = platform.behind("release.helm.sh/gpu-operator/gpu-operator")
    assert "configmap/gpu-operator/basalt-device-plugin" in settings


def test_custom_objects_wait_for_the_webhook_that_judges_them(tmp_path: Path) -> None:
    """Volcano as plain manifests: a queue that comes before the admission answers is refused."""
    text = """
apiVersion: v1
kind: Namespace
metadata: {name: volcano-system, labels: {pod-security.kubernetes.io/enforce: baseline}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: volcano-admission, namespace: volcano-system}
spec:
  selector: {matchLabels: {app: admission}}
  template:
    metadata: {labels: {app: admission}}
    spec: {containers: [{name: admission, image: "registry.example.com/volcano/admission:1.15.1"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: volcano}
webhooks:
  - name: queues.volcano.sh
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {name: volcano-admission, namespace: volcano-system}}
    rules: [{apiGroups: [scheduling.volcano.sh], apiVersions: [v1beta1], operations: [CREATE], resources: [queues]}]
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: research}, spec: {weight: 1}}
"""
    folder = environment(tmp_path, volcano=text)
    placed = in_order(compile_folder(folder).objects)
    needs = {each.object.ref.kind: {placed[need].object.ref.kind for need in each.needs} for each in placed}

    assert needs["Queue"] == {"ValidatingWebhookConfiguration"}
    assert needs["ValidatingWebhookConfiguration"] == {"Deployment"}
    assert needs["Deployment"] >= {"Namespace"}


def test_a_chart_of_a_registry_is_named_by_its_whole_address(tmp_path: Path) -> None:
    release = """
apiVersion: helm.sh/v3
kind: Release
metadata: {name: trainer, namespace: default}
spec: {chart: trainer, version: 2.0.0, repositoryOpts: {repo: "oci://registry.example.com/charts"}}
"""
    inputs = registered(environment(tmp_path, release=release)).by_name["release.helm.sh/default/trainer"].inputs

    assert inputs["chart"] == "oci://registry.example.com/charts/trainer"
    assert "repositoryOpts" not in inputs


# options


def request(engine: Engine, name: str) -> Any:
    return engine.by_name[name].request


def test_what_holds_data_is_protected_and_retained(tmp_path: Path) -> None:
    claim = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Ti}}}
"""
    engine = registered(environment(tmp_path, claim=claim, config=config_map("a")))
    seed = stack("seed")

    kept = [
        request(engine, "persistentvolumeclaim/default/data"),
        *(each.request for each in seed.objects if each.inputs["kind"] == "Namespace"),
    ]
    assert [(each.protect, each.retainOnDelete) for each in kept] == [(True, True)] * 5
    loose = [request(engine, "configmap/default/a"), *(each.request for each in seed.objects if "queue" in each.name)]
    assert {(each.protect, each.retainOnDelete) for each in loose} == {(False, False)}


def test_what_the_api_refuses_to_change_is_replaced() -> None:
    engine = stack("seed")

    job = request(engine, "job.batch.volcano.sh/vision-train/allreduce")
    paths = set(job.replaceOnChanges)
    assert paths >= {"spec.queue", "spec.tasks[*].template", "spec.networkTopology"}
    changeable = {"spec", "spec.tasks", "spec.minAvailable", "spec.tasks[*].replicas", "spec.tasks[*].minAvailable"}
    assert not paths & (changeable | {"spec.priorityClassName"})
    assert job.deleteBeforeReplace  # the name is taken until then
    assert [each.number_value for each in job.replacement_trigger.list_value.values] == [1]  # tasks may not grow
    assert set(request(engine, "priorityclass.scheduling.k8s.io/high").replaceOnChanges) == {
        "value", "preemptionPolicy",
    }  # fmt: skip
    queue = request(engine, "queue.scheduling.volcano.sh/vision")
    assert (list(queue.replaceOnChanges), queue.deleteBeforeReplace) == ([], False)


def test_sealed_config_maps_are_replaced_and_open_ones_are_not(tmp_path: Path) -> None:
    sealed = config_map("sealed", immutable=True, data={"a": "b"})
    engine = registered(environment(tmp_path, sealed=sealed, loose=config_map("loose", data={"a": "b"})))

    assert list(request(engine, "configmap/default/sealed").replaceOnChanges) == ["data", "binaryData", "stringData"]
    assert list(request(engine, "configmap/default/loose").replaceOnChanges) == []


def test_what_controllers_write_is_ignored(tmp_path: Path) -> None:
    webhook = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: jobs}
webhooks:
  - name: jobs.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {name: jobs, namespace: default}}
"""
    engine = registered(environment(tmp_path, webhook=webhook, config=config_map("a")))

    name = "validatingwebhookconfiguration.admissionregistration.k8s.io/jobs"
    assert list(request(engine, name).ignoreChanges) == ["status", "webhooks[*].clientConfig.caBundle"]
    assert list(request(engine, "configmap/default/a").ignoreChanges) == ["status"]


def test_replicas_belong_to_the_autoscaler(tmp_path: Path) -> None:
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: a, image: "registry.example.com/a:1"}]}
"""
    scaler = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a, namespace: default}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}
"""
    texts = {name: deployment.replace("NAME", name) for name in ("scaled", "fixed")}
    engine = registered(environment(tmp_path, scaler=scaler, **texts))

    assert "spec.replicas" in request(engine, "deployment.apps/default/scaled").ignoreChanges
    assert "spec.replicas" not in request(engine, "deployment.apps/default/fixed").ignoreChanges
    old = request(engine, "horizontalpodautoscaler.autoscaling/default/a").aliases
    assert [each.spec.type for each in old] == ["kubernetes:autoscaling/v1:HorizontalPodAutoscaler"]


def test_the_provider_applies_and_leaves_adoption_to_its_environment() -> None:
    engine = stack("seed")
    provider = engine.by_name["kubernetes"]

    assert provider.type == "pulumi:providers:kubernetes"
    assert provider.inputs == {
        "enableServerSideApply": "true",
        "enableConfigMapMutable": "true",
        "enableSecretMutable": "true",
        "clusterIdentifier": "seed",
    }
    assert {each.request.provider for each in engine.objects} == {
        "urn:pulumi:seed::basalt::pulumi:pulumi:Stack$pulumi:providers:kubernetes::kubernetes::kubernetes-id"
    }
    assert {each.request.version for each in engine.objects} == {provider.request.version}


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("core/v1:Namespace", {"pulumi.com/patchFieldManager": "pulumi-basalt"}),
        (
            "scheduling.volcano.sh/v1beta1:Queue",
            {
                "pulumi.com/patchFieldManager": "pulumi-basalt",
                "pulumi.com/waitFor": "jsonpath={.status.state}=Open",
            },
        ),
    ],
)
def test_the_provider_is_told_of_manager_and_queues_without_saying_so_in_the_object(
    kind: str, told: dict[str, str]
) -> None:
    engine = stack("seed")

    assert [each.name for each in engine.objects if not each.request.transforms] == []
    props = {"metadata": {"name": "a", "annotations": {"b": "c"}}, "spec": {}}
    args = pulumi.ResourceTransformArgs(True, f"kubernetes:{kind}", "a", props, pulumi.ResourceOptions())
    assert options.told(args).props == {"metadata": {"name": "a", "annotations": {"b": "c", **told}}, "spec": {}}
    assert props["metadata"]["annotations"] == {"b": "c"}


def test_the_collector_is_on_again_in_the_end() -> None:
    gc.enable()  # commands that ran in this process leave it off
    stack("seed")
    assert gc.isenabled()


# findings


def test_findings_register_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, dato: {a: "b"}}'
    folder = environment(tmp_path, broken=broken)
    monkeypatch.chdir(tmp_path)
    engine = Engine()

    with pytest.raises(pulumi.RunError) as raised:
        engine.run(lambda: program.register(compile_folder(folder)))

    assert engine.registered == []
    assert str(raised.value).startswith("case has errors, nothing is registered\nstacks/case/broken.yaml:1:")
    assert "dato" in str(raised.value)
    assert "[object-matches-schema]" in str(raised.value)


def test_a_waived_literal_secret_is_a_secret_of_pulumi(tmp_path: Path) -> None:
    waived = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: default
  annotations: {"basalt.dev/waive": "secret-is-not-literal: a password of the test lab"}
data: {password: correct-horse}
"""
    engine = registered(environment(tmp_path, waived=waived, other=config_map("b", data={"plain": "x"})))

    assert list(secrets_in(engine.by_name["configmap/default/a"].inputs)) == [{"password": "correct-horse"}]
    assert engine.by_name["configmap/default/a"].inputs["metadata"]["name"] == "a"
    assert list(secrets_in(engine.by_name["configmap/default/b"].inputs)) == []


# the stack's configuration


def run_main(folder: Path, monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> Engine:
    monkeypatch.chdir(folder)
    return Engine().run(lambda: runpy.run_path(str(ROOT / "__main__.py")), **arguments)


def test_the_stack_names_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(tmp_path, config=config_map("a"))

    by_stack = run_main(tmp_path, monkeypatch, stack="case")
    by_setting = run_main(tmp_path, monkeypatch, stack="dev", config={"basalt:environment": "case"})

    assert {each.name for each in by_stack.registered} == {each.name for each in by_setting.registered}
    assert "configmap/default/a" in by_stack.by_name


_UNKNOWN = (
    "basalt:enviroment is not known; did you mean environment?; there are environment: the environment's name under "
    "stacks/, or its folder; render: the folder that YAML is written to; secrets: the content of Secrets, by "
    "<namespace>/<name>"
)
_ABSENT = (
    "no environment cose: neither a path nor a folder under stacks/; did you mean case?; the stack's name, or "
    "basalt:environment, says which to compile"
)
_PLAIN = (
    "basalt:secrets is not encrypted; set it with --secret: pulumi config set --secret --path "
    "'basalt:secrets[\"dex/dex-ldap\"].password'"
)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"basalt:enviroment": "case"}, _UNKNOWN),
        ({"basalt:render": "true"}, 'basalt:render takes a folder, this is "true"; for example rendered/'),
        ({"basalt:environment": " "}, "basalt:environment is empty; take it out, or name a folder under stacks/"),
        ({"basalt:environment": "cose"}, _ABSENT),
        ({"basalt:secrets": "{}"}, _PLAIN),
    ],
)
def test_a_wrong_setting_ends_the_run(
    config: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(tmp_path)

    with pytest.raises(pulumi.RunError) as raised:
        run_main(tmp_path, monkeypatch, stack="case", config=config)

    assert str(raised.value) == message


def test_settings_of_the_provider_are_those_of_pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(tmp_path, config=config_map("a"))
    config = {"kubernetes:context": "prod", "kubernetes:kubeconfig": "{}", "kubernetes:deleteUnreachable": "true"}

    engine = run_main(tmp_path, monkeypatch, stack="case", config=config, secret=("kubernetes:kubeconfig",))

    inputs = engine.by_name["kubernetes"].inputs
    assert (inputs["context"], inputs["deleteUnreachable"]) == ("prod", "true")
    assert list(secrets_in(inputs["kubeconfig"])) == ["{}"]


def test_secrets_come_from_the_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: dex}}"
    declared = "{apiVersion: v1, kind: Secret, metadata: {name: own, namespace: dex, labels: {a: b}}, type: Opaque}"
    environment(tmp_path, namespace=namespace, declared=declared)
    config = {"basalt:secrets": json.dumps({"dex/ldap": {"password": "swordfish"}, "dex/own": {"key": "xyzzy"}})}

    engine = run_main(tmp_path, monkeypatch, stack="case", config=config, secret=("basalt:secrets",))

    ldap, own = engine.by_name["secret/dex/ldap"], engine.by_name["secret/dex/own"]
    assert (ldap.parent, own.parent) == ("secrets", "manifests")
    assert list(secrets_in(ldap.inputs)) == [{"password": "swordfish"}]
    assert list(secrets_in(own.inputs)) == [{"key": "xyzzy"}]
    assert own.inputs["metadata"]["labels"] == {"a": "b"}
    assert "namespace/dex" in engine.behind("secret/dex/ldap")


# rendering


def test_render_writes_through_the_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    production_with_pulumi(tmp_path)

    engine = run_main(tmp_path, monkeypatch, stack="prod", config={"basalt:render": "rendered"})

    assert engine.by_name["kubernetes"].inputs == {"renderYamlToDirectory": "rendered"}
    assert [each.name for each in engine.objects if "Release" in each.type] == []  # only a cluster takes them
    assert [each.name for each in engine.objects if each.request.transforms] == []
    assert "queue.scheduling.volcano.sh/research" in engine.by_name


def test_render_refuses_two_objects_in_one_file(tmp_path: Path) -> None:
    texts = {}
    for number, (namespace, name) in enumerate((("a", "b-c"), ("a-b", "c"))):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
        texts[f"file{number}"] = yaml.safe_dump_all([space, config])

    with pytest.raises(pulumi.RunError, match="ConfigMap/a/b-c and ConfigMap/a-b/c would be rendered to one file"):
        registered(environment(tmp_path, **texts), {"render_yaml_to_directory": "rendered"})


# what the docs say


def test_the_page_names_every_setting_and_every_component() -> None:
    page = (ROOT / "docs" / "pulumi.md").read_text(encoding="utf-8")

    assert "PULUMI_EXPERIMENTAL=1 PULUMI_SKIP_CHECKPOINTS=1" in page
    fast = " ".join(f"{key}={value}" for key, value in FAST.items())  # what the tests with the real engine set
    assert f"FAST := {fast}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [key for key in FAST if key not in page] == []
    assert [key for key in settings.KEYS if f"`basalt:{key}`" not in page] == []
    named = [each for each in vars(components).values() if isinstance(each, type) and hasattr(each, "modules")]
    assert [each.__name__ for each in named if each.__name__[0] != "_" and f"`{each.__name__}`" not in page] == [
        "Component"
    ]


# the order of any objects


def queue(name: str, parent: str) -> KubeObject:
    value = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parent": parent},
    }
    return KubeObject(value, Document(SourceFile(Path("a"), "a", b""), 0, value))


@given(st.dictionaries(st.sampled_from("abcdefg"), st.sampled_from("abcdefgh"), min_size=1))
def test_any_tree_or_circle_of_queues_has_an_order(parents: dict[str, str]) -> None:
    placed = in_order([queue(name, parent) for name, parent in parents.items()])

    assert sorted(each.object.name for each in placed) == sorted(parents)
    for place, each in enumerate(placed):
        assert all(need < place for need in each.needs)
        named = [placed[need].object.name for need in each.needs]
        assert named in ([], [parents[each.object.name]])
    roots = [each for each in placed if not each.needs]
    assert roots


def test_a_long_chain_of_queues_has_an_order() -> None:
    placed = in_order([queue(f"q{number}", f"q{number + 1}") for number in range(3000)])

    assert [len(each.needs) for each in placed] == [0, *[1] * 2999]
