"""The generated pages under docs/ are what their generators write now, and they leave nothing out."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from basalt.api.schemas import PARTS, document_schema
from basalt.commands import COMMANDS
from basalt.gathering.documents import KINDS
from tools import go_modules
from tools.docs import command_pages, document_pages, how_to, lists, pictures, rule_pages, volcano_examples
from tools.docs.checkout import Checkout

NOT_CURRENT = "run `make docs` and read the difference"


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_pages_of_the_rules_are_current() -> None:
    assert written(rule_pages.FOLDER) == rule_pages.pages(), NOT_CURRENT


def test_pages_of_the_documents_are_current() -> None:
    assert written(document_pages.FOLDER) == document_pages.pages(), NOT_CURRENT


def test_pictures_are_current() -> None:
    assert written(pictures.FOLDER) == pictures.pictures(), NOT_CURRENT


@pytest.mark.parametrize("file", lists.lists(), ids=lambda file: file.parent.name)
def test_list_of_pages_is_current(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == lists.lists()[file], NOT_CURRENT


@pytest.mark.parametrize("page", sorted(command_pages.pages(lambda name: "")))
def test_page_of_a_command_says_what_its_parser_does(page: str) -> None:
    text = command_pages.pages(lambda name: "")[page]
    told = {line for line in text.splitlines() if line.strip() and not line.startswith("More: ")}

    assert told <= set((command_pages.FOLDER / page).read_text(encoding="utf-8").splitlines()), NOT_CURRENT


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_page_with_an_example(command: str) -> None:
    text = (command_pages.FOLDER / f"{command}.md").read_text(encoding="utf-8")

    assert f"$ basalt {command}" in text, "add one to EXAMPLES in tools/docs/command_pages.py"


@pytest.mark.slow
def test_examples_of_the_commands_are_current() -> None:
    assert written(command_pages.FOLDER) == command_pages.pages(), NOT_CURRENT


@pytest.mark.slow
@pytest.mark.parametrize("page", how_to.PAGES)
def test_what_the_commands_of_a_how_to_print_is_current(page: str) -> None:
    text = (how_to.FOLDER / page).read_text(encoding="utf-8")

    assert "```console\n$ basalt " in text
    assert text == how_to.text(page), NOT_CURRENT


def test_a_change_that_a_how_to_shows_has_to_fit_its_file(tmp_path: Path) -> None:
    page = '```diff title="stacks/seed/teams.yaml"\n-  no such line\n+  another\n```\n'

    with pytest.raises(AssertionError, match="says 0 times"):
        how_to.rendered(page, Checkout(tmp_path))


def fields(schema: Any, definitions: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all fields in the schema."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name and name not in above:
        yield from fields(definitions[name], definitions, (*above, name))
    for field, below in schema.get("properties", {}).items():
        yield field
        yield from fields(below, definitions, above)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from fields(schema[inner], definitions, above)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_document_is_on_its_page(kind: str) -> None:
    schema, pages = document_schema(kind), document_pages.pages()
    spec = dict(schema["properties"]["spec"]["properties"])
    text = pages[document_pages.file_of(kind)] + "".join(pages[f"{part}.md"] for part in PARTS if part in spec)
    definitions = schema.get("$defs", {})
    found = {field for part in ("metadata", "spec") for field in fields(schema["properties"][part], definitions)}

    assert [field for field in sorted(found) if f"`{field}`" not in text] == []


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_boxes_of_a_picture_do_not_overlap(name: str) -> None:
    boxes = pictures.PICTURES[name].boxes.items()

    assert [
        (one, other)
        for (one, a), (other, b) in combinations(boxes, 2)
        if abs(a.column - b.column) < 1 and abs(a.row - b.row) < 1
    ] == []


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


@pytest.mark.slow
def test_lines_of_the_home_page_lead_to_a_compiled_stack(tmp_path: Path) -> None:
    page = (Path(lists.DOCS) / "README.md").read_text(encoding="utf-8")
    lines = page.partition("```sh\n")[2].partition("```")[0].splitlines()
    checkout = Checkout(tmp_path)
    checkout.run("cp stacks/seed/nodes.json nodes.json")

    assert len(lines) == 10
    for line in lines:
        if line.startswith("basalt ") and not line.startswith("basalt apply"):
            assert checkout.run(f"{line.partition('#')[0]} > shown && echo done") == "done", line
    assert (tmp_path / "build" / "lab" / "kustomization.yaml").exists()
