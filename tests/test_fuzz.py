"""Nearly right documents end in findings, whatever the command. For longer: make fuzz SECONDS=1800."""

import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import crashes, example, tried

_OF_BOMB = 197450723798301  # an alias bomb, into whose leaves the changes put larger parts of it


@given(st.integers(0, 2**48))
@settings(max_examples=25)
def test_a_nearly_right_document_ends_in_findings(number: int) -> None:
    with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
        assert crashes(tried(Path(root), number)) == {}


def test_a_bomb_is_not_written_out() -> None:
    before, after = example(_OF_BOMB)

    assert max(map(len, after.values())) < 10 * max(map(len, before.values()))
