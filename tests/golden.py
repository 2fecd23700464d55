"""The golden trees: what `basalt compile` writes for every environment under stacks/. `make golden` rewrites them; the
test only compares. Every change to them is read line by line."""

import shutil
from pathlib import Path

from basalt.compiling import compile_folder
from basalt.loading.files import STAMP
from basalt.rendering import layout

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "golden"
ENVIRONMENTS = tuple(sorted(path.parent.name for path in (ROOT / "stacks").glob("*/environment.yaml")))


def compiled(environment: str) -> dict[str, str]:
    """Every file of the output but the stamp, whose digests change with each word of the input."""
    compilation = compile_folder(ROOT / "stacks" / environment)
    files = layout.render(compilation.objects, compilation.files, compilation.name, str(ROOT))
    return {file.path: file.content.decode() for file in files if file.path != STAMP}


def main() -> None:
    for environment in ENVIRONMENTS:
        shutil.rmtree(FOLDER / environment, ignore_errors=True)
        for path, text in compiled(environment).items():
            file = FOLDER / environment / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
