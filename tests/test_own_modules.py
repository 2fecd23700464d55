"""A project's own modules: docs/how-to/own-module.md does what it says, and what a module gets wrong is a finding."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from basalt.compiling import compile_folder
from tests.test_cli import ROOT, basalt

PAGE = (ROOT / "docs" / "how-to" / "own-module.md").read_text(encoding="utf-8")
_MADE = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}'
_ORIGINS = f"from basalt.objects import Manifest\ndef manifests(d, p):\n    yield Manifest({_MADE}, %s)\n"
_ENVIRONMENT = (
    "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec:\n  modules:\n    own: {a: 1}\n"
)


def _block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The project of the page."""
    (tmp_path / "Pulumi.yaml").touch()
    for file, text in (
        ("modules/license_server.py", _block("python")),
        ("stacks/lab/environment.yaml", _block("yaml")),
    ):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    return tmp_path


def test_the_page_runs(lab: Path) -> None:
    shown = ""
    for line in _block("console").splitlines(keepends=True):
        if line.startswith("$ basalt "):
            done = basalt(*line.split()[2:], cwd=lab)
            assert (done.returncode, done.stderr) == (0, ""), done.stdout
            if "explain" not in line:
                done.stdout = ""
            shown += line + done.stdout

    assert shown == _block("console")
    assert (lab / "build" / "lab" / "70-manifests" / "licenses" / "service-license-server.yaml").exists()
    stamp = json.loads((lab / "build" / "lab" / "basalt.json").read_text())
    assert stamp["inputs"].keys() == {"modules/license_server.py", "stacks/lab/environment.yaml"}
    assert [*lab.rglob("__pycache__")] == []


def test_a_value_that_breaks_its_schema_is_a_finding_at_its_line(lab: Path) -> None:
    file = lab / "stacks" / "lab" / "environment.yaml"
    file.write_text(file.read_text().replace("port: 27010", "prot: 27010"))

    done = basalt("check", "lab", "--modules", cwd=lab)

    assert done.returncode == 1
    assert "stacks/lab/environment.yaml:8:7: Environment/lab spec.modules.license_server.prot: unknown field prot" in (
        done.stdout
    )
    assert "hint: did you mean port?" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["check", "lab"],
        ["compile", "lab"],
        ["fit", "lab"],
        ["topology", "lab"],
        ["report", "lab"],
        ["plan", "lab", "lab"],
        ["explain", "lab", "namespace/licenses"],
        ["apply", "lab", "--yes", "--kubeconfig", "none"],
    ],
    ids=lambda command: command[0],
)
def test_no_code_runs_without_the_flag(lab: Path, command: list[str]) -> None:
    (lab / "modules" / "license_server.py").write_text("open('ran', 'w')\n")
    (lab / "modules" / "__init__.py").write_text("open('ran', 'w')\n")
    (lab / "modules" / "other.py").write_text("open('ran', 'w')\n")

    done = basalt(*command, cwd=lab)

    assert done.returncode != 0
    assert not (lab / "ran").exists()
    assert not (lab / "build").exists()


def test_without_the_flag_the_finding_names_it(lab: Path) -> None:
    done = basalt("check", "lab", cwd=lab)

    assert done.returncode == 1
    assert "modules/license_server.py is code of this project, and is not run [document-matches-schema]" in done.stdout
    assert "hint: give --modules where you trust this project's code" in done.stdout


FAULTS = {
    "raises": (
        "def manifests(declared, platform):\n    return [1 / 0]\n",
        "own.py:2: ZeroDivisionError: division by zero",
    ),
    "no Python": ("def manifests(:\n", "own.py:1: SyntaxError: invalid syntax"),
    "missing import": (
        "\nimport no_such_package\n",
        "own.py:2: ModuleNotFoundError: No module named 'no_such_package'",
    ),
    "leaves": ("import sys\nsys.exit(0)\n", "own.py:2: SystemExit: 0"),
    "no function": ("", "own.py has no function manifests"),
    "no schema": ("SCHEMA = {'type': 1}\n", "SCHEMA of modules/own.py is no JSON Schema"),
    "no object": (
        "def manifests(d, p):\n    yield {}\n",
        "own.py makes something without apiVersion, kind and metadata",
    ),
    "no plain value": ("def manifests(d, p):\n    yield {1, 2}\n", "own.py makes something that is no plain value"),
    "half a surrogate pair": (
        "def manifests(d, p):\n    yield {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': '\\ud800'}}\n",
        "own.py makes something that is no plain value: 'utf-8' codec can't encode",
    ),
    "origins that are no map": (_ORIGINS % "[1]", "own.py gives origins that are no map"),
    "origins that are text": (_ORIGINS % "{'abc': 5}", "own.py gives origins with 'abc', which is no tuple"),
    "origins that are numbers": (_ORIGINS % "{('a',): 5}", "own.py gives origins with 5, which is no tuple"),
    "origins of lists": (_ORIGINS % "{('a',): ([],)}", "own.py gives origins with ([],), which is no tuple"),
    "an error without words": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n",
        "own.py:3: E: it has no words",
    ),
    "an error of half a surrogate pair": ("raise ValueError('\\ud800')\n", "own.py:1: ValueError: \\ud800"),
    "a map of its own": (
        "class D(dict):\n    def items(self): raise GeneratorExit\ndef manifests(d, p): yield D(a=1)\n",
        "own.py:2: GeneratorExit",
    ),
    "ends a generator": ("def manifests(d, p):\n    raise GeneratorExit\n", "own.py:2: GeneratorExit"),
    "raises something of its own": ("class E(BaseException): ...\nraise E('no')\n", "own.py:2: E: no"),
    "a byte that is no text": ("a = 1\0\n", "own.py:1: SyntaxError: source code string cannot contain null bytes"),
    "nothing to go through": (
        "def manifests(d, p):\n    return 1\n",
        "own.py:1: TypeError: 'int' object is not iterable",
    ),
}


def _project(folder: Path, code: str | None) -> Path:
    (folder / "Pulumi.yaml").touch()
    (folder / "e").mkdir()
    (folder / "e" / "environment.yaml").write_text(_ENVIRONMENT)
    (folder / "modules").mkdir()
    if code is not None:
        (folder / "modules" / "own.py").write_text(code)
    return folder


@pytest.mark.parametrize(("code", "message"), FAULTS.values(), ids=FAULTS)
def test_what_a_module_gets_wrong_is_a_finding(tmp_path: Path, code: str, message: str) -> None:
    folder = _project(tmp_path, code)

    (found,) = compile_folder(folder / "e", runs_modules=True).findings

    assert (found.rule, found.pointer) == ("document-matches-schema", ("spec", "modules", "own"))
    assert message in found.message
    assert found.source.line == 6


@pytest.mark.parametrize(
    "change",
    [
        "d['a'] = 2",
        "p.spec.setdefault('queues', {})['evil'] = {}",
        "p.spec['modules']['own']['a'] = 2",
        "p.teams['a']['namespaces']['evil'] = {}",
        "p.nodes[0].labels['rack'] = 'evil'",
    ],
)
def test_what_a_module_changes_in_the_declaration_changes_nothing(tmp_path: Path, change: str) -> None:
    folder = _project(tmp_path, f"def manifests(d, p):\n    yield {_MADE}\n")
    (folder / "e" / "rest.yaml").write_text(
        "apiVersion: basalt.dev/v1alpha1\nkind: Team\nmetadata: {name: a}\nspec: {namespaces: {a: {}}}\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: n, labels: {rack: r}}\n"
    )
    before = compile_folder(folder / "e", runs_modules=True)
    (folder / "modules" / "own.py").write_text(f"def manifests(d, p):\n    {change}\n    yield {_MADE}\n")

    after = compile_folder(folder / "e", runs_modules=True)

    assert after.findings == before.findings
    assert [each.value for each in after.objects] == [each.value for each in before.objects]
    assert after.index.environment is not None
    assert after.index.environment.spec == {"modules": {"own": {"a": 1}}}
    assert [node.labels for node in after.index.nodes] == [{"rack": "r"}]


@pytest.mark.parametrize("name", ["license-server", "a.b", "A"])
def test_a_name_that_no_module_has_is_a_finding_at_its_line(tmp_path: Path, name: str) -> None:
    folder = _project(tmp_path, None)
    (folder / "e" / "environment.yaml").write_text(_ENVIRONMENT.replace("own:", f"{name}:"))

    (found,) = compile_folder(folder / "e", runs_modules=True).findings

    assert (found.pointer, found.source.line) == (("spec", "modules", name), 6)
    assert found.message == f'the name "{name}" does not have the form ^[a-z][a-z0-9_]*$'
    assert found.hint == "for example license_server"


def test_a_module_that_is_not_there_is_a_finding_with_the_nearest_name(tmp_path: Path) -> None:
    folder = _project(tmp_path, None)
    (folder / "modules" / "owm.py").touch()

    (found,) = compile_folder(folder / "e", runs_modules=True).findings

    assert (found.message, found.hint) == ("no file modules/own.py in the project", "did you mean owm?")


def test_a_module_outside_the_project_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    folder = _project(tmp_path / "project", None)
    (tmp_path / "own.py").write_text("raise ValueError\n")
    (folder / "modules" / "own.py").symlink_to("../../own.py")

    (found,) = compile_folder(folder / "e", runs_modules=True).findings

    assert found.message == "modules/own.py leads out of the project"


def test_a_module_may_be_a_folder_and_print(tmp_path: Path) -> None:
    folder = _project(tmp_path, None)
    (folder / "modules" / "own").mkdir()
    (folder / "modules" / "own" / "__init__.py").write_text(
        "from .sizes import made\nprint('hello')\ndef manifests(declared, platform):\n    yield made\n"
    )
    (folder / "modules" / "own" / "sizes.py").write_text(f"made = {_MADE}\n")

    done = basalt("compile", "e", "-o", "-", "--modules", cwd=folder)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "hello" not in done.stdout
    assert "kind: ConfigMap" in done.stdout


def test_a_plan_runs_each_sides_own_revision(tmp_path: Path) -> None:
    folder = _project(tmp_path, f"def manifests(declared, platform):\n    yield {_MADE}\n")
    for each in ("init -q -b main", "add .", "-c user.name=a -c user.email=a commit -q -m all"):
        subprocess.run(["git", *each.split()], cwd=folder, check=True)
    (folder / "modules" / "own.py").write_text(
        "def manifests(declared, platform):\n    yield " + _MADE.replace('"c"', '"d"') + "\n"
    )

    done = basalt("plan", "main:e", "e", "--modules", "--format", "json", cwd=folder)
    objects = json.loads(done.stdout)["objects"]

    assert [[each["name"] for each in objects[kind]] for kind in ("add", "remove")] == [["d"], ["c"]]


@pytest.mark.parametrize("name", ["../evil", "/evil", "..", "evil.sub", "os/../../evil", "Evil", "__init__", ""])
def test_a_name_that_is_no_name_runs_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "project").mkdir()
    folder = _project(tmp_path / "project", None)
    ran = tmp_path / "ran"
    for place in (tmp_path / "evil.py", folder / "evil.py", folder / "modules" / "__init__.py"):
        place.write_text(f"open({str(ran)!r}, 'w')\n")
    (folder / "e" / "environment.yaml").write_text(_ENVIRONMENT.replace("own:", f"{json.dumps(name)}:"))

    findings = compile_folder(folder / "e", runs_modules=True).findings

    assert "document-matches-schema" in {found.rule for found in findings}
    assert not ran.exists()
