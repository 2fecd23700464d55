"""The golden trees: what `basalt compile` writes for every environment under stacks/ and examples/. `make golden`
rewrites them; the test only compares. Every change to them is read line by line."""

import shutil
from pathlib import Path

from basalt.compiling import compile_folder
from basalt.loading.files import STAMP
from basalt.rendering import layout

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "golden"
ENVIRONMENTS = tuple(sorted(path.parent.name for path in (ROOT / "stacks").glob("*/environment.yaml")))
EXAMPLES = tuple(sorted(path.parent.name for path in (ROOT / "examples").glob("*/environment.yaml")))
# The environments' folders, by the names of their trees.
SOURCES = {name: ROOT / "stacks" / name for name in ENVIRONMENTS} | {
    f"examples/{name}": ROOT / "examples" / name for name in EXAMPLES
}


def compiled(tree: str) -> dict[str, str]:
    """Every file of the output but the stamp, whose digests change with each word of the input."""
    compilation = compile_folder(SOURCES[tree])
    files = layout.render(compilation.objects, compilation.files, compilation.name, str(ROOT))
    return {file.path: file.content.decode() for file in files if file.path != STAMP}


def main() -> None:
    for tree in SOURCES:
        shutil.rmtree(FOLDER / tree, ignore_errors=True)
        for path, text in compiled(tree).items():
            file = FOLDER / tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
