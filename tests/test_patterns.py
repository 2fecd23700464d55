"""The five patterns of use: their page shows what its commands print and what the examples say, and their jobs run, one
by one and all together."""

import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from basalt.compiling import compile_folder
from basalt.fit import reading
from basalt.fit.verdicts import verdicts
from tests import golden
from tools.docs import patterns

PAGE = patterns.FILE.read_text(encoding="utf-8")
PATTERNS = tuple(name for name in golden.EXAMPLES if name != "cluster")
_EXCERPT = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def judged(folder: Path) -> list[tuple[str, str]]:
    return [(str(each.job.key), each.state.value) for each in verdicts(reading.read(compile_folder(folder).index))]


@cache
def sources() -> tuple[str, ...]:
    """What the examples say, and what is compiled from them, a text for each file."""
    folders = (golden.ROOT / "examples", golden.FOLDER / "examples")
    return tuple(file.read_text(encoding="utf-8") for folder in folders for file in sorted(folder.rglob("*.yaml")))


@pytest.mark.slow
def test_every_output_of_the_page_is_that_of_its_command(tmp_path: Path) -> None:
    assert patterns.text(PAGE, tmp_path) == PAGE, "run `make docs`"


@pytest.mark.parametrize("excerpt", _EXCERPT.findall(PAGE), ids=lambda text: text.strip().partition("\n")[0])
def test_every_excerpt_of_the_page_is_out_of_a_file(excerpt: str) -> None:
    assert any(excerpt in text for text in sources())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_page_has_a_section_on_every_pattern(pattern: str) -> None:
    assert f"$ basalt fit examples/{pattern}\n" in PAGE


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_job_of_an_example_fits(pattern: str) -> None:
    found = judged(golden.ROOT / "examples" / pattern)

    assert found != []
    assert {state for _, state in found} == {"fits"}


def test_the_examples_run_side_by_side_as_they_do_alone(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / "examples", tmp_path / "examples")
    (tmp_path / "Pulumi.yaml").touch()
    extended = ", ".join(f"../{pattern}" for pattern in PATTERNS)
    together = tmp_path / "examples" / "together"
    together.mkdir()
    (together / "environment.yaml").write_text(
        "apiVersion: basalt.dev/v1alpha1\nkind: Environment\nmetadata: {name: together}\n"
        f"spec: {{extends: [{extended}]}}\n"
    )

    compilation = compile_folder(together)
    assert compilation.findings == ()
    assert {state for _, state in judged(together)} == {"fits"}
    every = {each.ref: each.value for each in compilation.objects}
    for pattern in PATTERNS:
        for each in compile_folder(tmp_path / "examples" / pattern).objects:
            assert every[each.ref] == each.value
