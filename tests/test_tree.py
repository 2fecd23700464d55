"""The topology drawn: its data, and the text of it."""

import json
from typing import Any

import pytest

from basalt import tree
from basalt.reporting import tree_text
from basalt.reporting.text import Paint
from basalt.tree import Branch, Drawn
from tests.test_topology import THREE, index, member, node, raw

COLUMNS = "largest gang  domains  nodes each"


def drawn(nodes: list[Any], *objects: Any, **declared: Any) -> Drawn:
    """What is drawn of an Environment with tiers, or else of the objects by themselves."""
    return tree.draw(index(nodes, objects, declared or None))


def text(found: Drawn) -> list[str]:
    return tree_text.tree("case", found, Paint(is_on=False)).splitlines()


def names(branches: tuple[Branch, ...]) -> dict[str, Any]:
    return {branch.name: names(branch.children) for branch in branches}


def test_rack_of_two_under_a_leaf_is_drawn_and_summed() -> None:
    nodes = [node(f"te{n}", {"rack": f"r{1 + (n > 2)}", "leaf": "a"}) for n in (1, 2, 3)]

    found = drawn(nodes, tiers=THREE[:2])

    assert text(found) == [
        "case: 3 nodes, 24 nvidia.com/gpu",
        "",
        "a  [tier 2 leaf]  3 nodes; 24 nvidia.com/gpu",
        "├── r1  [tier 1 rack]  2 nodes; 16 nvidia.com/gpu; te1, te2",
        "└── r2  [tier 1 rack]  1 node; 8 nvidia.com/gpu; te3",
        "",
        f"{COLUMNS}  cpu  nvidia.com/gpu",
        "tier 1 rack         2         1-2  192              16",
        "tier 2 leaf         1           3  288              24",
    ]
    assert found.as_json() == {
        "nodes": 3,
        "cluster": {"cpu": "288", "nvidia.com/gpu": "24"},
        "tiers": [
            {
                "tier": 1,
                "name": "rack",
                "domains": 2,
                "nodes": {"min": 1, "max": 2},
                "largest": {
                    "cpu": {"amount": "192", "domain": "r1"},
                    "nvidia.com/gpu": {"amount": "16", "domain": "r1"},
                },
            },
            {
                "tier": 2,
                "name": "leaf",
                "domains": 1,
                "nodes": {"min": 3, "max": 3},
                "largest": {
                    "cpu": {"amount": "288", "domain": "a"},
                    "nvidia.com/gpu": {"amount": "24", "domain": "a"},
                },
            },
        ],
        "tree": [
            {
                "name": "a",
                "tier": 2,
                "tierName": "leaf",
                "nodeCount": 3,
                "closedNodes": 0,
                "nodes": [],
                "offers": {"cpu": "288", "nvidia.com/gpu": "24"},
                "children": [
                    {
                        "name": "r1",
                        "tier": 1,
                        "tierName": "rack",
                        "nodeCount": 2,
                        "closedNodes": 0,
                        "nodes": ["te1", "te2"],
                        "offers": {"cpu": "192", "nvidia.com/gpu": "16"},
                        "children": [],
                        "hidden": 0,
                    },
                    {
                        "name": "r2",
                        "tier": 1,
                        "tierName": "rack",
                        "nodeCount": 1,
                        "closedNodes": 0,
                        "nodes": ["te3"],
                        "offers": {"cpu": "96", "nvidia.com/gpu": "8"},
                        "children": [],
                        "hidden": 0,
                    },
                ],
                "hidden": 0,
            }
        ],
        "unplaced": [],
    }


def test_one_node_and_no_hyper_nodes() -> None:
    found = drawn([node("te1")], tiers=[])

    assert text(found) == [
        "case: 1 node, 8 nvidia.com/gpu",
        "",
        "no HyperNodes: jobs are placed without regard to topology",
        "",
        "in no HyperNode: te1",
    ]


def test_without_inventory_what_is_declared_is_drawn() -> None:
    found = drawn([], raw("r1", 1, (member("te1", "Node"), member("te2", "Node"))), raw("s", 2, (member("r1"),)))

    assert text(found) == [
        "case: no node inventory",
        "",
        "s  [tier 2]  2 nodes",
        "└── r1  [tier 1]  2 nodes; te1, te2",
        "",
        COLUMNS,
        "tier 1              1           2",
        "tier 2              1           2",
    ]
    assert (found.node_count, found.cluster) == (None, None)


def test_environment_without_inventory_has_nothing_to_draw() -> None:
    assert text(drawn([], tiers=THREE)) == [
        "case: no node inventory",
        "",
        "no HyperNodes: jobs are placed without regard to topology",
    ]


def test_nodes_that_take_no_pods_are_counted_and_offer_nothing() -> None:
    nodes = [
        node("te1", {"rack": "r1"}),
        node("te2", {"rack": "r1"}, state="Cordoned"),
        node("te3", {"rack": "r1"}, state="NotReady"),
        node("te4", {"rack": "r2"}, state="NotReady"),
    ]

    found = drawn(nodes, tiers=THREE[:1])

    assert text(found)[2:4] == [
        "r1  [tier 1 rack]  3 nodes, 2 of them cordoned or not Ready; 8 nvidia.com/gpu; te1, te2, te3",
        "r2  [tier 1 rack]  1 node, 1 of them cordoned or not Ready; te4",
    ]
    assert [(each.closed, each.offers.get("nvidia.com/gpu")) for each in found.roots] == [(2, 8), (1, None)]
    assert found.tiers[0].largest["nvidia.com/gpu"] == ("8", "r1")


def test_nodes_without_accelerators_show_their_cpus() -> None:
    found = drawn([node("te1", {"rack": "r1"}, gpus=0)], tiers=THREE[:1])
    plain = found._replace(roots=(found.roots[0]._replace(offers={"cpu": 96, "memory": 2**30, "pods": 110}),))

    assert text(plain)[2] == "r1  [tier 1 rack]  1 node; 96 cpu, 1Gi memory; te1"


@pytest.mark.parametrize(
    "children", [{"a": "b", "b": "a"}, {"a": "a", "b": ""}, {"a": "b", "b": "b"}], ids=["ring", "itself", "below"]
)
def test_circle_is_drawn_once(children: dict[str, str]) -> None:
    objects = [raw(name, 2, (member(child),) if child else ()) for name, child in children.items()]

    found = drawn([], *objects)

    shown = [line.split()[0] for line in text(found) if "[tier" in line]
    assert sorted(name for name in ("a", "b") for line in text(found) if f"{name}  [tier" in line) == ["a", "b"]
    assert len(shown) == 2
    assert json.dumps(found.as_json()).count('"name": "a"') == 1


def test_circle_begins_at_its_highest_tier_and_the_way_back_is_told() -> None:
    found = drawn(
        [node("te1")],
        raw("r1", 1, (member("te1", "Node"), member("s"))),
        raw("a", 2, (member("r1"),)),
        raw("s", 3, (member("a"),)),
    )

    assert text(found)[2:6] == [
        "s  [tier 3]  1 node; 8 nvidia.com/gpu",
        "└── a  [tier 2]  1 node; 8 nvidia.com/gpu",
        "    └── r1  [tier 1]  1 node; 8 nvidia.com/gpu; te1",
        "        └── 1 member not drawn here",
    ]


def test_hyper_node_of_two_parents_is_drawn_below_the_first() -> None:
    found = drawn(
        [node("te1")],
        raw("r1", 1, (member("te1", "Node"),)),
        raw("b", 2, (member("r1"),)),
        raw("a", 2, (member("r1"),)),
    )

    assert names(found.roots) == {"a": {"r1": {}}, "b": {}}
    assert [(each.node_count, each.hidden) for each in found.roots] == [(1, 0), (1, 1)]


def test_diamonds_upon_diamonds_are_drawn_in_no_time() -> None:
    objects = [raw("h0", 0, (member("te1", "Node"),))]
    for tier in range(1, 60):
        below = (member(f"h{tier - 1}"), member(f"x{tier - 1}")) if tier > 1 else (member("h0"),)
        objects += [raw(f"h{tier}", tier, below), raw(f"x{tier}", tier, below)]

    found = drawn([node("te1")], *objects)

    assert {each.node_count for each in found.roots} == {1}
    assert len(text(found)) < 200


def test_chain_of_thousands_is_cut() -> None:
    chain = [raw(f"h{tier}", tier, (member(f"h{tier - 1}"),) if tier else ()) for tier in range(3000)]

    lines = text(drawn([], *chain))

    assert lines[2].startswith("h2999  [tier 2999]")
    assert "1 member not drawn here" in lines[35]
    assert lines[-1] == "2976 more (see --format json)"
    assert len(lines) < 80


def test_several_roots_stand_side_by_side_by_name() -> None:
    found = drawn([node("te1", {"rack": "r2"}), node("te2", {"rack": "r1"})], tiers=THREE[:1])

    assert [branch.name for branch in found.roots] == ["r1", "r2"]


def test_wide_tree_is_cut_and_the_rest_counted() -> None:
    nodes = [node(f"te{n:03}", {"rack": f"r{n:03}", "leaf": "a"}) for n in range(30)]

    lines = text(drawn(nodes, tiers=THREE[:2]))

    assert lines[3:5] == [
        "├── r000  [tier 1 rack]  1 node; 8 nvidia.com/gpu; te000",
        "├── r001  [tier 1 rack]  1 node; 8 nvidia.com/gpu; te001",
    ]
    assert lines[27] == "└── 6 more (see --format json)"
    assert len(drawn(nodes, tiers=THREE[:2]).roots[0].children) == 30


def test_very_wide_tree_fits_a_screen() -> None:
    nodes = [
        node(f"te{n}", {"rack": f"r{n // 2}", "leaf": f"l{n // 16}", "spine": f"s{n // 128}"}) for n in range(2048)
    ]

    lines = text(drawn(nodes, tiers=THREE))

    assert len(lines) < 150
    assert "12 more (see --format json)" in lines


def test_nodes_of_a_wide_rack_are_counted_too() -> None:
    (line,) = (each for each in text(drawn([node(f"te{n}", {"rack": "r"}) for n in range(9)], tiers=THREE[:1]))[2:3])

    assert line == "r  [tier 1 rack]  9 nodes; 72 nvidia.com/gpu; te0, te1, te2, te3 and 5 more"


def test_node_in_two_racks_is_counted_once() -> None:
    found = drawn(
        [node("te1"), node("te2")],
        raw("r1", 1, (member("te1", "Node"),)),
        raw("r2", 1, (member("te1", "Node"), member("te2", "Node"))),
        raw("s", 2, (member("r1"), member("r2"))),
    )

    assert (found.roots[0].node_count, found.roots[0].offers["nvidia.com/gpu"]) == (2, 16)


def test_columns_stay_in_line_under_wide_letters_and_nothing_reaches_the_terminal_as_a_command() -> None:
    tiers = [{"name": "机架", "label": "rack"}, {"name": "\x1b[31mleaf", "label": "leaf"}]

    lines = text(drawn([node("te1\x1b[2J", {"rack": "r1", "leaf": "a"})], tiers=tiers))

    assert "\x1b" not in "".join(lines)
    assert lines[3] == "└── r1  [tier 1 机架]  1 node; 8 nvidia.com/gpu; te1\\x1b[2J"
    assert lines[5:] == [
        "largest gang         domains  nodes each  cpu  nvidia.com/gpu",
        "tier 1 机架                1           1   96               8",
        "tier 2 \\x1b[31mleaf        1           1   96               8",
    ]


def test_hyper_node_without_a_tier_is_drawn_and_not_summed() -> None:
    found = drawn([], raw("h", "one", (member("te1", "Node"),), tierName=7))

    assert text(found)[2:] == ["h  [no tier]  1 node; te1"]
    assert found.tiers == ()
