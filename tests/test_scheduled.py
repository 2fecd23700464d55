"""Verdicts against what the real scheduler did with 500 environments when it last had them (`make agreement`)."""

from collections.abc import Sequence

import pytest

from basalt.fit.verdicts import State
from tools.agreement import clusters, generate, outcomes, verdict_page
from tools.agreement.verdict_page import CAUSES, Compared

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compared() -> Sequence[Compared]:
    return generate.compared()


def test_the_scheduler_has_had_the_environments_as_they_are() -> None:
    kept = outcomes.read()
    changed = [number for number in range(clusters.COUNT) if not outcomes.is_current(kept, number)]

    assert changed == [], "run `python tools/agreement/generate.py --changed`"
    assert clusters.COUNT >= 500


def test_no_job_that_never_runs_ran(compared: Sequence[Compared]) -> None:
    assert [each for each in verdict_page.differing(compared) if each.called == State.NEVER] == []


def test_a_job_that_fits_ran_alone_or_the_page_has_the_cause(compared: Sequence[Compared]) -> None:
    assert {each.job for each in verdict_page.differing(compared)} == CAUSES.keys()


def test_most_of_the_tight_jobs_stayed_pending(compared: Sequence[Compared]) -> None:
    found = verdict_page.counts(compared)

    assert found["tight", True] + found["tight", False] >= 30
    assert found["tight", False] >= found["tight", True]


def test_the_checker_accepts_where_the_scheduler_put_the_gangs(compared: Sequence[Compared]) -> None:
    assert [number for number, each in enumerate(compared) if not each.outcome.is_sound] == []
