"""Large inventories are decoded piece by piece: whatever the text, it is what the whole says, or is left to that."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basalt.loading import nodes, piecewise
from basalt.loading.nodes import Node

AWKWARD = "\n        },\n        {"  # what stands between two items, as a label's text
PLAIN = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piecewise, "_PIECE", 600)


def node(number: int, *, text: str = "", labels: int = 2) -> dict[str, Any]:
    found = {f"example.com/{each}": f"{text}{each}" for each in range(labels)}
    status = {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True", "message": text}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"labels": found, "name": f"n{number}"}, "status": status}


def listing(items: list[Any], kind: str = "List", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": items, "kind": kind, "metadata": {"resourceVersion": ""}, **more}


def shown(found: tuple[Node, ...] | None) -> Any:
    return None if found is None else [(each.name, each.labels, each.status) for each in found]


def piece_by_piece(text: str | bytes) -> Any:
    data = text.encode() if isinstance(text, str) else text
    return shown(piecewise.decode(io.BytesIO(data).readinto))


def whole(text: str | bytes) -> Any:
    return shown(nodes.decode(text.encode() if isinstance(text, str) else text))


@pytest.mark.parametrize("indent", [1, 2, 4, "\t"])
@pytest.mark.parametrize("kind", ["List", "NodeList"])
@pytest.mark.parametrize("text", ["", AWKWARD, "Grüße 🎉", "]", '"kind": "List"'])
def test_what_is_laid_out_in_lines_is_read_piece_by_piece(indent: int | str, kind: str, text: str) -> None:
    written = json.dumps(listing([node(each, text=text) for each in range(30)], kind), indent=indent) + "\n"

    assert piece_by_piece(written) == whole(written) != None  # noqa: E711 - of a list


@pytest.mark.parametrize("count", range(1, 12))
def test_a_text_may_end_anywhere_in_the_buffer(count: int) -> None:
    for labels in range(12):
        written = json.dumps(listing([node(each, labels=labels) for each in range(count)]), indent=4)

        assert piece_by_piece(written) == whole(written)


SMALL = json.dumps(listing([node(each) for each in range(9)]), indent=4)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(listing([node(each) for each in range(9)])),  # in one line
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [PLAIN]}, indent=4),  # in another order
        json.dumps(listing([]), indent=4),
        json.dumps(listing([PLAIN], kind="PodList"), indent=4),
        json.dumps(listing([PLAIN], more=1), indent=4),
        json.dumps(listing([PLAIN, {**PLAIN, "kind": "Pod"}]), indent=4),
        json.dumps(listing([PLAIN, {**PLAIN, "metadata": {"name": 5}}]), indent=4),
        json.dumps(listing([node(1, labels=300)]), indent=4),  # an item larger than the buffer
        SMALL.replace('"n7"', '"n7'),
        SMALL.replace("        },\n        {", "        }\n        {", 1),
        SMALL[:-3],
        SMALL + "x",
        SMALL + SMALL,
        SMALL.encode().replace(b"n8", b"n\xff"),
        "[" * 5000,
        "",
        "\n",
    ],
)
def test_what_is_laid_out_in_another_way_is_left_to_the_reader_of_the_whole(text: str | bytes) -> None:
    assert piece_by_piece(text) is None


@given(st.data())
def test_a_damaged_text_says_what_the_whole_says_or_nothing(data: st.DataObject) -> None:
    text = SMALL
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + data.draw(st.text('{}[],:"\n nk', max_size=12)) + text[end:]

    found = piece_by_piece(text)

    assert found is None or found == whole(text)
