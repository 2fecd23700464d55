"""Whatever a text is made of, to look for secrets in it takes as long as the text is, not as its square."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from basalt.views import sensitive

_LETTERS, _TIMES, _MOST = 20_000, 8, 30  # eight times the text: 8 is linear, 64 its square


@pytest.mark.parametrize("look", [
    sensitive.kind_of,
    sensitive.is_in_line,
    sensitive.hidden,
    lambda text: sensitive.hidden(f"it says {text}", text),
    sensitive.names_a_secret.__wrapped__,
    sensitive.is_literal,
    lambda text: [*sensitive.in_lines(text, is_code=False)],
    lambda text: [*sensitive.in_lines(f"password: {text}", is_code=True)],
    lambda text: [*sensitive.literals([f"--password{text}", {"password": text}])],
], ids=str)  # fmt: skip
@pytest.mark.parametrize("unit", [
    "a", "a.", "-", "aB", "eyJ-", "eyJaaaaaaaaaa.", "hf_", "ghp_a", "-----BEGIN A ", "https://", "a://b:", "k: v ",
    "a=", "token", "password ", "password: a\n", "--token=", "$(", "`", "'", '"a":', "{{ ",
])  # fmt: skip
def test_to_look_for_secrets_is_linear(look: Callable[[str], Any], unit: str) -> None:
    short, long = (unit * (letters // len(unit)) for letters in (_LETTERS, _LETTERS * _TIMES))

    assert _cost(look, long) < _MOST * _cost(look, short)


def _cost(look: Callable[[str], Any], text: str) -> float:
    """Seconds of CPU of the best of some runs; what is too short to be told counts as the least that can be."""
    found = [0.0] * 3
    for run in range(len(found)):
        begun = time.process_time()
        look(text)
        found[run] = time.process_time() - begun
    return max(min(found), 2e-4)


def test_every_password_of_a_text_of_addresses_counts() -> None:
    assert sensitive.kind_of("https://u:$PASSWORD@a https://u:hunter2@b") == "a password in a URL"
    assert sensitive.kind_of("https://u:$PASSWORD@a https://u:***@b") is None
    assert sensitive.hidden("issuer https://u:hunter2@a is no address") == "issuer https://u:***@a is no address"


def test_half_a_pair_of_surrogates_hides_no_secret() -> None:
    assert sensitive.kind_of("\ud83d glpat-" + "a" * 30) == "a GitLab token"
    assert sensitive.is_in_line("\ud83d password: hunter2")
