"""Verdicts against the real scheduler: some of the environments that `make agreement` puts to it, all at once."""

from collections.abc import Mapping

import pytest

from basalt.fit.verdicts import State
from basalt.sandbox.go_programs import Refusal
from tools.agreement import clusters, expecting, generate, outcomes, scheduling
from tools.agreement.expecting import called
from tools.agreement.scheduling import Case, Played

pytestmark = pytest.mark.slow

# Two jobs each; between them every verdict, and every kind of queues and of topology.
SAMPLE = (4, 5, 18, 24, 32, 44, 61, 71, 78, 122)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    drawn = map(clusters.drawn, SAMPLE)
    return [Case(each, expecting.expected(each)) for each in drawn]


@pytest.fixture(scope="module")
def played(cases: list[Case]) -> Mapping[int, Played]:
    try:
        with generate.sandbox(print, generate.scheduled_sandbox(cases)) as cluster:
            return scheduling.play(cluster, cases)
    except Refusal as refusal:
        pytest.skip(str(refusal))


def test_the_scheduler_runs_what_fits_and_nothing_that_never_does(
    cases: list[Case], played: Mapping[int, Played]
) -> None:
    words = {name: called(each) for case in cases for name, each in case.expected.verdicts.items()}
    assert {State.FITS, State.NEVER, "tight"} == set(words.values())

    alone = {name: ran for each in played.values() for name, ran in each.alone.items()}
    together = {name for each in played.values() for name, ran in each.together.items() if ran}

    assert {name for name, word in words.items() if word == State.FITS and not alone[name]} == set()
    assert {name for name, word in words.items() if word == State.NEVER and (alone[name] or name in together)} == set()


def test_the_checker_accepts_where_the_scheduler_put_the_gangs(cases: list[Case], played: Mapping[int, Played]) -> None:
    found = {case.drawn.number: outcomes.fault(case.expected, played[case.drawn.number]) for case in cases}

    assert found == dict.fromkeys(SAMPLE)
