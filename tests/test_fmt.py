"""`basalt fmt`: one style, nothing lost, and what it says."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt.formatting import formatting, writing
from basalt.formatting.formatting import formatted
from basalt.formatting.key_order import ordered
from basalt.formatting.tokens import comments
from basalt.loading import yaml_text
from basalt.loading.limits import Fault
from tests.test_cli import ROOT, basalt

SAME = {
    "block maps and lists": "a:\n  - b: 1\n    c: [d, {e: f}]\n  - g\n",
    "comments that stand in one column": "a: 1    # x\nbbb: 22 # y\n",
    "a comment that ends a map": "a:\n  b: 1\n  # of a\nc: 2\n",
    "one blank line": "a: 1\n\nb: 2\n",
    "a text in a block": "a: |\n  b\n    c\n\n  d\n",
    "a block that keeps its blank lines": "a: |+\n  b\n\n\nb: 1\n",
    "a block with its own indentation": "a: |2\n    b\n  c\n",
    "single quotes around quotes and backslashes": "a: '\"'\nb: '\\d'\nc: 'it''s'\n",
    "what readers differ on": 'a: no\nb: 010\nc: 1e3\nd: "no"\n',
    "anchors, aliases, tags, merges": "a: &x\n  b: !!str 1\nc:\n  <<: *x\nd: *x\n",
    "documents": "# head\n---\na: 1\n---\nb: 2\n",
    "an end that has no line end": "a: |\n  b",
    "blank lines that a text at the end keeps": (
        "kind: Team\napiVersion: basalt.dev/v1alpha1\nz: 1\nmetadata: |+\n  a\n\n"
    ),
    "other kinds' keys": "kind: Pod\napiVersion: v1\n",
    "no document": "# only a comment\n",
}
CHANGED = {
    "indentation": ("a:\n      b:\n       - c\n", "a:\n  b:\n    - c\n"),
    "dashes under the key": ("a:\n- b: 1\n  c:\n  - d\ne: f\n", "a:\n  - b: 1\n    c:\n      - d\ne: f\n"),
    "spaces after dashes and colons": ("a:   b\nc :\n-   d:  e\n    f: g\n", "a: b\nc:\n  - d: e\n    f: g\n"),
    "flow collections": ("a: { b: [ 1,2 , 3 ],c: {} , d: [ ] }\n", "a: {b: [1, 2, 3], c: {}, d: []}\n"),
    "flow over several lines": (
        "a:\n  b: [\n      1, # x\n    2,\n],\n".replace("],", "  ]"),
        "a:\n  b: [\n    1, # x\n    2,\n    ]\n",
    ),
    "quotes": ("a: 'b c'\n'd': \"e\"\n", 'a: "b c"\n"d": "e"\n'),
    "blanks at line ends, blank lines, the last line end": ("\n\na: 1  \n\n\n\nb: 2\n\n\n", "a: 1\n\nb: 2\n"),
    "no last line end": ("a: 1", "a: 1\n"),
    "the line ends of another system": ("a:\r\n    b: |\r\n        c\r\n", "a:\r\n  b: |\r\n    c\r\n"),
    "a byte order mark stays": ("\ufeffa:   1\n", "\ufeffa: 1\n"),
    "comments move with what they are about": (
        "a:\n    # of b\n    b: 1    # beside\n    # ends a\n# of c\nc: 2\n",
        "a:\n  # of b\n  b: 1 # beside\n  # ends a\n# of c\nc: 2\n",
    ),
    "comments of list items": ("a:\n# of x\n- x\n# of b\nb: 1\n", "a:\n  # of x\n  - x\n# of b\nb: 1\n"),
    "a block moves as one": (
        "a:\n    b: |\n          c\n            d\n    e: >-\n     f\n",
        "a:\n  b: |\n    c\n      d\n  e: >-\n    f\n",
    ),
    "a text over several lines": ("a: b\n       c\n\n       d\n", "a: b\n  c\n\n  d\n"),
    "a quoted text over several lines": ('a: "b   \n        c \\\n     d"\n', 'a: "b   \n  c \\\n  d"\n'),
    "blanks after the last line end": ("a:\n  b: |\n    c\n  ", "a:\n  b: |\n    c\n"),
    "a text of blank lines that moves to the end": (
        "z: 1\napiVersion: basalt.dev/v1alpha1\nspec: >3\n\n",
        "apiVersion: basalt.dev/v1alpha1\nspec: >3\nz: 1\n",
    ),
    "order of keys": (
        "# head\nkind: Team\nspec:\n  b: 1\n# the name\nmetadata: {name: a} # x\napiVersion: basalt.dev/v1alpha1\n",
        "# head\napiVersion: basalt.dev/v1alpha1\nkind: Team\n# the name\nmetadata: {name: a} # x\nspec:\n  b: 1\n",
    ),
}  # fmt: skip
FIXED_ORDER = {
    "parts set apart": "kind: Team\n\napiVersion: basalt.dev/v1alpha1\n",
    "anchors": "kind: &k Team\napiVersion: basalt.dev/v1alpha1\n",
    "a key twice": "kind: Team\napiVersion: basalt.dev/v1alpha1\nkind: Team\n",
    "a flow map": "{kind: Team, apiVersion: basalt.dev/v1alpha1}\n",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_text_in_the_style_stays(text: str) -> None:
    assert formatted(text) == text


@pytest.mark.parametrize(("text", "expected"), CHANGED.values(), ids=CHANGED)
def test_text_gets_the_style(text: str, expected: str) -> None:
    assert formatted(text) == expected
    assert formatted(expected) == expected


REFUSED = {
    "a mark between lines": ("a:\n\ufeff\n  b: 1\n", 2, "a byte order mark within the text"),
    "a mark before a key": ("a: 1\n---\n\ufeffb: 1\n", 3, "a byte order mark within the text"),
    "line ends": ("a: 1\nb: 2\rc: 3\n", 2, "line ends that are not those of editors"),
}


@pytest.mark.parametrize(("text", "line", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_says_why_and_where(text: str, line: int, reason: str) -> None:
    with pytest.raises(formatting.Refusal, match=reason) as refused:
        formatted(text)
    assert refused.value.line == line


def test_a_byte_order_mark_in_a_value_stays() -> None:
    assert formatted('a:   "\ufeff"\n') == 'a: "\ufeff"\n'


@pytest.mark.parametrize("error", [AssertionError, RecursionError, IndexError, yaml.YAMLError])
def test_what_the_formatter_stumbles_over_is_a_refusal(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def fail(_: str) -> str:
        raise error

    monkeypatch.setattr(formatting, "written", fail)
    with pytest.raises(formatting.Refusal, match="its style cannot be changed"):
        formatted("a: 1\n")


@pytest.mark.parametrize("text", FIXED_ORDER.values(), ids=FIXED_ORDER)
def test_keys_stay_in_their_order_where_more_than_keys_would_move(text: str) -> None:
    assert ordered(text) == text


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"a": None}, {}, False),
    ],
)
def test_values_are_compared_with_their_types(one: Any, other: Any, same: bool) -> None:
    assert formatting.is_same(one, other) is same


@pytest.mark.parametrize(
    "file",
    sorted(path for folder in ("stacks", "examples") for path in (ROOT / folder).rglob("*.yaml")),
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_our_own_documents_have_the_style(file: Path) -> None:
    text = file.read_text(encoding="utf-8")

    assert formatted(text) == text


# A text is drawn as a tree of parts; each is written with an indentation, quotes, blank lines and comments of its own.
_WORD = st.sampled_from(["a", "b c", "no", "1.34", "010", "x:y", "it's", '"', "\\d", "- a", "#b", "", "ü", "{{ x }}"])
_COMMENT = st.sampled_from(["", "", "", " # why", "  #tight", " #"])
_ABOVE = st.sampled_from(["", "", "", "\n", "\n\n\n", "# full", "  # deeper", "      # deepest"])
_PLAIN = st.sampled_from(["a", "b c", "1", "1.5", "true", "~", "yes", "010", "a#b", "x: [1, 2]", "&n v", "!!str 1"])


@st.composite
def _scalar(draw: st.DrawFn) -> str:
    word = draw(_WORD)
    quoted = [json.dumps(word, ensure_ascii=False), "'" + word.replace("'", "''") + "'"]
    return draw(st.one_of(st.sampled_from(quoted), _PLAIN.filter(lambda text: ": [" not in text)))


@st.composite
def _flow(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(_scalar())
    blank, comma = (
        draw(st.sampled_from(["", " ", "\n        "])),
        draw(st.sampled_from([",", " , ", ", # c\n        "])),
    )
    items = draw(st.lists(_flow(depth - 1), max_size=3))
    if draw(st.booleans()):
        return f"[{blank}{comma.join(items)}{blank}]"
    return "{" + blank + comma.join(f'"k{number}":  {item}' for number, item in enumerate(items)) + blank + "}"


@st.composite
def _block(draw: st.DrawFn, indent: int) -> str:
    """A block scalar; what follows its bar."""
    lines = draw(st.lists(st.sampled_from(["a", "  b", "", "   ", "# no comment", "c  "]), min_size=1, max_size=5))
    by = draw(st.integers(1, 6))
    told = str(by) if lines[0].startswith(" ") or draw(st.booleans()) else ""
    style = draw(st.sampled_from("|>")) + told + draw(st.sampled_from(["", "-", "+"]))
    body = "".join(f"{' ' * (indent + by)}{line}\n" if line.strip() else f"{line}\n" for line in lines)
    return f"{style}{draw(_COMMENT)}\n{body}"


@st.composite
def _map(draw: st.DrawFn, indent: int, depth: int) -> str:
    parts = []
    for number in range(draw(st.integers(1, 3))):
        above = draw(_ABOVE)
        parts.append(f"{above}\n" if above else "")
        parts.append(f"{' ' * indent}k{number}{draw(st.sampled_from(['', ' ']))}:" + draw(_value(indent, depth)))
    return "".join(parts)


@st.composite
def _list(draw: st.DrawFn, indent: int, depth: int) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        above = draw(_ABOVE)
        dash = "-" + " " * draw(st.integers(1, 4))
        nested = draw(_map(indent + len(dash), depth - 1)) if depth and draw(st.booleans()) else None
        if nested is not None and nested.startswith(" "):
            value = f"{dash}{nested.lstrip(' ')}"
        else:
            value = "-" + draw(_value(indent, depth))
        parts.append((f"{above}\n" if above else "") + " " * indent + value)
    return "".join(parts)


@st.composite
def _value(draw: st.DrawFn, indent: int, depth: int) -> str:
    """What follows a colon or a dash, up to the line's end and with all that stands below it."""
    kind = draw(st.sampled_from(["scalar", "flow", "block", "lines", *(["map", "list", "bare"] if depth else [])]))
    if kind in ("scalar", "flow"):
        return f"{' ' * draw(st.integers(1, 3))}{draw(_scalar() if kind == 'scalar' else _flow())}{draw(_COMMENT)}\n"
    if kind == "block":
        return f" {draw(_block(indent))}"
    inner = indent + draw(st.integers(1, 5))
    if kind == "lines":
        blank = "\n" + " " * inner
        return draw(
            st.sampled_from([f" a{blank}b\n{blank}c\n", f' "a{blank}b \\{blank}c "\n', f" 'a  {blank}{blank}b'\n"])
        )
    head = draw(_COMMENT) + "\n"
    if kind == "map":
        return head + draw(_map(inner, depth - 1))
    return head + draw(_list(indent if kind == "bare" else inner, depth - 1))


@st.composite
def _texts(draw: st.DrawFn) -> str:
    texts = [draw(_map(0, 3)) for _ in range(draw(st.integers(1, 2)))]
    text = draw(st.sampled_from(["", "---\n", "# head\n\n---\n"])) + "---\n".join(texts)
    return text.replace("\n", "\r\n") if draw(st.integers(0, 9)) == 0 else text


@st.composite
def _own(draw: st.DrawFn) -> str:
    """A document of Basalt's own, its keys in any order, with texts and blank lines at its end."""
    values = {"kind": " Team\n", "spec": draw(_value(0, 2)), "metadata": f" {draw(_block(0))}", "z": draw(_value(0, 1))}
    keys = draw(st.permutations(["apiVersion", *values]))
    text = "".join(f"{key}:{values.get(key, ' basalt.dev/v1alpha1' + chr(10))}" for key in keys)
    return text + draw(st.sampled_from(["", "\n", "\n\n", "  \n", "# end\n"]))


def _is_readable(text: str) -> bool:
    try:
        return [*yaml_text.documents(text)] != []
    except Fault:  # what the drawing cannot rule out: a list under a list's own dash
        return False


@settings(max_examples=400, deadline=None)
@given(st.one_of(_texts(), _own()).filter(_is_readable))
def test_values_and_comments_stay_and_a_second_time_changes_nothing(text: str) -> None:
    once = formatted(text)  # raises where it would lose something

    values = [(each.value, len(each.ambiguous)) for each in yaml_text.documents(text)]
    assert [(each.value, len(each.ambiguous)) for each in yaml_text.documents(once)] == values
    own = "basalt.dev" in text  # there they move with their keys
    one, other = (comments(each.replace("\r\n", "\n")) for each in (once, text))
    assert sorted(one) == sorted(other) if own else one == other
    assert formatted(once) == once


class _Lines(list[Any]):
    """Lines that count how many of them were taken."""

    taken = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.taken += len(found) if isinstance(key, slice) else 1
        return found


def test_each_comment_costs_the_same_however_long_the_file() -> None:
    lines = _Lines(writing._Line("a: 1", "# why", number % 2) for number in range(1000))

    assert writing._joined(lines) == "\n".join(["a: 1 # why"] * 1000)
    assert lines.taken < 10 * len(lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files in the style, one that is not, JSON and what is no YAML."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.yaml").write_text("a: 1\n")
    (tmp_path / "in" / "b.yml").write_text("b: 1\n")
    (tmp_path / "in" / "c.yaml").write_text("c:\n- {d:  1 }  # e\n")
    (tmp_path / "in" / "nodes.json").write_text('{"kind":  "List"}')
    return tmp_path


def test_files_are_rewritten_in_place_and_counted(folder: Path) -> None:
    file = folder / "in" / "c.yaml"
    file.chmod(0o640)

    done = basalt("fmt", "in", cwd=folder)

    assert (done.returncode, done.stdout, done.stderr) == (0, "1 file reformatted, 2 files left unchanged\n", "")
    assert file.read_text() == "c:\n  - {d: 1} # e\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert (folder / "in" / "nodes.json").read_text() == '{"kind":  "List"}'
    assert sorted(os.listdir(folder / "in")) == ["a.yaml", "b.yml", "c.yaml", "nodes.json"]
    assert basalt("fmt", "in", cwd=folder).stdout == "3 files left unchanged\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays(folder: Path) -> None:
    file = folder / "in" / "c.yaml"
    os.chown(file, 1234, 1235)

    assert basalt("fmt", "in/c.yaml", cwd=folder).stdout == "1 file reformatted\n"
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 1235)


def test_a_link_stays_a_link(folder: Path) -> None:
    (folder / "link.yaml").symlink_to("in/c.yaml")

    assert basalt("fmt", "link.yaml", cwd=folder).stdout == "1 file reformatted\n"
    assert (folder / "link.yaml").is_symlink()
    assert (folder / "in" / "c.yaml").read_text() == "c:\n  - {d: 1} # e\n"


def test_check_names_what_would_change_and_changes_nothing(folder: Path) -> None:
    done = basalt("fmt", "--check", "in", cwd=folder)

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "would reformat: in/c.yaml\n1 file would be reformatted, 2 files already formatted\n"
    assert (folder / "in" / "c.yaml").read_text() == "c:\n- {d:  1 }  # e\n"
    assert basalt("fmt", "--check", "in/a.yaml", cwd=folder).returncode == 0


def test_diff_shows_what_would_change(folder: Path) -> None:
    done = basalt("fmt", "--diff", "in", cwd=folder)

    assert done.returncode == 1
    assert done.stdout == ("--- in/c.yaml\n+++ in/c.yaml\n@@ -1,3 +1,3 @@\n c:\n-- {d:  1 }  # e\n+  - {d: 1} # e\n \n")
    assert done.stderr == "1 file would be reformatted, 2 files already formatted\n"


def test_a_file_that_cannot_be_read_is_a_finding_and_the_others_are_formatted(folder: Path) -> None:
    (folder / "in" / "bad.yaml").write_text("a: [\n")
    (folder / "in" / "chart.yaml").write_text("a: {{ .Values.a }}\n")

    done = basalt("fmt", "in", cwd=folder)

    assert done.returncode == 1
    assert done.stdout == "1 file reformatted, 2 files left unchanged, 2 files cannot be formatted\n"
    assert "in/bad.yaml:1:4: not YAML: the [ that begins here is never closed [document-parses]" in done.stderr
    assert "in/chart.yaml:1:5: a key that is itself a map or a list [document-parses]" in done.stderr
    assert "{{ }} is a template's, to be rendered first (helm template)" in done.stderr
    assert (folder / "in" / "c.yaml").read_text() == "c:\n  - {d: 1} # e\n"


def test_line_ends_that_no_editor_counts_leave_the_file_as_it_is(folder: Path) -> None:
    (folder / "in" / "c.yaml").write_bytes(b"a:   1\rb: 2\n")

    done = basalt("fmt", "in", cwd=folder)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "in/c.yaml:1: the file is left as it is: it has line ends that are not those of editors" in done.stderr
    assert (folder / "in" / "c.yaml").read_bytes() == b"a:   1\rb: 2\n"


def test_a_refused_file_is_named_with_its_line_and_the_others_are_formatted(folder: Path) -> None:
    (folder / "in" / "b.yml").write_text("a:\n\ufeff\n  b: 1\n")

    done = basalt("fmt", "in", cwd=folder)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("in/b.yml:2: the file is left as it is: a byte order mark within the text")
    assert (folder / "in" / "c.yaml").read_text() == "c:\n  - {d: 1} # e\n"


def test_json_tells_the_state_of_each_file(folder: Path) -> None:
    (folder / "in" / "bad.yaml").write_text("a: [\n")

    done = basalt("fmt", "in", "--check", "--format", "json", cwd=folder)
    found = json.loads(done.stdout)

    assert done.returncode == 1
    assert [(each["file"], each["state"]) for each in found["files"]] == [
        ("in/a.yaml", "unchanged"),
        ("in/b.yml", "unchanged"),
        ("in/bad.yaml", "failed"),
        ("in/c.yaml", "changed"),
    ]
    assert [each["rule"] for each in found["findings"]] == ["document-parses"]
    assert found["summary"] == {"changed": 1, "unchanged": 2, "failed": 1}


@pytest.mark.parametrize(
    ("text", "arguments", "code", "stdout"),
    [
        ("a:   1\n", [], 0, "a: 1\n"),
        ("a:   1\n", ["--check"], 1, "would reformat: stdin\n1 file would be reformatted\n"),
        ("a: [\n", [], 1, ""),
    ],
)
def test_stdin_goes_to_stdout(tmp_path: Path, text: str, arguments: list[str], code: int, stdout: str) -> None:
    command = [sys.executable, "-m", "basalt", "fmt", "-", *arguments]
    done = subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout.removesuffix("1 file cannot be formatted\n")) == (code, stdout)


@pytest.mark.parametrize("words", ["fmt -", "init new --nodes -", "import - -o new", "fit in --snapshot -"])
def test_a_closed_stdin_is_misuse(folder: Path, words: str) -> None:
    command = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "basalt", *words.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", "basalt: cannot read stdin: it is closed\n")


def test_an_environment_is_found_by_its_name(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "stacks" / "seed", tmp_path / "stacks" / "seed")

    assert basalt("fmt", "seed", cwd=tmp_path).stdout == "3 files left unchanged\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing"], "basalt: no environment nothing: neither a path nor a folder under stacks/"),
        (["-", "in"], "basalt: - stands for stdin, and excludes other paths"),
        ([], "basalt fmt: the following arguments are required: PATH"),
        (["/dev/null"], "basalt: /dev/null is neither a folder nor a regular file; - formats stdin to stdout"),
        (["out"], "basalt: out is what `basalt compile` wrote; format what it was made of"),
    ],
)
def test_misuse_is_one_line(folder: Path, arguments: list[str], line: str) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "basalt.json").touch()
    done = basalt("fmt", *arguments, cwd=folder)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(line)
