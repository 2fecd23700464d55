"""Writes requirements.txt (what the compiler needs, and its build backend), requirements-pulumi.txt (what `pulumi up`
needs on top), requirements-dev.txt (what the tests need on top of both) and requirements-fuzzing.txt from
pyproject.toml, with the hash of every file and no download address."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_QUIET = ["--quiet", "--generate-hashes", "--allow-unsafe", "--strip-extras", "--no-header"]
_NO_ADDRESSES = ["--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host", "--no-annotate"]


def lock(output: str, wanted: list[str], constraints: list[str]) -> None:
    lines = "\n".join([*wanted, *(f"-c {ROOT / each}" for each in constraints)])
    command = [sys.executable, "-m", "piptools", "compile", *_QUIET, *_NO_ADDRESSES, "--output-file", output, "-"]
    subprocess.run(command, input=lines + "\n", text=True, check=True, cwd=ROOT)


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build = project["build-system"]["requires"]
    lock("requirements.txt", [*project["project"]["dependencies"], *build], [])
    dev = [each for each in project["dependency-groups"]["dev"] if each not in build]
    pulumi = project["project"]["optional-dependencies"]["pulumi"]
    lock("requirements-pulumi.txt", pulumi, ["requirements.txt"])
    lock("requirements-dev.txt", dev, ["requirements.txt", "requirements-pulumi.txt"])
    lock("requirements-fuzzing.txt", project["dependency-groups"]["fuzzing"], ["requirements.txt"])


if __name__ == "__main__":
    main()
