"""Why pods of two kinds do not fit beside each other is told only where it is so, with its arithmetic."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from basalt.fit import packing
from basalt.fit.leftovers import leftover
from basalt.fit.problem import Problem
from basalt.fit.solver import Outcome
from tests.test_fit import HARD, RACK, judged, problems

FULL = "2 pods of worker take every place for worker"
LEFT = "one needs 2 cpu, b has 1 left"
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: j, namespace: here}}
spec:
  schedulerName: volcano
  minAvailable: {total}
  {topology}
  tasks:
    - name: master
      replicas: {masters}
      template: {{spec: {{containers: [{{name: c, resources: {{limits: {{cpu: {master}}}}}}}]}}}}
    - name: worker
      replicas: 2
      template: {{spec: {{containers: [{{name: c, resources: {{limits: {{cpu: 13, nvidia.com/gpu: 8}}}}}}]}}}}
"""


def job(masters: int, cpu: int, topology: str = "") -> str:
    return JOB.format(masters=masters, total=masters + 2, master=cpu, topology=topology)


@given(problems())
@settings(max_examples=300, deadline=None)
def test_where_something_is_told_there_is_no_placement(problem: Problem) -> None:
    for gang in problem.gangs:
        alone = gang._replace(tier=None)
        if leftover(problem, alone) is not None:
            assert packing.decide(problem, [alone]).outcome is Outcome.IMPOSSIBLE


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (job(1, 4, HARD), f"in r1, {FULL}, and no pod of master has room beside: one needs 4 cpu, b has 3 left"),
        (job(1, 4), f"in the cluster, {FULL}, and no pod of master has room beside: one needs 4 cpu, b has 3 left"),
        (job(3, 2), f"in the cluster, {FULL}, and only 2 of the 3 pods of master have room beside: {LEFT}"),
        (job(2, 3), ""),
    ],
)  # fmt: skip
def test_what_is_left_of_the_nodes_is_told(tmp_path: Path, document: str, message: str) -> None:
    reason = judged(tmp_path, *RACK, document)["j"].reason

    assert (reason.message if reason else "") == message
