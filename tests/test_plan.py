"""Plans: pairs of small inputs and exactly what is said of the step, what holds for every pair, and the command as a
real process, with revisions of a real repository."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.api import immutable
from basalt.compiling import Compilation, compile_folder
from basalt.findings import Ref
from basalt.plan.comparing import Plan, State, compare
from basalt.reporting import plan_text
from basalt.reporting.text import Paint
from basalt.rules import FAMILIES
from tests.test_cli import ENVIRONMENT, ROOT, basalt

KEYS = {"base", "head", "verdict", "objects", "jobs", "queues", "preemption", "domains", "risks"}


def node(name: str, cpu: str = "8") -> str:
    ready = 'conditions: [{type: Ready, status: "True"}]'
    status = f'{{allocatable: {{cpu: "{cpu}", pods: 110}}, {ready}}}'
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {status}"


def queue(name: str, spec: str = "{}") -> str:
    return f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {spec}"


def priority(name: str, value: int, more: str = "") -> str:
    return f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n{more}"


def job(name: str, cpu: str = "1", replicas: int = 1, more: str = "") -> str:
    container = f"{{name: main, image: a/b:1, resources: {{requests: {{cpu: {cpu}}}}}}}"
    tasks = f"[{{name: w, replicas: {replicas}, template: {{spec: {{containers: [{container}]}}}}}}]"
    head = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: {name}, namespace: train}}"
    return f"{head}\nspec: {{tasks: {tasks}{more}}}"


def hyper_node(name: str, *nodes: str) -> str:
    members = ", ".join(f"{{type: Node, selector: {{exactMatch: {{name: {each}}}}}}}" for each in nodes)
    spec = f"{{tier: 1, tierName: rack, members: [{members}]}}"
    return f"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\nspec: {spec}"


def scheduler(actions: str) -> str:
    text = f'actions: "{actions}"\n    tiers:\n    - plugins: [{{name: priority}}]'
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap, namespace: volcano-system}"
    return f"{head}\ndata:\n  volcano-scheduler.conf: |\n    {text}"


def config(data: str, more: str = "") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: a}}\n{more}data: {data}"


def compiled(*documents: str) -> Compilation:
    """The documents as a folder of plain manifests, or an environment where one of them is an Environment."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Pulumi.yaml").touch()
        Path(folder, "case").mkdir()
        Path(folder, "case", "input.yaml").write_text("\n---\n".join([*documents, ""]), encoding="utf-8")
        return compile_folder(Path(folder, "case"))


def planned(base: list[str], head: list[str]) -> dict[str, Any]:
    return compare(compiled(*base), compiled(*head)).as_json()


def moved(queue: str, resource: str, field: str, before: str | None, after: str | None) -> dict[str, Any]:
    return {"name": queue, "resource": resource, "field": field, "before": before, "after": after}


CLAIM = (
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, namespace: train}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
)
MOUNTING = job("k", more=", volumes: [{mountPath: /c, volumeClaimName: c}]")
THREE = [priority("low", 1), priority("high", 2), priority("mild", 3, "preemptionPolicy: Never")]
# What stands in the plan; of the parts that are left out nothing.
LABELLED = "labels: {app.kubernetes.io/managed-by: basalt}"
PAIRS: dict[str, tuple[list[str], list[str], str, dict[str, Any]]] = {
    "nothing in both": ([], [], "none", {}),
    "another order, and other spellings of the same": (
        [queue("q", "{deserved: {cpu: 1, memory: 1Gi}, weight: 1}"), job("j", cpu="1")],
        [job("j", cpu="1000m"), queue("q", '{weight: 1, deserved: {memory: 1024Mi, cpu: "1.0"}}')],
        "none",
        {},
    ),
    "defaults that are written out, and Basalt's own label": (
        [queue("q"), priority("c", 1), job("j"), hyper_node("h", "n0", "n1")],
        [
            queue("q", "{weight: 1, reclaimable: true, parent: root}").replace("name: q", f"name: q, {LABELLED}"),
            priority("c", 1, "globalDefault: false\npreemptionPolicy: PreemptLowerPriority"),
            job("j", more=", queue: default, schedulerName: volcano, maxRetry: 3, minAvailable: 1"),
            hyper_node("h", "n1", "n0"),
        ],
        "none",
        {},
    ),
    "another manager's label": (
        [queue("q").replace("name: q", f"name: q, {LABELLED}")],
        [queue("q").replace("name: q", f"name: q, {LABELLED.replace('basalt', 'helm')}")],
        "safe",
        {"change": ["Queue/q: /metadata/labels/app.kubernetes.io~1managed-by basalt -> helm"]},
    ),
    "a queue that comes": (
        [],
        [queue("q", "{deserved: {nvidia.com/gpu: 40, memory: 2048Gi}}")],
        "safe",
        {
            "add": ["Queue/q"],
            "queues": [
                moved("q", "memory", "deserved", None, "2Ti"),
                moved("q", "nvidia.com/gpu", "deserved", None, "40"),
            ],
        },
    ),
    "amounts that move and come": (
        [queue("q", "{capability: {cpu: 8}, deserved: {cpu: 4}, guarantee: {resource: {cpu: 2}}}")],
        [queue("q", "{capability: {cpu: 8000m}, deserved: {cpu: 3, memory: 1Gi}, guarantee: {resource: {cpu: 1}}}")],
        "safe",
        {
            "change": [
                "Queue/q: /spec/deserved/cpu 4 -> 3",
                "Queue/q: /spec/deserved/memory None -> 1Gi",
                "Queue/q: /spec/guarantee/resource/cpu 2 -> 1",
            ],
            "queues": [
                moved("q", "cpu", "deserved", "4", "3"),
                moved("q", "cpu", "guarantee", "2", "1"),
                moved("q", "memory", "deserved", None, "1Gi"),
            ],
        },
    ),
    "a job that no longer fits": (
        [node("a"), node("b"), job("j", cpu="8", replicas=2)],
        [node("a"), job("j", cpu="8", replicas=2)],
        "blocked",
        {"jobs": ["train/j fits -> never"], "risks": ["plan-keeps-jobs-running warning"]},
    ),
    "a job that has to wait for another": (
        [node("a"), job("j", cpu="8")],
        [node("a"), job("i", cpu="8"), job("j", cpu="8")],
        "disruptive",
        {
            "add": ["Job/train/i"],
            "jobs": ["train/i None -> fits", "train/j fits -> contended"],
            "risks": ["plan-keeps-jobs-running warning"],
        },
    ),
    "a job that goes, which lets another run": (
        [node("a"), job("i", cpu="8"), job("j", cpu="8")],
        [node("a"), job("j", cpu="8")],
        "safe",
        {"remove": ["Job/train/i"], "jobs": ["train/i fits -> None", "train/j contended -> fits"]},
    ),
    "a job that grows in place": (
        [node("a"), job("j")],
        [node("a"), job("j", replicas=2)],
        "safe",
        {"change": ["Job/train/j: /spec/tasks/0/replicas 1 -> 2"]},
    ),
    "a job that is replaced": (
        [node("a"), job("j")],
        [node("a"), job("j", more=", maxRetry: 9")],
        "disruptive",
        {
            "replace": ["Job/train/j: /spec/maxRetry None -> 9"],
            "risks": ["plan-replaces-nothing-running warning"],
        },
    ),
    "a preempting action is switched on": (
        [*THREE, scheduler("allocate")],
        [*THREE, scheduler("preempt")],
        "safe",
        {"change": ["ConfigMap/volcano-system/volcano-scheduler-configmap: /data/volcano-scheduler.conf *"],
         "new": [["high", "low"]]},
    ),
    "reclaiming is no preemption": (
        [priority("low", 1), priority("high", 2), scheduler("allocate")],
        [priority("low", 1), priority("high", 2), scheduler("allocate, reclaim, gangreclaim")],
        "safe",
        {"change": ["ConfigMap/volcano-system/volcano-scheduler-configmap: /data/volcano-scheduler.conf *"]},
    ),
    "classes that change places": (
        [priority("a", 1), priority("b", 2), scheduler("gangpreempt")],
        [priority("a", 3), priority("b", 2), scheduler("gangpreempt")],
        "disruptive",
        {
            "replace": ["PriorityClass/a: /value 1 -> 3"],
            "new": [["a", "b"]],
            "gone": [["b", "a"]],
            "risks": ["plan-changes-one-priority-at-a-time warning"],
        },
    ),
    "a class without a policy gets one": (
        [priority("a", 1), priority("b", 2), scheduler("preempt")],
        [priority("a", 1), priority("b", 2, "preemptionPolicy: Never"), scheduler("preempt")],
        "safe",
        {"replace": ["PriorityClass/b: /preemptionPolicy None -> Never"], "gone": [["b", "a"]]},
    ),
    "a job that a new class may evict": (
        [node("n"), priority("a", 1), scheduler("preempt"), job("j", more=", priorityClassName: a")],
        [node("n"), priority("a", 1), priority("b", 2), scheduler("preempt"), job("j", more=", priorityClassName: a")],
        "disruptive",
        {"add": ["PriorityClass/b"], "new": [["b", "a"]], "risks": ["plan-keeps-jobs-running warning"]},
    ),
    "domains that shrink, come and go": (
        [node("a"), node("b"), node("c"), hyper_node("one", "a", "b"), hyper_node("two", "c")],
        [node("a"), node("b"), node("c"), hyper_node("one", "a"), hyper_node("three", "b", "c")],
        "safe",
        {
            "add": ["HyperNode/three"],
            "change": ["HyperNode/one: /spec/members *"],
            "remove": ["HyperNode/two"],
            "domains": ["one rack 2 -> 1", "three rack 0 -> 2", "two rack 1 -> 0"],
        },
    ),
    "a queue that a job names goes": (
        [queue("q"), job("j", more=", queue: q")],
        [job("j", more=", queue: q")],
        "blocked",
        {
            "remove": ["Queue/q"],
            "risks": ["plan-keeps-jobs-running warning", "plan-keeps-queues-usable error"],
        },
    ),
    "a namespace with a job goes": (
        ["apiVersion: v1\nkind: Namespace\nmetadata: {name: train}", job("j")],
        [],
        "blocked",
        {
            "remove": ["Job/train/j", "Namespace/train"],
            "jobs": ["train/j unknown -> None"],
            "risks": ["plan-keeps-data error"],
        },
    ),
    "a claim that grows in place": (
        [CLAIM],
        [CLAIM.replace("1Gi", "2048Mi")],
        "safe",
        {"change": ["PersistentVolumeClaim/train/c: /spec/resources/requests/storage 1Gi -> 2048Mi"]},
    ),
    "a claim that cannot shrink in place": (
        [CLAIM, MOUNTING],
        [CLAIM.replace("1Gi", "512Mi"), MOUNTING],
        "blocked",
        {
            "replace": ["PersistentVolumeClaim/train/c: /spec/resources/requests/storage 1Gi -> 512Mi"],
            "risks": ["plan-keeps-data error"],
        },
    ),
    "the default namespace, written out": (
        [config("{a: b}").replace(", namespace: a", "")],
        [config("{a: b}").replace("namespace: a", "namespace: default")],
        "none",
        {},
    ),
    "a sealed ConfigMap, and another version of an API": (
        [config("{a: b}", "immutable: true\n")],
        [config("{a: c}", "immutable: true\n")],
        "safe",
        {"replace": ["ConfigMap/a/c: /data/a b -> c"]},
    ),
    "a Secret is never shown": (
        ["apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: a}\ndata: {a: YWJj}"],
        ["apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: a}\ndata: {a: YWJk, b: YWJl}\ntype: Opaque"],
        "blocked",
        {"change": [f"Secret/a/s: /{each} -> ***" for each in ("data/a ***", "data/b None", "type None")]},
    ),
    "a password stays unseen": (
        [config("{password: hunter2, text: 'token: abcdefgh'}")],
        [config("{password: hunter3, text: 'token: ijklmnop'}")],
        "blocked",
        {"change": ["ConfigMap/a/c: /data/password *** -> ***", "ConfigMap/a/c: /data/text *** -> ***"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_pair_has_exactly_this_plan(name: str) -> None:
    base, head, verdict, expected = PAIRS[name]

    plan = planned(base, head)

    assert plan.keys() == KEYS
    assert plan["verdict"] == verdict
    assert told(plan) == {part: found for part, found in expected.items() if found}


def told(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan in few words, without what is empty."""
    objects = plan["objects"]
    found = {
        "add": [named(each) for each in objects["add"]],
        "change": [text for each in objects["change"] for text in changes(each)],
        "replace": [text for each in objects["replace"] for text in changes(each)],
        "remove": [named(each) for each in objects["remove"]],
        "jobs": [f"{each['namespace']}/{each['name']} {each['before']} -> {each['after']}" for each in plan["jobs"]],
        "queues": plan["queues"],
        **plan["preemption"],
        "domains": [f"{each['name']} {each['tier']} {each['before']} -> {each['after']}" for each in plan["domains"]],
        "risks": [f"{each['rule']} {each['severity']}" for each in plan["risks"]],
    }
    return {part: each for part, each in found.items() if each}


def named(entry: Mapping[str, Any]) -> str:
    return "/".join(filter(None, (entry["kind"], entry["namespace"], entry["name"])))


def changes(entry: Mapping[str, Any]) -> list[str]:
    """Each change; long values are a star."""

    def shown(change: Mapping[str, Any]) -> str:
        before, after = str(change["before"]), str(change["after"])
        return "*" if len(before + after) > 40 else f"{before} -> {after}"

    return [f"{named(entry)}: {each['pointer']} {shown(each)}" for each in entry["changes"]]


def test_reasons_say_why_a_verdict_turns() -> None:
    plan = planned(
        [node("a"), job("gone"), job("large", cpu="8"), job("waits", cpu="8")],
        [node("a"), job("new"), job("large", cpu="9"), job("waits", cpu="7")],
    )

    assert {each["name"]: each["reason"].partition(":")[0] for each in plan["jobs"]} == {
        "gone": "the job is removed",
        "large": "a pod of w needs 9 cpu, and the nearest node, a, has 8 for it",
        "new": "the job is new",
        "waits": "before",
    }


# What holds for every pair

QUEUES = [queue("q", "{deserved: {cpu: 4}}"), queue("q", "{deserved: {cpu: 2000m}}"), queue("r", "{parent: q}")]
CLASSES = [priority("a", 1), priority("a", 5), priority("b", 3), priority("b", 3, "preemptionPolicy: Never")]
NODES = [node("n1"), node("n2", "16"), hyper_node("h", "n1"), hyper_node("h", "n1", "n2")]
JOBS = [job("i", "8"), job("i", "8", 2), job("j", "16", 1, ", priorityClassName: a"), job("j", "4", 2, ", queue: q")]
OTHERS = [scheduler("allocate, gangpreempt"), scheduler("allocate"), CLAIM,
          MOUNTING,
          "apiVersion: v1\nkind: Namespace\nmetadata: {name: train}"]  # fmt: skip
sides = st.lists(
    st.sampled_from([*QUEUES, *CLASSES, *NODES, *JOBS, *OTHERS]), unique_by=lambda text: tuple(text.split("\n")[:3])
)
EXAMPLES = settings(max_examples=25)


@given(sides)
@EXAMPLES
def test_nothing_changes_from_an_environment_to_itself(side: list[str]) -> None:
    found = compare(compiled(*side), compiled(*reversed(side)))

    assert found.verdict is (State.BLOCKED if found.errors else State.NONE)
    assert told(found.as_json()) == {}


@given(sides, sides)
@EXAMPLES
def test_the_way_back_undoes_the_way_there(one: list[str], other: list[str]) -> None:
    there, back = planned(one, other), planned(other, one)

    assert there["objects"]["add"] == back["objects"]["remove"]
    assert there["preemption"]["new"] == back["preemption"]["gone"]
    for part in ("jobs", "queues", "domains"):
        turned = [{**each, "before": each["after"], "after": each["before"], "reason": ""} for each in back[part]]
        assert [{**each, "reason": ""} for each in there[part]] == turned
    for part in ("change", "replace"):
        swapped = [{**each, "changes": [{**change, "before": change["after"], "after": change["before"]}
                                        for change in each["changes"]]} for each in back["objects"][part]]  # fmt: skip
        assert there["objects"][part] == swapped


@given(sides, sides)
@EXAMPLES
def test_less_risk_is_no_worse_verdict(one: list[str], other: list[str]) -> None:
    found = compare(compiled(*one), compiled(*other))
    order = [*State]

    milder: list[Plan] = [replace(found, risks=found.risks[1:]), replace(found, errors=())]
    milder.append(replace(found, risks=tuple(replace(each, reason="so be it") for each in found.risks)))
    assert all(order.index(each.verdict) <= order.index(found.verdict) for each in milder)
    assert (found.verdict is State.NONE) == (not found.errors and not told(found.as_json()))


@given(sides, sides)
@EXAMPLES
def test_text_says_the_verdict_first_and_names_every_object(one: list[str], other: list[str]) -> None:
    found = compare(compiled(*one), compiled(*other))

    shown = plan_text.report(found, lambda *_: "", lambda *_: "", Paint(is_on=False), quiet=False)
    assert shown.startswith(f"{found.verdict}: ")
    plan = found.as_json()
    assert [each for part in plan["objects"].values() for each in part if named(each) not in shown] == []
    assert [each for each in plan["risks"] if each["rule"] not in shown] == []


@pytest.mark.parametrize(
    ("kind", "pointer", "is_refused"),
    [
        ("batch.volcano.sh/v1alpha1 Job", ("spec", "tasks", 0, "replicas"), False),
        ("batch.volcano.sh/v1alpha1 Job", ("spec", "tasks", 0), True),
        ("batch.volcano.sh/v1alpha1 Job", ("spec",), True),
        ("batch.volcano.sh/v1alpha1 Job", ("metadata", "labels"), False),
        ("apps/v1 Deployment", ("spec", "selector", "matchLabels", "app"), True),
        ("apps/v1 Deployment", ("spec", "template"), False),
        ("apps/v1 StatefulSet", ("spec", "template", "spec"), False),
        ("apps/v1 StatefulSet", ("spec", "serviceName"), True),
        ("v1 PersistentVolumeClaim", ("spec", "resources", "requests", "storage"), False),
        ("rbac.authorization.k8s.io/v1 RoleBinding", ("roleRef", "name"), True),
        ("example.com/v1 Job", ("spec",), False),
    ],
)
def test_fields_that_stay_as_they_were_made(kind: str, pointer: tuple[str | int, ...], is_refused: bool) -> None:
    api_version, _, name = kind.partition(" ")

    assert immutable.refuses(Ref(api_version, name, "a", "b"), {}, pointer, 1, 2) == is_refused


# Waivers

WAIVED = "basalt.dev/waive"


def test_a_waiver_on_the_heads_document_covers_a_risk() -> None:
    waiver = f"annotations: {{{WAIVED}: 'plan-replaces-nothing-running: it is restarted tonight'}}"
    head = job("j", more=", maxRetry: 9").replace("name: j,", f"name: j, {waiver},")

    plan = planned([job("j")], [head])

    assert [(each["rule"], each["waived"]) for each in plan["risks"]] == [("plan-replaces-nothing-running", True)]
    assert plan["verdict"] == "safe"


def test_a_waiver_of_the_team_covers_what_it_had_before() -> None:
    def side(namespaces: str, annotations: str = "") -> list[str]:
        team = "apiVersion: basalt.dev/v1alpha1\nkind: Team\nmetadata: {name: vision%s}\nspec: {namespaces: {%s}}"
        return [ENVIRONMENT + "{}", team % (annotations, namespaces)]

    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: old}\nspec: {containers: [{name: m, image: a/b:1}]}"
    )
    waiver = f", annotations: {{{WAIVED}: 'plan-keeps-data: all of it was copied'}}"

    plan = planned([*side("old: {}, new: {}"), pod], side("new: {}", waiver))

    assert [(each["rule"], each["waived"]) for each in plan["risks"]] == [("plan-keeps-data", True)]


@pytest.mark.parametrize("rule", [each.name for each in FAMILIES["Plan"]])
def test_check_knows_that_a_waiver_of_a_plan_has_its_use(rule: str) -> None:
    document = queue("q").replace("name: q", f"name: q, annotations: {{{WAIVED}: '{rule}: why'}}")

    assert compiled(document).findings == ()


# What cannot be read


def test_a_base_that_cannot_be_read_stops_no_plan() -> None:
    plan = compare(compiled(queue("q"), "a: [b"), compiled(queue("q"), queue("r")))

    assert told(plan.as_json()) == {"add": ["Queue/r"]}
    assert plan.verdict is State.SAFE
    assert compare(compiled("a: [b"), compiled()).verdict is State.SAFE  # nobody can say that nothing changes


def test_a_head_that_cannot_be_read_is_blocked_and_nothing_is_told_of_it() -> None:
    plan = compare(compiled(queue("q"), job("j")), compiled(queue("q"), "a: [b"))

    assert plan.verdict is State.BLOCKED
    assert told(plan.as_json()) == {}


# The command


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with seed at the tag `first`, in the folder `platform`, and a job's image changed since."""
    (tmp_path / "platform").mkdir()
    shutil.copytree(ROOT / "stacks" / "seed", tmp_path / "platform" / "stacks" / "seed")
    (tmp_path / "platform" / "Pulumi.yaml").touch()
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "seed"], ["tag", "first"]):
        git(tmp_path, *command)
    jobs = tmp_path / "platform" / "stacks" / "seed" / "jobs.yaml"
    jobs.write_text(jobs.read_text().replace("allreduce:2.1.0", "allreduce:2.2.0"))
    return tmp_path / "platform"


def git(folder: Path, *arguments: str) -> str:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
    variables = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *arguments], cwd=folder, env=variables, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("base", ["first:seed", "main:stacks/seed", "HEAD:./stacks/seed", "main@{1 second ago}:seed",
                                  "HEAD:platform/stacks/seed", "main^{tree}:stacks/seed/"])  # fmt: skip
def test_a_side_may_be_a_revision(repository: Path, base: str) -> None:
    before = git(repository, "status", "--porcelain")

    done = basalt("plan", base, "seed", "--format", "json", cwd=repository)

    plan = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (plan["base"], plan["head"], plan["verdict"]) == (base, "seed", "disruptive")
    assert told(plan)["replace"] == [
        "Job/vision-train/allreduce: /spec/tasks/0/template/spec/containers/0/image *",
    ]
    assert [each["source"]["file"] for each in plan["risks"]] == ["stacks/seed/jobs.yaml"]
    assert git(repository, "status", "--porcelain") == before


def test_a_revision_is_read_as_it_was_and_extends_stay_inside(repository: Path) -> None:
    base = repository / "stacks" / "base"
    base.mkdir()
    (base / "queue.yaml").write_text(queue("extra"))
    environment = repository / "stacks" / "seed" / "environment.yaml"
    environment.write_text(environment.read_text().replace("\nspec:\n", "\nspec:\n  extends: [../base]\n"))
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "extend")
    shutil.rmtree(base)

    done = basalt("plan", "first:seed", "main:seed", "--format", "json", cwd=repository)

    assert done.returncode == 0, done.stderr
    assert told(json.loads(done.stdout))["add"] == ["Queue/extra"]


def test_links_of_a_revision_lead_nowhere_outside(repository: Path) -> None:
    (repository / "stacks" / "seed" / "link.yaml").symlink_to("/etc/hostname")
    (repository / "stacks" / "other").symlink_to("seed")
    (repository / "stacks" / "seed" / "same.yaml").symlink_to("../seed/jobs.yaml")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "links")

    done = basalt("plan", "first:seed", "main:other", cwd=repository)

    assert done.returncode == 1
    assert "link.yaml:1:1: no file: no such file or directory [document-parses]" in done.stderr


def test_text_tells_scheduling_before_objects(repository: Path) -> None:
    done = basalt("plan", "main:seed", "seed", cwd=repository)

    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "disruptive: main:seed -> seed: 1 risk (plan-replaces-nothing-running 1)"
    assert [line for line in lines if line.endswith(":") and " " not in line] == ["risks:", "objects:"]
    assert "  -/+ Job/vision-train/allreduce, replaced" in lines
    assert lines[-1] == "objects: 1 replaced"


def test_nothing_changes_is_said(repository: Path) -> None:
    done = basalt("plan", "seed", "stacks/seed", cwd=repository)

    assert (done.returncode, done.stdout) == (0, "none: seed -> stacks/seed: nothing changes\n")


def test_exit_code_is_1_for_blocked_and_with_strict_for_disruptive(repository: Path) -> None:
    assert basalt("plan", "main:seed", "seed", "--strict", cwd=repository).returncode == 1
    (repository / "stacks" / "seed" / "teams.yaml").unlink()

    done = basalt("plan", "main:seed", "seed", cwd=repository)

    assert done.returncode == 1
    assert done.stdout.startswith("blocked: main:seed -> seed: seed has ")
    assert "teams.yaml:10:5: Namespace/vision-train: is removed, with all that is in it, and Job/" in done.stdout
    assert "\n   10 |     vision-train:\n" in done.stdout  # a line of the base: the head has no such file
    assert "[order-is-complete]" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing:seed"], "cannot read nothing:seed: no revision nothing in this repository"),
        ([":seed"], "cannot read :seed: no revision (empty) in this repository"),
        (["-x:seed"], "basalt plan: "),
        (["two words:seed"], "no revision two words in this repository"),
        (["main:"], "no environment"),
        (["main:sede"], "no environment sede in main"),
        (["main:../../seed"], "no environment ../../seed in main"),
        (["main:/etc"], "no environment /etc in main"),
        (["sede"], "no environment sede"),
        (["a\nb:seed"], "no revision a b in this repository"),
    ],
)
def test_misuse_is_one_line(repository: Path, arguments: list[str], words: str) -> None:
    done = basalt("plan", *arguments, "seed", cwd=repository)

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_repository_and_no_git_are_told(tmp_path: Path, repository: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    bounded = {"GIT_CEILING_DIRECTORIES": str(tmp_path)}

    outside = basalt("plan", "main:seed", ".", cwd=elsewhere, env=bounded)
    without = basalt("plan", "main:seed", "seed", cwd=repository, env={"PATH": str(elsewhere)})

    assert (outside.returncode, without.returncode) == (2, 2)
    assert outside.stderr.startswith("basalt: cannot read main:seed: not a git repository")
    assert without.stderr == "basalt: cannot read main:seed: cannot run git: No such file or directory\n"


def test_hostile_sides_end_in_a_plan(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    (tmp_path / "good.yaml").write_text("\n---\n".join([node("a"), job("j")]))
    (tmp_path / "odd:name.yaml").write_text(queue("q"))
    names = ["empty", "binary.yaml", "good.yaml", "odd:name.yaml"]

    for base in names:
        for head in names:
            done = basalt("plan", base, head, "--format", "json", cwd=tmp_path)
            assert done.returncode == int(head == "binary.yaml"), (base, head, done.stderr)
            assert ("not known as a whole" in done.stderr) == (base == "binary.yaml" != head)
            assert json.loads(done.stdout).keys() == KEYS


def test_the_command_needs_both_sides(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "basalt", "plan", "a"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "the following arguments are required: HEAD" in done.stderr
