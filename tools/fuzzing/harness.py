"""One target under atheris, which looks for bytes that reach new code. Goes on after a failure: each kind is kept once.

    python -m tools.fuzzing.harness TARGET FOLDER [libFuzzer's options]

FOLDER/corpus holds what was found worth keeping, FOLDER/failures the bytes of each kind of failure and its traceback.
"""

import os
import sys
import tempfile
import traceback
from hashlib import sha256
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["basalt"]):
    from tools.fuzzing.targets import TARGETS, Target


class Kept:
    """The target, whose failures are written down and not raised."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.seen: set[str] = set()

    def __call__(self, data: bytes) -> None:
        try:
            self.target(data)
        except Exception as error:  # noqa: BLE001 # whatever it is, it was not declared
            steps = traceback.extract_tb(error.__traceback__)[-3:]
            kind = f"{type(error).__name__} {' '.join(f'{step.filename}:{step.lineno}' for step in steps)}"
            if kind not in self.seen:
                self.seen.add(kind)
                path = self.folder / f"failure-{sha256(kind.encode()).hexdigest()[:12]}"
                path.write_bytes(data)
                path.with_suffix(".txt").write_text("".join(traceback.format_exception(error)), errors="replace")


def main() -> None:
    name, folder, *options = sys.argv[1:]
    target, seeds = TARGETS[name]
    corpus, failures = Path(folder, "corpus").resolve(), Path(folder, "failures").resolve()
    for each in (corpus, failures):
        each.mkdir(parents=True, exist_ok=True)
    for seed in seeds():
        data = seed.encode("utf-8", "replace")
        (corpus / sha256(data).hexdigest()[:16]).write_bytes(data)
    with tempfile.TemporaryDirectory() as room:
        (Path(room) / "Pulumi.yaml").touch()
        (Path(room) / "case").mkdir()
        os.chdir(Path(room) / "case")
        atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={failures}/", str(corpus)], Kept(target, failures))
        atheris.Fuzz()  # ends the process


if __name__ == "__main__":
    main()
