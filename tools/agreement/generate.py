"""Writes docs/agreement.md: what the real API server and Volcano's webhooks say about every case of every rule, beside
what Basalt says: `make agreement`. Takes the sandbox, which is built on first use and needs Go for that."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # so that the checkout's own compiler judges, installed or not

from basalt.cluster.connection import Cluster, connect  # noqa: E402  # the path comes first
from basalt.compiling import Compilation  # noqa: E402
from basalt.rules import RULES  # noqa: E402
from basalt.sandbox import manifests, programs, sandboxes  # noqa: E402
from basalt.sandbox.control_plane import Failed  # noqa: E402
from basalt.sandbox.go_programs import Refusal  # noqa: E402
from basalt.sandbox.manifests import Wanted  # noqa: E402
from basalt.views.scheduler_configuration import CHART_DEFAULT  # noqa: E402
from tests import cases  # noqa: E402
from tests.cases import Case  # noqa: E402
from tools.agreement import hearing, page  # noqa: E402
from tools.agreement.hearing import Heard  # noqa: E402

FILE = ROOT / "docs" / "agreement.md"

Progress = Callable[[str], None]


def all_cases() -> list[Case]:
    """Every case, by rule; a step from a base is nothing that can be put to a cluster."""
    return [case for rule in sorted(RULES) for case in cases.read(rule) if case.base is None]


def hear(cluster: Cluster, chosen: Iterable[Case], progress: Progress) -> list[Heard]:
    """The cases, compiled and put to the cluster, which is to be a sandbox with nothing in it."""
    return hearing.hear(cluster, list(_compiled(chosen)), progress)


@contextlib.contextmanager
def sandbox(progress: Progress) -> Iterator[Cluster]:
    """An empty sandbox, which no other command of this user sees. Refusal where it cannot be built."""
    built = programs.programs(progress)
    wanted = Wanted([], manifests.adapted(CHART_DEFAULT)[0])
    with tempfile.TemporaryDirectory() as folder, _environment("XDG_STATE_HOME", folder):
        made = sandboxes.up("agreement", Path("agreement"), wanted, built, progress)
        try:
            cluster = connect(str(made.kubeconfig))
            yield cluster
            cluster.close()
        finally:
            sandboxes.down(made)


def _compiled(chosen: Iterable[Case]) -> Iterator[tuple[Case, Compilation]]:
    for case in chosen:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            compilation = cases.run(case, Path(folder), os)
        yield case, compilation


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def main() -> int:
    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        with sandbox(progress) as cluster:
            FILE.write_text(page.text(hear(cluster, all_cases(), progress)), encoding="utf-8")
    except (Refusal, Failed) as refusal:
        print(f"agreement: {refusal}", file=sys.stderr)
        return 1
    print(FILE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
