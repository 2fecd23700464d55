"""Wherever a name is unknown, the nearest known one is given."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from basalt.compiling import compile_folder
from tests.test_cli import ROOT, basalt

_JOB = "  retries: 3\n"
_PART = "spec:\n"
_NAME = "name: seed\n"


def _patched(spec: str) -> str:
    return f"{_JOB}  patch: {{spec: {{{spec}}}}}\n"


# A file of the environment seed, what is written there, what is written instead, and the name that is meant.
WRITTEN = [
    ("environment.yaml", "allocate, backfill", "allocat, backfill", "allocate"),
    ("environment.yaml", "{name: priority}", "{name: priorty}", "priority"),
    ("environment.yaml", "enableHierarchy", "enableHierachy", "enableHierarchy"),
    ("environment.yaml", "capability:", "capabilty:", "capability"),
    ("environment.yaml", "nvidia.com/gpu: 48}", "nvidia.com/gup: 48}", "nvidia.com/gpu"),
    ("environment.yaml", "kind: Environment", "kind: Enviroment", "Environment"),
    ("environment.yaml", "kubernetes:", "kubernets:", "kubernetes"),
    ("environment.yaml", _PART, f"{_PART}  extends: [../bsae]\n", "base"),
    ("environment.yaml", _PART, f"{_PART}  delivery: {{engine: argcd}}\n", "argocd"),
    ("environment.yaml", _PART, f"{_PART}  gpu: {{provider: voclano-vgpu}}\n", "volcano-vgpu"),
    ("environment.yaml", _NAME, f"{_NAME}  annotations: {{basalt.dev/waive: 'queue-exist: x'}}\n", "queue-exists"),
    ("teams.yaml", "parent: research", "parent: reserch", "research"),
    ("teams.yaml", "priorities: [low, high]", "priorities: [lwo, high]", "low"),
    ("teams.yaml", "quota:", "qouta:", "quota"),
    ("teams.yaml", "pods: 500", "pod: 500", "pods"),
    ("teams.yaml", "  queue:\n", "      security: basline\n  queue:\n", "baseline"),
    ("teams.yaml", "  queue:\n", "      network: isolatd\n  queue:\n", "isolated"),
    ("jobs.yaml", "framework: plain", "framework: plian", "plain"),
    ("jobs.yaml", "framework: plain", "framwork: plain", "framework"),
    ("jobs.yaml", "priority: high", "priority: hihg", "high"),
    ("jobs.yaml", "priority: high", "queue: visoin", "vision"),
    ("jobs.yaml", "highestTier: leaf", "highestTier: laef", "leaf"),
    ("jobs.yaml", "highestTier: leaf", "highestTier: leaf, survive: rak", "rack"),
    ("jobs.yaml", "mode: hard", "mode: hrad", "hard"),
    ("jobs.yaml", "namespace: vision-train", "namespace: vision-trian", "vision-train"),
    ("jobs.yaml", "nvidia.com/gpu: 4", "nvidia.com/gup: 4", "nvidia.com/gpu"),
    ("jobs.yaml", "kind: TrainingJob", "kind: TraningJob", "TrainingJob"),
    ("jobs.yaml", _JOB, _patched("plugins: {pytroch: []}"), "pytorch"),
    ("jobs.yaml", _JOB, _patched("policies: [{event: PodEvictd, action: RestartJob}]"), "PodEvicted"),
    ("jobs.yaml", _JOB, _patched("policies: [{event: PodFailed, action: RestratJob}]"), "RestartJob"),
    ("jobs.yaml", _JOB, _patched("minAvailabel: 3"), "minAvailable"),
    ("jobs.yaml", _JOB, f"{_JOB}  schedule: '@dialy'\n", "@daily"),
]  # fmt: skip

# A command, and the name that is meant.
ASKED = [
    (["chekc", "seed"], "check"),
    (["sandbox", "statu"], "status"),
    (["check", "sede"], "seed"),
    (["plan", "main:sede", "seed"], "seed"),
    (["check", "seed", "--fromat", "json"], "--format"),
    (["check", "seed", "--format", "jsn"], "json"),
    (["fit", "seed", "--lose-ayn", "rack"], "--lose-any"),
    (["completion", "bsh"], "bash"),
    (["explain", "qeue-exists"], "queue-exists"),
    (["explain", "seed", "qeue/vision"], "Queue"),
    (["explain", "seed", "queue/visoin"], "queue/vision"),
    (["explain", "seed", "job/resnte"], "job/resnet"),
    (["explain", "seed", "job/vision-train/resnte"], "job/vision-train/resnet"),
    (["explain", "seed", "group/oditors"], "auditors"),
    (["explain", "seed", "queue/vision", "/spec/deserve"], "/spec/deserved"),
    (["schema", "Enviroment"], "Environment"),
    (["fit", "seed", "--job", "resnte"], "resnet"),
    (["fit", "seed", "--job", "vision-train/resnte"], "vision-train/resnet"),
    (["fit", "seed", "--lose", "te11"], "te1"),
    (["fit", "seed", "--lose-any", "rak"], "rack"),
    (["topology", "seed", "--shape", "nvidia.com/gup=1"], "nvidia.com/gpu"),
    (["verify", "seed", "--kubeconfig", "kubeconfig", "--context", "porduction"], "production"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").touch()
    shutil.copytree(ROOT / "stacks", tmp_path / "stacks")
    return tmp_path


@pytest.mark.parametrize(("file", "old", "new", "meant"), WRITTEN, ids=[f"{each[3]} in {each[0]}" for each in WRITTEN])
def test_finding_gives_the_nearest_name(project: Path, file: str, old: str, new: str, meant: str) -> None:
    path = project / "stacks" / "seed" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")

    assert f"did you mean {meant}?" in {found.hint for found in compile_folder(project / "stacks" / "seed").findings}


@pytest.mark.parametrize(("command", "meant"), ASKED, ids=[" ".join(each[0]) for each in ASKED])
def test_misuse_gives_the_nearest_name(project: Path, command: list[str], meant: str) -> None:
    (project / "kubeconfig").write_text(
        "{apiVersion: v1, kind: Config, contexts: [{name: production, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'https://localhost:1'}}], users: [{name: u, user: {token: t}}]}"
    )
    if command[0] == "plan":
        for each in ("init -q -b main", "add .", "-c user.name=a -c user.email=a commit -q -m all"):
            subprocess.run(["git", *each.split()], cwd=project, check=True)

    done = basalt(*command, cwd=project)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"did you mean {meant}?" in done.stderr


def test_an_environment_is_meant_from_anywhere_in_the_project(project: Path) -> None:
    (project / "deep").mkdir()

    assert "did you mean seed?" in basalt("check", "sede", cwd=project / "deep").stderr


def test_fit_gives_the_nearest_tier_of_a_job_that_must_survive(project: Path) -> None:
    path = project / "stacks" / "seed" / "jobs.yaml"
    path.write_text(path.read_text().replace("highestTier: leaf", "highestTier: leaf, survive: rak", 1))

    assert "tier rak has no domain that could fail; did you mean rack?" in basalt("fit", "seed", cwd=project).stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--under", "stcks", "a.yaml"], "basalt-check: no folder stcks; did you mean stacks?\n"),
        (["--under", "x", "a.yaml"], "basalt-check: no folder x; --under names the one that environments are in\n"),
        (
            ["--formt", "json"],
            "basalt-check: unrecognized arguments: --formt; did you mean --format? (see basalt-check --help)\n",
        ),
        (
            ["--format", "xml"],
            "basalt-check: argument --format: invalid choice: 'xml'; known: github, json, sarif, text",
        ),
    ],
)
def test_basalt_checks_misuse_is_one_line(project: Path, arguments: list[str], line: str) -> None:
    command = [sys.executable, "-m", "basalt.changes", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(line)
