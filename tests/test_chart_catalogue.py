"""The committed charts: where each comes from, and what its values accept."""

import json
from pathlib import Path
from typing import Any

import pytest

from basalt.views import chart_catalogue
from tools import go_modules
from tools.charts import generate

FOLDER = Path(__file__).parent.parent / "schemas" / "charts"
FILES = sorted(FOLDER.glob("*.json"))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_each_pinned_chart_has_its_file_and_none_is_left_over() -> None:
    folders: dict[str, list[str]] = {chart.module: [] for chart in generate.CHARTS}
    for chart in generate.CHARTS:
        folders[chart.module].append(chart.folder)
    pins = [each for each in go_modules.pinned() if each["module"] in folders]
    expected = [(each["sum"], folder) for each in pins for folder in folders[each["module"]]]
    sources = [read(path)["source"] for path in FILES]

    assert sorted((each["sum"], each["folder"]) for each in sources) == sorted(expected)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_is_named_like_its_chart_and_can_be_found(path: Path) -> None:
    content = read(path)

    assert path.stem == f"{content['chart']}-{content['version']}"
    known = chart_catalogue.find(content["chart"], f"v{content['version']}")
    assert known is not None
    assert known.values == content["values"]
    assert {"global", "tags"} <= content["values"].keys()


def test_what_a_template_takes_whole_is_open_and_what_it_only_reads_is_known(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "one.yaml").write_text(
        "{{ .Values.image.name }} {{ toYaml .Values.resources }} {{ $.Values.image.tag }}"
        '{{ index .Values "sub-chart" "x" }} {{- with .Values.probe }}{{ .path }}{{ end }} .Values.text'
    )
    values = {"image": {"name": "a"}, "resources": {"cpu": 1}, "probe": {"path": "/"}, "labels": {}, "unread": {"a": 1}}

    tree = generate.tree(tmp_path, {"dependencies": [{"name": "other", "alias": "alias"}]}, values)

    assert tree == {
        "alias": None, "global": None, "image": {"name": None, "tag": None}, "labels": None, "probe": None,
        "resources": None, "sub-chart": None, "tags": None, "unread": {"a": None},
    }  # fmt: skip


def test_a_template_that_reads_all_values_is_refused(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "one.yaml").write_text("{{ toYaml .Values }}")

    with pytest.raises(go_modules.Refusal):
        generate.tree(tmp_path, {}, {})
