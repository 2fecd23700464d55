"""`check --format sarif` and `--format github`, as a real process: for machines that read them, whatever names hold."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from basalt.findings import Finding, Severity, Source
from basalt.reporting import github
from basalt.rules import RULES
from tests.test_cli import ENVIRONMENT, QUEUE, ROOT, basalt

SCHEMA = json.loads((ROOT / "tests" / "data" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
for name in ("run", "toolComponent"):
    del SCHEMA["definitions"][name]["properties"]["language"]["pattern"]  # closes a bracket that nothing opened
VALIDATOR = jsonschema_rs.Draft4Validator(SCHEMA, validate_formats=True)
WAIVED = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: waived
  annotations: {basalt.dev/waive: "queue-parent-exists: made by hand, see OPS-7"}
spec: {parent: nowhere}
"""
AMBIGUOUS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: d}\ndata: {a: no}\n"
HOSTILE = "a\n::error::x\r%0A::stop-commands::t\x1b[31m\u202e\u00e9\u4e16 {0} [x](1) ##[error]"


def sarif(*arguments: str, cwd: Path, code: int = 0) -> dict[str, Any]:
    """The only run of the log, which is what the schema says."""
    done = basalt("check", *arguments, "--format", "sarif", cwd=cwd)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.isascii()
    log = json.loads(done.stdout)
    assert [error.message for error in VALIDATOR.iter_errors(log)] == []
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def commands(*arguments: str, cwd: Path, code: int = 0) -> list[str]:
    """The lines, every one of which is a workflow command that nothing else can hide in."""
    done = basalt("check", *arguments, "--format", "github", cwd=cwd)
    assert (done.returncode, done.stderr) == (code, "")
    lines = done.stdout.split("\n")
    assert lines.pop() == ""
    form = re.compile(r"::(error|warning|notice) file=[^,:]+,line=\d+,col=\d+,title=[^,:]+::[^\x00-\x1f\x7f-\x9f]+")
    assert [line for line in lines if not form.fullmatch(line)] == []
    return lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An error, a waived error and a warning, in a file and folder whose names need encoding."""
    (tmp_path / "a b").mkdir()
    text = "---\n".join((QUEUE + "{parent: reserch}\n", WAIVED, AMBIGUOUS))
    (tmp_path / "a b" / "50%:ü,#.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_sarif_of_a_clean_environment_names_every_rule() -> None:
    run = sarif("seed", cwd=ROOT)
    driver = run["tool"]["driver"]

    assert run["results"] == []
    assert (driver["name"], [rule["id"] for rule in driver["rules"]]) == ("Basalt", list(RULES))
    assert run["automationDetails"] == {"id": "basalt/seed/"}
    levels = {rule["id"]: rule["defaultConfiguration"]["level"] for rule in driver["rules"]}
    assert {levels[name] for name in RULES if RULES[name].severity is Severity.WARNING} == {"warning"}
    for rule in driver["rules"]:
        assert 0 < len(rule["shortDescription"]["text"]) <= 1024, rule["id"]
        assert 0 < len(rule["fullDescription"]["text"]) <= 1024, rule["id"]
        assert rule["help"]["markdown"] == RULES[rule["id"]].page


def test_sarif_tells_place_object_pointer_and_way_out(folder: Path) -> None:
    run = sarif(".", cwd=folder, code=1)
    error = next(each for each in run["results"] if each["level"] == "error" and not each["suppressions"])

    assert error["ruleId"] == "queue-parent-exists"
    assert run["tool"]["driver"]["rules"][error["ruleIndex"]]["id"] == "queue-parent-exists"
    assert error["message"]["text"] == (
        "Queue/q spec.parent: the parent reserch is not declared\nhint: known: root, waived"
    )
    (location,) = error["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/50%25%3A%C3%BC%2C%23.yaml"},
        "region": {"startLine": 4, "startColumn": 8},
    }
    assert location["logicalLocations"] == [
        {"name": "q", "fullyQualifiedName": "scheduling.volcano.sh/v1beta1/Queue/q", "kind": "object"},
        {"name": "parent", "fullyQualifiedName": "/spec/parent", "kind": "value"},
    ]


def test_sarif_suppresses_what_is_waived_and_says_why(folder: Path) -> None:
    results = sarif(".", cwd=folder, code=1)["results"]

    suppressed = {each["message"]["text"].split()[0]: each["suppressions"] for each in results}
    assert suppressed["Queue/waived"] == [{"kind": "inSource", "justification": "made by hand, see OPS-7"}]
    assert suppressed["Queue/q"] == []
    assert {each["level"] for each in results} == {"error", "warning"}


def test_sarif_lists_the_rules_that_were_not_judged(folder: Path) -> None:
    run = sarif(".", cwd=folder, code=1)
    (invocation,) = run["invocations"]

    assert invocation["executionSuccessful"] is True
    notes = {each["associatedRule"]["id"]: each for each in invocation["toolExecutionNotifications"]}
    assert "no node inventory" in notes["guarantees-fit-cluster"]["message"]["text"]
    for name, note in notes.items():
        assert run["tool"]["driver"]["rules"][note["associatedRule"]["index"]]["id"] == name


def test_sarif_fingerprints_stay_while_lines_move_and_differ_between_findings(folder: Path) -> None:
    def prints() -> list[str]:
        return [
            each["partialFingerprints"]["objectAndPointer/v1"] for each in sarif(".", cwd=folder, code=1)["results"]
        ]

    before = prints()
    (path,) = (folder / "a b").iterdir()
    path.write_text("# a line\n\n" + path.read_text(encoding="utf-8").replace("reserch", "rsearch"), encoding="utf-8")

    assert prints() == before
    assert len(set(before)) == len(before)


def test_sarif_tells_twins_at_one_pointer_apart(tmp_path: Path) -> None:
    (tmp_path / "input.yaml").write_text("a: [\n---\n")
    shutil.copy(tmp_path / "input.yaml", tmp_path / "other.yaml")
    (tmp_path / "twins.yaml").write_text((QUEUE + "{parent: x}\n---\n") * 2)

    results = sarif(".", cwd=tmp_path, code=1)["results"]

    assert len({each["partialFingerprints"]["objectAndPointer/v1"] for each in results}) == len(results) >= 3


def test_sarif_knows_guardrails_and_files_outside_the_folder(tmp_path: Path) -> None:
    guardrail = """\
apiVersion: basalt.dev/v1alpha1
kind: Guardrail
metadata: {name: no-data}
spec: {match: {kinds: [ConfigMap], namespaces: [d]}, severity: info, schema: {data: {type: dict, maxlength: 0}}}
"""
    (tmp_path / "stacks").mkdir()
    text = "---\n".join((ENVIRONMENT + "{}\n", guardrail, AMBIGUOUS.replace("no}", '"no"}')))
    (tmp_path / "stacks" / "environment.yaml").write_text(text)
    (tmp_path / "here").mkdir()

    run = sarif("../stacks", cwd=tmp_path / "here", code=1)

    (result,) = (each for each in run["results"] if each["ruleId"] != "order-is-complete")  # of the namespace d
    assert (result["ruleId"], result["level"]) == ("guardrail/no-data", "note")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "guardrail/no-data"
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "../stacks/environment.yaml"


def test_github_writes_one_command_a_finding(folder: Path) -> None:
    file = "file=a b/50%25%3Aü%2C#.yaml"
    first, second, third = commands(".", cwd=folder, code=1)

    assert first == (
        f"::error {file},line=4,col=8,title=queue-parent-exists::"
        "Queue/q spec.parent: the parent reserch is not declared%0Ahint: known: root, waived"
    )
    assert second.startswith(f"::notice {file},line=11,col=8,title=queue-parent-exists (waived)::Queue/waived ")
    assert third.startswith(f"::warning {file},line=16,col=8,title=scalar-is-unambiguous::ConfigMap/d/c ")


def test_github_writes_an_information_as_a_notice() -> None:
    found = Finding("a", Severity.INFO, "b", "", None, (), Source("c.yaml", 1, 2))

    assert github.report([found]) == "::notice file=c.yaml,line=1,col=2,title=a::b\n"


def test_a_clean_folder_writes_nothing_for_github() -> None:
    assert commands("seed", cwd=ROOT) == []


def test_hostile_names_stay_inside_their_place(tmp_path: Path) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    files = {"plain.json": {**queue, "metadata": {"name": HOSTILE}, "spec": {"parent": HOSTILE, HOSTILE: 1}}}
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value))
    (tmp_path / "x\n::error::y,z:\x1b[31m%.yaml").write_text(QUEUE + "{parent: nowhere}\n")

    run = sarif(".", cwd=tmp_path, code=1)
    lines = commands(".", cwd=tmp_path, code=1)

    uris = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]}
    assert uris == {"plain.json", "x%0A%3A%3Aerror%3A%3Ay%2Cz%3A%1B%5B31m%25.yaml"}
    assert "](1)" in json.dumps(run["results"])
    assert not re.search(r"(?<!\\)\[x\]\(1\)", "".join(each["message"]["text"] for each in run["results"]))
    assert len(lines) == len(run["results"])
    assert {line.split(",line=")[0] for line in lines} == {
        "::error file=plain.json",
        "::error file=x%0A%3A%3Aerror%3A%3Ay%2Cz%3A\\x1b[31m%25.yaml",
    }
    assert "\u202e" not in "".join(lines)


def test_secrets_stay_out_of_both(tmp_path: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: d}\nstringData: {password: swordfish4711}\n"
    job = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: d}\ndata: {password: swordfish4711, x: [1]}\n"
    )
    (tmp_path / "input.yaml").write_text(f"{secret}---\n{job}")

    for form in ("sarif", "github"):
        done = basalt("check", ".", "--format", form, cwd=tmp_path)
        assert done.returncode == 1
        assert "secret-is-not-literal" in done.stdout
        assert "swordfish" not in done.stdout


@pytest.mark.parametrize("form", ["sarif", "github"])
def test_exit_codes_are_those_of_the_text(tmp_path: Path, form: str) -> None:
    (tmp_path / "input.yaml").write_text(AMBIGUOUS)

    assert basalt("check", "input.yaml", "--format", form, cwd=tmp_path).returncode == 0
    assert basalt("check", "input.yaml", "--format", form, "--strict", cwd=tmp_path).returncode == 1
    missing = basalt("check", "output.yaml", "--format", form, cwd=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, "")


@pytest.mark.parametrize("form", ["sarif", "github"])
@pytest.mark.parametrize(
    "command", [["compile", "seed"], ["topology", "seed"], ["explain", "queue-exists"], ["schema", "Team"]]
)
def test_the_formats_are_for_check_alone(command: list[str], form: str) -> None:
    done = basalt(*command, "--format", form, cwd=ROOT)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"invalid choice: '{form}'; known: json, text" in done.stderr
    assert done.stderr.count("\n") == 1
