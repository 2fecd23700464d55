"""The command as a real process: output, exit codes, and what a user meets when something is wrong."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from basalt import __version__

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: "
QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: "


def basalt(*arguments: str, cwd: Path, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "basalt", *arguments]
    surroundings = {**os.environ, **env}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=surroundings, timeout=60, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the environment `seed`, and one with an error."""
    (tmp_path / "Pulumi.yaml").touch()
    shutil.copytree(ROOT / "stacks" / "seed", tmp_path / "stacks" / "seed")
    (tmp_path / "stacks" / "broken").mkdir()
    text = ENVIRONMENT + "\n  queues:\n    vision:\n      parent: reserch\n"
    (tmp_path / "stacks" / "broken" / "environment.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("late", ["argparse", "jsonschema_rs"])
def test_an_interrupt_during_the_imports_is_an_interrupt(project: Path, late: str) -> None:
    (project / "first").mkdir()
    (project / "first" / f"{late}.py").write_text("raise KeyboardInterrupt\n")

    done = basalt("check", "seed", cwd=project, env={"PYTHONPATH": f"{project / 'first'}:{ROOT}"})

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "basalt: interrupted\n")


def test_version_is_one_line(tmp_path: Path) -> None:
    done = basalt("--version", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, f"basalt {__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "basalt: the following arguments are required: COMMAND (see basalt --help)"),
        (["chekc", "seed"], "invalid choice: 'chekc'"),
        (["check"], "basalt check: the following arguments are required: ENV"),
        (["check", "seed", "--fromat", "json"], "unrecognized arguments: --fromat json"),
        (["check", "seed", "--format", "xml"], "invalid choice: 'xml'"),
        (["check", "sed"], "no environment sed: neither a path nor a folder under stacks/; did you mean seed?"),
        (["check", ""], "no environment"),
        (["explain", "qeue-exists"], "no rule qeue-exists; did you mean queue-exists?"),
        (["explain", "seed", "queue/visionn"], "no object queue/visionn; did you mean"),
        (["explain", "seed", "queue/vision", "/spec/deserve"], "did you mean /spec/deserved?"),
        (["explain", "seed", "queue/vision", "spec"], "a JSON pointer starts with /"),
        (["explain", "seed", "networkpolicy/vision-train"], "no object networkpolicy/vision-train"),
        (["explain", "a", "b", "c", "d"], "explain takes RULE, or ENV"),
        (["schema", "Enviroment"], "no document kind Enviroment; did you mean Environment?"),
        (["compile", "seed", "-o", "."], "holds the environment itself"),
        (["compile", "seed", "-o", "stacks"], "holds the environment itself"),
        (["compile", "seed", "-o", "Pulumi.yaml"], "Pulumi.yaml is not a folder"),
        (["compile", "seed", "-o", "Pulumi.yaml/x"], "cannot write Pulumi.yaml/x"),
    ],
)
def test_misuse_is_one_line_on_stderr(project: Path, arguments: list[str], line: str) -> None:
    done = basalt(*arguments, cwd=project)

    assert (done.returncode, done.stdout) == (2, "")
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_clean_environment_exits_with_0(project: Path) -> None:
    done = basalt("check", "seed", cwd=project)

    assert (done.returncode, done.stdout, done.stderr) == (0, "no findings\n", "")


def test_a_finding_shows_place_fact_line_and_way_out(project: Path) -> None:
    done = basalt("check", "broken", cwd=project)

    assert done.returncode == 1
    assert done.stdout.startswith(
        "stacks/broken/environment.yaml:7:7: Queue/vision spec.parent: "
        "the parent reserch is not declared [queue-parent-exists]\n"
        "    7 |       parent: reserch\n"
        "              ^\n"
        "       hint: known: root\n"
        "1 error; "
    )


def test_json_has_the_form_of_the_contract(project: Path) -> None:
    done = basalt("check", "broken", "--format", "json", cwd=project)
    report = json.loads(done.stdout)

    assert done.returncode == 1
    assert report.keys() == {"environment", "findings", "skipped", "summary"}
    assert report["environment"] == "e"
    assert report["findings"] == [
        {
            "rule": "queue-parent-exists",
            "severity": "error",
            "waived": False,
            "message": "the parent reserch is not declared",
            "hint": "known: root",
            "object": {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "namespace": None,
                "name": "vision",
            },
            "pointer": "/spec/parent",
            "source": {"file": "stacks/broken/environment.yaml", "line": 7, "column": 7},
        }
    ]
    assert {"rule": "guarantees-fit-cluster", "reason": "no node inventory"} in report["skipped"]
    assert report["summary"] == {"error": 1, "warning": 0, "info": 0, "waived": 0}


def test_an_environment_is_found_by_name_and_by_path_from_anywhere_in_the_project(project: Path) -> None:
    (project / "deep" / "er").mkdir(parents=True)

    assert basalt("check", "seed", cwd=project / "deep" / "er").returncode == 0
    assert basalt("check", "../../stacks/seed", cwd=project / "deep" / "er").returncode == 0
    assert basalt("check", ".", cwd=project / "stacks" / "seed").returncode == 0


def test_strict_lets_a_warning_fail(tmp_path: Path) -> None:
    (tmp_path / "input.yaml").write_text(
        '{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "x", b: no}}'
    )

    lenient = basalt("check", "input.yaml", cwd=tmp_path)
    strict = basalt("check", "input.yaml", "--strict", cwd=tmp_path)

    assert "warning" in lenient.stdout
    assert (lenient.returncode, strict.returncode) == (0, 1)


def test_an_error_leaves_the_old_output_and_writes_nothing_new(project: Path) -> None:
    assert basalt("compile", "seed", cwd=project).returncode == 0
    before = sorted((project / "build").rglob("*"))
    (project / "stacks" / "seed" / "bad.yaml").write_text("a: [")

    done = basalt("compile", "seed", cwd=project)

    assert done.returncode == 1
    assert "stacks/seed/bad.yaml:1:5" in done.stdout or "stacks/seed/bad.yaml:" in done.stdout
    assert sorted((project / "build").rglob("*")) == before
    assert basalt("compile", "broken", cwd=project).returncode == 1
    assert not (project / "build" / "broken").exists()


def test_compile_writes_one_object_a_file_and_a_list_of_them(project: Path) -> None:
    done = basalt("compile", "seed", "-o", "out", cwd=project)
    stamp = json.loads((project / "out" / "basalt.json").read_text())

    assert done.returncode == 0
    assert done.stdout.endswith("written: out\n")
    assert (project / "out" / "50-topology" / "hypernode.topology.volcano.sh-s0.yaml").exists()
    assert (project / "out" / "90-jobs" / "vision-train" / "job.batch.volcano.sh-resnet.yaml").exists()
    assert stamp["basalt"] == __version__
    assert stamp["inputs"].keys() == {f"stacks/seed/{name}" for name in os.listdir(project / "stacks" / "seed")}
    written = {str(path.relative_to(project / "out")) for path in (project / "out").rglob("*") if path.is_file()}
    assert stamp["outputs"].keys() == written - {"basalt.json"}
    used = {"kubernetes/1.34.json", "volcano/1.15.json", "documents/Team.json", "parts/gpu.json", "charts.lock.json"}
    assert used < stamp["schemas"].keys()
    assert all(
        f"sha256:{hashlib.sha256((ROOT / 'schemas' / name).read_bytes()).hexdigest()}" == told
        for name, told in stamp["schemas"].items()
    )
    assert basalt("compile", "seed", "-o", "out", cwd=project).stdout.endswith("unchanged: out\n")


def test_output_to_stdout_is_nothing_but_manifests(project: Path) -> None:
    (project / "stacks" / "seed" / "more.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {b: no}}"
    )
    done = basalt("compile", "seed", "-o", "-", cwd=project)

    assert done.returncode == 0
    assert done.stdout.startswith("---\napiVersion: v1\nkind: Namespace\n")
    assert "scalar-is-unambiguous" in done.stderr
    assert not (project / "build").exists()


def test_what_no_api_server_takes_reaches_no_output(project: Path) -> None:
    extra = """
---
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt: []
---
apiVersion: helm.sh/v3
kind: Release
metadata: {name: metrics-server, namespace: kube-system}
spec: {chart: metrics-server, version: 3.13.1, repositoryOpts: {repo: "https://example.com/charts"}, values: {}}
"""
    file = project / "stacks" / "seed" / "environment.yaml"
    file.write_text(file.read_text(encoding="utf-8") + extra, encoding="utf-8")

    done = basalt("compile", "seed", "-o", "out", cwd=project)

    assert done.returncode == 0, done.stdout
    written = "\n".join(path.as_posix() for path in (project / "out").rglob("*"))
    assert "authenticationconfiguration" not in written
    assert "release" not in written
    stamp = json.loads((project / "out" / "basalt.json").read_text(encoding="utf-8"))
    assert [(each["name"], each["version"]) for each in stamp["charts"]] == [("metrics-server", "3.13.1")]


def test_a_waived_secret_reaches_no_output(project: Path) -> None:
    (project / "stacks" / "seed" / "secret.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: vision-train\n"
        '  annotations: {basalt.dev/waive: "secret-is-not-literal: a test value"}\nstringData: {key: xyzzy-1234}\n'
    )

    written = basalt("compile", "seed", cwd=project)
    streamed = basalt("compile", "seed", "-o", "-", cwd=project)

    assert (written.returncode, streamed.returncode) == (0, 0)
    assert "not written, because it holds secret values: Secret/vision-train/s" in written.stdout
    everything = [written.stdout, streamed.stdout, streamed.stderr]
    everything += [path.read_text() for path in (project / "build").rglob("*") if path.is_file()]
    assert [text for text in everything if "xyzzy" in text] == []


def test_output_can_be_checked_again(project: Path) -> None:
    basalt("compile", "seed", cwd=project)

    done = basalt("check", "build/seed", cwd=project)

    assert done.returncode == 0
    assert done.stdout.startswith("no findings; ")


def test_own_output_inside_the_environment_is_not_input(project: Path) -> None:
    folder = project / "stacks" / "seed"

    assert basalt("compile", ".", cwd=folder).returncode == 0
    assert basalt("compile", ".", cwd=folder).stdout.endswith("unchanged: build/seed\n")


def test_topology_as_json_has_the_tree_and_the_largest_gangs(project: Path) -> None:
    done = json.loads(basalt("topology", "seed", "--format", "json", cwd=project).stdout)

    assert [(tier["tier"], tier["name"], tier["domains"]) for tier in done["tiers"]] == [
        (1, "rack", 4),
        (2, "leaf", 2),
        (3, "spine", 1),
    ]
    assert [tier["largest"]["nvidia.com/gpu"]["amount"] for tier in done["tiers"]] == ["16", "32", "64"]
    (root,) = done["tree"]
    assert (root["name"], [child["name"] for child in root["children"]]) == ("s0", ["s0-s1", "s0-s2"])


def test_an_environment_that_cannot_be_read_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "environment.yaml").write_text("kind: [Environment\n")

    done = basalt("compile", "e", "--format", "json", cwd=tmp_path)

    assert [found["rule"] for found in json.loads(done.stdout)["findings"]] == ["document-parses"]


def test_topology_without_an_environment_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()

    done = basalt("topology", "e", cwd=tmp_path)

    assert done.returncode == 1
    assert "no Environment document [one-environment]" in done.stderr


def test_explain_says_where_a_field_came_from(project: Path) -> None:
    done = basalt("explain", "seed", "job/vision-train/resnet", "/spec/maxRetry", cwd=project)

    line = (project / "stacks" / "seed" / "jobs.yaml").read_text().split("\n").index("  retries: 3") + 1
    assert done.stdout == (
        "Job/vision-train/resnet (batch.volcano.sh/v1alpha1), made by the module jobs\n"
        f"  /spec/maxRetry  stacks/seed/jobs.yaml:{line} = 3\n"
    )


def test_explain_hides_the_values_of_secrets(project: Path) -> None:
    (project / "stacks" / "seed" / "secret.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: vision-train}\nstringData: {key: xyzzy-1234}\n"
    )

    for pointer in ([], ["/stringData"], ["/stringData/key"]):
        for form in ("text", "json"):
            done = basalt("explain", "seed", "secret/s", *pointer, "--format", form, cwd=project)
            assert (done.returncode, "xyzzy" in done.stdout + done.stderr) == (0, False)


def test_explain_prints_a_page(tmp_path: Path) -> None:
    done = basalt("explain", "queue-parent-exists", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("# queue-parent-exists\n")
    assert done.stdout.endswith("(error, family Queues)\n")


@pytest.mark.parametrize("kind", ["Environment", "team", "TRAININGJOB", "Guardrail"])
def test_schema_prints_the_json_schema(tmp_path: Path, kind: str) -> None:
    done = basalt("schema", kind, cwd=tmp_path)

    assert json.loads(done.stdout)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_colour_only_where_a_terminal_asks_for_it(project: Path) -> None:
    script = shutil.which("script")
    if script is None:
        pytest.skip("the command `script`, which makes a terminal, is not on this machine")
    command = f"{sys.executable} -m basalt check broken"

    def shown(extra: str = "", **env: str) -> str:
        surroundings = {**os.environ, "TERM": "xterm", **env}
        full = [script or "", "-qec", f"{command} {extra}", "/dev/null"]
        return subprocess.run(full, cwd=project, capture_output=True, text=True, env=surroundings, check=False).stdout

    coloured = re.compile("\x1b\\[[0-9;]+m")
    assert coloured.search(shown())
    assert not coloured.search(shown("--no-color"))
    assert not coloured.search(shown(NO_COLOR="1"))
    assert not coloured.search(basalt("check", "broken", cwd=project).stdout)


def test_a_closed_pipe_is_no_bug(project: Path) -> None:
    command = f"{sys.executable} -m basalt compile seed -o - | head -1"
    done = subprocess.run(command, shell=True, cwd=project, capture_output=True, text=True, check=False)

    assert done.stdout == "---\n"
    assert done.stderr == ""


def test_terminal_escapes_in_names_are_shown_not_obeyed(tmp_path: Path) -> None:
    text = QUEUE.replace("name: q", 'name: "q\\e[2Jx\\u202Ey"') + '{parent: "r\\e]0;owned\\a"}\n'
    (tmp_path / "input.yaml").write_text(text)

    done = basalt("check", "input.yaml", cwd=tmp_path)

    assert done.returncode == 1
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", done.stdout)


def test_the_start_imports_nothing_of_pulumi_and_little_else() -> None:
    commands = "check, compile, explain, schema, topology"
    shown = "[m for m in sys.modules if m.split('.')[0] in sys.argv[1:]]"
    code = f"import sys; from basalt.commands import {commands}; print({shown})"
    banned = [
        "pulumi",
        "pulumi_kubernetes",
        "pydantic",
        "jsonschema",
        "cerberus",
        "cel_expr_python",
        "requests",
        "urllib3",
    ]
    done = subprocess.run([sys.executable, "-c", code, *banned], capture_output=True, text=True, check=True, cwd=ROOT)

    assert done.stdout == "[]\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_a_folder_without_permission_is_misuse(project: Path) -> None:
    (project / "stacks" / "broken").chmod(0)
    try:
        done = basalt("check", "broken", cwd=project)
    finally:
        (project / "stacks" / "broken").chmod(0o755)

    assert done.returncode == 2
    assert "Permission denied" in done.stderr


def test_schemas_replace_links_and_do_not_follow_them(tmp_path: Path) -> None:
    folder, other = tmp_path / "out", tmp_path / "other"
    assert basalt("schema", "--all", "-o", "out", cwd=tmp_path).returncode == 0
    names = sorted(os.listdir(folder))
    other.write_text("mine")
    (folder / names[0]).unlink()
    (folder / names[0]).symlink_to(other)

    assert basalt("schema", "--all", "-o", "out", cwd=tmp_path).returncode == 0
    assert (other.read_text(), (folder / names[0]).is_symlink()) == ("mine", False)
    assert sorted(os.listdir(folder)) == names


def test_schemas_that_cannot_be_written_leave_what_was_there(tmp_path: Path) -> None:
    assert basalt("schema", "--all", "-o", "out", cwd=tmp_path).returncode == 0
    names = sorted(os.listdir(tmp_path / "out"))
    for name in names:
        (tmp_path / "out" / name).write_text("old")

    command = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", sys.executable, "-B", "-m", "basalt", "schema", "--all"]
    done = subprocess.run(
        [*command, "-o", "out"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "basalt: cannot write out: File too large\n"
    assert {name: (tmp_path / "out" / name).read_text() for name in os.listdir(tmp_path / "out")} == dict.fromkeys(
        names, "old"
    )


def test_schemas_need_the_name_of_a_folder(tmp_path: Path) -> None:
    done = basalt("schema", "--all", "-o", "", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (2, "basalt: -o is empty; name a folder\n")
    assert os.listdir(tmp_path) == []
