"""What a group of the identity provider reaches: bindings, namespaces, queues, GPUs."""

import shutil
from pathlib import Path

import pytest

from basalt.compiling import compile_folder
from basalt.explaining import groups
from basalt.explaining.groups import Access
from basalt.index import Index
from basalt.loading.sources import Misuse
from tests.test_cli import ROOT, basalt

ENVIRONMENT = "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: case}\nspec: {}\n"
BINDING = """apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: research, namespace: train}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: worker}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "oidc:/ml/team-a"}]
"""


@pytest.fixture(scope="module")
def prod() -> Index:
    return compile_folder(ROOT / "stacks" / "prod", needs_environment=True).index


def explained(folder: Path, *texts: str, group: str = "group/oidc:/ml/team-a") -> Access:
    (folder / "Pulumi.yaml").touch()
    (folder / "input.yaml").write_text("---\n".join((ENVIRONMENT, *texts)))
    return groups.explain(compile_folder(folder, needs_environment=True).index, group)


@pytest.mark.parametrize(
    ("group", "role", "reached"),
    [
        (
            "vision-research",
            "ClusterRole/basalt-team-edit",
            [
                ("vision-train", "288", "vision", "192", "256", "448"),
                ("vision-notebooks", "0", "vision", "192", "256", "448"),
            ],
        ),
        ("speech-leads", "ClusterRole/basalt-team-admin", [("speech-train", "192", "speech", "128", "160", "320")]),
        (
            "assistants-engineers",
            "ClusterRole/basalt-team-edit",
            [("assistants-batch", "128", "assistants", "64", "96", "128")],
        ),
    ],
)
def test_a_teams_group_reaches_its_namespaces_and_queue(
    prod: Index, group: str, role: str, reached: list[tuple[str, ...]]
) -> None:
    found = groups.explain(prod, f"group/{group}").as_json()

    places = [each for each in found["bindings"] if each["namespace"]]
    assert {each["role"] for each in places} == {role}
    gpu = "nvidia.com/gpu"
    seen = []
    for each in places:
        namespace, [queue] = each["namespace"], each["namespace"]["queues"]
        amounts = [queue["gpus"][field][gpu] for field in ("guarantee", "deserved", "capability")]
        seen.append((namespace["name"], namespace["quota"].get(gpu, "0"), queue["name"], *amounts))
    assert seen == reached


def test_a_group_of_several_teams_reaches_all_of_them(prod: Index) -> None:
    found = groups.explain(prod, "group/auditors").as_json()

    names = [each["namespace"]["name"] for each in found["bindings"] if each["namespace"]]
    assert sorted(names) == ["assistants-batch", "speech-train", "vision-notebooks", "vision-train"]
    whole = [each["object"]["kind"] for each in found["bindings"] if each["namespace"] is None]
    assert whole == ["ClusterRoleBinding"] * 3


def test_each_step_says_where_it_was_written(prod: Index) -> None:
    found = groups.explain(prod, "group/speech-research").as_json()

    [bound] = [each for each in found["bindings"] if each["namespace"]]
    places = [bound["source"], bound["namespace"]["source"], bound["namespace"]["queues"][0]["source"]]
    lines = (ROOT / "stacks" / "prod" / "teams" / "speech.yaml").read_text().splitlines()
    written = [lines[place["line"] - 1].strip() for place in places]
    assert written == ["edit: [speech-research]", "speech-train:", "queue:"]
    assert bound["object"] == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "namespace": "speech-train",
        "name": "basalt-team-edit",
    }


def test_raw_manifests_are_followed_without_a_team(tmp_path: Path) -> None:
    namespace = (
        "apiVersion: v1\nkind: Namespace\n"
        "metadata: {name: train, annotations: {scheduling.volcano.sh/queue-name: research}}\n"
    )
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: research}\nspec: {weight: 1}\n"

    found = explained(tmp_path, BINDING, namespace, queue).as_json()

    [bound] = found["bindings"]
    assert bound["role"] == "Role/worker"
    assert [(each["name"], each["gpus"]) for each in bound["namespace"]["queues"]] == [("research", {})]


def test_a_namespace_that_nobody_declares_goes_to_default(tmp_path: Path) -> None:
    shown = groups.text(explained(tmp_path, BINDING))

    assert "    Namespace/train  (not declared)\n" in shown
    assert "      Queue/default  (not declared)  no limit on GPUs\n" in shown


def test_the_least_quota_counts(tmp_path: Path) -> None:
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: %s, namespace: train}\nspec: {hard: {%s}}\n"
    one = quota % ("one", 'requests.nvidia.com/gpu: "8", cpu: "5"')
    two = quota % ("two", 'requests.nvidia.com/gpu: "4"')

    found = explained(tmp_path, BINDING, one, two).as_json()

    assert found["bindings"][0]["namespace"]["quota"] == {"nvidia.com/gpu": "4"}


def test_a_group_that_nobody_binds_is_misuse(prod: Index) -> None:
    with pytest.raises(Misuse, match=r"no group vision-reserch is bound; did you mean oidc:vision-research\?"):
        groups.explain(prod, "group/vision-reserch")


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_command_prints_it(tmp_path: Path, form: str) -> None:
    (tmp_path / "Pulumi.yaml").touch()
    shutil.copytree(ROOT / "stacks", tmp_path / "stacks")

    done = basalt("explain", "prod", "Group/vision-leads", "--format", form, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    if form == "text":
        assert done.stdout.startswith("Group oidc:vision-leads\n")
        assert "Queue/vision below research" in done.stdout
    else:
        assert done.stdout.startswith('{\n  "group": "oidc:vision-leads",')
