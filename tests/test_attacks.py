"""The list of attacks, each against every command that reads input: exit code 0 or 1, the finding that is due, no hang,
no network, and no file but those that were asked for."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.attacked import COMMANDS
from tests.test_hostile_input import CONFIG, CRD, GUARDRAIL
from tests.test_readme import ROOT

ENVIRONMENT = """\
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: case}
spec:
  topology: {tiers: [{name: rack, label: rack}]}
  queues: {small: {capability: {cpu: 8}}}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {rack: a}}
status: {allocatable: {cpu: "8", pods: 110}, conditions: [{type: Ready, status: "True"}]}
"""
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j, namespace: train}
spec:
  minAvailable: 1
  queue: small
  schedulerName: volcano
  maxRetry: 3
  tasks:
  - {name: w, replicas: 1, template: {spec: {restartPolicy: Never,
      containers: [{name: c, image: "r.example.com/a:1", resources: {requests: {cpu: 1}, limits: {cpu: 1}}}]}}}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: train}\n"
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\nrules: []\n"
MIB = 1024**2
# What a terminal obeys, and what turns the reading direction.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

pytestmark = pytest.mark.slow

Make = Callable[[Path], None]


def text(content: str | bytes, name: str = "attack.yaml") -> Make:
    """An attack that is one more file of the environment."""

    def make(folder: Path) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def environment(old: str, new: str) -> Make:
    """An attack that is one change of the Environment."""
    assert old in ENVIRONMENT
    return text(ENVIRONMENT.replace(old, new), "environment.yaml")


def node(name: str) -> Make:
    return text(NODE.replace("NAME", json.dumps(name)))


def link(name: str, target: str) -> Make:
    return lambda folder: (folder / name).symlink_to(target)


def _extends(what: str) -> Make:
    return environment("spec:\n", f"spec:\n  extends: [{json.dumps(what)}]\n")


def _extends_link(folder: Path) -> None:
    (folder.parent / "link").symlink_to("/etc")
    _extends("../link")(folder)


def _extends_each_other(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    (folder.parent / "other" / "e.yaml").write_text(ENVIRONMENT.replace("spec:", "spec:\n  extends: [../case]"))
    _extends("../other")(folder)


def _extends_deeply(folder: Path) -> None:
    for number in range(60):
        (folder.parent / f"e{number}").mkdir()
        more = f"spec:\n  extends: [../e{number + 1}]" if number < 59 else "spec:"
        (folder.parent / f"e{number}" / "e.yaml").write_text(ENVIRONMENT.replace("spec:", more))
    _extends("../e0")(folder)


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "attack.yaml")


def _huge_folder(folder: Path) -> None:
    for number in range(300):
        (folder / f"n{number}.yaml").write_text("")


def _laughs(depth: int) -> str:
    lines = [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, depth)]
    return f"{CONFIG}data:\n  a0: &a0 [{', '.join('0' * 10)}]\n  " + "  ".join(lines)


def _merges(depth: int) -> str:
    lines = [f"m{number}: &m{number} {{<<: [{', '.join([f'*m{number - 1}'] * 10)}]}}\n" for number in range(1, depth)]
    return "m0: &m0 {k: v}\n" + "".join(lines)


def _guardrail(rule: str) -> str:
    return GUARDRAIL.replace("SCHEMA", f"{{data: {{schema: {{a: {rule}}}}}}}") + CONFIG


LONG = "a" * 31 + "!"
SLOW = "^(a+)+$"
REMOTE = '{properties: {spec: {$ref: "ADDRESS"}}}'

# name, the attack, the rule whose error is due (none: harmless, and clean)
ATTACKS: tuple[tuple[str, Make, str | None], ...] = (
    ("nothing at all", lambda folder: None, None),
    # aliases and merges
    ("alias bomb", text(_laughs(9)), "input-within-limits"),
    ("alias bomb in JSON's clothes", text(_laughs(9), "attack.json"), "document-parses"),
    ("alias to itself", text(CONFIG + "data: &a {b: *a}\n"), "document-parses"),
    ("merge bomb", text(_merges(12)), "input-within-limits"),
    ("20,000 anchors", text("".join(f"- &a{number} x\n" for number in range(20_000))), "document-kind-is-known"),
    # nesting
    ("100,000 open brackets", text(b"[" * 100_000), "input-within-limits"),
    ("100,000 open braces", text(b"{a: " * 100_000), "input-within-limits"),
    ("100,000 dashes", text(b"- " * 100_000), "input-within-limits"),
    ("100,000 open brackets in JSON", text(b"[" * 100_000, "attack.json"), "input-within-limits"),
    ("deep nodes in JSON", text(b'{"apiVersion":"v1","kind":"NodeList","items":' + b"[" * 90_000, "attack.json"),
     "input-within-limits"),
    ("deep text in a ConfigMap", text(CONFIG + "data:\n  volcano-scheduler.conf: '" + "[" * 90_000 + "'\n"),
     "scheduler-configuration-parses"),
    ("deep schema of a definition", text(CRD.replace("SCHEMA", "{properties: {a: " * 90 + "{}" + "}}" * 90)),
     "object-matches-schema"),
    ("deep query", text(CONFIG + "data:\n  config.yaml: |\n    rules: [{seriesQuery: '" + "(" * 50_000 + "'}]\n"), ""),
    # size
    ("scalar of 4 MiB", text(CONFIG + f"data: {{a: {'x' * 4 * MIB}}}\n"), ""),
    ("key of 1 MiB", text(CONFIG + f"data: {{? {'x' * MIB} : a}}\n"), ""),
    ("50,000 keys", text(CONFIG + "data: {" + ", ".join(f"k{number}: a" for number in range(50_000)) + "}\n"), ""),
    ("file beyond the limit", text(b" " * (65 * MIB)), "input-within-limits"),
    ("number of 5,000 digits", text(CONFIG + f"data: {{a: {'9' * 5000}}}\n"), ""),
    ("a million replicas", text(JOB.replace("replicas: 1", "replicas: 1000000").replace(": j,", ": k,")), ""),
    ("2^63 replicas", text(JOB.replace("replicas: 1", f"replicas: {2**63}").replace(": j,", ": k,")),
     "object-matches-schema"),
    ("quantity beyond all", text(JOB.replace("cpu: 1}", "cpu: 1e999999999}").replace(": j,", ": k,")), ""),
    ("300 empty files", _huge_folder, None),
    # keys, characters
    ("duplicate keys", text(CONFIG + "data: {a: b}\ndata: {a: c}\n"), "keys-are-unique"),
    ("duplicate keys in JSON", text('{"apiVersion": "v1", "kind": "ConfigMap", "kind": "ConfigMap"}', "attack.json"),
     "keys-are-unique"),
    ("NUL", text(CONFIG + "data: {a: b\0c}\n"), "document-parses"),
    ("NUL, escaped", text(CONFIG.replace("name: a", 'name: "a\\0b"')), "name-is-valid"),
    ("lone surrogate", text(CONFIG + 'data: {a: "\\ud800"}\n'), "document-parses"),
    ("changes of direction in a name", node("\u202ea\u2066"), "name-is-valid"),
    ("changes of direction in a value", text(CONFIG + "data: {a: '\u202egpj.exe'}\n"), ""),
    ("terminal escape in a name", node("\x1b[31mred\x1b]0;owned\x07"), "name-is-valid"),
    ("C1 control in a name", node("a\x9b31m"), "name-is-valid"),
    ("line break in a name", node("a\n---\nkind: Pod"), "name-is-valid"),
    ("workflow command in a name", node("a\n::error file=x::owned"), "name-is-valid"),
    ("markup in a name", node("<script>alert(1)</script>"), "name-is-valid"),
    ("terminal escape in a kind", text('{apiVersion: v1, kind: "a\\e[31m", metadata: {name: a}}'), "api-is-served"),
    ("terminal escape in a label", text(NODE.replace("NAME", "b").replace("rack: a", 'rack: "\\e[31m"')), ""),
    ("terminal escape in a file's name", text("a: b\n", "\x1b[31mred.yaml"), "document-kind-is-known"),
    ("line break in a file's name", text("a: b\n", "a\n::error::owned.yaml"), "document-kind-is-known"),
    ("change of direction in a file's name", text("a: b\n", "\u202ea.yaml"), "document-kind-is-known"),
    ("file's name that is no UTF-8", text("a: b\n", os.fsdecode(b"\xff\x1b.yaml")), "document-kind-is-known"),
    ("terminal escape in the environment's name", environment("name: case", 'name: "\\e[31mcase"'), ""),
    ("path in the environment's name", environment("name: case", "name: ../../../case"), ""),
    ("path in an object's name", text(ROLE.replace("NAME", "../../../../owned")), "name-is-valid"),
    ("path in an object's namespace", text(CONFIG.replace("name: a", "name: a, namespace: ../../..")), ""),
    ("tag", text("a: !!python/object/apply:os.system [id]\n"), "document-parses"),
    # references
    *((f"$ref to {address}", text(CRD.replace("SCHEMA", REMOTE.replace("ADDRESS", address))), "")
      for address in ("http://127.0.0.1:9/x.json", "https://example.com/x.json", "file:///etc/passwd", "/etc/passwd")),
    ("$ref to itself", text(CRD.replace("SCHEMA", '{$ref: "#"}')), ""),
    # patterns
    ("slow pattern of a tier", environment("label: rack", f"label: rack, pattern: '{SLOW}'"), ""),
    ("pattern of a tier that counts high",
     environment("label: rack", "label: rack, pattern: '^((a{1,500}){1,500}){1,500}$'"), ""),
    ("slow pattern of a guardrail", text(_guardrail(f"{{regex: '{SLOW}'}}") + f"data: {{a: {LONG}}}\n"),
     "guardrail/a"),
    ("slow pattern of a definition", text(CRD.replace("SCHEMA", "{properties: {spec: {properties: {x: {type: string, "
     f"pattern: '{SLOW}'}}}}}}}}").replace("x: 1", f"x: {LONG}")), ""),
    ("slow pattern of a HyperNode", text(
        "{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, metadata: {name: h}, spec: {tier: 1, members: "
        f"[{{type: Node, selector: {{regexMatch: {{pattern: '{SLOW}'}}}}}}]}}}}\n---\n"
        + NODE.replace("NAME", "a" * 31 + "-")), ""),
    ("look-behind in a tier", environment("label: rack", "label: rack, pattern: '(?<=a)b'"), ""),
    # folders and links
    ("extends the root", _extends("/"), "extends-stays-inside"),
    ("extends what is above", _extends("../../../../../../etc"), "extends-stays-inside"),
    ("extends the project", _extends(".."), "extends-stays-inside"),
    ("extends itself", _extends("."), "extends-stays-inside"),
    ("extends through a link", _extends_link, "extends-stays-inside"),
    ("extends in a circle", _extends_each_other, "extends-stays-inside"),
    ("extends 60 deep", _extends_deeply, ""),
    ("link to a device", link("attack.yaml", "/dev/zero"), "document-parses"),
    ("link to itself", link("attack.yaml", "attack.yaml"), "document-parses"),
    ("link to what is no YAML", link("attack.yaml", "/etc/passwd"), ""),
    ("folder that links to what is above", link("loop", ".."), None),
    ("pipe", _fifo, "document-parses"),
    # names that differ in case only
    ("names that differ in case", text(ROLE.replace("NAME", "reader") + "---\n" + ROLE.replace("NAME", "Reader")), ""),
    ("files that differ in case", text(CONFIG, "NODES.yaml"), ""),
)  # fmt: skip


def _project(root: Path, number: int, make: Make) -> Path:
    folder = root / f"{number:03}"
    for name in ("base", "case", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "Pulumi.yaml").touch()
    for name in ("base", "case"):
        (folder / name / "environment.yaml").write_text(ENVIRONMENT)
        (folder / name / "nodes.yaml").write_text(NODE.replace("NAME", "n"))
        (folder / name / "jobs.yaml").write_text(f"{NAMESPACE}---\n{JOB}")
    make(folder / "case")
    return folder


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of each attack, by its name."""
    root = tmp_path_factory.mktemp("attacks")
    folders = [str(_project(root, number, make)) for number, (_, make, _) in enumerate(ATTACKS)]
    command = [sys.executable, "-m", "tests.attacked", *folders]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=600)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: record for (name, _, _), record in zip(ATTACKS, told, strict=True)}


@pytest.mark.parametrize(("name", "due"), [(name, due) for name, _, due in ATTACKS], ids=[name for name, *_ in ATTACKS])
def test_an_attack_ends_in_findings(records: dict[str, Any], name: str, due: str | None) -> None:
    record = records[name]

    assert record["ended"] == 0, "killed: it hung, or took too much memory"
    assert record["ran"].keys() == set(COMMANDS)
    codes = {command: code for command, (code, _, _) in record["ran"].items()}
    assert set(codes.values()) <= {0, 1}, (codes, [err for _, _, err in record["ran"].values() if err][:1])
    found = json.loads(record["ran"]["check case --format json"][1])["findings"]
    errors = {each["rule"] for each in found if each["severity"] == "error" and not each["waived"]}
    assert (codes["check case"], codes["compile case -o -"]) == (int(bool(errors)),) * 2
    if due is None:
        assert not errors
    elif due:
        assert due in errors


@pytest.mark.parametrize("name", [name for name, *_ in ATTACKS])
def test_an_attack_reaches_neither_the_network_nor_a_file_that_nobody_asked_for(
    records: dict[str, Any], name: str
) -> None:
    assert records[name]["touched"] == []


@pytest.mark.parametrize("name", [name for name, *_ in ATTACKS])
def test_an_attack_says_nothing_that_a_terminal_obeys(records: dict[str, Any], name: str) -> None:
    obeyed = {command: OBEYED.findall(out + err)[:3] for command, (_, out, err) in records[name]["ran"].items()}

    assert {command: found for command, found in obeyed.items() if found} == {}
