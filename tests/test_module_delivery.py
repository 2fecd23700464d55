"""Releases in the forms of the three engines, and folders that Argo CD can read."""

from pathlib import Path
from typing import Any

import pytest

from basalt import deriving
from basalt.api import charts
from basalt.compiling import compile_folder
from basalt.rendering import layout

ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: case}
spec:
  kubernetes: {version: "1.34"}
  volcano:
    version: 1.15.1
    scheduler:
      actions: [enqueue, allocate, backfill, gangreclaim, gangpreempt]
  descheduler:
    schedule: "0 3 * * *"
  delivery:
    engine: %s
"""
POLICY = "policy: {profiles: [{name: a, plugins: {balance: {enabled: [RemoveDuplicate]}}}]}"


def objects(
    engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = ENVIRONMENT
) -> list[dict[str, Any]]:
    monkeypatch.chdir(folder)
    (folder / "environment.yaml").write_text(text % engine, encoding="utf-8")
    compiled = compile_folder(Path())
    assert compiled.findings == ()
    assert compiled.engine == engine
    return [dict(each.value) for each in compiled.objects]


def test_pulumi_gets_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        each["metadata"]["name"]: each for each in objects("pulumi", tmp_path, monkeypatch) if each["kind"] == "Release"
    }

    assert {name: each["spec"]["version"] for name, each in found.items()} == {
        "volcano": "1.15.1",
        "descheduler": "0.36.0",
    }
    assert found["descheduler"]["spec"]["values"]["schedule"] == "0 3 * * *"
    assert "gangpreempt" in found["volcano"]["spec"]["values"]["custom"]["scheduler_config_override"]


def test_argo_cd_gets_applications_in_waves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [each for each in objects("argocd", tmp_path, monkeypatch) if each["kind"] == "Application"]
    said = {each["metadata"]["name"]: each["metadata"]["annotations"] for each in made}
    waves = {name: int(annotations["argocd.argoproj.io/sync-wave"]) for name, annotations in said.items()}
    sources = {each["metadata"]["name"]: each["spec"]["source"] for each in made}

    assert waves["volcano"] < waves["descheduler"]
    assert {name: annotations["basalt.dev/chart-digest"] for name, annotations in said.items()} == {
        name: charts.locked(name).digest for name in ("volcano", "descheduler")
    }
    assert sources["volcano"]["targetRevision"] == "1.15.1"
    assert sources["volcano"]["repoURL"].startswith("https://")
    assert sources["descheduler"]["helm"]["valuesObject"]["kind"] == "CronJob"


def test_flux_gets_a_repository_and_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = objects("flux", tmp_path, monkeypatch)
    releases = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "HelmRelease"}
    repositories = {each["metadata"]["name"] for each in made if each["kind"] == "HelmRepository"}

    assert releases.keys() == repositories == {"volcano", "descheduler"}
    assert releases["volcano"]["targetNamespace"] == "volcano-system"
    assert releases["volcano"]["chart"]["spec"]["version"] == "1.15.1"


@pytest.mark.parametrize("engine", ["pulumi", "argocd", "flux"])
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("gangreclaim, gangpreempt]", "gangreclaim, gangPreempt]", "scheduler-action-is-known"),
        ('schedule: "0 3 * * *"', POLICY, "descheduler-policy-is-known"),
    ],
)  # fmt: skip
def test_mistake_is_found_at_its_line_under_every_engine(
    engine: str, old: str, new: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environment.yaml").write_text((ENVIRONMENT % engine).replace(old, new), encoding="utf-8")
    line = ENVIRONMENT[: ENVIRONMENT.index(old)].count("\n") + 1

    assert {(found.rule, found.source.line) for found in compile_folder(Path()).findings} == {(rule, line)}


def test_no_folder_for_argo_cd_exceeds_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    maps = "".join(
        "---\napiVersion: v1\nkind: ConfigMap\n"
        f"metadata: {{name: m{n:02}, namespace: default}}\ndata: {{a: {'x' * 900}}}\n"
        for n in range(20)
    )
    (tmp_path / "environment.yaml").write_text(ENVIRONMENT % "argocd" + maps, encoding="utf-8")
    compiled = compile_folder(Path())

    files = layout.render(compiled.objects, compiled.files, "case", str(tmp_path), largest=5000)
    sizes: dict[str, int] = {}
    for file in files[:-2]:
        folder = file.path.partition("/")[0]
        sizes[folder] = sizes.get(folder, 0) + len(file.content)

    assert max(sizes.values()) <= 5000
    assert [folder for folder in sizes if folder.startswith("70-")] == [f"70-manifests-{n:02}" for n in range(1, 5)]
    assert [file.path for file in files[:-2]] == sorted(file.path for file in files[:-2])


@pytest.mark.parametrize("engine", ["pulumi", "argocd", "flux"])
def test_digest_of_the_lock_goes_with_the_release(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = f"sha256:{'a' * 64}"
    locked = charts.Chart("volcano", "1.15.1", "https://volcano-sh.github.io/helm-charts", digest)
    monkeypatch.setattr(deriving, "locked", lambda *_: locked)

    made = objects(engine, tmp_path, monkeypatch)

    kinds = {"pulumi": "Release", "argocd": "Application", "flux": "HelmRelease"}
    (volcano,) = (each for each in made if each["kind"] == kinds[engine] and each["metadata"]["name"] == "volcano")
    assert volcano["metadata"]["annotations"]["basalt.dev/chart-digest"] == digest
