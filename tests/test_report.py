"""The report of a pull request: its facts, and that no text in them changes its form."""

import json
import shutil
import subprocess
import sys
from copy import deepcopy
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.compiling import compile_folder
from basalt.plan.comparing import compare
from basalt.reporting import report_facts, report_html, report_markdown
from basalt.reporting.markdown_text import code, prose
from tests.test_readme import ROOT

SEED = ROOT / "stacks" / "seed"
CLOSING = (
    'tasks: [{name: main, replicas: 9, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a/b:1"'
)
STRANDED = f"""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: stranded, namespace: vision-train}}
spec: {{schedulerName: volcano, queue: vision, minAvailable: 9, {CLOSING},
  resources: {{limits: {{cpu: 1, memory: 1Gi, nvidia.com/gpu: 8}}}}}}]}}}}}}]}}
"""


@cache
def facts(*, with_plan: bool) -> dict[str, Any]:
    head = compile_folder(SEED)
    return report_facts.facts(head, compare(head, head).as_json() if with_plan else None)


@pytest.mark.parametrize(
    ("text", "as_prose", "as_code"),
    [
        ("a|b", "a&#124;b", "<code>a&#124;b</code>"),
        ("`x` <b>", "&#96;x&#96; &#60;b&#62;", "<code>&#96;x&#96; &#60;b&#62;</code>"),
        ("@team #1", "@&#8203;team &#35;&#8203;1", "<code>@team &#35;1</code>"),
        ("two\nlines", "two&#92;nlines", "<code>two&#92;nlines</code>"),
        ("\x1b[31mred", "&#92;x1b&#91;31mred", "<code>&#92;x1b&#91;31mred</code>"),
        ("https://a.example", "https:&#8203;//a.example", "<code>https://a.example</code>"),
    ],
)  # fmt: skip
def test_text_stays_text(text: str, as_prose: str, as_code: str) -> None:
    assert (prose(text), code(text)) == (as_prose, as_code)


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(
    [
        "</details>",
        "<script>x</script>",
        "a|b",
        "```",
        "-->",
        "@all",
        "\u202e",
        "\x1b]0;x\x07",
        "</code>",
        "\r\n\r\n# x",
    ]
)


def spoiled(value: Any, draw: Any, texts: st.SearchStrategy[str]) -> Any:
    """The facts with other names and messages; what stands for a state stays."""
    found = deepcopy(value)
    called = {}
    for number, job in enumerate(found["jobs"]):
        before = f"{job['kind']}/{job['namespace']}/{job['name']}"
        job |= {key: f"{draw(texts)}{number}" for key in ("namespace", "name", "queue", "domain")}
        called[before] = f"{job['kind']}/{job['namespace']}/{job['name']}"
        job["placement"] = {draw(texts): 1}
        job["reason"] = {"rule": draw(texts), "message": draw(texts)}
    for unit in found["occupancy"]["units"]:
        for gang in unit["gangs"]:
            gang["job"] = called[gang["job"]]
    ref = {key: draw(texts) for key in ("apiVersion", "kind", "namespace", "name")}
    finding = {"rule": draw(texts), "severity": "error", "waived": False, "message": draw(texts), "hint": draw(texts),
               "object": ref, "pointer": draw(texts),
               "source": {"file": draw(texts), "line": 1, "column": 1}}  # fmt: skip
    found["findings"] = [finding]
    return found | {"environment": draw(texts)}


@st.composite
def hostile(draw: st.DrawFn) -> dict[str, Any]:
    return spoiled(facts(with_plan=draw(st.booleans())), draw, ANY_TEXT)  # type: ignore[no-any-return]


@given(hostile())
@settings(max_examples=60, deadline=None)
def test_no_text_changes_the_form_of_the_markdown(found: dict[str, Any]) -> None:
    text = report_markdown.report(found)

    lines = text.split("\n")
    assert text.splitlines() == lines[:-1]  # no other sign ends a line
    assert lines[0].startswith("<!-- basalt report: ")
    assert lines[0].endswith(" -->")
    assert (text.count("<!--"), text.count("-->")) == (1, 1)
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>")
    tables = [[line for line in block.split("\n") if line.startswith("|")] for block in text.split("\n\n")]
    assert all(len({line.count("|") for line in table}) <= 1 for table in tables)


class Page(HTMLParser):
    """What a page has: its elements with their attributes, and the text of the facts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.embedded = ""
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "script"

    def handle_data(self, data: str) -> None:
        self.embedded += data if self._inside else ""


@given(hostile())
@settings(max_examples=40, deadline=None)
def test_no_text_in_the_page_is_run_or_fetched(found: dict[str, Any]) -> None:
    page = Page(report_html.report(found))

    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "basalt-report"}]
    assert {tag for tag, _ in page.elements}.isdisjoint({"iframe", "img", "link", "object", "form", "base", "embed"})
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    links = [
        value or "" for _, attributes in page.elements for key, value in attributes.items() if key in ("href", "src")
    ]
    assert all(link.startswith("#gang-") for link in links)
    assert json.loads(page.embedded)["environment"] == found["environment"]


def test_a_comment_keeps_to_the_limit_and_counts_what_it_leaves_out() -> None:
    long = deepcopy(facts(with_plan=True))
    long["jobs"] = [{**long["jobs"][0], "name": f"job-{number}"} for number in range(5000)]

    text = report_markdown.report(long)

    assert len(text) <= 65_536
    assert "rows left out: too long for a comment" in text
    assert text.split("\n")[1] == report_markdown.report(facts(with_plan=True)).split("\n")[1].replace(
        "3 jobs", "5000 jobs"
    )


@pytest.mark.parametrize(("nodes", "drawn", "units"), [(300, "nodes", 300), (301, "domains", 2)])
def test_large_clusters_are_drawn_domain_by_domain(nodes: int, drawn: str, units: int, tmp_path: Path) -> None:
    tiers = "spec: {topology: {tiers: [{name: rack, label: rack}]}}"
    environment = f"{{apiVersion: basalt.dev/v1alpha1, kind: Environment, metadata: {{name: large}}, {tiers}}}\n"
    allocatable = {"cpu": "8", "nvidia.com/gpu": "8", "memory": "64Gi", "pods": "110"}
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{each}", "labels": {"rack": f"r{each % 2}"}},
              "status": {"allocatable": allocatable}} for each in range(nodes)]  # fmt: skip
    (tmp_path / "environment.yaml").write_text(environment)
    (tmp_path / "nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    found = report_facts.facts(compile_folder(tmp_path), None)

    assert (found["occupancy"]["drawn"], len(found["occupancy"]["units"])) == (drawn, units)
    assert sum(each["nodes"] for each in found["occupancy"]["units"]) == nodes
    assert f"{nodes} nodes" in report_html.report(found)


# the command


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "basalt", "report", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Seed, and a copy in which a job can never run."""
    (tmp_path / "Pulumi.yaml").touch()
    for name in ("seed", "base"):
        shutil.copytree(ROOT / "stacks" / name, tmp_path / "stacks" / name)
    shutil.copytree(tmp_path / "stacks" / "seed", tmp_path / "stacks" / "next")
    (tmp_path / "stacks" / "next" / "stranded.yaml").write_text(STRANDED)
    return tmp_path


def test_every_form_tells_the_same(project: Path) -> None:
    arguments = ("next", "--base", "seed")
    markdown, page, sarif, found = (
        run(*arguments, "--format", form, cwd=project) for form in ("markdown", "html", "sarif", "json")
    )

    assert [each.returncode for each in (markdown, page, sarif, found)] == [1, 1, 1, 1]
    assert [each.stderr for each in (markdown, page, sarif, found)] == [""] * 4
    known = json.loads(found.stdout)
    assert (known["verdict"], known["base"], known["plan"]["jobs"][0]["after"]) == ("blocked", "seed", "never")
    assert json.loads(Page(page.stdout).embedded) == known
    assert markdown.stdout.startswith(
        "<!-- basalt report: seed -->\n### ❌ <code>seed</code> against <code>seed</code>: **blocked**"
    )
    rules = {each["ruleId"] for each in json.loads(sarif.stdout)["runs"][0]["results"]}
    assert rules == {each["rule"] for each in known["findings"]} | {each["rule"] for each in known["plan"]["risks"]}
    assert run(*arguments, cwd=project).stdout == markdown.stdout


def test_without_a_change_the_verdict_is_none(project: Path) -> None:
    done = run("seed", "--base", "stacks/seed", "--format", "json", cwd=project)

    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "none")
    assert (run("seed", cwd=project).returncode, run("next", cwd=project).returncode) == (0, 1)


def test_the_file_is_written_as_a_whole_or_not_at_all(project: Path) -> None:
    done = run("seed", "-o", "report.md", cwd=project)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (project / "report.md").read_text(encoding="utf-8") == run("seed", cwd=project).stdout
    assert [each.name for each in project.iterdir() if each.name.startswith(".report")] == []
    nowhere = run("seed", "-o", "no/report.md", cwd=project)
    assert (nowhere.returncode, nowhere.stderr) == (2, "basalt: cannot write no/report.md: No such file or directory\n")
    folder = run("seed", "-o", "stacks", cwd=project)
    assert (folder.returncode, folder.stderr) == (2, "basalt: cannot write stacks: Is a directory\n")
    assert sorted(each.name for each in project.iterdir()) == ["Pulumi.yaml", "report.md", "stacks"]


def test_input_that_cannot_be_read_is_a_finding_of_the_report(project: Path) -> None:
    (project / "stacks" / "next" / "broken.yaml").write_text("a: [")

    done = run("next", "--base", "seed", "--format", "json", cwd=project)

    assert done.returncode == 1
    assert json.loads(done.stdout)["broken"] is not None
    assert run("next", "--format", "html", cwd=project).returncode == 1
