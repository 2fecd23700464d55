"""The part descheduler: what it installs, and that its own policy passes every rule."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from basalt.compiling import compile_folder

ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: case}
spec:
  kubernetes: {version: "1.34"}
  priorities: {low: {value: 100, default: true}}
  descheduler: %s
---
apiVersion: basalt.dev/v1alpha1
kind: Team
metadata: {name: vision}
spec: {access: {edit: [devs]}, namespaces: {vision-train: {}}, queue: {}, priorities: [low]}
---
apiVersion: basalt.dev/v1alpha1
kind: TrainingJob
metadata: {name: resnet, namespace: vision-train}
spec:
  framework: plain
  image: a/b:1
  roles: {worker: {replicas: 4, resources: {cpu: 1, memory: 1Gi}}}
  volumes: [{name: data, mountPath: /data, claim: data}]
"""


def made(part: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.chdir(folder)
    (folder / "environment.yaml").write_text(ENVIRONMENT % part, encoding="utf-8")
    compiled = compile_folder(Path())
    assert [(found.rule, found.message) for found in compiled.findings] == []
    return [dict(each.value) for each in compiled.objects if each.module == "descheduler"]


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("{}", {"kind": "CronJob", "schedule": "*/30 * * * *"}),
        ("{schedule: 0 3 * * *}", {"kind": "CronJob", "schedule": "0 3 * * *"}),
        ("{interval: 30m}", {"kind": "Deployment", "deschedulingInterval": "30m", "replicas": 1}),
        ("{dryRun: true}", {"kind": "CronJob", "schedule": "*/30 * * * *", "cmdOptions": {"v": 3, "dry-run": True}}),
    ],
)
def test_chart_runs_as_declared(part: str, values: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (release,) = made(part, tmp_path, monkeypatch)

    found = {key: value for key, value in release["spec"]["values"].items() if not key.startswith("deschedulerPolicy")}
    assert found == values
    assert release["spec"]["version"] == "0.36.0"


def test_its_own_policy_leaves_training_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (release,) = made("{}", tmp_path, monkeypatch)

    (profile,) = release["spec"]["values"]["deschedulerPolicy"]["profiles"]
    evictor = next(each["args"] for each in profile["pluginConfig"] if each["name"] == "DefaultEvictor")
    assert evictor["labelSelector"]["matchExpressions"] == [{"key": "volcano.sh/job-name", "operator": "DoesNotExist"}]
    (namespaces,) = evictor["namespaceLabelSelector"]["matchExpressions"]
    assert (namespaces["operator"], namespaces["values"]) == ("NotIn", ["vision-train"])


def test_volcanos_own_is_deployed_with_the_same_care(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = {
        each["kind"]: each for each in made("{engine: volcano, version: v1, interval: 1h}", tmp_path, monkeypatch)
    }

    assert objects.keys() == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment"}
    policy = yaml.safe_load(objects["ConfigMap"]["data"]["policy.yaml"])
    assert "maxNoOfPodsToEvictTotal" not in policy
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "docker.io/volcanosh/vc-descheduler:v1"
    assert "--descheduling-interval=1h" in container["command"]
    written = [rule["resources"] for rule in objects["ClusterRole"]["rules"] if "create" in rule["verbs"]]
    assert written == [["events"], ["pods/eviction"]]


@pytest.mark.parametrize("engine", ["kubernetes-sigs", "volcano"])
def test_policy_that_breaks_a_gang_is_found_at_its_line(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    part = f"""
    engine: {engine}
    policy:
      profiles:
        - name: duplicates
          pluginConfig: [{{name: DefaultEvictor, args: {{}}}}, {{name: RemoveDuplicates, args: {{}}}}]
          plugins: {{balance: {{enabled: [RemoveDuplicates]}}}}"""
    (tmp_path / "environment.yaml").write_text(ENVIRONMENT % part, encoding="utf-8")

    (found,) = compile_folder(Path()).findings

    assert (found.rule, found.source.line in range(10, 14)) == ("eviction-spares-gangs", True)
