"""From the nodes' labels to HyperNodes, and what the topology rules make of any HyperNodes at all."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt import patterns, tree
from basalt.api.kinds import Catalog
from basalt.api.versions import Version
from basalt.deriving import derive, derive_hyper_nodes
from basalt.gathering.documents import Declaration, Document
from basalt.gathering.folders import Gathered
from basalt.index import Index
from basalt.loading.files import SourceFile
from basalt.loading.nodes import Condition, Metadata, Node, Spec, Status
from basalt.objects import KubeObject
from basalt.reporting import tree_text
from basalt.reporting.text import Paint
from basalt.rules.bounds import MANY
from basalt.rules.topology import RULES
from basalt.views.components import Components
from basalt.views.domains import Domains, participating, tiers_of
from basalt.views.hyper_nodes import HyperNodes, one_letter_off
from basalt.views.node_selection import matches_labels
from modules import topology

Made = dict[str, Any]
THREE = [{"name": name, "label": name} for name in ("rack", "leaf", "spine")]
COMPOSITE = [
    {"name": "rack", "label": "volcano.sh/rack"},
    {"name": "leaf", "label": "volcano.sh/rack", "pattern": r"^(s\d+-s\d+)-"},
    {"name": "spine", "label": "volcano.sh/rack", "pattern": r"^(s\d+)-"},
]
STEADY = settings(deadline=None, derandomize=True)


# what tests are built of


def node(name: str, labels: Mapping[str, str] | None = None, *, gpus: int = 8, state: str = "Ready") -> Node:
    """A node of 96 CPUs that is Ready, NotReady or Cordoned."""
    amounts: dict[str, str | int | float] = {"cpu": 96, "nvidia.com/gpu": gpus}
    ready = Condition("Ready", "False" if state == "NotReady" else "True")
    status = Status(amounts, conditions=(ready,))
    return Node(Metadata(name, dict(labels or {})), spec=Spec(unschedulable=state == "Cordoned"), status=status)


def written(value: Any) -> Document:
    return Document(SourceFile(Path("case.yaml"), "case.yaml", b""), 0, value)


def raw(name: str, tier: Any = 1, members: Any = (), **spec: Any) -> KubeObject:
    value = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": list(members) if isinstance(members, tuple) else members, **spec},
    }
    return KubeObject(value, written(value))


def member(name: str, kind: str = "HyperNode") -> Made:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def made(nodes: Iterable[Node], tiers: Sequence[Made] = THREE, volcano: str = "1.15", **declared: Any) -> list[Made]:
    """The HyperNodes of an Environment's spec.topology."""
    spec = {"tiers": tiers, **declared}
    found = topology.hyper_nodes(
        Domains(tiers_of(spec), participating(spec, nodes)),
        members=declared.get("members", "exact"),
        with_tier_names=Version(1, int(volcano.split(".")[1])) >= topology.TIER_NAMES_SINCE,
        selector=declared.get("nodeSelector", {}),
    )
    return [manifest.value for manifest in found]


def index(nodes: Sequence[Node], objects: Iterable[KubeObject] = (), declared: Made | None = None) -> Index:
    """What rules are asked of; declared is an Environment's spec.topology."""
    environment = None
    if declared is not None:
        value = {
            "apiVersion": "basalt.dev/v1alpha1",
            "kind": "Environment",
            "metadata": {"name": "case"},
            "spec": {"topology": declared},
        }
        environment = Declaration(value, (written(value),))
    places = tuple((each, written({"kind": "Node", "metadata": {"name": each.name}})) for each in nodes)
    gathered = Gathered(
        environment, (environment,) if environment else (), nodes=places, node_source=lambda: tuple(nodes)
    )
    made = tuple(derive_hyper_nodes(environment, nodes)) if environment else ()
    others = derive(environment, (environment,), lambda: tuple(nodes)) if environment else ()
    catalog = Catalog(Version(1, 34), Version(1, 15), is_declared=environment is not None)
    return Index(gathered, [*others, *objects], catalog, derived=lambda: made, noted={})


def said(facts: Index, *, without: Iterable[str] = ()) -> list[tuple[str, str]]:
    """What the topology rules say: the rule, and its message."""
    rules = [rule for rule in RULES if all(map(facts.knows, rule.needs)) and rule.name not in without]
    return [(rule.name, problem.message) for rule in rules for problem in rule.check(facts)]


def outline(hyper_nodes: Iterable[Made]) -> dict[str, tuple[int, list[str]]]:
    """Each HyperNode's tier, and the names of its members."""
    return {
        each["metadata"]["name"]: (
            each["spec"]["tier"],
            [one["selector"]["exactMatch"]["name"] for one in each["spec"]["members"]],
        )
        for each in hyper_nodes
    }


# labels to HyperNodes


def test_one_composite_label_makes_three_tiers() -> None:
    nodes = [node(f"te{n}", {"volcano.sh/rack": f"s0-s{1 + (n > 4)}-rack-{(n + 1) // 2}"}) for n in range(1, 9)]

    assert outline(made(nodes, COMPOSITE)) == {
        "s0-s1-rack-1": (1, ["te1", "te2"]),
        "s0-s1-rack-2": (1, ["te3", "te4"]),
        "s0-s2-rack-3": (1, ["te5", "te6"]),
        "s0-s2-rack-4": (1, ["te7", "te8"]),
        "s0-s1": (2, ["s0-s1-rack-1", "s0-s1-rack-2"]),
        "s0-s2": (2, ["s0-s2-rack-3", "s0-s2-rack-4"]),
        "s0": (3, ["s0-s1", "s0-s2"]),
    }


def test_hyper_node_is_written_out_whole() -> None:
    first, second = made([node("te1", {"rack": "r1", "leaf": "a"})], THREE[:2])

    assert first == {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "r1", "labels": {"app.kubernetes.io/managed-by": "basalt"}},
        "spec": {"tier": 1, "tierName": "rack", "members": [member("te1", "Node")]},
    }
    assert second["spec"] == {"tier": 2, "tierName": "leaf", "members": [member("r1")]}


@pytest.mark.parametrize(("volcano", "names"), [("1.13", [None, None]), ("1.14", ["rack", "leaf"])])
def test_tiers_have_names_since_volcano_1_14(volcano: str, names: list[str | None]) -> None:
    found = made([node("te1", {"rack": "r1", "leaf": "a"})], THREE[:2], volcano)

    assert [each["spec"].get("tierName") for each in found] == names


@pytest.mark.parametrize(
    ("pattern", "value", "domain"),
    [
        (None, "r1", "r1"),
        (None, "", None),
        ("^r", "r1", "r"),  # no group: what matched
        (r"^(s\d+)-(s\d+)", "s0-s1-x", "s0"),  # the first group
        ("s1", "s0-s1-x", "s1"),  # anywhere in the value
        ("^s1", "s0-s1-x", None),
        ("^(x)?s0", "s0", None),  # a group that took no part
        ("^x*", "s0", None),  # an empty match
        ("(.+)$", "Ärger-1", "Ärger-1"),
        (r"^\w", "Ärger-1", None),  # RE2's classes are ASCII, as Go's
    ],
)
def test_pattern_takes_the_domain_from_the_value(pattern: str | None, value: str, domain: str | None) -> None:
    declared = {"name": "rack", "label": "rack"} | ({} if pattern is None else {"pattern": pattern})
    domains = Domains(tiers_of({"tiers": [declared]}), [node("te1", {"rack": value})])

    assert [*domains.paths] == [(domain,)]


@pytest.mark.parametrize(
    ("template", "value", "name"),
    [
        (None, "r1", "r1"),
        (None, "Rack_A.1", "rack-a.1"),
        ("{tier}-{domain}", "1", "rack-1"),
        ("{domain}.{tier}.example.com", "1", "1.rack.example.com"),
        ("x-{domain}-{domain}", "1", "x-1-1"),
    ],
)
def test_name_is_made_by_the_template_and_fits_kubernetes(template: str | None, value: str, name: str) -> None:
    declared = {"name": "rack", "label": "rack"} | ({} if template is None else {"nameTemplate": template})

    assert [*outline(made([node("te1", {"rack": value})], [declared]))] == [name]


def test_node_selector_says_who_takes_part() -> None:
    nodes = [node("te1", {"rack": "r1", "pool": "gpu"}), node("te2", {"rack": "r1"}), node("te3", {"pool": "gpu"})]

    assert outline(made(nodes, THREE[:1], nodeSelector={"pool": "gpu"})) == {"r1": (1, ["te1"])}
    assert outline(made(nodes, THREE[:1], nodeSelector={})) == {"r1": (1, ["te1", "te2"])}


@pytest.mark.parametrize(
    ("tiers", "selector", "labels"),
    [
        (THREE[:1], {}, {"matchLabels": {"rack": "s0-s1-r1"}}),
        (THREE[:1], {"pool": "gpu"}, {"matchLabels": {"pool": "gpu", "rack": "s0-s1-r1"}}),
        (
            [{"name": "leaf", "label": "rack", "pattern": r"^(s\d+-s\d+)-"}],
            {},
            {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["s0-s1-r1", "s0-s1-r2"]}]},
        ),
        (
            [{"name": "leaf", "label": "rack", "pattern": r"^(s\d+-s\d+)-"}],
            {"pool": "gpu"},
            {
                "matchLabels": {"pool": "gpu"},
                "matchExpressions": [{"key": "rack", "operator": "In", "values": ["s0-s1-r1", "s0-s1-r2"]}],
            },
        ),
    ],
)
def test_leaves_may_select_by_label(tiers: list[Made], selector: Made, labels: Made) -> None:
    nodes = [node(f"te{n}", {"rack": f"s0-s1-r{n}", "pool": "gpu"}) for n in (2, 1)]

    first = made(nodes, tiers, members="label", nodeSelector=selector)[0]

    assert first["spec"]["members"] == [{"type": "Node", "selector": {"labelMatch": labels}}]


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("rack", {"r1": (1, ["te1"]), "a": (2, ["r1"]), "s": (3, ["a"])}),
        ("leaf", {"r1": (1, ["te1"]), "r2": (1, ["te2"]), "a": (2, ["r1"]), "s": (3, ["a", "r2"])}),
        ("spine", {"r1": (1, ["te1"]), "r2": (1, ["te2"]), "a": (2, ["r1", "r2"]), "s": (3, ["a"])}),
    ],
)
def test_node_without_a_tiers_label_is_in_the_tiers_it_has(missing: str, expected: Made) -> None:
    labels = {"rack": "r2", "leaf": "a", "spine": "s"}
    del labels[missing]
    nodes = [node("te1", {"rack": "r1", "leaf": "a", "spine": "s"}), node("te2", labels)]

    assert outline(made(nodes)) == expected


def test_domain_of_no_node_at_the_lowest_tier_is_left_out_with_all_that_names_it() -> None:
    nodes = [node("te1", {"rack": "r1"}), node("te2", {"leaf": "a", "spine": "s"})]

    assert outline(made(nodes)) == {"r1": (1, ["te1"])}


def test_of_domains_that_share_a_name_the_larger_one_of_the_lower_tier_is_made() -> None:
    nodes = [
        node("te1", {"rack": "R_1", "leaf": "r2", "spine": "s"}),
        node("te2", {"rack": "r-1", "leaf": "r2", "spine": "s"}),
        node("te3", {"rack": "r-1", "leaf": "r2", "spine": "s"}),
        node("te4", {"rack": "r2", "leaf": "b", "spine": "s"}),
    ]

    assert outline(made(nodes)) == {"r-1": (1, ["te2", "te3"]), "r2": (1, ["te4"]), "b": (2, ["r2"]), "s": (3, ["b"])}


def test_no_tiers_or_no_nodes_make_no_hyper_nodes() -> None:
    assert made([node("te1", {"rack": "r1"})], []) == []
    assert made([]) == []


def nodes_with(values: Sequence[str]) -> st.SearchStrategy[list[Node]]:
    """Nodes with some of the three labels, whether they make a tree or not."""
    labels = st.dictionaries(st.sampled_from(["rack", "leaf", "spine"]), st.sampled_from(values), max_size=3)
    return st.lists(labels, max_size=12).map(
        lambda every: [node(f"te{number}", labels) for number, labels in enumerate(every)]
    )


PREFIXED = [{**tier, "nameTemplate": "{tier}-{domain}"} for tier in THREE]
ALIKE = nodes_with(["A", "a", "b_1", "b-1", "c", ""])


@STEADY
@given(nodes_with(["A", "b_1", "c", ""]))
def test_every_node_with_a_rack_is_in_one_leaf_and_above_is_a_tree(nodes: list[Node]) -> None:
    found = outline(made(nodes, PREFIXED))
    held = [name for tier, names in found.values() if tier == 1 for name in names]
    children = [name for tier, names in found.values() if tier > 1 for name in names]

    assert sorted(held) == sorted(each.name for each in nodes if each.labels.get("rack"))
    assert len(children) == len(set(children))
    assert all(found[name][0] < tier for tier, names in found.values() if tier > 1 for name in names)


@STEADY
@given(ALIKE)
def test_names_that_are_alike_leave_a_tree_too(nodes: list[Node]) -> None:
    found = outline(made(nodes))
    held = [name for tier, names in found.values() if tier == 1 for name in names]
    children = [name for tier, names in found.values() if tier > 1 for name in names]

    assert len(held) == len(set(held))
    assert len(children) == len(set(children))
    assert all(found[name][0] < tier for tier, names in found.values() if tier > 1 for name in names)


@STEADY
@given(ALIKE, st.sampled_from(["error", "allow"]))
def test_whatever_the_labels_no_rule_of_hyper_nodes_speaks_of_generated_ones(nodes: list[Node], unplaced: str) -> None:
    rules = {rule for rule, _ in said(index(nodes, (), {"tiers": THREE, "unplaced": unplaced}))}

    assert {rule for rule in rules if not rule.startswith(("domain-", "node-has", "node-is-placed"))} == set()


@STEADY
@given(ALIKE, st.data(), st.sampled_from(["exact", "label"]))
def test_order_of_the_nodes_makes_no_difference(nodes: list[Node], data: st.DataObject, members: str) -> None:
    other = data.draw(st.permutations(nodes))

    assert made(nodes, members=members) == made(other, members=members)


@st.composite
def trees(draw: st.DrawFn) -> list[Node]:
    """Nodes whose labels form a tree, a pool of them outside."""
    leaf_of = draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    spine_of = draw(st.lists(st.integers(0, 1), min_size=4, max_size=4))
    racks = draw(st.lists(st.integers(0, len(leaf_of) - 1), min_size=1, max_size=16))
    pools = draw(st.lists(st.sampled_from(["gpu", "cpu"]), min_size=len(racks), max_size=len(racks)))
    return [
        node(
            f"te{number}",
            {"rack": f"R{rack}", "leaf": f"l{leaf_of[rack]}", "spine": f"s{spine_of[leaf_of[rack]]}", "pool": pool},
        )
        for number, (rack, pool) in enumerate(zip(racks, pools, strict=True))
    ]


@STEADY
@given(trees(), st.sampled_from(["exact", "label"]), st.sampled_from([{}, {"pool": "gpu"}]))
def test_rules_are_silent_about_labels_that_form_a_tree(nodes: list[Node], members: str, selector: Made) -> None:
    facts = index(nodes, (), {"tiers": THREE, "members": members, "nodeSelector": selector})

    assert len(facts.hyper_nodes) > 0 or not facts.participants
    assert said(facts, without={"domain-has-several-nodes"}) == []


@STEADY
@given(
    trees(), st.sampled_from([{}, {"pool": "gpu"}]), st.sampled_from([THREE, [{**THREE[0], "pattern": "^(R[0-2])"}]])
)
def test_leaves_by_label_hold_the_nodes_that_leaves_by_name_do(
    nodes: list[Node], selector: Made, tiers: list[Made]
) -> None:
    def held(members: str) -> dict[str, set[str]]:
        found = made(nodes, tiers, members=members, nodeSelector=selector)
        objects = [KubeObject(each, written(each)) for each in found]
        return {name: set(each) for name, each in HyperNodes(objects, nodes).leaf_members.items()}

    assert held("label") == held("exact")


# the rules on HyperNodes of any kind


def test_mass_mistake_is_said_once_with_its_number() -> None:
    nodes = [node("placed", {"rack": "r1"}), *(node(f"te{number}") for number in range(MANY + 2))]
    rule, message = said(index(nodes, (), {"tiers": THREE[:1]}))[0]

    assert len(said(index(nodes, (), {"tiers": THREE[:1]}))) == 1
    assert rule == "node-has-every-tier"
    assert message == (
        "te0 is in no domain of tier rack: it has no label rack; and 21 more like it: "
        "te1, te2, te3, te4, te5, te6 and 15 more"
    )


def test_mistakes_up_to_the_bound_are_each_said() -> None:
    nodes = [node("te", {"rack": "r1"}), *(node(f"te{number}") for number in range(MANY))]

    assert len(said(index(nodes, (), {"tiers": THREE[:1]}))) == MANY


def test_ring_of_thousands_is_found_without_going_round_twice() -> None:
    names = [f"h{number}" for number in range(5000)]
    ring = [raw(name, 1, (member(names[number - 1]),)) for number, name in enumerate(names)]

    ((rule, message),) = said(index([], ring))

    assert rule == "hypernode-tree-has-no-cycle"
    assert message.count(" -> ") == len(names)


def test_nothing_is_quadratic_in_the_number_of_hyper_nodes() -> None:
    """A thousand leaves by pattern, a thousand by label: each pattern against each node would be 20 million."""
    nodes = [node(f"te-{number}-x", {"rack": f"r{number // 10}"}) for number in range(10_000)]
    leaves = [
        raw(f"p{number}", 1, ({"type": "Node", "selector": {"regexMatch": {"pattern": f"^te-{number}[0-4]-x$"}}},))
        for number in range(1, 1000)
    ]
    leaves += [
        raw(f"r{number}", 1, ({"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": f"r{number}"}}}},))
        for number in range(1000)
    ]

    found = HyperNodes(leaves, nodes).leaf_members

    assert found["p7"] == [f"te-7{number}-x" for number in range(5)]
    assert found["r999"] == [f"te-{number}-x" for number in range(9990, 10_000)]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "te1", "h1", "r[", "rack", "In"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "x", "matchLabels"]), inner),
    max_leaves=4,
)
NAME = st.sampled_from(["h1", "h2", "h3", "te1", "te2", ""])
EXPRESSION = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["rack", "pool"]) | ANY,
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "in"]) | ANY,
        "values": st.lists(st.sampled_from(["r1", "r2", ""]), max_size=3) | ANY,
    },
)
LABEL_SELECTOR = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(st.sampled_from(["rack", "pool"]), st.sampled_from(["r1", "r2", "gpu"])) | ANY,
        "matchExpressions": st.lists(EXPRESSION | ANY, max_size=2) | ANY,
    },
)
SELECTOR = st.fixed_dictionaries(
    {},
    optional={
        "exactMatch": st.fixed_dictionaries({"name": NAME | ANY}) | ANY,
        "regexMatch": st.fixed_dictionaries({"pattern": st.sampled_from(["te", "^h1$", "[", ""]) | ANY}) | ANY,
        "labelMatch": LABEL_SELECTOR | ANY,
    },
)
MEMBER = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["Node", "HyperNode", "node"]) | ANY, "selector": SELECTOR | ANY}
)
SPEC = st.fixed_dictionaries(
    {}, optional={"tier": ANY, "tierName": ANY, "members": st.lists(MEMBER | ANY, max_size=4) | ANY}
)
METADATA = st.fixed_dictionaries({}, optional={"name": NAME | ANY, "labels": ANY}) | ANY


@STEADY
@given(st.lists(st.tuples(METADATA, SPEC | ANY), max_size=5), st.booleans())
def test_no_hyper_node_is_so_malformed_that_a_rule_fails(every: list[tuple[Any, Any]], has_nodes: bool) -> None:
    values = [
        {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata, "spec": spec}
        for metadata, spec in every
    ]
    nodes = [node("te1", {"rack": "r1"}), node("te2", {"pool": "gpu"})] if has_nodes else []
    facts = index(nodes, [KubeObject(value, written(value)) for value in values])

    said(facts)
    drawn = tree.draw(facts)
    drawn.as_json()
    assert tree_text.tree("case", drawn, Paint(is_on=False))


@STEADY
@given(LABEL_SELECTOR, st.lists(st.dictionaries(st.sampled_from(["rack", "pool"]), st.sampled_from(["r1", "gpu"]))))
def test_labels_select_what_each_node_tells_by_itself(selector: Made, every: list[dict[str, str]]) -> None:
    nodes = [node(f"te{number}", labels) for number, labels in enumerate(every)]
    leaf = raw("leaf", 1, ({"type": "Node", "selector": {"labelMatch": selector}},))

    found = HyperNodes([leaf], nodes).leaf_members["leaf"]

    assert sorted(found) == sorted(each.name for each in nodes if matches_labels(selector, each.labels))


@STEADY
@given(
    st.lists(
        st.sampled_from(["te", "^te1$", "1", "^(a|te)2", "x|2$", r"\d{2}", "(?i)TE", ".*"]), min_size=1, max_size=5
    ),
    st.lists(st.sampled_from(["te1", "te2", "te12", "a2", "b"]), unique=True),
)
def test_patterns_select_what_each_does_by_itself(wanted: list[str], names: list[str]) -> None:
    nodes = [node(name) for name in names]
    leaves = [
        raw(f"h{number}", 1, ({"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}},))
        for number, pattern in enumerate(wanted)
    ]

    found = HyperNodes(leaves, nodes).leaf_members

    for number, pattern in enumerate(wanted):
        assert sorted(found[f"h{number}"]) == sorted(filter(patterns.compile_pattern(pattern).search, names))


@STEADY
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_what_reaches_each_other_is_together_and_children_stand_before_parents(edges: list[tuple[int, int]]) -> None:
    children: dict[str, list[str]] = {str(number): [] for number in range(8)}
    for parent, child in edges:
        children[str(parent)].append(str(child))

    found = Components(children).found

    below = {name: reached(children, name) for name in children}
    together = {name: circle for circle in found for name in circle}
    assert sorted(name for circle in found for name in circle) == sorted(children)
    for one in children:
        for other in children:
            assert (other in together[one]) == (one == other or (other in below[one] and one in below[other]))
    for number, circle in enumerate(found):
        assert all(together[child] in found[: number + 1] for name in circle for child in children[name])


def reached(children: Mapping[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [*children[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(children[name])
    return found


@pytest.mark.parametrize(
    ("name", "meant"),
    [("te11", "te1"), ("e1", "te1"), ("et1", "te1"), ("tx1", "te1"), ("te1", "te1"), ("te", "te1"), ("txx1", None)],
)
def test_one_letter_may_be_off(name: str, meant: str | None) -> None:
    assert one_letter_off(name, {"te1", "other"}) == meant
