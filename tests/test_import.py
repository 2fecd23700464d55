"""`basalt import`: which objects become documents, that none is ever lost, and the command as a real process."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.compiling import compile_folder
from basalt.importing.proposal import identity
from basalt.importing.whole import Imported, Source, imported
from basalt.plan.objects import stored_changes
from basalt.rendering import yaml_writer
from tests import cases
from tests.test_cli import ROOT, basalt
from tools import go_modules
from tools.docs import volcano_examples

UNREADABLE = {"document-parses", "input-within-limits", "keys-are-unique", "document-kind-is-known"}


def import_(folder: Path) -> Imported:
    compilation = compile_folder(folder)
    index = compilation.index
    source = Source(folder, "old", index.objects, index.nodes, compilation.files, index.texts, index.catalog)
    return imported(source, "new")


def write(files: dict[str, str], folder: Path) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


def assert_nothing_is_lost(old: Path) -> Imported:
    """Imports the folder, writes what came of it, compiles that, and compares."""
    found = import_(old)
    with tempfile.TemporaryDirectory() as new:
        for each in found.outputs:
            (Path(new) / each.path).parent.mkdir(parents=True, exist_ok=True)
            (Path(new) / each.path).write_bytes(each.content)
        before, after = compile_folder(old), compile_folder(Path(new))
    there: dict[Any, list[Any]] = {}
    for made in after.objects:
        there.setdefault(identity(made.ref), []).append(made.value)
    for wanted in before.objects:
        same = there.get(identity(wanted.ref), [])
        assert any(not stored_changes(wanted.value, other, wanted.ref, after.index.catalog) for other in same), (
            wanted.ref
        )
    assert len(after.objects) == len(before.objects) + len(found.added)
    assert {node.name for node in after.index.nodes} == {node.name for node in before.index.nodes}
    return found


# What becomes a document, and what does not and why.

QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: "
CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: c}\nvalue: 7\n"
NAMED = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: "
NODES = "\n---\n".join(
    f"apiVersion: v1\nkind: Node\nmetadata: {{name: n{at}, labels: {{rack: {rack}, place: {place}}}}}"
    for at, (rack, place) in enumerate([("r1", "hall-1-row-1"), ("r1", "hall-1-row-1"), ("r2", "hall-1-row-2")])
)
SHELF = "tierName: shelf, "
CONTAINER = "{name: main, image: a/b:1, resources: {requests: {cpu: 1}, limits: {cpu: 1}}}"


def hyper_node(name: str, tier: int, *members: str, kind: str = "Node", more: str = "") -> str:
    listed = ", ".join(f"{{type: {kind}, selector: {{exactMatch: {{name: {each}}}}}}}" for each in members)
    head = f"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}"
    return f"{head}\nspec: {{tier: {tier}, {more}members: [{listed}]}}"


def selecting(name: str, labels: str) -> str:
    selector = f"{{labelMatch: {{matchLabels: {labels}}}}}"
    head = f"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}"
    return f"{head}\nspec: {{tier: 1, members: [{{type: Node, selector: {selector}}}]}}"


def job(container: str = CONTAINER, *, spec: str = "", pod: str = "restartPolicy: Never, ", task: str = "") -> str:
    head = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j, namespace: train}\n"
    return (
        f"{head}spec: {{{spec}tasks: [{{name: worker, replicas: 2, {task}template: "
        f"{{spec: {{{pod}containers: [{container}]}}}}}}]}}"
    )


def together(*documents: str) -> str:
    return "\n---\n".join(documents)


PYTORCH = "plugins: {env: [], svc: [], pytorch: ['--master=master', '--worker=worker', '--port=23456']}, "
MASTER = f"{{name: master, replicas: 1, template: {{spec: {{restartPolicy: Never, containers: [{CONTAINER}]}}}}}}"
EXPRESSIBLE: dict[str, tuple[str, str]] = {
    "a queue of nothing": (QUEUE + "{}", "    q: {}"),
    "a queue with its defaults": (QUEUE + "{weight: 1, reclaimable: true, parent: root, guarantee: {}}", "    q: {}"),
    "amounts": (
        QUEUE + "{capability: {cpu: 1500m}, guarantee: {resource: {cpu: 1}}}",
        "      guarantee:\n        cpu: 1",
    ),
    "a status": (QUEUE + "{}\nstatus: {state: Open}", "    q: {}"),
    "what a server writes": (NAMED + "{name: q, uid: a, resourceVersion: '1', generation: 2}", "    q: {}"),
    "what kubectl applied last": (
        NAMED + '{name: q, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}',
        "    q: {}",
    ),
    "Basalt's own label": (NAMED + "{name: q, labels: {app.kubernetes.io/managed-by: basalt}}", "    q: {}"),
    "a class": (CLASS, "    c:\n      value: 7"),
    "a class that never preempts": (CLASS + "preemptionPolicy: Never", "      preemption: Never"),
    "racks by name": (
        together(NODES, hyper_node("rack-r1", 1, "n0", "n1"), hyper_node("rack-r2", 1, "n2")),
        '    - name: rack\n      label: rack\n      nameTemplate: "rack-{domain}"',
    ),
    "racks by name, and a tier of another label": (
        together(
            NODES,
            hyper_node("r1", 1, "n0", "n1"),
            hyper_node("r2", 1, "n2"),
            hyper_node("hall-1", 2, "r1", "r2", kind="HyperNode"),
        ),
        '      label: place\n      pattern: "^([^-]+-[^-]+)-"',
    ),
    "racks with tier names": (
        together(NODES, hyper_node("r1", 1, "n0", "n1", more=SHELF), hyper_node("r2", 1, "n2", more=SHELF)),
        "    - name: shelf\n      label: rack",
    ),
    "nodes in another order": (
        together(NODES, hyper_node("r1", 1, "n1", "n0"), hyper_node("r2", 1, "n2")),
        "    - name: rack\n      label: rack",
    ),
    "racks by label": (
        together(NODES, selecting("r1", "{rack: r1}"), selecting("r2", "{rack: r2}")),
        "    members: label",
    ),
    "a plain job": (job(spec="policies: [], "), "  framework: plain"),
    "a job of the default queue": (job(spec="queue: default, "), "  roles:\n    worker:\n      replicas: 2"),
    "work shared by index": (job(spec="plugins: {env: [], svc: []}, "), "  framework: index"),
    "a job with a rest": (job(spec="minSuccess: 1, "), "  patch:\n    spec:\n"),
    "a master and its workers": (
        job(spec=PYTORCH).replace("tasks: [", f"tasks: [{MASTER}, "),
        "    worker:\n      replicas: 3",
    ),
}


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_becomes_a_document(name: str, tmp_path: Path) -> None:
    text, shown = EXPRESSIBLE[name]

    found = assert_nothing_is_lost(write({"a.yaml": text}, tmp_path))

    assert [str(each.object.ref) for each in found.left] == []
    assert shown in "".join(each.content.decode() for each in found.outputs if not each.path.startswith("manifests"))


KEPT: dict[str, tuple[str, str]] = {
    "a label": (NAMED + "{name: q, labels: {team: a}}", 'metadata.labels.team: "a" has no place in a document'),
    "an annotation": (
        NAMED + "{name: q, annotations: {a: b}}",
        'metadata.annotations.a: "b" has no place in a document',
    ),
    "a field without a place": (QUEUE + "{type: x}", 'spec.type: "x" has no place in a document'),
    "what the API refuses": (QUEUE + "{weight: heavy}", 'spec.weight: takes a whole number, this is "heavy"'),
    "an older API": (
        CLASS.replace("k8s.io/v1", "k8s.io/v1beta1"),
        'apiVersion is "scheduling.k8s.io/v1beta1", a document makes it "scheduling.k8s.io/v1"',
    ),
    "a class declared twice": (together(CLASS, CLASS), "it is declared twice"),
    "HyperNodes without nodes": (hyper_node("r1", 1, "n0"), "no node inventory tells what it follows from"),
    "a tree that no label makes": (
        together(NODES, hyper_node("r1", 1, "n0"), hyper_node("r2", 1, "n1", "n2")),
        "no label of the nodes makes this tree",
    ),
    "a tier that starts at 2": (
        together(NODES, hyper_node("r1", 2, "n0", "n1")),
        "no label of the nodes makes this tree",
    ),
    "two containers": (
        job(f"{CONTAINER}, {{name: b, image: c}}"),
        "its task worker has 2 containers, a role makes one",
    ),
    "a container of another name": (
        job(CONTAINER.replace("main", "torch")),
        'spec.tasks[0].template.spec.containers[0].name is "torch", a document makes it "main"',
    ),
    "a variable from elsewhere": (
        job(CONTAINER.replace("}}}", "}}, env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}")),
        "its variable A is no plain text",
    ),
    "a volume of the node": (
        job(pod="restartPolicy: Never, volumes: [{name: v, hostPath: {path: /v}}], ").replace(
            "cpu: 1}}}", "cpu: 1}}, volumeMounts: [{name: v, mountPath: /v}]}"
        ),
        "its volume v comes from hostPath",
    ),
    "a kind of nobody": ("apiVersion: v1\nkind: Service\nmetadata: {name: s}", "no document makes this Service"),
    "a namespace of no team": (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: s}",
        "no document makes this Namespace",
    ),
    "a password": (
        job(CONTAINER.replace("}}}", "}}, env: [{name: PASSWORD, value: hunter2}], stdin: true}")).replace("main", "x"),
        'spec.tasks[0].template.spec.containers[0].name is "x"',
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_stays_as_it_is_with_the_reason(name: str, tmp_path: Path) -> None:
    text, reason = KEPT[name]

    found = assert_nothing_is_lost(write({"a.yaml": text}, tmp_path))

    assert found.expressed == 0
    assert all(reason in each.reason for each in found.left), [each.reason for each in found.left]
    assert found.left
    assert b"".join(each.content for each in found.outputs if each.path == "manifests/a.yaml").decode() == text


def test_a_file_that_is_kept_in_part_keeps_its_comments(tmp_path: Path) -> None:
    first, second = NAMED + "{name: a}  # gone\n", NAMED + "{name: b, labels: {x: y}}  # mine\n"
    text = f"# all queues\n---\n# of a\n{first}---\n# of b\n{second}"

    found = assert_nothing_is_lost(write({"a.yaml": text}, tmp_path))

    texts = {each.path: each.content.decode() for each in found.outputs}
    assert texts["manifests/a.yaml"] == f"# all queues\n---\n# of b\n{second}"
    assert "    # of a\n    a: {}\n" in texts["environment.yaml"]
    assert len(found.comments) == 1
    assert found.comments[0].endswith("a.yaml:4")


A_LIST = """# all of them
apiVersion: v1
kind: List
items:
# of a
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  metadata: {name: a}
# of b
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue  # of its kind
  metadata:
    name: b
    labels: {x: "no # comment"}  # but this
    annotations:
      y: |
        # no comment
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (A_LIST, [1, 5, 9, 11, 14]),
        (together(QUEUE + "{}", A_LIST), [6, 10, 14, 16, 19]),
        (A_LIST.partition("# of b")[0], [1, 5]),
        (f"{QUEUE}{{}}\n---\n# alone\n---\n# and alone\n", [6, 8]),
        (f"{QUEUE}{{}}\n---\napiVersion: v1\nkind: List  # of nothing\nitems: []\n", [7]),
        (f"{QUEUE}{{}}\n---\n# of b\n{NAMED}{{name: b, labels: {{x: y}}}}\n".replace("\n", "\r"), [6]),
    ],
)
def test_comments_that_stay_behind_are_named_by_their_places(text: str, lines: list[int], tmp_path: Path) -> None:
    found = assert_nothing_is_lost(write({"a.yaml": text}, tmp_path))

    assert [int(each.rpartition(":")[2]) for each in found.comments] == lines
    kept = "".join(each.content.decode() for each in found.outputs)
    assert not [at for at in lines if text.splitlines()[at - 1].partition("# ")[2] in kept]


@pytest.mark.parametrize("end", ["...\n", "...  # end\n"])
def test_a_file_with_directives_keeps_the_text_of_what_is_kept(end: str, tmp_path: Path) -> None:
    mine = f"---\n# mine\n{NAMED}  {{name: b,  labels: {{x: y}}}}  # reflowed?\n"
    other = f"%YAML 1.1\n# other\n---\n{NAMED}  {{name: c,  labels: {{x: y}}}}  # reflowed?\n"
    text = f"%YAML 1.1\n---\n# gone\n{QUEUE}{{}}\n{mine}{end}{other}"

    found = assert_nothing_is_lost(write({"a.yaml": text}, tmp_path))

    texts = {each.path: each.content.decode() for each in found.outputs}
    assert texts["manifests/a.yaml"] == text.partition("{}\n")[2].removeprefix("---\n")
    assert "    # gone\n    q: {}\n" in texts["environment.yaml"]
    assert found.comments == ()


def test_what_is_written_anew_ends_before_a_directive(tmp_path: Path) -> None:
    other = f"%YAML 1.1\n---\n{NAMED}{{name: c,  labels: {{x: y}}}}  # kept\n"

    found = assert_nothing_is_lost(write({"a.yaml": f"{A_LIST}...\n{other}"}, tmp_path))

    (kept,) = [each.content.decode() for each in found.outputs if each.path == "manifests/a.yaml"]
    assert kept.endswith(f"\n...\n{other}")


def test_items_of_a_list_that_stay_are_written_without_what_servers_write(tmp_path: Path) -> None:
    noise = {"uid": "1", "resourceVersion": "2", "managedFields": [{"manager": "x"}]}
    queues = [
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name, **more, **noise}}
        for name, more in (("a", {}), ("b", {"labels": {"x": "y"}}))
    ]
    listing = {"apiVersion": "v1", "kind": "List", "items": [{**each, "status": {"state": "Open"}} for each in queues]}

    found = assert_nothing_is_lost(write({"a.json": json.dumps(listing)}, tmp_path))

    (kept,) = [each for each in found.outputs if each.path.startswith("manifests/")]
    assert kept.path == "manifests/a.yaml"
    assert b"uid" not in kept.content
    assert b"status" not in kept.content
    assert (found.expressed, found.cleaned) == (1, 2)


def test_what_only_tells_kustomize_about_the_others_is_left_out_and_said(tmp_path: Path) -> None:
    write({"a.yaml": QUEUE + "{}", "kustomization.yaml": "resources: [a.yaml]"}, tmp_path)

    found = assert_nothing_is_lost(tmp_path)

    assert [Path(each).name for each in found.left_out] == ["kustomization.yaml"]
    assert [each.path for each in found.outputs] == ["environment.yaml"]


CONFIGURATION = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap, namespace: volcano-system}\n"
    "data: {volcano-scheduler.conf: 'actions: \"allocate\"  # mine'}\n"
)
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: volcano-system, labels: {a: b}}\n"


def test_a_raw_scheduler_configuration_stands_in_for_the_default(tmp_path: Path) -> None:
    write({"a.yaml": together(CONFIGURATION, NAMESPACE, QUEUE + "{}")}, tmp_path)

    found = assert_nothing_is_lost(tmp_path)

    assert found.added == ()
    assert sorted(str(each.object.ref) for each in found.left) == [
        "ConfigMap/volcano-system/volcano-scheduler-configmap",
        "Namespace/volcano-system",
    ]


def test_a_declared_scheduler_configuration_and_a_raw_one_are_an_error(tmp_path: Path) -> None:
    spec = "{volcano: {scheduler: {actions: [allocate]}}}"
    head = f"apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {{name: e}}\nspec: {spec}"

    found = compile_folder(write({"a.yaml": together(head, CONFIGURATION)}, tmp_path)).findings

    assert "object-is-declared-once" in {each.rule for each in found}


# Whole folders.


@pytest.fixture(scope="module", params=["seed", "prod"])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What compile writes for an environment, beside its nodes."""
    folder = tmp_path_factory.mktemp("compiled") / request.param
    shutil.copytree(ROOT / "tests" / "golden" / request.param, folder)
    shutil.copy(ROOT / "stacks" / request.param / "nodes.json", folder)
    return request.param, folder


def test_what_compile_wrote_becomes_documents_again(compiled: tuple[str, Path]) -> None:
    name, folder = compiled

    found = assert_nothing_is_lost(folder)

    assert found.added == ()
    assert dict(found.documents) == {"seed": {"Environment": 1, "Team": 2, "TrainingJob": 3},
                                     "prod": {"Environment": 1, "Team": 3, "TrainingJob": 12}}[name]  # fmt: skip
    parts = {"28-metrics", "22-gpu", "24-network", "26-identity", "15-charts", "10-namespaces"}
    assert {
        Path(str(each.object.position(()).file)).relative_to(os.path.relpath(folder)).parts[0] for each in found.left
    } <= parts


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted(path.stem for path in cases.FOLDER.glob("*.yaml")))
def test_no_case_of_any_rule_loses_anything(rule: str, tmp_path: Path) -> None:
    for at, case in enumerate(cases.read(rule)):
        folder = write(case.files, tmp_path / str(at))
        compilation = compile_folder(folder)
        is_plain = not compilation.index.declarations and (compilation.objects or compilation.index.nodes)
        if is_plain and not any(each.rule in UNREADABLE for each in compilation.findings):
            assert_nothing_is_lost(folder)


@pytest.mark.slow
def test_no_example_of_volcano_loses_anything() -> None:
    try:
        folder = go_modules.downloaded(go_modules.newest("volcano.sh/volcano"))
    except go_modules.Refusal as refusal:
        pytest.skip(str(refusal))
    names = volcano_examples.files(folder)

    assert len(names) > 20
    for name in names:
        assert_nothing_is_lost(folder / name)


# Anything at all.

WORDS = st.sampled_from(["a", "b", "research", "n0", "r1", "x-1", "default", "root"])
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from([0, 1, "1", "1000m", "4Gi", 2.5, "x", None])
)
METADATA = st.fixed_dictionaries(
    {"name": WORDS},
    optional={
        "labels": st.dictionaries(
            st.sampled_from(["app.kubernetes.io/managed-by", "team"]), st.sampled_from(["basalt", "a"])
        ),
        "annotations": st.dictionaries(
            st.sampled_from(["kubectl.kubernetes.io/last-applied-configuration", "a"]), st.just("{}")
        ),
        "creationTimestamp": st.none(),
        "uid": WORDS,
        "namespace": WORDS,
    },
)
JUNK = st.sampled_from([None, "", 0, -1, 3, True, "x", [], {}, ["a"], {"a": None}])


def objects(api_version: str, kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    head = {"apiVersion": st.just(api_version), "kind": st.just(kind), "metadata": METADATA}
    return st.fixed_dictionaries(head, optional=fields)


def specs(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields) | JUNK


PODS = st.fixed_dictionaries(
    {
        "containers": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["main", "a"]), "image": st.just("a/b:1")},
                optional={
                    "resources": st.fixed_dictionaries({"limits": AMOUNTS}, optional={"requests": AMOUNTS}),
                    "env": st.lists(st.fixed_dictionaries({"name": WORDS, "value": WORDS}), max_size=2),
                    "volumeMounts": st.just([{"name": "shared-memory", "mountPath": "/dev/shm"}]),
                },
            ),
            min_size=1,
            max_size=2,
        )
    },
    optional={
        "restartPolicy": st.sampled_from(["Never", "OnFailure"]),
        "volumes": st.just([{"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]),
    },
)
JOBS = specs(
    queue=WORDS,
    minAvailable=st.integers(0, 3),
    maxRetry=st.integers(0, 4),
    plugins=st.dictionaries(
        st.sampled_from(["env", "svc", "ssh", "mpi", "pytorch", "ray"]), st.lists(WORDS, max_size=1)
    ),
    policies=st.lists(st.just({"event": "PodEvicted", "action": "RestartJob"}), max_size=1),
    networkTopology=st.fixed_dictionaries(
        {"mode": st.sampled_from(["hard", "soft"])}, optional={"highestTierAllowed": JUNK}
    ),
    tasks=st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["master", "worker", "a"]), "template": st.fixed_dictionaries({"spec": PODS})},
            optional={"replicas": st.integers(0, 3), "minAvailable": JUNK, "policies": JUNK},
        ),
        max_size=3,
    ),
)
OBJECTS = st.one_of(
    objects(
        "scheduling.volcano.sh/v1beta1",
        "Queue",
        spec=specs(
            weight=JUNK,
            parent=WORDS,
            capability=AMOUNTS,
            deserved=AMOUNTS,
            guarantee=specs(resource=AMOUNTS),
            reclaimable=JUNK,
            type=JUNK,
        ),
        status=JUNK,
    ),
    objects("scheduling.k8s.io/v1", "PriorityClass", value=JUNK, globalDefault=JUNK, description=JUNK),
    objects(
        "topology.volcano.sh/v1alpha1",
        "HyperNode",
        spec=specs(
            tier=st.integers(1, 2),
            members=st.lists(
                st.fixed_dictionaries(
                    {
                        "type": st.sampled_from(["Node", "HyperNode"]),
                        "selector": st.fixed_dictionaries({"exactMatch": st.fixed_dictionaries({"name": WORDS})}),
                    }
                ),
                max_size=2,
            ),
        ),
    ),
    objects("batch.volcano.sh/v1alpha1", "Job", spec=JOBS),
    objects("flow.volcano.sh/v1alpha1", "JobTemplate", spec=JOBS),
    objects("flow.volcano.sh/v1alpha1", "JobFlow", spec=specs(flows=st.lists(st.fixed_dictionaries({"name": WORDS})))),
    objects(
        "batch.volcano.sh/v1alpha1", "CronJob", spec=specs(schedule=st.just("@daily"), jobTemplate=specs(spec=JOBS))
    ),
    objects("v1", "ConfigMap", data=specs(a=WORDS)),
    objects("v1", "Node"),
    st.just({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}),
    st.fixed_dictionaries(
        {
            "apiVersion": st.just("v1"),
            "kind": st.just("ConfigMap"),
            "metadata": st.just({"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}),
            "data": st.fixed_dictionaries(
                {"volcano-scheduler.conf": st.sampled_from(["", "a: b", "actions: enqueue", "- a"])}
            ),
        }
    ),
    st.fixed_dictionaries(
        {
            "apiVersion": st.just("v1"),
            "kind": st.just("Namespace"),
            "metadata": st.fixed_dictionaries(
                {"name": WORDS, "labels": st.fixed_dictionaries({"basalt.dev/team": WORDS})}
            ),
        }
    ),
)


@st.composite
def folders(draw: st.DrawFn) -> dict[str, str]:
    """Files of objects, one by one with comments between them, or in Lists, as YAML or JSON."""
    found = {}
    for name in draw(
        st.lists(st.sampled_from(["a.yaml", "b/c.yml", "environment.yaml", "nodes.json"]), unique=True, min_size=1)
    ):
        each = draw(st.lists(OBJECTS, min_size=1, max_size=5))
        if name.endswith(".json") or draw(st.booleans()):
            found[name] = json.dumps({"apiVersion": "v1", "kind": "List", "items": each})
        else:
            found[name] = "---\n".join(f"# of {at}\n{yaml_writer.document(value)}" for at, value in enumerate(each))
    return found


@settings(max_examples=60)
@given(folders())
def test_nothing_is_lost_of_anything(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_nothing_is_lost(write(files, Path(folder)))


# The command.


@pytest.fixture
def old(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "docs" / "how-to" / "hand-written", tmp_path / "old")
    return tmp_path


def test_the_new_environment_checks_and_plans_nothing_but_additions(old: Path) -> None:
    done = basalt("import", "old", cwd=old)
    plan = basalt("plan", "old", "stacks/old", "--format", "json", cwd=old)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "old -> stacks/old: 7 of 8 objects in 1 Environment (1 queue, 2 tiers), 1 TrainingJob; 6 nodes taken over\n"
    )
    assert done.stdout.endswith("next:\n  basalt check stacks/old\n  basalt plan old stacks/old\n")
    assert basalt("check", "stacks/old", cwd=old).returncode == 0
    assert {part: len(each) for part, each in json.loads(plan.stdout)["objects"].items()} == {
        "add": 2, "change": 0, "replace": 0, "remove": 0}  # fmt: skip
    assert (old / "stacks" / "old" / "nodes.json").read_bytes() == (old / "old" / "nodes.json").read_bytes()
    assert not [name for name in os.listdir(old / "stacks") if name.startswith(".")]


def test_quiet_is_one_line(old: Path) -> None:
    assert basalt("import", "old", "-o", "new", "--quiet", cwd=old).stdout.count("\n") == 1


def test_json_tells_all(old: Path) -> None:
    told = json.loads(basalt("import", "old", "-o", "new", "--format", "json", cwd=old).stdout)

    assert (told["output"], told["expressed"], told["labelled"]) == ("new", 7, 7)
    assert [each["object"]["name"] for each in told["kept"]] == ["batch"]
    assert [each["kind"] for each in told["added"]] == ["Namespace", "ConfigMap"]
    assert sorted(told["files"]) == sorted(str(path.relative_to(old / "new")) for path in (old / "new").rglob("*.*"))


def test_a_file_and_stdin_are_taken(old: Path) -> None:
    text = (old / "old" / "queues.yaml").read_text()
    one = basalt("import", "old/queues.yaml", cwd=old)
    command = [sys.executable, "-m", "basalt", "import", "-", "-o", "piped"]
    other = subprocess.run(command, input=text, cwd=old, capture_output=True, text=True, check=False)

    assert (one.returncode, other.returncode, other.stderr) == (0, 0, "")
    written = [
        (old / folder / "environment.yaml").read_text().split("\n", 1)[1] for folder in ("stacks/queues", "piped")
    ]
    assert written[0].replace("name: queues", "") == written[1].replace("name: piped", "")


MISUSES = {
    "no folder": (["nope"], "no folder and no file nope"),
    "no name": (["-"], "from stdin there is no name for the environment; give -o"),
    "something is there": (["old", "-o", "taken"], "taken holds something already; move it away or choose another -o"),
    "a file is there": (["old", "-o", "old/jobs.yaml"], "old/jobs.yaml lies in old"),
    "a file is there, elsewhere": (["old", "-o", "taken/a"], "taken/a is there already"),
    "inside": (["old", "-o", "old/new"], "old/new lies in old, which would then hold its own copy"),
    "a link to a folder inside": (["old", "-o", "link/new"], "link/new lies in old"),
    "below a file": (["old", "-o", "taken/a/b"], "cannot write taken/a/b"),
    "an environment": (["seed"], "is a document of Basalt already; import takes plain manifests"),
    "nothing": (["empty"], "empty holds no Kubernetes object"),
    "no argument": ([], "the following arguments are required: DIR"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_one_line_and_writes_nothing(name: str, old: Path) -> None:
    arguments, line = MISUSES[name]
    write({"taken/a": "x"}, old)
    (old / "empty").mkdir()
    (old / "link").symlink_to(old / "old")
    shutil.copytree(ROOT / "stacks" / "seed", old / "seed")
    before = sorted(old.rglob("*"))

    done = subprocess.run(
        [sys.executable, "-m", "basalt", "import", *arguments], cwd=old, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False)  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert line in done.stderr
    assert sorted(old.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a: b: c", "document-parses"),
        ("kind: Queue", "document-kind-is-known"),
        (QUEUE + "{weight: 1, weight: 2}", "keys-are-unique"),
        ("\x00", "document-parses"),
        ("a: &a [*a]", "document-parses"),
        (f"apiVersion: v1\nkind: A\nspec: {'[' * 300}", "input-within-limits"),
    ],
)
def test_what_cannot_be_read_is_a_finding_and_writes_nothing(text: str, rule: str, old: Path) -> None:
    write({"old/bad.yaml": text}, old)

    done = basalt("import", "old", cwd=old)

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("old/bad.yaml:")
    assert f"[{rule}]" in done.stdout
    assert not (old / "stacks").exists()


def _piped(data: bytes, folder: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "basalt", "import", "-", "-o", "new", *options]
    return subprocess.run(command, input=data, cwd=folder, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("data", "begin", "rule"),
    [
        (b"a: 1\nb: \xff\n", "stdin:2:4: ", "document-parses"),
        (b"a: b: c", "stdin:1:5: ", "document-parses"),
        (b"a: 1\n---\nkind: Queue\n", "stdin:1:1: ", "document-kind-is-known"),
        (f"{QUEUE}{{weight: 1,\n  weight: 2}}".encode(), "stdin:5:3: ", "keys-are-unique"),
    ],
)
def test_what_is_wrong_in_stdin_is_a_finding_and_writes_nothing(
    data: bytes, begin: str, rule: str, tmp_path: Path
) -> None:
    done = _piped(data, tmp_path)

    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.decode().startswith(begin)
    assert f"[{rule}]" in done.stdout.decode()
    assert not list(tmp_path.iterdir())


def test_nothing_but_nodes_is_taken_over_and_said(tmp_path: Path) -> None:
    nodes = (ROOT / "stacks" / "seed" / "nodes.json").read_bytes()

    done = _piped(nodes, tmp_path)

    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert lines[0] == "stdin -> new: 0 of 0 objects in 1 Environment; 8 nodes taken over"
    assert lines[-1] == "  basalt init new-proposed --nodes new/nodes.json"
    assert (tmp_path / "new" / "nodes.json").read_bytes() == nodes
    assert basalt(*lines[-1].split()[1:], cwd=tmp_path).returncode == 0
    shutil.rmtree(tmp_path / "new")
    assert json.loads(_piped(nodes, tmp_path, "--format", "json").stdout)["nodes"] == 8


HOSTILE = {
    "carriage returns": f"# of q\r\n{QUEUE}{{}}\r\n---\r\n{NAMED}{{name: b, labels: {{x: y}}}}\r\n".replace(
        "\nk", "\r\nk"
    ),
    "a byte order mark": f"\ufeff{QUEUE}{{}}\n---\n{NAMED}{{name: b, labels: {{x: y}}}}",
    "an end of a document": f"{QUEUE}{{}}\n...\n---\n{NAMED}{{name: b, labels: {{x: y}}}}\n...\n",
    "a directive": f"%YAML 1.1\n---\n{QUEUE}{{}}\n...\n%YAML 1.1\n---\n{NAMED}{{name: b, labels: {{x: y}}}}\n",
    "a text that looks like an end": f"{QUEUE}{{}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\n"
    "data:\n  a: |\n    ---\n    # no comment\n    b\n",
    "a document on the line of its mark": "--- {apiVersion: v1, kind: Service, metadata: {name: s}}\n---\n"
    + QUEUE
    + "{}",
    "empty documents": f"---\n---\n# alone\n---\n{QUEUE}{{}}\n---\n---\n{NAMED}{{name: b, labels: {{x: y}}}}\n---\n",
    "anchors": f"{QUEUE}{{capability: &a {{cpu: 1}}, deserved: *a}}\n---\n{NAMED}{{name: b, labels: {{x: y}}}}",
    "braces in a name": together(NODES, hyper_node('"r{1}"', 1, "n0", "n1")),
    "a name that is a path": job().replace("name: j", "name: ../../j").replace("namespace: train", "namespace: ../.."),
    "a name that is a word of YAML": NAMED + '{name: "on"}',
    "ambiguous scalars": QUEUE + "{reclaimable: yes, weight: 0o1}",
    "nulls": QUEUE + "{capability: null, weight: null, parent: null, guarantee: {resource: null}}\nstatus: null",
    "what a terminal obeys": NAMED + '{name: q, labels: {a: "\\e[31m"}}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_kept_or_said_and_never_lost(name: str, tmp_path: Path) -> None:
    assert_nothing_is_lost(write({"a.yaml": HOSTILE[name]}, tmp_path / "old"))

    done = basalt("import", "old", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"old", "stacks"}


@pytest.mark.parametrize("folder", ["a b", "a\nkind: x", "-a", "ü", "a\x1b[31m", "\udcff"])
def test_any_name_of_a_folder_will_do(folder: str, tmp_path: Path) -> None:
    write({"a b\nc.yaml": together(QUEUE + "{}", NAMED + "{name: b, labels: {x: y}}")}, tmp_path / folder)

    write({"\udcff.yaml": NAMED + "{name: c, labels: {x: y}}"}, tmp_path / folder)

    done = basalt("import", f"./{folder}", "-o", "new", "--format", "json", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert {str(each.ref) for each in compile_folder(tmp_path / "new").objects} >= {"Queue/q", "Queue/b", "Queue/c"}


def test_a_secret_is_in_no_reason(tmp_path: Path) -> None:
    container = CONTAINER.replace("}}}", "}}, env: [{name: PASSWORD, value: hunter2, x: y}]}")
    write({"a.yaml": job(container), "b.yaml": NAMED + "{name: q, labels: {password: hunter2}}"}, tmp_path / "old")

    assert "hunter2" not in basalt("import", "old", cwd=tmp_path).stdout


def test_two_readings_of_one_folder_are_the_same_bytes(old: Path) -> None:
    for name in ("xxx", "yyy"):
        basalt("import", "old", "-o", name, cwd=old)

    def trees() -> Iterator[dict[str, bytes]]:
        for name in ("xxx", "yyy"):
            every = [path for path in (old / name).rglob("*") if path.is_file()]
            yield {str(path.relative_to(old / name)): path.read_bytes().replace(name.encode(), b"") for path in every}

    first, second = trees()
    assert first == second


# The page.

PAGE = (ROOT / "docs" / "how-to" / "hand-written-hypernodes.md").read_text(encoding="utf-8")


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "how-to" / "hand-written", tmp_path / "cluster")
    steps = [step for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
             for step in block.removeprefix("$ ").split("\n$ ")]  # fmt: skip

    assert len(steps) == 5
    for step in steps:
        command, _, shown = step.partition("\n")
        words = command.split()
        run = [sys.executable, "-m", *words] if words[0] == "basalt" else words
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.rstrip("\n")) == (0, shown.rstrip("\n")), command
