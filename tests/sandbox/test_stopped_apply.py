"""An `apply` that is stopped at any point is finished by the next."""

import json
import random
import signal

import pytest

from tests.sandbox.conftest import Up

# Of everything that is waited for, or needs what came before; N makes it another one each time.
ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: stopped-N}
spec:
  kubernetes: {version: "1.34"}
  volcano: {version: 1.15.1}
  priorities: {low-N: {value: 1000}, high-N: {value: 2000}}
  queues: {above-N: {capability: {cpu: 8}}}
---
apiVersion: basalt.dev/v1alpha1
kind: Team
metadata: {name: team-N}
spec:
  access: {edit: [people]}
  namespaces: {room-N: {quota: {cpu: 8, pods: 50}, defaults: {cpu: 1}, security: baseline, network: isolated}}
  queue: {parent: above-N, capability: {cpu: 8}}
  priorities: [low-N, high-N]
---
apiVersion: basalt.dev/v1alpha1
kind: TrainingJob
metadata: {name: job, namespace: room-N}
spec:
  framework: plain
  image: registry.example.com/a/b:1.0.0
  roles: {worker: {replicas: 1, resources: {cpu: 1, memory: 1Gi}}}
"""


def environment(up: Up, number: int) -> str:
    """An environment of objects that the cluster does not have yet."""
    name = f"stopped-{number}"
    folder = up.home.project / "stacks" / name
    folder.mkdir()
    (folder / "all.yaml").write_text(ENVIRONMENT.replace("N", str(number)))
    return name


def counted(up: Up, command: str, name: str, *options: str) -> dict[str, int]:
    """The counts of the command that are not 0."""
    done = up.run(command, name, *options, "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    return {what: count for what, count in json.loads(done.stdout)["summary"].items() if count}


@pytest.mark.slow
def test_an_apply_killed_at_any_request_is_finished_by_the_next(empty: Up) -> None:
    chance, count, kills = random.Random(9), 0, 0
    while True:
        count, moment = count + chance.randint(1, 5), chance.choice(("before", "after"))
        name = environment(empty, count)
        killed = empty.stopped("SIGKILL", count, moment, "apply", name, "--yes")
        if killed.returncode == 0:  # it has no more requests than that
            break
        kills += 1
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        applied = counted(empty, "apply", name, "--yes")
        assert applied.keys() <= {"created", "unchanged"}, (count, moment, applied)
        assert counted(empty, "verify", name) == {"same": sum(applied.values())}, (count, moment)

    assert kills > 3


@pytest.mark.slow
def test_a_cluster_is_filled_by_runs_none_of_which_is_let_finish(empty: Up) -> None:
    steps, codes = random.Random(6), list[int]()
    while 0 not in codes and len(codes) < 30:  # a part is begun anew: it takes a run that gets through the largest
        count, moment = steps.randint(1, 40), steps.choice(("before", "after"))
        found = empty.stopped("SIGKILL", count, moment, "apply", "seed", "--yes")
        assert found.returncode in (0, -signal.SIGKILL), found.stderr
        codes.append(found.returncode)

    assert len(codes) > 3
    assert counted(empty, "verify", "seed") == {"same": 57}


@pytest.mark.slow
@pytest.mark.parametrize(("count", "moment"), [(1, "before"), (4, "after"), (9, "before")])
def test_an_interrupted_apply_ends_in_one_line_and_is_finished_by_the_next(empty: Up, count: int, moment: str) -> None:
    name = environment(empty, 100 + count)

    stopped = empty.stopped("SIGINT", count, moment, "apply", name, "--yes", "--quiet")
    applied = counted(empty, "apply", name, "--yes")

    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (130, "", "basalt: interrupted\n")
    assert applied["created"] > 0
    assert counted(empty, "verify", name) == {"same": sum(applied.values())}
