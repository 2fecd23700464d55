"""Input that nobody means well with: every text, folder and value ends in findings, never in an exception."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from basalt.compiling import Compilation, compile_folder
from basalt.loading.sources import Misuse
from basalt.reporting import json_format, text

Found = list[tuple[str, int]]  # rule, line

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
JOB = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\n"
TASKS = "spec:\n  tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: b, image: c:1}]}}}]\n"
ENVIRONMENT = "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: case}\n"
TRAINING_JOB = "apiVersion: basalt.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: b}\n"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: SCHEMA}}]
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {x: 1}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is compiled, in a project of its own, and the current one."""
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "case").mkdir()
    monkeypatch.chdir(tmp_path / "case")
    return tmp_path / "case"


def shown(compilation: Compilation) -> str:
    """Everything that a user can get to see of the findings."""
    files = {file.name: file for file in compilation.files}
    report = text.report(
        compilation.findings, compilation.skipped, lambda name, line: files[name].line(line), text.Paint(is_on=False)
    )
    found = json_format.report(compilation.name, compilation.findings, compilation.skipped)
    return report + json_format.text(found)


def found(compilation: Compilation) -> Found:
    shown(compilation).encode()
    return [(finding.rule, finding.source.line) for finding in compilation.findings]


def compiled(folder: Path, content: str | bytes, name: str = "input.yaml") -> Compilation:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return compile_folder(Path(os.curdir))


@pytest.mark.parametrize(
    ("content", "findings"),
    [  # the document as a whole
        ("", []),
        ("# nothing\n", []),
        ("---\n---\n...\n", []),
        ("null\n--- ~\n", []),
        ("hello\n", [("document-kind-is-known", 1)]),
        ("--- 5\n--- [a]\n--- {}\n", [("document-kind-is-known", line) for line in (1, 2, 3)]),
        ("apiVersion: 1\nkind: Job\n", [("document-kind-is-known", 1)]),
        ("apiVersion: v1\nkind: {a: b}\n", [("document-kind-is-known", 2)]),
        ("apiVersion: ''\nkind: ''\n", [("document-kind-is-known", 1)]),
        ("apiVersion: /\nkind: a\nmetadata: {name: a}\n", [("api-is-served", 1)]),
        ("apiVersion: a/b/c\nkind: a\nmetadata: {name: a}\n", [("api-is-served", 1)]),
        ("apiVersion: basalt.dev\nkind: Team\n", [("document-kind-is-known", 1)]),
        # lists
        ("apiVersion: v1\nkind: List\n", []),
        ("apiVersion: v1\nkind: List\nitems:\n", []),
        ("apiVersion: v1\nkind: List\nitems: {a: 1}\n", [("object-matches-schema", 3)]),
        ("apiVersion: v1\nkind: List\nitems: a\n", [("object-matches-schema", 3)]),
        ("apiVersion: v1\nkind: List\nitems:\n- 1\n- null\n- []\n", [("document-kind-is-known", n) for n in (4, 5, 6)]),
        ("{apiVersion: v1, kind: List, items: [" * 60 + "]}" * 60, []),
        # metadata
        (CONFIG.replace("{name: a}", "[a]"), [("object-matches-schema", 3)]),
        (CONFIG.replace("{name: a}", "a"), [("object-matches-schema", 3)]),
        (CONFIG.replace("{name: a}", ""), [("name-is-valid", 3)]),
        (CONFIG.replace("name: a", "name: 5"), [("object-matches-schema", 3)]),
        (CONFIG.replace("name: a", "name: [a]"), [("object-matches-schema", 3)]),
        (CONFIG.replace("name: a", "name: null, namespace: null, labels: null"), [("name-is-valid", 3)]),
        (CONFIG.replace("name: a", "name: a, namespace: 5"), [("object-matches-schema", 3)]),
        (CONFIG.replace("name: a", "name: a, labels: [a]"), [("object-matches-schema", 3)]),
        (CONFIG.replace("name: a", "name: a, annotations: {basalt.dev/waive: [a]}"), [("object-matches-schema", 3)]),
        (CONFIG.replace("name: a", "name: a, annotations: {basalt.dev/waive: ';;:;'}"), [("waiver-is-sound", 3)]),
        (CONFIG.replace("name: a", 'name: "\\U0001F600"'), [("name-is-valid", 3)]),
        ("{apiVersion: example.com/v1, kind: A, metadata: [a]}", [("object-matches-schema", 1)]),
        # specs
        (JOB + "spec: hi\n", [("object-matches-schema", 4)]),
        (JOB + "spec: [a]\n", [("object-matches-schema", 4)]),
        (JOB + TASKS + '  minAvailable: "+-5"\n', [("object-matches-schema", 6)]),
        (JOB + TASKS + f'  minAvailable: "{"9" * 5000}"\n', [("object-matches-schema", 6)]),
        (JOB + TASKS + '  minAvailable: "\u0663"\n', [("object-matches-schema", 6)]),
        (CONFIG + "data: {" + "a: {" * 190 + "}" * 190 + "}\n", [("object-matches-schema", 4)]),
        ("{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {taints: {a: b}}}", [("object-matches-schema", 1)]),
        ("{apiVersion: v1, kind: Node}", [("name-is-valid", 1)]),
        ("{apiVersion: v1, kind: Node, metadata: {name: ''}}", [("name-is-valid", 1)]),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: 5\n",
         [("object-matches-schema", 4), ("secret-is-not-literal", 4)]),
        # documents of Basalt
        (ENVIRONMENT + "spec:\n", []),
        (ENVIRONMENT + "spec: []\n", [("document-matches-schema", 4)]),
        (ENVIRONMENT + "spec: {extends: ../b}\n", [("document-matches-schema", 4)]),
        (ENVIRONMENT + "spec: {extends: [5, null, '']}\n", [("document-matches-schema", 4)] * 3),
        (ENVIRONMENT + 'spec: {extends: ["a\\0b"]}\n', [("extends-stays-inside", 4)]),
        (ENVIRONMENT + f"spec: {{extends: [{'a' * 5000}]}}\n", [("extends-stays-inside", 4)]),
        (ENVIRONMENT + "spec: {kubernetes: {version: []}, volcano: 5}\n", [("document-matches-schema", 4)] * 2),
        (ENVIRONMENT + "spec: {topology: {tiers: [null, 5, {}, {name: a, label: b, pattern: 5}]}}\n",
         [("document-matches-schema", 4)] * 5),
        (ENVIRONMENT.replace("{name: case}", "[]"), [("document-matches-schema", 3)]),
        (ENVIRONMENT.replace("{name: case}", ""), [("document-matches-schema", 1)]),
        ("apiVersion: basalt.dev/v1alpha1\nkind: TrainingJob\n", [("document-matches-schema", 1)] * 2),
        (TRAINING_JOB + "spec: {framework: plain, roles: {worker: [1]}, ttlAfterFinished: {}}\n",
         [("document-matches-schema", 4)] * 2),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_found_at_its_line(folder: Path, content: str, findings: Found) -> None:
    assert found(compiled(folder, content)) == findings


def _laughs(count: int) -> bytes:
    """Lines that each stand for ten times what the line before stands for."""
    lines = [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, count)]
    return f"a0: &a0 [{', '.join('0' * 10)}]\n{''.join(lines)}".encode()


@pytest.mark.parametrize(
    ("content", "findings"),
    [  # encodings and characters
        (b"\xef\xbb\xbf" + CONFIG.encode(), []),
        (CONFIG.replace("\n", "\r\n").encode(), []),
        (CONFIG.encode("utf-16"), [("document-parses", 1)]),
        (CONFIG.encode("utf-16-be"), [("document-parses", 1)]),
        (CONFIG.encode() + b"data: {a: caf\xe9}\n", [("document-parses", 4)]),
        (CONFIG.encode() + b"data: {a: '\xed\xa0\x80'}\n", [("document-parses", 4)]),  # a surrogate as UTF-8
        (CONFIG.encode() + b"data: {a: \0}\n", [("document-parses", 4)]),
        (CONFIG.encode() + "data: {a: '\u00e9\u00e9\x07'}\n".encode(), [("document-parses", 4)]),
        (CONFIG.encode() + b'data: {a: "\\ud800"}\n', [("document-parses", 4)]),
        (b"\x89PNG\r\n\x1a\n\0\0", [("document-parses", 1)]),
        # structure
        (b"a: &a [*a]\n", [("document-parses", 1)]),
        (b"a: *b\n", [("document-parses", 1)]),
        (b"? [a]\n: b\n", [("document-parses", 1)]),
        (b"a: !!python/object/apply:os.system [id]\n", [("document-parses", 1)]),
        (b"a: !!binary aGk=\n", [("document-parses", 1)]),
        (b"a: !!int x\n", [("document-parses", 1)]),
        (b"a: !!seq {b: c}\n", [("document-parses", 1)]),
        (b"a: {<<: 5}\n", [("document-parses", 1)]),
        (b"%YAML 3.0\n---\na: b\n", [("document-parses", 1)]),
        (b"a: " + b"[" * 100_000, [("input-within-limits", 1)]),
        (b"- " * 100_000, [("input-within-limits", 1)]),
        (b"".join(b" " * depth + b"a:\n" for depth in range(300)), [("input-within-limits", 201)]),
        (_laughs(9), [("input-within-limits", 6)]),
        (b'"a": 1\na: 2\n', [("document-kind-is-known", 1), ("keys-are-unique", 2)]),
    ],
)  # fmt: skip
def test_a_text_that_is_no_yaml_is_found_at_its_line(folder: Path, content: bytes, findings: Found) -> None:
    assert found(compiled(folder, content)) == findings


NODES = """\
{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "x": @}]}
"""


@pytest.mark.parametrize(
    ("content", "findings"),
    [
        ("", []),
        (" \n", []),
        ("null", []),
        ("[1]", [("document-kind-is-known", 1)]),
        ("[" * 100_000, [("input-within-limits", 1)]),
        ('{"a":' * 300, [("input-within-limits", 1)]),
        ('{"a": 1,\n}', [("document-parses", 2)]),
        ('{"a": "\\ud800"}', [("document-parses", 1)]),
        ('{"a": "\\udc00\\ud800"}', [("document-parses", 1)]),
        ('{"a":\n' + "9" * 4301 + "}", [("document-parses", 2)]),
        ('{"a":\n1e999}', [("document-parses", 2)]),
        ('{"a":\n-Infinity}', [("document-parses", 2)]),
        ('{"a": "\x00"}', [("document-parses", 1)]),
        ('{"a": "b', [("document-parses", 1)]),
        ('{"a": 01}', [("document-parses", 1)]),
        ("\ufeff\ufeff{}", [("document-parses", 1)]),
        (CONFIG, [("document-parses", 1)]),
        (NODES.replace("@", "[" * 100_000 + "]" * 100_000), [("input-within-limits", 1)]),
        (NODES.replace("@", '"\\ud800"'), [("document-parses", 1)]),
        (NODES.replace("@", '1, "x": 2'), [("keys-are-unique", 1)]),
        (NODES.replace("@", "9" * 5000), [("document-parses", 1)]),
        (NODES.replace('{"name": "a"}, "x": @', "null"), [("name-is-valid", 1)]),
        (NODES.replace('{"name": "a"}, "x": @', '{"name": 5}'), [("object-matches-schema", 1)]),
        (NODES.replace('"x": @', '"spec": null, "status": {"capacity": {"a": true}}'), [("object-matches-schema", 1)]),
    ],
)  # fmt: skip
def test_a_text_that_is_no_json_is_found_at_its_line(folder: Path, content: str, findings: Found) -> None:
    assert found(compiled(folder, content, "input.json")) == findings


@pytest.mark.parametrize(
    "schema",
    [
        "5", "[]", '{$ref: "#"}', '{$ref: "#/definitions/foo"}', "{$ref: 5}", '{$ref: "https://example.com/x.json"}',
        '{properties: {spec: {$ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}}',
        "{type: foo}", "{type: [a], nullable: true}", "{properties: 5}", "{properties: {spec: null}}",
        "{properties: {spec: {items: [1], anyOf: [1, null], required: x, minimum: a}}}", '{not: {$ref: "#"}}',
        "{properties: {spec: {x-kubernetes-validations: [5, {}, {rule: 5}, {rule: ''}, {rule: 'self.x >'}]}}}",
        '{properties: {spec: {properties: {x: {type: string, pattern: "(?P<a>b"}}}}}',
        "{properties: {spec: {properties: {x: {enum: []}}}}}", "{x-kubernetes-embedded-resource: true, properties: 5}",
        "{properties: {metadata: {properties: {name: {maxLength: 0}}}}}",
        "{" + "properties: {a: {" * 80 + "}}" * 80 + "}",
    ],
)  # fmt: skip
def test_a_definition_of_anything_is_taken_or_left(folder: Path, schema: str) -> None:
    shown(compiled(folder, CRD.replace("SCHEMA", schema)))


GUARDRAIL = """\
apiVersion: basalt.dev/v1alpha1
kind: Guardrail
metadata: {name: a}
spec: {match: {kinds: [ConfigMap]}, schema: SCHEMA}
---
"""


@pytest.mark.parametrize(
    "schema",
    [
        "{}", "{data: 5}", "{data: null}", "{data: []}", "{data: {type: foo}}", "{data: {foo: 1}}", "{data: ref}",
        "{data: {schema: ref}}", "{data: {min: a}}", "{data: {allowed: 5}}", "{data: {regex: '('}}",
        "{data: {regex: 5}}",
        "{data: {check_with: foo}}", "{data: {coerce: int}}", "{data: {rename: x}}", "{data: {purge_unknown: true}}",
        "{data: {contains: [[1]]}}", "{data: {items: [{type: string}]}}", "{data: {dependencies: {a: 5}}}",
        "{data: {excludes: 5}}", "{data: {anyof: [5]}}", "{data: {anyof: [{type: string}, {type: list}]}}",
        "{data: {keysrules: {regex: '[b-z]'}, valuesrules: {type: integer}}}", "{data: {required: yes}}",
        "{data: {schema: {a: " + "{schema: {a: " * 60 + "{}" + "}}" * 60 + "}}}",
    ],
)  # fmt: skip
def test_a_guardrail_of_anything_judges_or_is_found(folder: Path, schema: str) -> None:
    shown(compiled(folder, GUARDRAIL.replace("SCHEMA", schema) + CONFIG + "data: {a: b}\n"))


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)  # relative: a path of a socket is short


@pytest.mark.parametrize(
    ("make", "findings"),
    [
        (os.mkfifo, [("document-parses", 1)]),
        (_socket, [("document-parses", 1)]),
        (lambda path: path.symlink_to("/dev/zero"), [("document-parses", 1)]),
        (lambda path: path.symlink_to("nowhere"), [("document-parses", 1)]),
        (lambda path: path.symlink_to(path.name), [("document-parses", 1)]),
        (lambda path: path.mkdir(), []),
    ],
    ids=["fifo", "socket", "device", "link to nothing", "link to itself", "folder"],
)
def test_what_is_no_file_is_a_finding(folder: Path, make: Callable[[Path], None], findings: Found) -> None:
    make(folder / "input.yaml")

    assert found(compile_folder(Path(os.curdir))) == findings


def test_a_folder_called_like_a_file_is_read_and_a_link_to_a_file_too(folder: Path) -> None:
    (folder / "a.yaml").mkdir()
    (folder / "a.yaml" / "b.yaml").write_text(CONFIG)
    (folder / "link.yaml").symlink_to("a.yaml/b.yaml")

    assert found(compile_folder(Path(os.curdir))) == [("object-is-declared-once", 3)]


def test_a_name_that_is_no_text_can_be_reported(folder: Path) -> None:
    (folder / os.fsdecode(b"\xff.yaml")).write_text("a: b\n")

    assert found(compile_folder(Path(os.curdir))) == [("document-kind-is-known", 1)]


@pytest.mark.parametrize("root", ["nowhere", "nowhere.yaml"])
def test_what_does_not_exist_is_misuse(folder: Path, root: str) -> None:
    with pytest.raises(Misuse, match="cannot read nowhere"):
        compile_folder(Path(root))


def test_a_command_that_needs_an_environment_says_that_there_is_none(folder: Path) -> None:
    (folder / "input.yaml").write_text(CONFIG)

    compilation = compile_folder(Path(os.curdir), needs_environment=True)

    assert [(finding.rule, finding.message) for finding in compilation.findings] == [
        ("one-environment", "no Environment document")
    ]


def _link_out(folder: Path) -> None:
    (folder.parent / "out").symlink_to("/")
    (folder / "input.yaml").write_text(ENVIRONMENT + "spec: {extends: [../out/etc]}\n")


def _link_round(folder: Path) -> None:
    (folder.parent / "back").symlink_to("case")
    (folder / "input.yaml").write_text(ENVIRONMENT + "spec: {extends: [../back]}\n")


def _link_within(folder: Path) -> None:
    (folder.parent / "base").mkdir()
    (folder.parent / "base" / "a.yaml").write_text(CONFIG)
    (folder.parent / "link").symlink_to("base")
    (folder / "input.yaml").write_text(ENVIRONMENT + "spec: {extends: [../link, ../base]}\n")


@pytest.mark.parametrize(
    ("make", "findings"),
    [(_link_out, [("extends-stays-inside", 4)]), (_link_round, [("extends-stays-inside", 4)]), (_link_within, [])],
)
def test_extends_follows_links_to_where_they_really_lead(
    folder: Path, make: Callable[[Path], None], findings: Found
) -> None:
    make(folder)

    assert found(compile_folder(Path(os.curdir))) == findings


def test_layers_are_read_in_order_each_file_once(folder: Path) -> None:
    layers = (("../b", "[]"), ("../a", "[../b]"), ("../a/inner", "[]"), (".", "[../a/inner, ../a]"))
    for number, (name, extends) in enumerate(layers):
        (folder / name).mkdir(exist_ok=True)
        body = f"spec: {{extends: {extends}, queues: {{q: {{priority: {number}}}, q{number}: {{}}}}}}\n"
        (folder / name / "environment.yaml").write_text(ENVIRONMENT + body)

    environment = compile_folder(Path(os.curdir)).index.environment

    assert environment is not None
    assert [layer.file.name for layer in environment.layers] == [
        "../a/inner/environment.yaml", "../b/environment.yaml", "../a/environment.yaml", "environment.yaml",
    ]  # fmt: skip
    assert environment.spec["queues"] == {"q": {"priority": 3}, "q2": {}, "q0": {}, "q1": {}, "q3": {}}


SECRET = "hunter2-and-more"


@pytest.mark.parametrize(
    "content",
    [
        # found as a secret
        CONFIG + f"data: {{password: {SECRET}}}\n",
        CONFIG + f"data:\n  dex.yaml: |\n    clientSecret: {SECRET}\n",
        f"{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, stringData: {{a: {SECRET}}}}}\n",
        f"{{apiVersion: v1, kind: Secret, metadata: {{name: A_b}}, stringData: {{a: {SECRET}}}}}\n",
        # beside another mistake in its line
        f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: A_b}}, data: {{token: {SECRET}}}}}\n",
        f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, dta: {{token: {SECRET}}}}}\n",
        JOB + f"spec: {{tasks: [{{name: w, replica: 1, env: {{name: TOKEN, value: {SECRET}}}}}]}}\n",
        # itself wrong, by form, by type, by what a guardrail allows
        GUARDRAIL.replace("SCHEMA", "{data: {schema: {pwd: {max: 1}}}}") + CONFIG + f"data: {{pwd: {SECRET}}}\n",
        GUARDRAIL.replace("SCHEMA", "{data: {schema: {pwd: {allowed: [x]}}}}") + CONFIG + f"data: {{pwd: {SECRET}}}\n",
        f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData:\n  a: [{SECRET}]\n",
        f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ndata: {SECRET}\n",
        CONFIG.replace("name: a", f"name: a, labels: {{token: '{SECRET} !'}}"),
        # in a text that cannot be read
        CONFIG + f'data:\n  password: "{SECRET}\n',
        f'apiVersion: v1\nkind: Secret\ndata:\n  a: "{SECRET}\n',
        f"apiVersion: v1\nkind: Secret\ndata:\n  a: {SECRET}\n\tb: c\n",
        CONFIG + f"data:\n  password: {SECRET}\n  password: {SECRET}\n",
    ],
)  # fmt: skip
def test_no_secret_is_ever_shown(folder: Path, content: str) -> None:
    compilation = compiled(folder, content)

    assert compilation.findings
    assert SECRET not in shown(compilation)


@pytest.mark.parametrize("value", ["471147", "0471147", "0x471147", "4_71147", "true471147"])
def test_no_secret_is_shown_by_a_rule_about_its_form(folder: Path, value: str) -> None:
    environment = ENVIRONMENT + "---\n"
    role = f"{{replicas: 1, env: {{DB_PASSWORD: {value}}}}}"
    job = f"{TRAINING_JOB}spec: {{framework: plain, image: a/b:1, roles: {{worker: {role}}}}}\n"

    compilation = compiled(folder, environment + job)

    assert compilation.findings
    assert "71147" not in shown(compilation)


def test_a_secret_in_an_embedded_configuration_is_found_at_its_line(folder: Path) -> None:
    config = "data:\n  a: |\n    x: 1\n    # why\n    password: hunter2\n  b: >-  # folded\n    c: d\n"

    assert found(compiled(folder, CONFIG + config)) == [("secret-is-not-literal", 8)]


QUEUE = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: a}, spec: {SPEC}}"


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        ("priority: 010", 8),
        ("priority: 1_0", 10),
        ("priority: 1e1", 10),
        ("reclaimable: off", False),
        ("reclaimable: y", True),
        ("capability: {cpu: 010}", {"cpu": 8}),
        ("capability: {cpu: 12:30}", {"cpu": "12:30"}),
        ("parent: no", "no"),
        ("parent: 010", "010"),
        ("unknown: yes", "yes"),
    ],
)
def test_an_ambiguous_scalar_becomes_what_its_schema_asks_for(folder: Path, texts: str, value: Any) -> None:
    key = texts.partition(":")[0]
    queue = QUEUE.replace("SPEC", texts)
    wrapped = f"{{apiVersion: v1, kind: List, items: [{{apiVersion: v1, kind: List, items: [{queue}]}}]}}"
    for content in (queue, wrapped):
        (declared,) = compiled(folder, content).objects
        assert declared.value["spec"][key] == value


def test_settling_changes_no_value_that_was_read(folder: Path) -> None:
    compilation = compiled(folder, QUEUE.replace("SPEC", "priority: 010"))

    assert [document.value["spec"] for document in compilation.index.texts] == [{"priority": "010"}]
    assert [declared.value["spec"] for declared in compilation.objects] == [{"priority": 8}]


def test_thousands_of_ambiguous_scalars_in_a_list_cost_no_more_than_they_are(folder: Path) -> None:
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"a{number}"}} for number in range(300)]
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).replace("}}", '}, "immutable": yes}')

    compilation = compiled(folder, content)

    assert {declared.value["immutable"] for declared in compilation.objects} == {True}
    assert len(compilation.findings) == 300
