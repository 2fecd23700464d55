"""The generated pages under docs/ are what their generators write now."""

from pathlib import Path

import pytest

from tools import go_modules
from tools.docs import rule_pages, volcano_examples

NOT_CURRENT = "run `make docs` and read the difference"


def test_pages_of_the_rules_are_current() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in rule_pages.FOLDER.iterdir()}

    assert written == rule_pages.pages(), NOT_CURRENT


@pytest.fixture(scope="module")
def upstream() -> tuple[dict[str, str], Path]:
    module = go_modules.newest("volcano.sh/volcano")
    try:
        return module, go_modules.downloaded(module)
    except go_modules.Refusal as refusal:
        pytest.skip(str(refusal))


@pytest.mark.slow
def test_page_about_volcanos_examples_is_current(upstream: tuple[dict[str, str], Path]) -> None:
    assert volcano_examples.FILE.read_text(encoding="utf-8") == volcano_examples.text(*upstream), NOT_CURRENT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "rule"),
    [
        ("duplicatedPolicyEvent", "policy-events-are-unique"),
        ("duplicatedTaskName", "task-names-are-unique"),
        ("minAvailable", "job-minimum-within-replicas"),
    ],
)
def test_invalid_example_is_rejected_for_the_reason_in_its_name(
    example: str, rule: str, upstream: tuple[dict[str, str], Path]
) -> None:
    judged = volcano_examples.judge(upstream[1], f"example/invalid_jobs/{example}-webhook-deny.yaml")

    assert [found.rule for found in judged.findings if found.severity == "error"] == [rule]
