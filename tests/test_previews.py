"""What runs on a pull request: rights and pins of the workflows, and their steps run here as they run there."""

import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from basalt import changes, cli
from tools.engine import programs

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / ".github" / "workflows" / "preview.yaml").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, Any] = WORKFLOW["jobs"]
STEPS = [(job, step) for job, content in JOBS.items() for step in content["steps"]]
GITLAB: dict[str, Any] = yaml.safe_load((ROOT / ".gitlab" / "preview.gitlab-ci.yml").read_text(encoding="utf-8"))
OWN_FAULT = "queues: {vision: {parent: reserch}}"


def parser_of(command: str) -> Any:
    return changes._parser() if command == "basalt-check" else cli._parser()


def has_command(name: str) -> bool:
    (commands,) = (each.choices for each in cli._parser()._actions if each.dest == "command")
    assert commands is not None
    return name in commands


# What the workflow may do.


def test_requests_of_forks_get_no_secrets() -> None:
    assert [*WORKFLOW[True]] == ["pull_request"]  # `on`, as YAML 1.1 reads it
    with_secrets = {job for job, content in JOBS.items() if "secrets." in json.dumps(content)}
    assert with_secrets == {"pulumi"}
    for job in ("pulumi", "publish"):
        assert "github.event.pull_request.head.repo.full_name == github.repository" in JOBS[job]["if"]


def test_rights_are_stated_and_least() -> None:
    writing = {job for job, content in JOBS.items() if "write" in content["permissions"].values()}

    assert WORKFLOW["permissions"] == {}
    assert writing == {"publish"}
    assert {job for job in JOBS if JOBS[job]["permissions"] == {"contents": "read"}} == JOBS.keys() - writing


def test_what_may_write_runs_nothing_of_the_request() -> None:
    text = json.dumps(JOBS["publish"])

    assert "checkout" not in text
    assert "make " not in text
    assert ".venv" not in text


def test_actions_are_pinned_by_commit() -> None:
    used = re.findall(r"uses: (.*)", TEXT)

    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+.*", each)] == []


def test_scripts_take_what_others_wrote_only_from_their_environment() -> None:
    """`${{ }}` would be pasted into a script, whatever a branch or a folder is called."""
    assert [step["run"] for _, step in STEPS if "${{" in step.get("run", "")] == []


def test_a_newer_push_ends_the_older_run() -> None:
    assert WORKFLOW["concurrency"]["cancel-in-progress"] is True
    assert "github.event.pull_request.number" in WORKFLOW["concurrency"]["group"]
    assert all(content["timeout-minutes"] for content in JOBS.values())


def test_previews_use_the_engine_that_is_tested() -> None:
    versions = {step["with"]["pulumi-version"] for _, step in STEPS if "pulumi/actions@" in step.get("uses", "")}

    assert versions == {programs.VERSION.removeprefix("v")}


def test_make_knows_the_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(VENV)", ".venv")
    scripts = [step.get("run", "") for _, step in STEPS] + gitlab_scripts()

    targets = {target for script in scripts for target in re.findall(r"^\s*make ([\w./-]+)", script, re.MULTILINE)}
    assert targets == {".venv/.runtime", "preview"}
    assert [each for each in targets if not re.search(rf"^{re.escape(each)}:", makefile, re.MULTILINE)] == []


# The commands.


def gitlab_scripts() -> list[str]:
    return [line for job in GITLAB.values() for key in ("before_script", "script") for line in job.get(key, ())]


def commands(scripts: list[str]) -> Iterator[list[str]]:
    """The words of each call of Basalt, with an example for each variable."""
    for line in (line for script in scripts for line in script.splitlines()):
        for found in re.findall(r"\.venv/bin/(basalt[^|;)]*)", line):
            words = found.replace('"${base[@]}"', "--base b:stacks/a").replace('"$@"', "--base b:stacks/a")
            words = re.sub(r"\$\w+", "example", words.partition(" > ")[0])
            yield shlex.split(words)


GITHUB_COMMANDS = [*commands([step.get("run", "") for _, step in STEPS])]
GITLAB_COMMANDS = [*commands(gitlab_scripts())]


def known(words: list[str]) -> Any:
    """The command, skipped while Basalt does not have it."""
    name = " ".join(words[:2] if words[0] == "basalt" else words[:1])
    is_there = words[0] != "basalt" or has_command(words[1])
    return pytest.param(words, id=name, marks=pytest.mark.skipif(not is_there, reason=f"there is no {name} yet"))


@pytest.mark.parametrize("words", [known(each) for each in (*GITHUB_COMMANDS, *GITLAB_COMMANDS)])
def test_command_has_the_options_it_is_given(words: list[str]) -> None:
    parser_of(words[0]).parse_args(words[1:])


def test_both_hosts_run_the_same_commands() -> None:
    def names(found: list[list[str]]) -> set[str]:
        return {each[1] if each[0] == "basalt" else each[0] for each in found}

    assert names(GITHUB_COMMANDS) == names(GITLAB_COMMANDS) == {"basalt-check", "check", "plan", "report"}


# The steps, in a repository with a pull request's merge checked out.


def step(name: str) -> str:
    (script,) = (str(each["run"]) for _, each in STEPS if each.get("name") == name)
    return script


class Request:
    """A checkout of a pull request: the base branch has seed and base, the request changes what is written to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".venv" / "bin").mkdir(parents=True)
        for command, module in (("basalt", "basalt"), ("basalt-check", "basalt.changes")):
            shim = folder / ".venv" / "bin" / command
            shim.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m {module} "$@"\n')
            shim.chmod(0o755)
        (folder / ".gitignore").write_text(".venv/\nbuild/\n")
        (folder / "Pulumi.yaml").touch()
        shutil.copytree(ROOT / "stacks" / "seed", folder / "stacks" / "seed")
        shutil.copytree(ROOT / "stacks" / "base", folder / "stacks" / "base")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit()

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")

    def change(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """As the runner of GitHub runs a script with `shell: bash`."""
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        files = {name: str(self.folder.parent / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        env = {**os.environ, **files, "ENVIRONMENT": "stacks/seed", "BASE": "origin/main", **variables}
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    @property
    def output(self) -> str:
        return (self.folder.parent / "GITHUB_OUTPUT").read_text(encoding="utf-8")


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    return Request(tmp_path / "checkout")


def test_changed_environments_are_listed(request_: Request) -> None:
    request_.change("stacks/seed/teams.yaml", "pods: 300", "pods: 280")
    (request_.folder / "README.md").touch()
    request_.commit()

    done = request_.run(step("list the environments"))

    assert (done.returncode, request_.output) == (0, 'environments=["stacks/seed"]\n')


def test_without_a_changed_environment_nothing_else_runs(request_: Request) -> None:
    (request_.folder / "stacks" / "README.md").touch()
    request_.commit()

    request_.run(step("list the environments"))

    assert request_.output == "environments=[]\n"
    assert "environments != '[]'" in JOBS["environment"]["if"]


@pytest.mark.parametrize(("weight", "code"), [("pods: 280", 0), ("pods: some", 1)])
def test_check_annotates_the_request(weight: str, code: int, request_: Request) -> None:
    request_.change("stacks/seed/teams.yaml", "pods: 300", weight)

    done = request_.run(step("check"))

    assert done.returncode == code
    assert ("::error file=stacks/seed/teams.yaml" in done.stdout) == bool(code)


@pytest.mark.skipif(not has_command("plan"), reason="there is no basalt plan yet")
def test_plan_compares_with_the_base(request_: Request) -> None:
    request_.change("stacks/seed/teams.yaml", "pods: 300", "pods: 280")
    request_.commit()
    request_.run(step("name the base"))

    done = request_.run(step("plan"))

    assert (done.returncode, done.stderr) == (0, "")
    assert "ResourceQuota/speech-train/quota" in done.stdout


def test_new_environment_has_nothing_to_be_compared_with(request_: Request) -> None:
    shutil.copytree(request_.folder / "stacks" / "seed", request_.folder / "stacks" / "new")
    request_.commit()
    request_.run(step("name the base"))

    done = request_.run(step("plan"), ENVIRONMENT="stacks/new")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not has_command("report"), reason="there is no basalt report yet")
@pytest.mark.parametrize("change", ["pods: 280", "pods: some"])
def test_report_is_written_even_where_there_are_errors(change: str, request_: Request) -> None:
    request_.change("stacks/seed/teams.yaml", "pods: 300", change)
    request_.commit()
    request_.run(step("name the base"))

    done = request_.run(step("report"))

    folder = request_.folder / "build" / "report"
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "report.md").read_text(encoding="utf-8").startswith("<!-- basalt report: seed -->\n")
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!")
    assert json.loads((folder / "report.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


# The comment, in place of the one before.

GH = """\
#!/bin/sh
echo "$@" >> {log}
case "$*" in *--jq*) cat {known} ;; esac
"""


@pytest.mark.parametrize(("known_ids", "call"), [("", "--method POST {all}"), ("7\n9\n", "--method PATCH {one}/7")])
def test_comment_is_made_once(known_ids: str, call: str, tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.md").write_text("<!-- basalt report: seed -->\nfine\n")
    (tmp_path / "known").write_text(known_ids)
    (tmp_path / "gh").write_text(GH.format(log=tmp_path / "log", known=tmp_path / "known"))
    (tmp_path / "gh").chmod(0o755)
    paths = {"COMMENTS": "repos/a/b/issues/1/comments", "COMMENT": "repos/a/b/issues/comments"}
    env = {**os.environ, **paths, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-eo", "pipefail", "-c", step("comment, in place of the one before")]

    subprocess.run(command, cwd=tmp_path, env=env, check=True)

    asked, done = (tmp_path / "log").read_text().splitlines()
    assert asked.startswith(f"api --paginate {paths['COMMENTS']} --jq ")
    assert "startswith(env.MARKER)" in asked
    expected = call.format(all=paths["COMMENTS"], one=paths["COMMENT"])
    assert done == f"api --silent {expected} -F body=@report/report.md"


class Notes(http.server.BaseHTTPRequestHandler):
    """GitLab's notes of one merge request, 100 a page."""

    notes: list[dict[str, Any]]
    path_of_notes = "/projects/5/merge_requests/6/notes"

    def do_GET(self) -> None:
        if self.path == "/user":
            self.answer({"id": 1})
            return
        page = int(self.path.rpartition("=")[2])
        self.answer(self.notes[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        assert self.path == self.path_of_notes
        self.notes.append({"id": len(self.notes), "author": {"id": 1}, **self.body()})
        self.answer(self.notes[-1])

    def do_PUT(self) -> None:
        note = self.notes[int(self.path.removeprefix(f"{self.path_of_notes}/"))]
        note.update(self.body())
        self.answer(note)

    def body(self) -> Any:
        assert self.headers["PRIVATE-TOKEN"] == "token"
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, value: Any) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: Any) -> None:
        pass


def test_note_is_edited_in_place(tmp_path: Path) -> None:
    marker = "<!-- basalt report: seed -->"
    strangers = [{"id": number, "author": {"id": 2}, "body": f"{marker}\nquoted"} for number in range(100)]
    handler = type("Handler", (Notes,), {"notes": strangers})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        variables = {"CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "6", "BASALT_NOTES_TOKEN": "token"}
        variables["CI_API_V4_URL"] = f"http://127.0.0.1:{server.server_port}"
        for words in ("first", "second"):
            (tmp_path / "report.md").write_text(f"{marker}\n{words}\n")
            command = [sys.executable, str(ROOT / "tools" / "preview" / "note.py"), "report.md"]
            subprocess.run(command, cwd=tmp_path, env={**os.environ, **variables}, check=True)
        server.shutdown()

    assert [each["body"] for each in strangers[100:]] == [f"{marker}\nsecond\n"]
    assert {each["body"] for each in strangers[:100]} == {f"{marker}\nquoted"}
