"""The examples of the five patterns of use on the real API server and the real Volcano, one after the other on one
cluster: every gang runs, in one domain where it asks for that, and its pods find each other as the pages say."""

import json
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from basalt.cluster import connection
from tests.sandbox.conftest import ROOT, Home, Up, eventually, make_home

pytestmark = pytest.mark.slow

# What needs whole nodes comes before what does not.
JOBS = {
    "pytorch": "language-train/pretrain",
    "mpi": "climate-runs/forecast",
    "notebooks": "vision-train/segment",
    "tensorflow": "ads-train/ranking",
    "index": "archive-batch/transcribe",
}
_TOGETHER = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: together}
spec: {extends: [../pytorch, ../mpi, ../notebooks, ../tensorflow, ../index]}
"""
Pod = dict[str, Any]


class Examples(NamedTuple):
    """The sandbox of the examples' cluster, and what `fit` says of each pattern's job beside the others."""

    up: Up
    verdicts: Mapping[str, dict[str, Any]]

    def pods(self, pattern: str) -> list[Pod]:
        """The running pods of the pattern's job."""
        namespace, _, name = JOBS[pattern].partition("/")
        every = self.up.cluster.list("v1", "Pod", namespace)
        return [each for each in every if each["metadata"]["labels"].get("volcano.sh/job-name") == name
                and each["status"]["phase"] == "Running"]  # fmt: skip

    def is_whole(self, pattern: str) -> bool:
        return len(self.pods(pattern)) == int(self.verdicts[pattern]["pods"])


def home_of_examples(folder: Path) -> Home:
    """A project with the examples, and an environment of all of them, whose claims the sandbox brings."""
    home = make_home(folder)
    shutil.copytree(ROOT / "examples", home.project / "examples")
    (home.project / "examples" / "together").mkdir()
    (home.project / "examples" / "together" / "environment.yaml").write_text(_TOGETHER)
    return home


@pytest.fixture(scope="module")
def examples(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examples]:
    """All examples, each applied once the gang of the one before it runs."""
    home = home_of_examples(tmp_path_factory.mktemp("examples"))
    judged = json.loads(home.run("fit", "examples/together", "--format", "json").stdout)["jobs"]
    verdicts = {f"{each['namespace']}/{each['name']}": each for each in judged}
    started = home.run("sandbox", "up", "examples/together")
    assert started.returncode == 0, started.stderr
    kubeconfig = home.state / "basalt" / "sandboxes" / "together" / "kubeconfig"
    up = Up(home, "together", connection.connect(str(kubeconfig)))
    found = Examples(up, {pattern: verdicts[job] for pattern, job in JOBS.items()})
    try:
        for pattern in JOBS:
            applied = up.run("apply", f"examples/{pattern}", "--yes")
            assert applied.returncode == 0, applied.stderr
            eventually(partial(found.is_whole, pattern))
        yield found
    finally:
        up.cluster.close()
        ended = home.run("sandbox", "down")
        assert ended.returncode == 0, ended.stderr


def environments(found: list[Pod]) -> dict[str, dict[str, str]]:
    """What each pod's first container is told, by the pod's name."""
    return {
        each["metadata"]["name"]: {
            variable["name"]: variable.get("value", "") for variable in each["spec"]["containers"][0].get("env", ())
        }
        for each in found
    }


@pytest.mark.parametrize("pattern", JOBS)
def test_every_gang_runs_where_fit_says_that_it_can(examples: Examples, pattern: str) -> None:
    nodes = {each["metadata"]["name"]: each["metadata"]["labels"] for each in examples.up.cluster.list("v1", "Node")}
    verdict, running = examples.verdicts[pattern], examples.pods(pattern)

    assert (verdict["verdict"], len(running)) == ("fits", verdict["pods"])
    if (tier := verdict["highestTier"]) is not None:
        label = f"topology.example.com/{tier}"
        assert len({nodes[each["spec"]["nodeName"]][label] for each in running}) == 1


def test_the_examples_demand_the_tiers_that_their_pages_speak_of(examples: Examples) -> None:
    assert {pattern: each["highestTier"] for pattern, each in examples.verdicts.items()} == {
        "pytorch": "block", "mpi": "rack", "notebooks": "rack", "tensorflow": None, "index": None,
    }  # fmt: skip


def test_the_nodes_of_pytorch_have_one_master_and_a_rank_each(examples: Examples) -> None:
    found = environments(examples.pods("pytorch"))

    assert {(each["MASTER_ADDR"], each["WORLD_SIZE"]) for each in found.values()} == {
        ("pretrain-master-0.pretrain", "4")
    }
    assert {name: each["RANK"] for name, each in found.items()} == {
        "pretrain-master-0": "0", "pretrain-worker-0": "1", "pretrain-worker-1": "2", "pretrain-worker-2": "3",
    }  # fmt: skip


def test_everyone_of_tensorflow_knows_the_chief_the_workers_and_both_servers(examples: Examples) -> None:
    running = examples.pods("tensorflow")
    told = [json.loads(each["TF_CONFIG"])["cluster"] for each in environments(running).values()]

    assert [{role: len(addresses) for role, addresses in each.items()} for each in told] == [
        {"chief": 1, "worker": 4, "ps": 2}
    ] * 7
    servers = {each["spec"]["nodeName"] for each in running if "-ps-" in each["metadata"]["name"]}
    assert servers == {"cpu-1", "cpu-2"}


def test_the_master_of_mpi_is_told_its_workers_and_has_the_key(examples: Examples) -> None:
    (master,) = (each for each in examples.pods("mpi") if each["metadata"]["name"] == "forecast-master-0")
    (writer,) = master["spec"]["initContainers"]

    told = {variable["name"]: variable.get("value") for variable in writer["env"]}
    assert (told["MPI_HOST"], told["SLOTS"]) == ("forecast-worker-0.forecast,forecast-worker-1.forecast", "8")
    for container in (writer, *master["spec"]["containers"]):
        assert "/root/.ssh" in [each["mountPath"] for each in container["volumeMounts"]]


def test_the_pods_of_index_have_an_index_each_and_know_how_many_they_are(examples: Examples) -> None:
    found = environments(examples.pods("index"))

    assert sorted(each["VC_TASK_INDEX"] for each in found.values()) == ["0", "1", "2", "3", "4", "5"]
    (told,) = (each for each in examples.up.cluster.list("v1", "ConfigMap", "archive-batch")
               if each["metadata"]["name"] == "transcribe-svc")  # fmt: skip
    assert told["data"]["VC_WORKER_NUM"] == "6"


def test_a_notebook_runs_in_the_queue_of_notebooks(examples: Examples) -> None:
    (notebook,) = eventually(
        lambda: [
            each for each in examples.up.cluster.list("v1", "Pod", "notebooks") if each["status"]["phase"] == "Running"
        ]
    )
    groups = examples.up.cluster.list("scheduling.volcano.sh/v1beta1", "PodGroup", "notebooks")

    assert (notebook["metadata"]["name"], notebook["spec"]["schedulerName"]) == ("vera-0", "volcano")
    assert [each["spec"]["queue"] for each in groups] == ["notebooks"]
