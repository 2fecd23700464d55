"""Texts in objects: wherever a scheduler's configuration is given, a finding points to the line it stands in."""

from pathlib import Path

import pytest

from basalt.compiling import compile_folder

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system}
data:
  volcano-scheduler.conf: |
    # as the chart mounts it
    actions: "enqueue, alocate"  # here
    tiers: [{plugins: [{name: gang}]}]
"""
CHART_VALUES = """\
# what the chart gets
basic: {image_tag_version: v1.15.1}
custom:
  scheduler_config_override: |
    actions: "enqueue, alocate"  # here
"""
UMBRELLA = """\
volcano:
  custom:
    scheduler_replicas: 1
    scheduler_config_override: |-
      tiers: []

      actions: "enqueue, alocate"  # here
"""
HELM_RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: volcano, namespace: volcano-system}
spec:
  chart: {spec: {chart: volcano, version: 1.15.1}}
  values:
    custom:
      scheduler_config_override: |
        actions: "enqueue, alocate"  # here
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: volcano, namespace: argocd}
spec:
  source:
    chart: volcano
    targetRevision: 1.15.1
    helm:
      values: |
        # a text in a text
        custom:
          scheduler_config_override: |
            tiers: []
            actions: "enqueue, alocate"  # here
"""
SOURCES = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: volcano, namespace: argocd}
spec:
  sources:
    - {repoURL: https://git.example.com/values.git}
    - chart: volcano
      targetRevision: 1.15.1
      helm:
        valuesObject: {custom: {scheduler_config_override: "actions: alocate"}}  # here
"""
PARAMETERS = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: volcano, namespace: argocd}
spec:
  source:
    chart: volcano
    targetRevision: 1.15.1
    helm:
      parameters:
        - {name: custom.scheduler_replicas, value: "1"}
        - {name: custom.scheduler_config_override, value: "actions: alocate"}  # here
"""
QUOTED = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system}
data:
  volcano-scheduler.conf: "actions: alocate\\ntiers: []"  # here
"""
TYPED = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: typed}
spec:
  volcano:
    scheduler:
      actions:
        - enqueue
        - alocate  # here
"""
JSON = """\
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scheduler"},
 "data": {
  "volcano-scheduler.conf": "actions: alocate"}}
"""


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.yaml", CONFIG_MAP, None), ("values.yaml", CHART_VALUES, None), ("values.yaml", UMBRELLA, None),
        ("a.yaml", HELM_RELEASE, None), ("a.yaml", APPLICATION, None), ("a.yaml", SOURCES, None),
        ("a.yaml", PARAMETERS, None),
        ("a.yaml", QUOTED, None), ("a.yaml", TYPED, None), ("a.json", JSON, 3),
    ],
    ids=[
        "ConfigMap", "values", "umbrella", "HelmRelease", "Application", "sources", "parameters",
        "quoted", "typed", "JSON",
    ],
)  # fmt: skip
def test_finding_points_to_the_line_of_the_configuration(
    name: str, text: str, line: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text, encoding="utf-8")
    here = line or next(number for number, each in enumerate(text.splitlines(), 1) if each.endswith("# here"))

    findings = compile_folder(Path()).findings

    assert [(found.rule, found.source.line) for found in findings] == [("scheduler-action-is-known", here)]


def test_values_of_a_chart_that_nobody_knows_are_no_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "values.yaml").write_text("custom: {colour: blue}\n", encoding="utf-8")

    assert [found.rule for found in compile_folder(Path()).findings] == ["document-kind-is-known"]
