"""Every rule on its cases, and on the examples of its page."""

import re
import textwrap
from pathlib import Path

import pytest
import yaml

from basalt.findings import Severity
from basalt.rules import FAMILIES, RULES
from basalt.rules.rule import PAGES
from tests import cases
from tests.cases import Case

_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECTIONS = ("## What it finds", "## Why", "## Example", "## The way out")
# Their example is not one YAML text: it is a size, or a folder.
_NOT_ONE_TEXT = {"input-within-limits", "extends-stays-inside", "application-within-limit"}

ALL = [case for rule in RULES if (cases.FOLDER / f"{rule}.yaml").exists() for case in cases.read(rule)]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_rule_says_exactly_this_about_the_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = cases.run if case.base is None else cases.risks
    found = run(case, tmp_path, monkeypatch)
    findings = found if isinstance(found, tuple) else found.findings

    own = [cases.shown(each) for each in findings if each.rule == case.rule]
    assert own == case.findings, f"{case.rule} says now, to be read and then pasted:\n{_pasted(own)}"
    others = {each.rule for each in findings} - {case.rule}
    assert others == set(case.also), f"of this case speak also {sorted(others)}; mend the case, or name them in also:"


def _pasted(found: list[dict[str, str]]) -> str:
    """The findings as they stand in a file of cases."""
    return textwrap.indent(
        yaml.safe_dump({"findings": found}, sort_keys=False, width=1000, allow_unicode=True), " " * 4
    )


@pytest.mark.parametrize("rule", RULES)
def test_rule_has_accepted_and_rejected_cases(rule: str) -> None:
    assert (cases.FOLDER / f"{rule}.yaml").exists(), f"write tests/cases/{rule}.yaml, see CONTRIBUTING.md"
    found = cases.read(rule)

    assert [case for case in found if not case.findings], "no accepted case"
    assert [case for case in found if case.findings], "no rejected case"


def test_every_file_of_cases_belongs_to_a_rule() -> None:
    without_rule = {path.stem for path in cases.FOLDER.glob("*.yaml")} - set(RULES)

    assert without_rule == set(), "a rule is in no RULES of its family in basalt/rules, or is called otherwise there"


@pytest.mark.parametrize("rule", RULES)
def test_page_has_every_section(rule: str) -> None:
    assert (PAGES / f"{rule}.md").exists(), f"write basalt/rules/pages/{rule}.md, see CONTRIBUTING.md"
    page = RULES[rule].page

    assert page.startswith(f"# {rule}\n")
    assert [section for section in _SECTIONS if f"\n{section}\n" not in page] == [], "sections that the page lacks"


@pytest.mark.parametrize("rule", [each.name for each in FAMILIES["Plan"]])
def test_page_example_of_a_plan_breaks_the_rule_and_the_way_out_mends_it(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, broken, mended = _YAML.findall(RULES[rule].page)

    for name, text in (("broken", broken), ("mended", mended)):
        (tmp_path / name).mkdir()
        case = Case(rule, name, {"input.yaml": text}, [], [], {"input.yaml": base})
        risks = {found.rule for found in cases.risks(case, tmp_path / name, monkeypatch)}
        assert (rule in risks) == (name == "broken"), f"the {name} example of {rule}:\n{text}"


@pytest.mark.parametrize("rule", sorted(RULES.keys() - _NOT_ONE_TEXT - {each.name for each in FAMILIES["Plan"]}))
def test_page_example_breaks_the_rule_and_the_way_out_mends_it(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, mended, *_ = [*_YAML.findall(RULES[rule].page), "", ""]

    for name, text in (("broken", broken), ("mended", mended)):
        case = Case(rule, name, {"input.yaml": text}, [], [])
        (tmp_path / name).mkdir()
        compilation = cases.run(case, tmp_path / name, monkeypatch)
        breaks = rule in {found.rule for found in compilation.findings}
        assert breaks == (name == "broken"), f"the {name} example of {rule}:\n{text}"
        judged = rule not in {each.rule for each in compilation.skipped}
        assert judged or name == "broken", f"the mended example of {rule} leaves the rule unjudged"


def test_severities_are_those_of_the_contract() -> None:
    warnings = {name for name, rule in RULES.items() if rule.severity is Severity.WARNING}

    assert warnings == {
        "scalar-is-unambiguous", "waiver-is-sound", "domain-has-several-nodes", "topology-label-is-current",
        "node-is-placed", "deserved-fits-cluster", "queue-covers-its-jobs", "queue-fields-are-read",
        "quota-is-enforced-early", "quota-reaches-entitlement", "group-belongs-to-a-team", "priority-values-differ",
        "default-priority-is-low", "topology-constrains", "topology-can-preempt", "gang-is-whole",
        "scheduler-action-is-present", "scheduler-tiers-are-ordered", "gang-allows-preemption",
        "multi-gpu-has-shared-memory", "launcher-matches-gpus", "threads-match-cpus", "image-is-pinned",
        "static-cpu-is-integer", "checkpoint-survives", "job-fits-its-quota", "driver-upgrade-spares-gangs",
        "token-lifetime-is-short", "gang-fits-beside-others", "gang-packs-loosely",
        "plan-keeps-jobs-running", "plan-replaces-nothing-running", "plan-changes-one-priority-at-a-time",
    }, "a rule that is a warning on purpose is listed here"  # fmt: skip
