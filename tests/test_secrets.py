"""No value that is marked or recognised as a secret reaches a manifest, a report, a plan, a log or an error message,
whatever else is wrong around it."""

import base64
import contextlib
import json
import string
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attacked import run
from tests.test_attacks import ENVIRONMENT, JOB, NAMESPACE

COMMANDS = (
    "check case",
    "check case --format json",
    "check case --format sarif",
    "check case --format github",
    "compile case -o out/tree",
    "compile case -o - --format json",
    "fit case --format json",
    "plan base case",
    "plan base case --format json",
    "report case --base base --format markdown",
    "report case --base base --format html -o out/report.html",
    "report case --base base --format json",
    "explain case configmap/here/c",
    "explain case configmap/here/c /data",
    "explain case secret/here/s",
    "explain case secret/here/s /stringData/a",
)
HEAD = "metadata:\n  name: NAME\n  namespace: here\nWAIVER"
WAIVER = '  annotations: {basalt.dev/waive: "secret-is-not-literal: a test"}\n'
SECRET = f"apiVersion: v1\nkind: Secret\n{HEAD.replace('NAME', 's')}"
CONFIG = f"apiVersion: v1\nkind: ConfigMap\n{HEAD.replace('NAME', 'c')}"
TRAINING_JOB = f"apiVersion: basalt.dev/v1alpha1\nkind: TrainingJob\n{HEAD.replace('NAME', 't')}"
ROLE = "spec: {framework: plain, image: 'a/b:1', roles: {worker: {replicas: 1, "
CONTAINER = 'name: c, image: "r.example.com/a:1"'

# Documents with a @, where the secret stands. BESIDE is a line, or nothing, that is wrong.
MARKED = (
    f"{SECRET}BESIDE\nstringData: {{a: '@'}}\n",
    f"{SECRET}BESIDE\nstringData:\n  a: |\n    x: @\n",
    f"{SECRET}BESIDE\nstringData: {{a: ['@']}}\n",
    f"{SECRET}BESIDE\ndata: {{a: CODED}}\n",
    f"{CONFIG}BESIDE\ndata: {{password: '@'}}\n",
    f"{CONFIG}BESIDE\ndata: {{db.api-key: '@', n: no}}\n",
    f"{CONFIG}BESIDE\ndata:\n  dex.yaml: |\n    issuer: http://x\n    storage: {{}}\n    clientSecret: '@'\n",
    f"{CONFIG}BESIDE\ndata:\n  app.yaml: |\n    db: {{password: '@'}}\n",
    f"{CONFIG}BESIDE\ndata:\n  dex.yaml: |\n    issuer: [http://x\n    clientSecret: '@'\n",
    f"{CONFIG}BESIDE\ndata:\n  dex.yaml: |\n    {{{{ if x }}}}\n    clients: [{{{{id: a, clientSecret: @}}}}]\n",
    f"{CONFIG}BESIDE\ndata:\n  my.ini: |\n    [a]\n    password = @\n",
    f"{CONFIG}BESIDE\ndata:\n  run.sh: |\n    #!/bin/sh\n    export API_TOKEN=@\n    echo 1\n",
    f"{CONFIG}BESIDE\ndata:\n  a.py: |\n    import a\n    a.login(api_key='@')\n",
    f"{TRAINING_JOB}BESIDE\n{ROLE}env: {{DB_PASSWORD: '@'}}}}}}}}\n",
    f"{TRAINING_JOB}BESIDE\n{ROLE}command: [a, --api-token, '@']}}}}}}\n",
    f"{TRAINING_JOB}BESIDE\n{ROLE}env: {{DB_PASSWORD: ['@']}}}}}}}}\n",
    JOB.replace(CONTAINER, f"{CONTAINER}, env: [{{name: API_TOKEN, value: '@'}}]").replace("name: j", "name: k"),
    JOB.replace(CONTAINER, f"{CONTAINER}, args: ['--password=@']").replace("name: j", "name: k"),
)
# Those that tell themselves by their form may stand anywhere.
ANYWHERE = (
    f"{CONFIG}BESIDE\ndata: {{note: 'see @ there'}}\n",
    f"{TRAINING_JOB}BESIDE\n{ROLE}command: [echo, '@']}}}}}}\n",
)
BESIDE = ("", "  lables: {a: b}", "  labels: {a: '-'}", "  labels: [a]", "  finalizers: 5", "  generation: no")
_WORD = st.text(string.ascii_letters + string.digits, min_size=12, max_size=12).map("Zq7".__add__)
_LONG = st.text(string.ascii_letters + string.digits, min_size=37, max_size=37).map("Zq7".__add__)
_BY_FORM = st.one_of(
    _LONG.map("hf_{}".format),
    _LONG.map("glpat-{}".format),
    _LONG.map(lambda word: f"ghp_{word[:36]}"),
    _LONG.map("xoxb-{}".format),
    st.builds("https://user:{}@example.com/a".format, _WORD),
)


def _documents(form: str, value: str, beside: str, waiver: str) -> str:
    coded = base64.b64encode(value.encode()).decode()
    text = form.replace("WAIVER", waiver).replace("BESIDE", beside).replace("\n\n", "\n")
    return f"{NAMESPACE.replace('train', 'here')}---\n{text.replace('CODED', coded).replace('@', value, 1)}"


def _said(root: Path, *, with_tree: bool) -> dict[str, str]:
    """Everything that the commands say, and the files that they write."""
    ran = run(COMMANDS)
    assert {code for code, _, _ in ran.values()} <= {0, 1, 2}
    written = {path.name: path.read_text() for path in (root / "out").rglob("*") if path.is_file()}
    stated = {command: out + err for command, (_, out, err) in ran.items() if with_tree or " -o - " not in command}
    return {**stated, **{name: text for name, text in written.items() if with_tree or name == "report.html"}}


@given(
    st.one_of(
        st.tuples(st.sampled_from(MARKED), st.one_of(_WORD, _BY_FORM)), st.tuples(st.sampled_from(ANYWHERE), _BY_FORM)
    ),
    st.sampled_from(BESIDE),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=30)
def test_no_secret_reaches_any_output(given: tuple[str, str], beside: str, is_waived: bool, is_in_base: bool) -> None:
    form, value = given
    core = value[value.index("Zq7") :][:12]  # of each form the part that no other text has
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        root = Path(name)
        (root / "Pulumi.yaml").touch()
        (root / "out").mkdir()
        for folder in ("base", "case"):
            (root / folder).mkdir()
            (root / folder / "environment.yaml").write_text(ENVIRONMENT)
        (root / "case" / "a.yaml").write_text(_documents(form, value, beside, WAIVER if is_waived else ""))
        if is_in_base:  # another value, which the plan says was there before
            other = f"{value[:-1]}{'1' if value[-1] == '0' else '0'}"
            (root / "base" / "a.yaml").write_text(_documents(form, other, beside, WAIVER if is_waived else ""))
        # Who waives the finding of what is no Secret says that it is none, and has it written.
        said = _said(root, with_tree=not is_waived or form.startswith("apiVersion: v1\nkind: Secret"))

    coded = base64.b64encode(value.encode()).decode()[:12]
    assert [place for place, text in said.items() if core in text or coded in text] == [], json.dumps(said)[:2000]
