"""Sandboxes come up whole or not at all, and leave nothing behind."""

import itertools
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from basalt.sandbox import processes
from tests.sandbox.conftest import Home, Up, make_home

slow = pytest.mark.slow


def processes_of(folder: Path) -> list[str]:
    """The command lines that name the folder, as all of a sandbox's do."""
    return [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])
            if str(folder) in " ".join(each.info["cmdline"] or ())]  # fmt: skip


@slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["starting etcd", "adding Volcano", "adding 8 nodes", "starting Volcano"])
def test_interrupted_start_leaves_no_process_and_no_file(home: Home, moment: str, number: signal.Signals) -> None:
    with home.start("sandbox", "up", "seed") as process:
        assert process.stderr is not None
        said = list(itertools.takewhile(lambda line: not line.startswith(moment), process.stderr))
        assert process.poll() is None, said
        process.send_signal(number)
        out, err = process.communicate()

    assert (process.returncode, out, err.splitlines()[-1]) == (130, "", "basalt: interrupted")
    assert processes_of(home.state) == []
    assert list(home.state.iterdir()) == []


@slow
def test_in_the_foreground_it_lives_until_it_is_interrupted(home: Home) -> None:
    with home.start("sandbox", "up", "seed", "--foreground", "--quiet") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("export KUBECONFIG=")
        assert home.run("sandbox", "status").stdout.startswith("seed: running\n")
        process.send_signal(signal.SIGINT)
        process.communicate()

    assert process.returncode == 130
    assert processes_of(home.state) == []
    assert list(home.state.iterdir()) == []


@slow
def test_sandboxes_stand_side_by_side_and_end_one_by_one(seed: Up) -> None:
    home = seed.home

    started = home.run("sandbox", "up", "seed", "--name", "other", "--format", "json")
    assert started.returncode == 0, started.stderr
    other = json.loads(started.stdout)
    both = json.loads(home.run("sandbox", "status", "--format", "json").stdout)["sandboxes"]
    assert [(each["name"], each["state"]) for each in both] == [("other", "running"), ("seed", "running")]
    assert len(other["processes"]) == 7

    refused = home.run("sandbox", "down")
    assert (refused.returncode, refused.stderr) == (
        2, "basalt: there are several sandboxes: other, seed; name one, or give --all\n",
    )  # fmt: skip
    ended = home.run("sandbox", "down", "other")
    assert (ended.returncode, ended.stdout) == (0, "other is down\n")
    assert not Path(other["kubeconfig"]).parent.exists()
    assert processes_of(Path(other["kubeconfig"]).parent) == []
    assert home.run("sandbox", "status", "--quiet").stdout == f"export KUBECONFIG={seed.kubeconfig}\n"


@slow
def test_a_name_is_taken_once(seed: Up) -> None:
    again = seed.home.run("sandbox", "up", "seed")

    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.splitlines()[-1].startswith("basalt: there is a sandbox seed already")
    assert seed.cluster.is_ready()


@slow
def test_nodes_are_those_of_the_environment(seed: Up) -> None:
    nodes = seed.cluster.list("v1", "Node")
    declared = json.loads((seed.home.project / "stacks" / "seed" / "nodes.json").read_text())["items"]

    found = {each["metadata"]["name"]: each for each in nodes}
    assert found.keys() == {each["metadata"]["name"] for each in declared}
    for each in declared:
        node = found[each["metadata"]["name"]]
        assert each["metadata"]["labels"].items() <= node["metadata"]["labels"].items()
        assert node["status"]["allocatable"] == each["status"]["allocatable"]


@slow
def test_a_failed_process_is_told_of(home: Home) -> None:
    started = home.run("sandbox", "up", "seed", "--format", "json")
    processes = json.loads(started.stdout)["processes"]
    scheduler = psutil.Process(processes["vc-scheduler"])
    scheduler.kill()
    psutil.wait_procs([scheduler])

    status = home.run("sandbox", "status")
    assert status.stdout.startswith("seed: failed: vc-scheduler ended\n")
    assert home.run("sandbox", "down").returncode == 0
    assert processes_of(home.state) == []


@slow
def test_a_sandbox_that_is_taken_down_elsewhere_ends_its_foreground(home: Home) -> None:
    with home.start("sandbox", "up", "seed", "--foreground", "--quiet") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("export KUBECONFIG=")
        assert home.run("sandbox", "down", "stacks/seed").stdout == "seed is down\n"
        _, err = process.communicate()

    assert (process.returncode, err) == (0, "")
    assert processes_of(home.state) == []


@pytest.mark.parametrize("record", ["", "{}", "[", '{"processes": [[1]], "complete": true}'])
def test_a_record_that_cannot_be_read_is_told_of_and_removed(tmp_path: Path, record: str) -> None:
    home = make_home(tmp_path)
    folder = home.state / "basalt" / "sandboxes" / "old"
    folder.mkdir(parents=True)
    (folder / "sandbox.json").write_text(record)

    status = home.run("sandbox", "status")
    assert (status.returncode, status.stdout.splitlines()[0]) == (1, "old: broken: its record cannot be read")
    assert home.run("sandbox", "down", "old").stdout == "old is down\n"
    assert not folder.exists()


def test_a_process_that_was_given_the_id_of_an_old_one_is_left_alone(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    folder = home.state / "basalt" / "sandboxes" / "old"
    folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as stranger:
        record = {"environment": "", "token": "t", "complete": True, "processes": [["etcd", stranger.pid, str(folder)]]}
        (folder / "sandbox.json").write_text(json.dumps(record))

        assert home.run("sandbox", "status").stdout.startswith("old: failed: etcd ended\n")
        assert home.run("sandbox", "down").returncode == 0
        assert stranger.poll() is None
        stranger.kill()


def test_a_process_that_has_just_started_is_running(tmp_path: Path) -> None:
    """The kernel has no command line for it in the moment in which its program begins."""
    (tmp_path / "logs").mkdir()
    tail = shutil.which("tail")
    assert tail is not None

    for _ in range(200):
        process = processes.start("tail", [tail, "-f", str(tmp_path / "logs" / "tail.log")], tmp_path)
        was_running = process.is_running
        os.kill(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)
        assert was_running
        assert not process.is_running


def test_without_go_and_cache_one_line_says_what_is_needed(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    (tmp_path / "empty").mkdir()

    done = home.run("sandbox", "up", "seed", PATH=str(tmp_path / "empty"), XDG_CACHE_HOME=str(tmp_path / "cache"))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "basalt: the sandbox is built from source once, which needs Go 1.26 or later: go is not on the PATH\n"
    )
    assert not home.state.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("down",), "no sandbox is there\n"),
        (("status",), "no sandbox is there\n"),
        (("down", "--all"), "no sandbox is there\n"),
        (("status", "--quiet"), ""),
    ],
)
def test_nothing_to_do_is_no_fault(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = make_home(tmp_path).run("sandbox", *arguments)

    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("down", "seed"), "no sandbox seed; basalt sandbox status lists them"),
        (("up", "seed", "--name", "../x"), "a sandbox cannot be named ../x: its name takes letters, digits, '.', '_' and '-'; give --name"),  # noqa: E501
        (("down", "a", "--all"), "--all is every sandbox; leave out a, or --all"),
        (("up", "sed"), "no environment sed: neither a path nor a folder under stacks/; did you mean seed?"),
    ],
)  # fmt: skip
def test_misuse_is_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = make_home(tmp_path).run("sandbox", *arguments)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"basalt: {said}\n")
