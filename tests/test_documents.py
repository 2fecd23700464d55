"""Merging: JSON Merge Patch (RFC 7386), layers, and where a merged value stands."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basalt.compiling import Compilation, compile_folder
from basalt.gathering.documents import merge

_KEYS = st.sampled_from("abc")
_LEAF = st.none() | st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2)
_PATCH = st.recursive(_LEAF, lambda inner: st.dictionaries(_KEYS, inner, max_size=3))
_OBJECT = st.dictionaries(_KEYS, _PATCH, max_size=3)


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [  # the table of RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_is_that_of_the_rfc(target: Any, patch: Any, merged: Any) -> None:
    assert merge(target, patch) == merged


@given(_OBJECT, _OBJECT)
def test_merging_the_same_patch_again_changes_nothing(target: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge(target, patch)

    assert merge(once, patch) == once


@pytest.mark.parametrize(
    ("first", "second", "composed"),
    [
        ({"a": None}, {"b": 1}, {"a": None, "b": 1}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({"a": None}, {"a": 1}, {"a": 1}),
        ({"a": {"b": None}}, {"a": {"c": 1}}, {"a": {"b": None, "c": 1}}),
    ],
)
def test_two_patches_compose_to_one_that_keeps_its_nulls(first: Any, second: Any, composed: Any) -> None:
    assert merge(first, second, keep_nulls=True) == composed


def _compile(
    folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch, environment: str = "prod"
) -> Compilation:
    (folder / "Pulumi.yaml").touch()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    return compile_folder(Path("prod"))


_HEAD = "apiVersion: basalt.dev/v1alpha1\nkind: Environment\n"
_BASE = (
    _HEAD + "metadata: {name: base}\nspec:\n  priorities:\n    low: {value: 1, default: true}\n    high: {value: 10}\n"
)
_PROD = (
    _HEAD
    + "metadata: {name: prod}\nspec:\n  extends: [../base]\n  priorities:\n    low: null\n    high:\n      value: 20\n"
)


def test_an_environment_overrides_what_it_extends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compilation = _compile(tmp_path, {"base/e.yaml": _BASE, "prod/e.yaml": _PROD}, monkeypatch)

    classes = {each.name: each for each in compilation.index.of_kind("PriorityClass")}
    assert compilation.name == "prod"
    assert compilation.findings == ()
    assert {name: each.value["value"] for name, each in classes.items()} == {"high": 20}
    assert classes["high"].position(("value",))[:2] == ("prod/e.yaml", 9)


def test_a_value_of_the_base_stands_at_its_line_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prod = _HEAD + "metadata: {name: prod}\nspec: {extends: [../base]}\n"
    compilation = _compile(tmp_path, {"base/e.yaml": _BASE, "prod/e.yaml": prod}, monkeypatch)

    (low,) = [each for each in compilation.index.of_kind("PriorityClass") if each.name == "low"]
    assert low.position(("value",)) == ("base/e.yaml", 6, 11)


def test_folders_are_read_in_the_order_of_extends_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def environment(name: str, value: int, extends: str = "") -> str:
        spec = f"spec:\n  {extends}\n  priorities: {{p: {{value: {value}}}}}\n"
        return f"{_HEAD}metadata: {{name: {name}}}\n{spec}"

    files = {
        "a/e.yaml": environment("a", 1),
        "b/e.yaml": environment("b", 2, "extends: [../a]"),
        "c/e.yaml": environment("c", 3, "extends: [../a]"),
        "prod/e.yaml": f"{_HEAD}metadata: {{name: prod}}\nspec: {{extends: [../b, ../c]}}\n",
    }
    compilation = _compile(tmp_path, files, monkeypatch)

    (priority,) = compilation.index.of_kind("PriorityClass")
    assert priority.value["value"] == 3
    assert [file.name for file in compilation.files] == ["a/e.yaml", "b/e.yaml", "c/e.yaml", "prod/e.yaml"]


def test_documents_of_one_identity_merge_and_raw_manifests_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = "apiVersion: basalt.dev/v1alpha1\nkind: Team\nmetadata: {name: t}\nspec: {access: {%s: [g]}}\n"
    raw = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: %s}\n"
    files = {
        "prod/e.yaml": _HEAD + "metadata: {name: prod}\nspec: {}\n",
        "prod/t1.yaml": team % "admin",
        "prod/t2.yaml": team % "view",
        "prod/c1.yaml": raw % "x",
        "prod/c2.yaml": raw % "z",
    }
    compilation = _compile(tmp_path, files, monkeypatch)

    (declared,) = compilation.index.teams
    assert declared.spec["access"] == {"admin": ["g"], "view": ["g"]}
    assert [(found.rule, found.source.file) for found in compilation.findings] == [
        ("object-is-declared-once", "prod/c2.yaml")
    ]


def test_a_null_in_a_patch_removes_a_field_of_the_generated_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = (
        "apiVersion: basalt.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, namespace: n}\nspec:\n"
        "  framework: plain\n  image: r/i:1\n  roles: {w: {replicas: 1}}\n"
        "  patch:\n    spec: {policies: null, maxRetry: 9}\n"
    )
    compilation = _compile(
        tmp_path, {"prod/e.yaml": _HEAD + "metadata: {name: prod}\n", "prod/j.yaml": job}, monkeypatch
    )

    (workload,) = compilation.index.workloads
    assert "policies" not in workload.spec
    assert workload.spec["maxRetry"] == 9
    assert workload.object.position(("spec", "maxRetry"))[:2] == ("prod/j.yaml", 9)
