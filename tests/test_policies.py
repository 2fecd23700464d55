"""The policy pack: what it says about captured resources, and the pack itself as the engine starts it."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY

from basalt.compiling import compile_folder
from basalt.findings import Severity
from basalt.objects import KubeObject
from basalt.pointers import Pointer, get
from basalt.rendering import layout
from policies import judging, manifests, unknowns
from policies.judging import Config, Violation
from policies.manifests import Resource

ROOT = Path(__file__).resolve().parent.parent
RUN = "batch.volcano.sh/v1alpha1"
RESNET = "Job/vision-train/resnet"


def resource(value: Mapping[str, Any], name: str = "") -> Resource:
    """What a program registers for the object."""
    api_version, kind = value["apiVersion"], value["kind"]
    group_version = api_version if "/" in api_version else f"core/{api_version}"
    kind_type = f"kubernetes:{group_version}:{kind}"
    name = name or "/".join(filter(None, (kind, value["metadata"].get("namespace"), value["metadata"]["name"])))
    return Resource(f"urn:pulumi:dev::site::{kind_type}::{name}", kind_type, name, value)


def registered(declared: KubeObject) -> Resource:
    found = resource(declared.value)
    if not layout.is_release(declared):
        return found
    props = {"name": declared.name, "namespace": declared.ref.namespace, "resourceNames": {}, **declared.spec}
    return found._replace(props=props)


def stack(environment: str) -> list[Resource]:
    return [registered(each) for each in compile_folder(ROOT / "stacks" / environment).objects]


SEED = stack("seed")


def changed(resources: list[Resource], name: str, at: Pointer, value: Any) -> list[Resource]:
    """The resources, with the value at the pointer of the one of that name."""
    assert sum(each.name == name for each in resources) == 1
    return [each._replace(props=put(each.props, at, value)) if each.name == name else each for each in resources]


def put(inside: Any, at: Pointer, value: Any) -> Any:
    if not at:
        return value
    copy = inside.copy()
    copy[at[0]] = put(inside[at[0]] if len(at) > 1 else None, at[1:], value)
    return copy


def pointers(value: Any, at: Pointer = ()) -> Iterator[Pointer]:
    yield at
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from pointers(each, (*at, key))


@pytest.mark.parametrize("name", ["seed", "prod"])
def test_stack_of_a_sound_environment_is_not_violated(name: str) -> None:
    assert judging.judge(stack(name), Config(environment=f"stacks/{name}"), ROOT) == []


def test_waived_findings_of_the_environment_are_known_only_by_it() -> None:
    prod = stack("prod")

    assert {each.message.rpartition("[")[2].partition("]")[0] for each in judging.judge(prod)} == {"rdma-is-complete"}


CONTAINER = ("spec", "tasks", 0, "template", "spec", "containers", 0)
REQUESTS = (*CONTAINER, "resources", "requests", "nvidia.com/gpu")
PLANTED = (
    (RESNET, ("spec", "queue"), "visoin", Severity.ERROR,
     "spec.queue: the queue visoin is not declared [queue-exists]\nhint: did you mean vision?"),
    (RESNET, ("spec", "minAvailable"), 9, Severity.ERROR,
     ("spec.minAvailable: minAvailable is 9, the replicas of all tasks sum to 1 + 2 = 3 [job-minimum-within-replicas]\n"
     "hint: set minAvailable to at most 3, or raise replicas")),
    ("Queue/vision", ("spec", "wieght"), 3, Severity.ERROR,
     "spec.wieght: unknown field wieght [object-matches-schema]\nhint: did you mean weight?"),
    (RESNET, (*CONTAINER, "image"), "resnet", Severity.WARNING,
     ("spec.tasks[0].template.spec.containers[0].image: the image resnet has no tag, which means latest: pods of one "
     "job may differ [image-is-pinned]\nhint: name the version that the job was tried with, or a digest")),
    ("Queue/vision", ("spec", "weight"), 3, Severity.WARNING,
     ("spec.weight: weight is set, and only the plugin proportion reads it [queue-fields-are-read]\n"
     "hint: say deserved instead, which the plugin capacity reads")),
)  # fmt: skip


@pytest.mark.parametrize(("name", "at", "value", "severity", "words"), PLANTED)
def test_planted_mistake_is_said_of_its_resource(
    name: str, at: Pointer, value: Any, severity: Severity, words: str
) -> None:
    resources = changed(SEED, name, at, value)
    (urn,) = (each.urn for each in SEED if each.name == name)

    assert judging.judge(resources) == [Violation(severity, f"{name} {words}", urn)]


def test_other_places_are_named_by_their_resource() -> None:
    twin = resource(next(each.props for each in SEED if each.name == RESNET), "twin")

    (violation,) = judging.judge([*SEED, twin])

    assert violation.urn == twin.urn
    assert f"the first is at {RESNET}" in violation.message


def test_waiver_on_the_object_counts() -> None:
    waived = changed(SEED, RESNET, (*CONTAINER, "image"), "resnet")
    waiver = {"basalt.dev/waive": "image-is-pinned: tried out"}

    assert judging.judge(changed(waived, RESNET, ("metadata", "annotations"), waiver)) == []


GUARDRAIL = """\
apiVersion: basalt.dev/v1alpha1
kind: Guardrail
metadata: {name: owned}
spec:
  match: {kinds: [Queue]}
  severity: SEVERITY
  message: a queue says whose it is
  schema: {metadata: {type: dict, schema: {labels: {type: dict, schema: {owner: {type: string, required: true}}}}}}
"""


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_guardrail_is_as_severe_as_it_says(severity: str, tmp_path: Path) -> None:
    (tmp_path / "owned.yaml").write_text(GUARDRAIL.replace("SEVERITY", severity))

    found = judging.judge(SEED, Config(guardrails="owned.yaml"), tmp_path)

    assert {each.severity.value for each in found} == {severity}
    assert found[0].message.startswith("Queue/research metadata.labels: a queue says whose it is: owner is missing")
    assert {each.urn.rpartition("::")[2] for each in found} == {"Queue/research", "Queue/vision", "Queue/speech"}


def test_fault_in_a_guardrail_is_said_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "owned.yaml").write_text(GUARDRAIL.replace("SEVERITY", "fatal"))

    (violation,) = judging.judge(SEED, Config(guardrails=str(tmp_path)))

    assert violation.urn == ""
    assert "owned.yaml:6: Guardrail/owned spec.severity: " in violation.message


def test_inventory_tells_the_nodes() -> None:
    resources = [each for each in SEED if "HyperNode" not in each.type]
    for part in ("requests", "limits"):
        resources = changed(resources, RESNET, (*CONTAINER, "resources", part, "nvidia.com/gpu"), 16)
    inventory = Config(inventory="stacks/seed/nodes.json")

    before, after = judging.judge(resources), judging.judge(resources, inventory, ROOT)

    assert not any("[pod-fits-a-node]" in each.message for each in before)
    assert any("[pod-fits-a-node]" in each.message and RESNET in each.urn for each in after)


def test_versions_tell_what_the_cluster_serves() -> None:
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    given = resource({**policy, "metadata": {"name": "own"}, "spec": {"validations": [{"expression": "true"}]}})

    (violation,) = judging.judge([given], Config(kubernetes="1.29", volcano="1.15.1"))

    assert judging.judge([given]) == []
    assert "is not served by Kubernetes 1.29 [api-is-served]" in violation.message


def test_version_that_nobody_knows_is_said_of_the_configuration() -> None:
    (violation,) = judging.judge([], Config(kubernetes="9.29"))

    assert violation.message.startswith("the policy pack's configuration: Environment/stack spec.kubernetes.version: ")


def test_path_that_leads_nowhere_is_an_error() -> None:
    (violation,) = judging.judge(SEED, Config(inventory="nodes.json"), Path("/nowhere"))

    said = "no file or folder /nowhere/nodes.json; see the policy pack's configuration"
    assert violation == Violation(Severity.ERROR, said, "")


# What is unknown.

PLACES = [
    (index, at) for index, each in enumerate(SEED) for at in pointers(each.props) if at[:1] not in ((), ("kind",))
]
MISTAKEN = SEED
for _name, _at, _value, *_ in PLANTED:
    MISTAKEN = changed(MISTAKEN, _name, _at, _value)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3))
def test_value_that_is_not_known_adds_no_violation(places: list[tuple[int, Pointer]]) -> None:
    resources = list(MISTAKEN)
    for index, at in places:
        if isinstance(
            get(resources[index].props, at[:-1], None), dict | list
        ):  # an earlier one may have taken what is around it
            resources[index] = resources[index]._replace(props=put(resources[index].props, at, unknowns.SECRET))

    assert set(judging.judge(resources)) <= set(judging.judge(MISTAKEN))


def test_what_only_pods_read_leaves_the_rest_judged() -> None:
    """A secret in a job's environment does not keep the job's other mistakes from being said."""
    resources = changed(MISTAKEN, RESNET, (*CONTAINER, "env", 0, "value"), unknowns.SECRET)

    assert judging.judge(resources) == judging.judge(MISTAKEN)


def test_kind_of_which_others_depend_on_something_unknown_is_left_out() -> None:
    """The queue that the job names may be the one whose name is not known."""
    resources = changed(MISTAKEN, "Queue/speech", ("metadata", "name"), unknowns.SECRET)

    rules = {each.message.rpartition("[")[2].partition("]")[0] for each in judging.judge(resources)}

    assert rules == {"job-minimum-within-replicas", "image-is-pinned"}


# What a resource is.

MANIFESTS: tuple[tuple[str, dict[str, Any], tuple[str, str] | None], ...] = (
    ("kubernetes:core/v1:ConfigMap", {"metadata": {"name": "a"}}, ("v1", "ConfigMap")),
    ("kubernetes:apps/v1:Deployment", {"apiVersion": "apps/v1", "kind": "Deployment"}, ("apps/v1", "Deployment")),
    ("kubernetes:rbac.authorization.k8s.io/v1:Role", {}, ("rbac.authorization.k8s.io/v1", "Role")),
    ("kubernetes:scheduling.volcano.sh/v1beta1:Queue", {}, ("scheduling.volcano.sh/v1beta1", "Queue")),
    ("kubernetes:helm.sh/v3:Release", {"chart": "volcano"}, ("helm.sh/v3", "Release")),
    ("kubernetes:core/v1:ConfigMapPatch", {"metadata": {"name": "a"}}, None),
    ("kubernetes:yaml:ConfigFile", {}, None),
    ("kubernetes:yaml/v2:ConfigGroup", {}, None),
    ("kubernetes:kustomize/v2:Directory", {}, None),
    ("kubernetes:helm.sh/v3:Chart", {}, None),
    ("kubernetes:helm.sh/v4:Chart", {}, None),
    ("pulumi:providers:kubernetes", {}, None),
    ("pulumi:pulumi:Stack", {}, None),
    ("aws:s3/bucket:Bucket", {}, None),
)


@pytest.mark.parametrize(("kind", "props", "expected"), MANIFESTS)
def test_resource_is_the_object_of_its_type(kind: str, props: dict[str, Any], expected: tuple[str, str] | None) -> None:
    value = manifests.manifest(Resource("urn", kind, "a", props))

    assert (value and (value["apiVersion"], value["kind"])) == expected


def test_manifest_is_what_was_declared() -> None:
    """Of a live object nothing is left that the API server and the provider wrote."""
    metadata = {"name": "a", "uid": "1", "resourceVersion": "2", "generation": 1.0, "managedFields": []}
    live = {"metadata": metadata, "spec": {"weight": 2.0, "parent": None}, "status": {}, "__fieldManager": "pulumi"}

    value = manifests.manifest(Resource("urn", "kubernetes:scheduling.volcano.sh/v1beta1:Queue", "a", live))

    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    assert value == {**queue, "metadata": {"name": "a"}, "spec": {"weight": 2}}


@pytest.mark.parametrize("name", ["seed", "prod"])
def test_release_is_the_object_it_was_made_from(name: str) -> None:
    releases = [each for each in compile_folder(ROOT / "stacks" / name).objects if layout.is_release(each)]

    for each in releases:
        value = manifests.manifest(registered(each))
        assert value is not None
        assert value["spec"] == each.spec
        assert value["metadata"] == {"name": each.name, "namespace": each.ref.namespace}


def test_chart_of_a_registry_has_its_repository() -> None:
    props = {"chart": "oci://registry.example.com/charts/volcano", "name": "volcano", "namespace": "volcano-system"}

    value = manifests.manifest(Resource("urn", "kubernetes:helm.sh/v3:Release", "volcano", props))

    assert value is not None
    assert value["spec"] == {"chart": "volcano", "repositoryOpts": {"repo": "oci://registry.example.com/charts"}}


# The pack as a process, asked over the engine's protocol.


@pytest.fixture(scope="module")
def analyzer() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    """The pack, started as Pulumi's Python SDK starts one."""
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:1", "."]
    with subprocess.Popen(command, cwd=ROOT / "policies", stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
            yield analyzer_pb2_grpc.AnalyzerStub(channel)
        process.kill()


def asked(
    analyzer: analyzer_pb2_grpc.AnalyzerStub, resources: list[Resource], **config: str
) -> list[analyzer_pb2.AnalyzeDiagnostic]:
    """What the pack answers about the stack."""
    configured = analyzer_pb2.ConfigureAnalyzerRequest()
    for policy, level in (("basalt-errors", "MANDATORY"), ("basalt-warnings", "ADVISORY")):
        configured.policyConfig[policy].enforcementLevel = analyzer_pb2.EnforcementLevel.Value(level)
        configured.policyConfig[policy].properties.update(config)
    analyzer.Configure(configured)
    request = analyzer_pb2.AnalyzeStackRequest()
    for each in resources:
        one = request.resources.add(urn=each.urn, type=each.type, name=each.name)
        json_format.ParseDict(each.props, one.properties)
    return list(analyzer.AnalyzeStack(request).diagnostics)


def test_pack_tells_the_engine_its_policies(analyzer: analyzer_pb2_grpc.AnalyzerStub) -> None:
    info = analyzer.GetAnalyzerInfo(plugin_pb2.PluginInfo())

    levels = {each.name: analyzer_pb2.EnforcementLevel.Name(each.enforcementLevel) for each in info.policies}
    assert levels == {"basalt-errors": "MANDATORY", "basalt-warnings": "ADVISORY"}
    assert {*info.policies[0].configSchema.properties} == {*Config._fields}


def test_pack_has_nothing_against_seed(analyzer: analyzer_pb2_grpc.AnalyzerStub) -> None:
    assert asked(analyzer, SEED) == []


def test_pack_is_mandatory_for_errors_and_advisory_for_warnings(analyzer: analyzer_pb2_grpc.AnalyzerStub) -> None:
    found = asked(analyzer, MISTAKEN)

    said = {(each.policyName, each.enforcementLevel, each.urn, each.message.partition("\n")[2]) for each in found}
    levels = {Severity.ERROR: ("basalt-errors", 1), Severity.WARNING: ("basalt-warnings", 0)}
    assert said == {(*levels[each.severity], each.urn, each.message) for each in judging.judge(MISTAKEN)}


def test_pack_reads_its_configuration(analyzer: analyzer_pb2_grpc.AnalyzerStub, tmp_path: Path) -> None:
    (tmp_path / "owned.yaml").write_text(GUARDRAIL.replace("SEVERITY", "warning"))

    found = asked(analyzer, SEED, guardrails=str(tmp_path))

    assert {(each.policyName, "[guardrail/owned]" in each.message) for each in found} == {("basalt-warnings", True)}


def test_stack_of_this_project_has_its_environment(analyzer: analyzer_pb2_grpc.AnalyzerStub) -> None:
    prod = [each._replace(urn=each.urn.replace("dev::site", "prod::basalt")) for each in stack("prod")]

    assert asked(analyzer, prod) == []
    assert asked(analyzer, prod, environment="") != []


def test_pack_shows_no_secret(analyzer: analyzer_pb2_grpc.AnalyzerStub) -> None:
    """The engine marks secrets, and the SDK would unwrap them."""
    secret = {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": "hunter2"}
    rng = random.Random(7)
    for index, at in rng.sample(PLACES, 12):
        resources = list(MISTAKEN)
        resources[index] = resources[index]._replace(props=put(resources[index].props, at, secret))

        assert "hunter2" not in json.dumps([json_format.MessageToDict(each) for each in asked(analyzer, resources)])
    plain = changed(SEED, RESNET, (*CONTAINER, "image"), "hunter2")
    assert "hunter2" in asked(analyzer, plain)[0].message  # which it would show, were it none


def test_configuration_is_documented() -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]

    assert [each for each in Config._fields if not any(f"`{each}`" in row.split("|")[1] for row in rows)] == []
