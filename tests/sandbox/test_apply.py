"""`basalt apply` and `basalt verify` against a real API server."""

import json
from pathlib import Path
from typing import Any

import pytest

from basalt.compiling import compile_folder
from basalt.findings import Ref
from basalt.rendering import layout
from tests.sandbox.conftest import ROOT, Home, Up, make_home

slow = pytest.mark.slow
QUEUE = Ref("scheduling.volcano.sh/v1beta1", "Queue", None, "vision")
LIMITS = Ref("v1", "LimitRange", "vision-train", "defaults")
RESTLESS = {"Job", "Queue", "ResourceQuota", "HyperNode", "ValidatingAdmissionPolicy"}  # controllers write their status


def versions(up: Up) -> dict[Ref, str]:
    """The resource versions of what nobody but an apply changes."""
    objects = layout.in_apply_order(compile_folder(ROOT / "stacks" / "seed").objects)
    found = {each.ref: up.cluster.get(each.ref) for each in objects if each.ref.kind not in RESTLESS}
    return {ref: value["metadata"]["resourceVersion"] for ref, value in found.items() if value}


def merge(up: Up, ref: Ref, plural: str, patch: dict[str, Any]) -> None:
    """A change by somebody else."""
    root = f"/apis/{ref.api_version}" if "/" in ref.api_version else f"/api/{ref.api_version}"
    inside = f"/namespaces/{ref.namespace}" if ref.namespace else ""
    path = f"{root}{inside}/{plural}/{ref.name}"
    up.cluster.request("PATCH", path, {"fieldManager": "somebody"}, patch, "application/merge-patch+json")


@slow
def test_applying_twice_changes_nothing(seed: Up) -> None:
    before = versions(seed)

    done = seed.run("apply", "seed", "--yes", "--format", "json")

    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert {key: count for key, count in summary.items() if count} == {"unchanged": 57}
    assert versions(seed) == before


@slow
def test_drift_is_shown_and_taken_back_only_when_told(seed: Up) -> None:
    merge(seed, QUEUE, "queues", {"spec": {"weight": 7}, "metadata": {"annotations": {"note": "mine"}}})
    merge(seed, LIMITS, "limitranges", {"metadata": {"labels": {"app.kubernetes.io/managed-by": "hand"}}})

    drifted = seed.run("verify", "seed")
    assert drifted.returncode == 1
    label = 'metadata.labels["app.kubernetes.io/managed-by"]'
    difference = 'declared "basalt", the cluster has "hand" (somebody)'
    lines = [line for line in drifted.stdout.splitlines() if "LimitRange" in line or "Queue" in line]
    assert lines == [
        f"stacks/seed/teams.yaml:12: LimitRange/vision-train/defaults {label}: {difference}",
        "stacks/seed/teams.yaml:13: Queue/vision metadata.annotations.note: not declared, owned by somebody",
        "stacks/seed/teams.yaml:13: Queue/vision spec.weight: declared 1, the cluster has 7 (somebody)",
    ]

    refused = seed.run("apply", "seed", "--yes")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert 'Queue/vision: Apply failed with 1 conflict: conflict with "somebody"' in refused.stderr
    assert "--force-conflicts" in refused.stderr
    assert (seed.cluster.get(QUEUE) or {})["spec"]["weight"] == 7

    taken = seed.run("apply", "seed", "--yes", "--force-conflicts")
    assert taken.returncode == 0, taken.stderr
    assert "    Queue/vision spec.weight: 7 -> 1\n" in taken.stdout
    merge(seed, QUEUE, "queues", {"metadata": {"annotations": None}})
    after = json.loads(seed.run("verify", "seed", "--format", "json").stdout)["summary"]
    assert {key: count for key, count in after.items() if count} == {"same": 57}


@slow
def test_what_is_gone_is_missing_and_comes_back(seed: Up) -> None:
    seed.cluster.delete(LIMITS)

    missing = seed.run("verify", "seed", "--quiet")
    back = seed.run("apply", "seed", "--yes", "--format", "json")

    assert (missing.returncode, missing.stdout) == (
        1, "stacks/seed/teams.yaml:12: LimitRange/vision-train/defaults: missing\n",
    )  # fmt: skip
    assert json.loads(back.stdout)["summary"] == {"created": 1, "changed": 0, "adopted": 0, "unchanged": 56}


@slow
def test_a_change_that_the_api_refuses_stops_before_anything_is_applied(seed: Up) -> None:
    environment = seed.home.project / "stacks" / "seed" / "environment.yaml"
    text = environment.read_text(encoding="utf-8")
    environment.write_text(
        text.replace("low: {value: 1000,", "low: {value: 1001,").replace("cpu: 760, m", "cpu: 761, m")
    )
    try:
        done = seed.run("apply", "seed", "--yes")
    finally:
        environment.write_text(text)

    assert (done.returncode, done.stdout) == (1, "")
    assert "stacks/seed/environment.yaml:31: PriorityClass/low: " in done.stderr
    assert "may not be changed in an update" in done.stderr
    assert "research" not in done.stderr
    assert json.loads(seed.run("verify", "seed", "--format", "json").stdout)["summary"]["drifted"] == 0


@slow
def test_without_a_terminal_apply_wants_yes(empty: Up) -> None:
    done = empty.run("apply", "seed")

    assert (done.returncode, done.stderr) == (
        (2, "basalt: apply asks before it changes seed; give --yes where nobody can answer\n")
        if "to create" in done.stdout
        else (0, "")  # another test has applied everything
    )


@slow
def test_kinds_that_the_cluster_lacks_are_named_before_anything_is_applied(seed: Up) -> None:
    folder = seed.home.project / "stacks" / "strange"
    folder.mkdir()
    (folder / "environment.yaml").write_text(
        "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: strange}\n"
        "spec: {kubernetes: {version: '1.34'}, volcano: {version: 1.15.1}, metrics: {}}\n"
    )

    done = seed.run("apply", "strange", "--yes")

    assert (done.returncode, done.stdout) == (2, "")
    assert "does not serve PrometheusRule of monitoring.coreos.com/v1 (3 objects), ServiceMonitor " in done.stderr
    assert "install the charts first (" in done.stderr


ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: more}
spec: {kubernetes: {version: "1.34"}, volcano: {version: 1.15.1}}
"""


def environment(up: Up, name: str, *documents: str) -> None:
    folder = up.home.project / "stacks" / name
    folder.mkdir(exist_ok=True)
    (folder / "all.yaml").write_text("---\n".join([ENVIRONMENT, *documents]), encoding="utf-8")


@slow
def test_any_text_arrives_as_it_is_and_bare_objects_are_applied_once(seed: Up) -> None:
    written = r"世界 🎉 \u0085 \u2028 \ufeff \x7f back\\ud83cslash"
    text = "世界 🎉 \u0085 \u2028 \ufeff \x7f back\\ud83cslash"
    named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}, namespace: bare}}\n"
    environment(seed, "more", "apiVersion: v1\nkind: Namespace\nmetadata: {name: bare}\n",
                f'{named.format("text")}data: {{text: "{written}"}}\n', named.format("empty"))  # fmt: skip

    first = seed.run("apply", "more", "--yes", "--format", "json")
    again = seed.run("apply", "more", "--yes", "--format", "json")

    assert first.returncode == 0, first.stderr
    found = seed.cluster.get(Ref("v1", "ConfigMap", "bare", "text"))
    assert found is not None
    assert found["data"]["text"] == text
    summary = json.loads(again.stdout)["summary"]
    assert (summary["adopted"], summary["created"], summary["changed"]) == (0, 0, 0)
    assert seed.run("verify", "more", "--strict").returncode == 0


@slow
def test_a_new_object_that_is_wrong_stops_before_anything_is_applied(seed: Up) -> None:
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: early, namespace: default}\n"
    bad = ("apiVersion: v1\nkind: Service\nmetadata: {name: late, namespace: default}\n"
           "spec: {clusterIP: 9.9.9.9, ports: [{port: 1}], selector: {a: b}}\n")  # fmt: skip
    environment(seed, "wrong", good, bad)

    done = seed.run("apply", "wrong", "--yes")

    assert (done.returncode, done.stdout) == (1, "")
    assert "Service/default/late: " in done.stderr
    assert seed.cluster.get(Ref("v1", "ConfigMap", "default", "early")) is None


@slow
def test_a_reader_who_leaves_does_not_stop_an_apply(seed: Up) -> None:
    environment(seed, "piped", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: piped, namespace: default}\n")

    with seed.home.start("apply", "piped", "--yes", KUBECONFIG=seed.kubeconfig) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait()

    assert process.returncode == 0
    assert seed.cluster.get(Ref("v1", "ConfigMap", "default", "piped")) is not None


@pytest.fixture
def project(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def test_a_kubeconfig_that_is_not_there_is_one_line(project: Home, tmp_path: Path) -> None:
    for command in ("apply", "verify"):
        done = project.run(command, "seed", "--kubeconfig", str(tmp_path / "none"))

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"basalt: {tmp_path / 'none'}: ")
        assert done.stderr.count("\n") == 1


def test_a_cluster_that_does_not_answer_is_one_line(project: Home, tmp_path: Path) -> None:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "away",
        "clusters": [{"name": "away", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "away", "context": {"cluster": "away", "user": "me"}}],
    }  # fmt: skip
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))

    for command in ("apply", "verify"):
        done = project.run(command, "seed", "--kubeconfig", str(path))

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("basalt: away (https://127.0.0.1:1): ")
        assert done.stderr.count("\n") == 1
        unknown = project.run(command, "seed", "--kubeconfig", str(path), "--context", "here")
        assert (unknown.returncode, unknown.stderr) == (2, f"basalt: no context here in {path}; known: away\n")


NOBODY = """\
apiVersion: v1
kind: Config
current-context: a
users: []
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: c, user: nobody}}]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "while parsing"),
        ("- a\n", "give --kubeconfig FILE"),
        ("\xff\xfe", "give --kubeconfig FILE"),
        ("apiVersion: v1\nkind: Config\n", "has no current context"),
        (NOBODY, "the user nobody of context a has no login that works"),
    ],
)  # fmt: skip
def test_a_crooked_kubeconfig_is_one_line(project: Home, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(text.encode("latin-1"))

    done = project.run("verify", "seed", "--kubeconfig", str(path))

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_findings_keep_apply_and_verify_from_starting(project: Home) -> None:
    teams = project.project / "stacks" / "seed" / "teams.yaml"
    teams.write_text(teams.read_text().replace("guarantee: {nvidia.com/gpu: 32}", "guarantee: {nvidia.com/gpu: 40}"))

    for command in ("apply", "verify"):
        done = project.run(command, "seed")

        assert (done.returncode, done.stdout) == (1, "")
        assert "[queue-children-fit-parent]" in done.stderr
