"""One wrong link planted in a chain through `prod`: found by its rule, at its line."""

import shutil
from pathlib import Path

import pytest

from basalt.compiling import compile_folder
from tests.test_planted import ROOT, Mistake

CHAINS = [
    # what a pool offers -> jobs, queues, quotas
    Mistake("environment.yaml", "profile: 1g.10gb", "profile: 1g.20gb", "gpu-resource-resolves"),
    Mistake("environment.yaml", "        mig: {strategy: mixed, profile: 1g.10gb}\n", "", "gpu-resource-resolves"),
    Mistake("jobs/vision.yaml", "nvidia.com/mig-1g.10gb: 1}", "nvidia.com/mig-1g.5gb: 1}", "gpu-resource-resolves"),
    Mistake("teams/vision.yaml", "nvidia.com/mig-1g.10gb: 64, pods", "nvidia.com/mig-2g.10gb: 64, pods", "gpu-resource-resolves"),
    Mistake("environment.yaml", "nvidia.com/mig-1g.10gb: 192", "nvidia.com/mig-1g.1gb: 192", "gpu-resource-resolves"),
    Mistake("environment.yaml", "resourceName: ib,", "resourceName: hca,", "resource-is-offered"),
    Mistake("environment.yaml", "    memlock: unlimited", "    memlock: limited #", "security-admits-jobs"),
    # driver -> pool
    Mistake("environment.yaml", "nodeSelector: {example.com/pool: a100}", "nodeSelector: {example.com/pool: a10}", "driver-matches-pool"),
    # job -> queue -> parent -> cluster
    Mistake("jobs/speech.yaml", "  framework: mpi\n", "  framework: mpi\n  queue: speach\n", "queue-exists"),
    Mistake("jobs/speech.yaml", "  framework: mpi\n", "  framework: mpi\n  queue: vision\n", "team-may-use-queue"),
    Mistake("teams/speech.yaml", "parent: research", "parent: reserch", "queue-parent-exists"),
    # job -> priority
    Mistake("jobs/vision.yaml", "priority: high", "priority: hihg", "priority-exists"),
    Mistake("jobs/vision.yaml", "priority: high", "priority: preemptible", "team-may-use-priority"),
    # job -> topology
    Mistake("jobs/vision.yaml", "highestTier: block}", "highestTier: blok}", "topology-tier-exists"),
    Mistake("jobs/vision.yaml", "min: 2, highestTier: rack", "min: 2, highestTier: pod", "partition-tier-within-job-tier"),
    # job -> node, launcher, memory
    Mistake("jobs/vision.yaml", "cpu: 160, memory: 1600Gi", "cpu: 200, memory: 1600Gi", "pod-fits-a-node"),
    Mistake("jobs/vision.yaml", "- --nproc-per-node=8", "- --nproc-per-node=4", "launcher-matches-gpus"),
    Mistake("jobs/speech.yaml", "sharedMemory: 64Gi", "sharedMemory: 960Gi", "shared-memory-is-bounded"),
    # flow
    Mistake("jobs/assistants.yaml", "after: [tokenize]", "after: [tokenise]", "flow-is-a-dag"),
    Mistake("jobs/assistants.yaml", 'schedule: "0 2 * * *"', 'schedule: "0 25 * * *"', "cron-schedule-is-valid"),
    # login
    Mistake("environment.yaml", "issuer: https://dex", "issuer: http://dex", "issuer-is-https"),
    Mistake("environment.yaml", "tokenLifetime: 1h", "tokenLifetime: 24h", "token-lifetime-is-short"),
    Mistake("environment.yaml", '"http://localhost:8000"', '"http://example.com:8000"', "client-is-sound"),
    # eviction
    Mistake("environment.yaml", '    schedule: "0 */2 * * *"\n', "    policy: {profiles: [{name: a, pluginConfig: [{name: DefaultEvictor, args: {}}, {name: RemoveDuplicates, args: {}}], plugins: {balance: {enabled: [RemoveDuplicates]}}}]}\n", "eviction-spares-gangs"),
    # chart
    Mistake("environment.yaml", '    schedule: "0 */2 * * *"\n', '    version: ">=0.36"\n', "chart-is-pinned"),
]  # fmt: skip

RAW = {
    "a metric that nobody gives": (
        "metric-is-produced",
        """\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: own, namespace: monitoring}
spec: {groups: [{name: own, rules: [{alert: A, expr: "DCGM_FI_DEV_GPU_UTILL > 1"}]}]}
""",
    ),
    "a label that the metric does not have": (
        "metric-is-produced",
        """\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: own, namespace: monitoring}
spec: {groups: [{name: own, rules: [{alert: A, expr: 'volcano_queue_allocated_milli_cpu{queue="vision"} > 1'}]}]}
""",
    ),
    "a group without the prefix": (
        "login-chain-closes",
        """\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: own, namespace: vision-train}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: auditors}]
""",
    ),
    "a chart value that the chart does not have": (
        "chart-values-are-known",
        """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: adapter, namespace: argocd}
spec:
  project: platform
  destination: {server: "https://kubernetes.default.svc", namespace: monitoring}
  source:
    {repoURL: "https://prometheus-community.github.io/helm-charts", chart: prometheus-adapter, targetRevision: 5.3.0,
     helm: {valuesObject: {prometheus: {urll: "http://prometheus"}}}}
""",
    ),
    "a second descheduler": (
        "one-descheduler",
        """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: another, namespace: argocd}
spec:
  project: platform
  destination: {server: "https://kubernetes.default.svc", namespace: kube-system}
  source:
    {repoURL: "https://kubernetes-sigs.github.io/descheduler/", chart: descheduler, targetRevision: 0.36.0}
""",
    ),
}


@pytest.fixture
def prod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("base", "prod"):
        shutil.copytree(ROOT / "stacks" / name, tmp_path / "stacks" / name)
    (tmp_path / "Pulumi.yaml").touch()
    monkeypatch.chdir(tmp_path / "stacks")
    return tmp_path / "stacks" / "prod"


@pytest.mark.parametrize("mistake", CHAINS, ids=lambda each: f"{each.rules}: {each.new.strip()[:60]}")
def test_wrong_link_is_found(mistake: Mistake, prod: Path) -> None:
    file = prod / mistake.file
    text = file.read_text(encoding="utf-8")
    assert mistake.old in text, "the table no longer fits stacks/prod"
    changed = text.replace(mistake.old, mistake.new, 1)
    file.write_text(changed, encoding="utf-8")

    found = [each for each in compile_folder(Path("prod")).findings if each.rule == mistake.rules]

    assert found, "the rule says nothing"
    first = text[: text.index(mistake.old)].count("\n") + 1
    near = range(first, first + mistake.new.count("\n") + 1)
    assert len({(each.source, each.message) for each in found}) == len(found), "one mistake is told twice"
    if mistake.new and mistake.rules not in ELSEWHERE:
        assert [each for each in found if each.source.file == f"prod/{mistake.file}" and each.source.line in near]


# What is wrong is told where it shows: a resource that its pool no longer offers, at what asks for it.
ELSEWHERE = {"gpu-resource-resolves", "resource-is-offered", "security-admits-jobs", "driver-matches-pool"}


@pytest.mark.parametrize("name", RAW)
def test_wrong_link_of_a_raw_object_is_found_in_its_file(name: str, prod: Path) -> None:
    rule, text = RAW[name]
    (prod / "own.yaml").write_text(text, encoding="utf-8")

    found = [each for each in compile_folder(Path("prod")).findings if each.rule == rule]

    assert [each for each in found if each.source.file == "prod/own.yaml"]


def test_prod_itself_is_clean(prod: Path) -> None:
    assert compile_folder(Path("prod")).findings == ()
