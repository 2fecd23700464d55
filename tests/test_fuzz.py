"""Nearly right documents end in findings, whatever the command. For longer: make fuzz SECONDS=1800."""

import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import crashes, tried


@given(st.integers(0, 2**48))
@settings(max_examples=25)
def test_a_nearly_right_document_ends_in_findings(number: int) -> None:
    with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
        assert crashes(tried(Path(root), number)) == {}
