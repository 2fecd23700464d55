"""`basalt schema --all`: files that an editor can use as they are."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from basalt.gathering.documents import KINDS
from basalt.reporting import schema_files
from tests.test_cli import ROOT, basalt


def test_every_kind_has_a_file_that_is_what_schema_prints(tmp_path: Path) -> None:
    done = basalt("schema", "--all", "-o", "editor", cwd=tmp_path)

    assert done.returncode == 0
    assert {path.name for path in (tmp_path / "editor").iterdir()} == {f"{kind}.json" for kind in (*KINDS, "Document")}
    assert (tmp_path / "editor" / "Team.json").read_text() == basalt("schema", "Team", cwd=tmp_path).stdout


def test_the_folder_is_hidden_from_environments(tmp_path: Path) -> None:
    (tmp_path / "environment.yaml").write_text(
        "{apiVersion: basalt.dev/v1alpha1, kind: Environment, metadata: {name: e}}"
    )
    before = basalt("check", ".", cwd=tmp_path)

    assert basalt("schema", "--all", "--quiet", cwd=tmp_path).stdout == ""
    assert basalt("check", ".", cwd=tmp_path).stdout == before.stdout


_TEAM = {"apiVersion": "basalt.dev/v1alpha1", "kind": "Team", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({**_TEAM, "spec": {"namespaces": {}}}, True),
        ({**_TEAM, "spec": {"namespacs": {}}}, False),
        ({**_TEAM, "kind": "Teem"}, False),
        ({"apiVersion": "v1", "kind": "Team", "anything": 1}, True),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, True),
    ],
)
def test_one_schema_takes_documents_by_their_kind(document: object, fits: bool) -> None:
    files = schema_files.files()
    validator = jsonschema_rs.Draft202012Validator(
        json.loads(files[schema_files.ANY]),
        base_uri="file:///s/Document.json",
        retriever=lambda uri: json.loads(files[uri.rpartition("/")[2]]),
    )

    assert validator.is_valid(document) is fits


@pytest.mark.parametrize("kind", KINDS)
def test_our_own_documents_fit_the_files(kind: str) -> None:
    validator = jsonschema_rs.Draft202012Validator(json.loads(schema_files.text(kind)))
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "stacks").rglob("*.yaml")]
    documents = [each for text in texts for each in yaml.safe_load_all(text) if each and each.get("kind") == kind]

    assert documents
    assert [each["metadata"]["name"] for each in documents if not validator.is_valid(_without_nulls(each))] == []


def _without_nulls(value: Any) -> Any:
    """The value without what it takes out of a document that it is merged into."""
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(child) for key, child in value.items() if child is not None}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "name a kind (Environment, Team, TrainingJob, Guardrail), or give --all"),
        (["Team", "--all"], "name a kind (Environment, Team, TrainingJob, Guardrail), or give --all"),
        (["Team", "-o", "x"], "-o is where --all writes"),
        (["--all", "-o", "file"], "cannot write file: "),
    ],
)
def test_misuse_is_one_line(tmp_path: Path, arguments: list[str], line: str) -> None:
    (tmp_path / "file").touch()
    done = basalt("schema", *arguments, cwd=tmp_path)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert line in done.stderr
