"""Nearly right documents end in findings, whatever the command. For longer: make fuzz SECONDS=1800."""

import contextlib
import random
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import crashes, tried
from tests.nearly_right import changed
from tools.fuzzing.targets import TARGETS

# Each name stands for ten of the one before; changes put larger parts into the leaves.
_BOMB = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n" for below, name in pairwise("abcdefgh")
)


@given(st.integers(0, 2**48))
@settings(max_examples=25)
def test_a_nearly_right_document_ends_in_findings(number: int) -> None:
    with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
        assert crashes(tried(Path(root), number)) == {}


def test_a_bomb_is_not_written_out() -> None:
    for number in range(20):
        after = changed({"bomb.yaml": _BOMB}, [number])

        assert len(after["bomb.yaml"]) < 10 * len(_BOMB)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_of_the_coverage_guided_fuzzing_keeps_its_promises(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target, seeds = TARGETS[name]
    chance = random.Random(name)
    for seed in chance.sample(found := [each.encode() for each in seeds()], min(30, len(found))):
        at = chance.randrange(len(seed))
        for data in (seed, seed[:at], seed[:at] + chance.randbytes(3) + seed[at + 1 :]):
            target(data)
