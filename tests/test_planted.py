"""One mistake planted in `seed`, in any of its documents: found by its rule, at its line, and nothing else is said."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from basalt.compiling import compile_folder

ROOT = Path(__file__).resolve().parent.parent


class Mistake(NamedTuple):
    """What is written instead of what, in which file (the first occurrence); the rule that finds it, and those that
    rightly speak of what follows. at: the text whose line the finding is at, where that is another."""

    file: str
    old: str
    new: str
    rules: str
    at: str = ""


MISTAKES = [
    # environment.yaml
    Mistake("environment.yaml", "kind: Environment", "kind: Enviroment", "document-kind-is-known"),
    Mistake("environment.yaml", "basalt.dev/v1alpha1", "basalt.dev/v1", "document-kind-is-known"),
    Mistake("environment.yaml", "name: seed", "name: Seed", "name-is-valid"),
    Mistake("environment.yaml", 'version: "1.34"', 'version: "1.99"', "document-matches-schema"),
    Mistake("environment.yaml", "version: 1.15.1", "version: 1.12.0", "document-matches-schema"),
    Mistake("environment.yaml", "actions: [", "action: [", "document-matches-schema"),
    Mistake("environment.yaml", "- {name: resourcequota}", "- {name: pdb}", "quota-is-enforced-early", "    scheduler:"),
    Mistake("environment.yaml", "enableHierarchy: true", "enableHierachy: true", "document-matches-schema queue-fields-are-read"),
    Mistake("environment.yaml", r"'^(s\d+-s\d+)-'", r"'^(s\d+-s\d+-'", "document-matches-schema"),
    Mistake("environment.yaml", "{name: rack, label: volcano.sh/rack}", "{name: rack, label: volcano.sh/rak}", "node-has-every-tier"),
    Mistake("environment.yaml", "{name: rack, label: volcano.sh/rack}", r"{name: rack, label: volcano.sh/rack, pattern: '^(s\d+)-'}", "domain-name-is-unique domain-has-one-parent topology-constrains", "{name: spine"),
    Mistake("environment.yaml", "low: {value: 1000,", "low: {valeu: 1000,", "document-matches-schema"),
    Mistake("environment.yaml", "low: {value: 1000,", "low: {value: 1000000001,", "priority-within-range default-priority-is-low"),
    Mistake("environment.yaml", "high: {value: 1000000,", "high: {value: 1000,", "priority-values-differ"),
    Mistake("environment.yaml", "high: {value: 1000000,", "high: {default: true, value: 1000000,", "priority-has-one-default default-priority-is-low"),
    Mistake("environment.yaml", "    high:", "    system-high:", "priority-within-range priority-exists"),
    Mistake("environment.yaml", "guarantee: {nvidia.com/gpu: 48}", "guarantee: {nvidia.com/gpu: 4x8}", "quantity-is-valid"),
    Mistake("environment.yaml", "guarantee: {nvidia.com/gpu: 48}", "guarantee: {nvidia.com/gpu: 65}", "queue-amounts-are-ordered guarantees-fit-cluster"),
    Mistake("environment.yaml", "guarantee: {nvidia.com/gpu: 48}", "guarantee: {requests.nvidia.com/gpu: 48}", "queue-resource-is-offered"),
    # teams.yaml
    Mistake("teams.yaml", "kind: Team", "kind: Teem", "document-kind-is-known"),
    Mistake("teams.yaml", "  name: vision", "  nmae: vision", "document-matches-schema"),
    Mistake("teams.yaml", "edit: [vision-research]", "edit: vision-research", "document-matches-schema"),
    Mistake("teams.yaml", "    vision-train:", "    kube-public:", "namespace-is-not-system order-is-complete gang-fits-a-domain"),
    Mistake("teams.yaml", "    vision-train:", "    volcano-system:", "namespace-is-not-system order-is-complete gang-fits-a-domain"),
    Mistake("teams.yaml", "    speech-eval:", "    vision-train:", "namespace-has-one-team"),
    Mistake("teams.yaml", "quota: {cpu: 512, memory: 4Ti, nvidia.com/gpu: 48,", "quota: {cpu: 512, memory: 4Ti, limits.nvidia.com/gpu: 48,", "quota-key-is-legal"),
    Mistake("teams.yaml", "quota: {cpu: 512, memory: 4Ti, nvidia.com/gpu: 48,", "quota: {cpu: 512, memory: 4Tb, nvidia.com/gpu: 48,", "quantity-is-valid"),
    Mistake("teams.yaml", "quota: {cpu: 512, memory: 4Ti, nvidia.com/gpu: 48,", "quota: {cpu: 512, memory: 4Ti, nvidia.com/gpu: 8,", "quota-reaches-entitlement gang-fits-its-quota"),
    Mistake("teams.yaml", "parent: research", "parent: reserch", "queue-parent-exists"),
    Mistake("teams.yaml", "parent: research", "parent: vision", "queue-parent-exists"),
    Mistake("teams.yaml", "guarantee: {nvidia.com/gpu: 32}", "guarantee: {nvidia.com/gpu: 33}", "queue-children-fit-parent"),
    Mistake("teams.yaml", "guarantee: {nvidia.com/gpu: 32}", "guarantee: {nvidia.com/gpus: 0}", "queue-resource-is-offered"),
    Mistake("teams.yaml", "capability: {cpu: 760, memory: 7Ti, nvidia.com/gpu: 64}", "capability: {cpu: 760, memory: 7Ti, nvidia.com/gpu: 65}", "queue-within-ancestor"),
    # jobs.yaml
    Mistake("jobs.yaml", "framework: plain", "framework: plane", "document-matches-schema"),
    Mistake("jobs.yaml", "namespace: vision-train", "namespace: Vision", "name-is-valid"),
    Mistake("jobs.yaml", "  priority: high", "  queue: visoin", "queue-exists"),
    Mistake("jobs.yaml", "  priority: high", "  queue: research", "queue-takes-jobs"),
    Mistake("jobs.yaml", "replicas: 10", "replica: 10", "document-matches-schema"),
    Mistake("jobs.yaml", "replicas: 10", 'replicas: "10"', "document-matches-schema"),
    Mistake("jobs.yaml", "{cpu: 16, memory: 128Gi, nvidia.com/gpu: 4}", "{cpu: 16, memory: 128Gi, nvidia.com/gpu: 0.5}", "quantity-is-valid"),
    Mistake("jobs.yaml", "{cpu: 16, memory: 128Gi, nvidia.com/gpu: 4}", "{cpu: 16, memory: 128Gi, rdma/hca: 1}", "queue-covers-its-jobs resource-is-offered rdma-is-complete"),
    Mistake("jobs.yaml", 'env: {EPOCHS: "90"}', "env: {EPOCHS: 90}", "document-matches-schema"),
    Mistake("jobs.yaml", 'env: {EPOCHS: "90"}', "env: {EPOCHS: no}", "scalar-is-unambiguous"),
    Mistake("jobs.yaml", 'env: {EPOCHS: "90"}', "env: {WANDB_API_KEY: 0a1b2c3d4e5f}", "secret-is-not-literal"),
    Mistake("jobs.yaml", "  retries: 3", "  retries: 3\n  retries: 4", "keys-are-unique"),
    Mistake("jobs.yaml", "  retries: 3", "  patch: {spec: {tsaks: []}}", "object-matches-schema"),
    Mistake("jobs.yaml", "ttlAfterFinished: 24h", "ttlAfterFinished: 24 hours", "document-matches-schema"),
    # nodes.json
    Mistake("nodes.json", '"volcano.sh/rack": "s0-s1-rack-2"', '"volcano.sh/rack": "rack-2"', "node-has-every-tier domain-has-several-nodes"),
    Mistake("nodes.json", '"memory": "1051325184Ki"', '"memory": "1051325184Kb"', "quantity-is-valid"),
    Mistake("nodes.json", '"name": "te3"', '"name": "te2"', "object-is-declared-once domain-has-several-nodes deserved-fits-cluster"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: f"{each.rules}: {each.new}")
def test_mistake_is_found_at_its_line(mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "stacks" / "seed", tmp_path / "seed")
    file = tmp_path / "seed" / mistake.file
    text = file.read_text(encoding="utf-8")
    assert mistake.old in text, "the table no longer fits stacks/seed"
    file.write_text(text.replace(mistake.old, mistake.new, 1), encoding="utf-8")
    line = text[: text.index(mistake.at or mistake.old)].count("\n") + 1 + mistake.new.count("\n")
    monkeypatch.chdir(tmp_path)

    findings = compile_folder(Path("seed")).findings

    rule, *consequences = mistake.rules.split()
    assert {found.rule for found in findings} == {rule, *consequences}
    assert [found for found in findings if found.rule == rule and found.source[:2] == (f"seed/{mistake.file}", line)]
