"""How long `pulumi up` takes for 1,000 objects, as a ratio to the same objects as bare CustomResources in the same run:
the real engine, a sandbox, and the stand-in of the tests for the Kubernetes provider, or that where it is installed.

Each figure is the fastest of several first runs, checkpoints skipped as `make up` does. CPU time is that of the
program, the engine and the provider. Exit code 1 where the aim is missed.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pulumi
from pulumi.automation import Stack

from basalt.cluster import connection, parallel
from basalt.cluster.connection import Cluster, Refusal
from basalt.compiling import compile_folder
from basalt.findings import Ref
from basalt.objects import KubeObject
from basalt.rendering import layout
from pulumi_basalt import program
from tests.engine import plugins
from tests.engine.stacks import FAST, Engine
from tests.engine.stand_in import VERSION
from tests.sandbox.conftest import Home, make_home

AIM = 1.5  # times the time of bare CustomResources
_PER_TEAM = 15  # objects
_PAUSE = 0.5  # seconds
_TEAM = """\
apiVersion: basalt.dev/v1alpha1
kind: Team
metadata: {{name: team-{number}}}
spec:
  access: {{admin: [leads-{number}], edit: [research-{number}], view: [auditors]}}
  namespaces:
    team-{number}-train:
      quota: {{cpu: 8, memory: 64Gi, nvidia.com/gpu: 1, pods: 50}}
      defaults: {{cpu: 1, memory: 2Gi}}
  queue:
    parent: research
    deserved: {{nvidia.com/gpu: 1}}
    capability: {{cpu: 760, memory: 7Ti, nvidia.com/gpu: 64}}
  priorities: [low]
---
"""


def write(stacks: Path, teams: int, racks: int) -> None:
    """An environment of so many teams, each with a namespace, and racks of two nodes."""
    folder = stacks / "bench"
    folder.mkdir()
    environment = (stacks / "seed" / "environment.yaml").read_text(encoding="utf-8")
    (folder / "environment.yaml").write_text(environment.replace("name: seed", "name: bench"), encoding="utf-8")
    (folder / "teams.yaml").write_text("".join(_TEAM.format(number=each) for each in range(teams)), encoding="utf-8")
    node = json.loads((stacks / "seed" / "nodes.json").read_text(encoding="utf-8"))["items"][0]
    nodes = []
    for number in range(2 * racks):
        labels = {**node["metadata"]["labels"], "volcano.sh/rack": f"s0-s{number // 32}-rack-{number // 2}"}
        nodes.append({**node, "metadata": {**node["metadata"], "name": f"node-{number}", "labels": labels}})
    inventory = {"apiVersion": "v1", "kind": "List", "items": nodes}
    (folder / "nodes.json").write_text(json.dumps(inventory), encoding="utf-8")


def bare(objects: Sequence[KubeObject], kubeconfig: str) -> None:
    """Registers the objects as they are, after no more than the namespace or the queue that they cannot do without."""
    arguments = {"kubeconfig": kubeconfig, "upsertExistingObjects": "true"}
    provider = pulumi.ProviderResource("kubernetes", "cluster", arguments, pulumi.ResourceOptions(version=VERSION))
    known: dict[Ref, pulumi.Resource] = {}
    for each in objects:
        needed = [Ref("v1", "Namespace", None, each.ref.namespace or "")]
        if each.ref.kind == "Queue":
            needed = [each.ref._replace(name=str(each.spec.get("parent")))]
        after = [known[ref] for ref in needed if ref in known]
        options = pulumi.ResourceOptions(provider=provider, depends_on=after, version=VERSION)
        token = f"kubernetes:{each.ref.api_version}:{each.ref.kind}"
        known[each.ref] = pulumi.CustomResource(token, str(each.ref), {**each.value}, options)


class Cost(NamedTuple):
    """Of one run: seconds, and CPU seconds."""

    seconds: float
    cpu: float


def cost(stack: Stack) -> Cost:
    start, before = time.monotonic(), _cpu()
    stack.up()
    return Cost(time.monotonic() - start, _cpu() - before)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def sandbox(home: Home) -> Iterator[str]:
    """The kubeconfig of a sandbox of seed."""
    started = home.run("sandbox", "up", "seed")
    if started.returncode:
        raise SystemExit(started.stderr)
    try:
        yield str(home.state / "basalt" / "sandboxes" / "seed" / "kubeconfig")
    finally:
        home.run("sandbox", "down")


def empty(cluster: Cluster, objects: Sequence[KubeObject]) -> None:
    """Deletes the objects, and returns when they are gone."""

    def delete(declared: KubeObject) -> bool:
        with suppress(Refusal):  # a queue that still has children
            cluster.delete(declared.ref)
        return cluster.get(declared.ref) is not None

    while any(parallel.each(delete, reversed(objects))):
        time.sleep(_PAUSE)


def measure(engine: Engine, home: Home, runs: int) -> tuple[int, Cost, Cost]:
    """The number of objects, and what they cost as bare CustomResources and by Basalt."""
    folder = home.project / "stacks" / "bench"
    objects = layout.in_apply_order(compile_folder(folder).objects)
    with sandbox(home) as kubeconfig:
        cluster = connection.connect(kubeconfig)
        programs: list[Callable[[], None]] = [lambda: bare(objects, kubeconfig), lambda: basalt(folder, kubeconfig)]
        found: tuple[list[Cost], list[Cost]] = ([], [])
        for run in range(runs):
            for which, each in enumerate(programs):
                state = home.project / f"state-{run}-{which}"
                found[which].append(cost(engine.stack("bench", state, each, kubeconfig, **FAST)))
                empty(cluster, objects)
        cluster.close()
    return len(objects), fastest(found[0]), fastest(found[1])


def fastest(costs: Sequence[Cost]) -> Cost:
    return Cost(min(each.seconds for each in costs), min(each.cpu for each in costs))


def basalt(folder: Path, kubeconfig: str) -> None:
    program.register(compile_folder(folder, needs_environment=True), {"kubeconfig": kubeconfig})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = make_home(Path(temporary))
        teams = options.objects * 3 // 4 // _PER_TEAM
        write(home.project / "stacks", teams, options.objects - teams * _PER_TEAM)
        engine, provider = plugins.engine(Path(temporary), lambda line: print(line, file=sys.stderr))
        count, reference, own = measure(engine, home, options.runs)
    print(f"provider: {provider}\n")
    ratio = own.seconds / reference.seconds
    print("| objects | bare CustomResources s (CPU) | Basalt s (CPU) | ratio (CPU) |")
    print("|---|---|---|---|")
    print(
        f"| {count} | {reference.seconds:.1f} ({reference.cpu:.1f}) | {own.seconds:.1f} ({own.cpu:.1f}) "
        f"| {ratio:.2f} ({own.cpu / reference.cpu:.2f}) |"
    )
    return int(ratio > AIM)


if __name__ == "__main__":
    sys.exit(main())
