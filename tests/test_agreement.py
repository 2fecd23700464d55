"""Every case put to a real API server with Volcano's webhooks. They are built from Go modules (tools/sandbox); where
they cannot be had, these tests are skipped and say why."""

from collections.abc import Sequence

import pytest

from basalt.sandbox.go_programs import Refusal
from tools.agreement import comparing, generate
from tools.agreement.hearing import Heard

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def heard() -> Sequence[Heard]:
    try:
        with generate.sandbox(print) as cluster:
            return generate.hear(cluster, generate.all_cases(), print)
    except Refusal as refusal:
        pytest.skip(str(refusal))


def test_api_server_refuses_nothing_that_basalt_takes(heard: Sequence[Heard]) -> None:
    differing = [found for each in heard for found in comparing.disagreements(each) if not found.is_of_version]

    assert [f"{found.case.id}: {found.object}: {found.message}" for found in differing] == []


def test_page_is_current(heard: Sequence[Heard]) -> None:
    assert generate.text(heard, generate.compared()) == generate.FILE.read_text(encoding="utf-8"), (
        "run `make agreement` and read the difference"
    )
