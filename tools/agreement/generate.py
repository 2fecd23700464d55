"""Writes docs/agreement.md: what the real API server and Volcano's webhooks say about every case of every rule, and
what the real scheduler does with random environments, beside what Basalt says: `make agreement`. With --changed only
those environments are put to the scheduler that were not before. Takes the sandbox, which is built on first use and
needs Go for that."""

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from tools.agreement import clusters, expecting, hearing, outcomes, page, scheduling, verdict_page  # noqa: E402
from tools.agreement.hearing import Heard  # noqa: E402
from tools.agreement.outcomes import Outcome  # noqa: E402
from tools.agreement.probing import Stuck  # noqa: E402
from tools.agreement.scheduling import Case as Played  # noqa: E402
from tools.agreement.verdict_page import Compared  # noqa: E402

FILE = ROOT / "docs" / "agreement.md"
_BATCH = 90  # environments in one sandbox, about 700 nodes

Progress = Callable[[str], None]


def all_cases() -> list[Case]:
    """Every case, by rule; a step from a base is nothing that can be put to a cluster."""
    return [case for rule in sorted(RULES) for case in cases.read(rule) if case.base is None]


def hear(cluster: Cluster, chosen: Iterable[Case], progress: Progress) -> list[Heard]:
    """The cases, compiled and put to the cluster, which is to be a sandbox with nothing in it."""
    return hearing.hear(cluster, list(_compiled(chosen)), progress)


@contextlib.contextmanager
def sandbox(progress: Progress, wanted: Wanted | None = None) -> Iterator[Cluster]:
    """A sandbox, an empty one by default, which no other command of this user sees. Refusal where it cannot be
    built."""
    built = programs.programs(progress)
    wanted = wanted or Wanted([], manifests.adapted(CHART_DEFAULT)[0])
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


def text(heard: Sequence[Heard], compared: Sequence[Compared]) -> str:
    """The page."""
    return f"{page.text(heard)}\n{verdict_page.text(compared)}"


def compared() -> list[Compared]:
    """All environments, as they are now, with what the scheduler did when it last had them."""
    kept = outcomes.read()
    return [Compared(expecting.expected(clusters.drawn(number)), kept[number]) for number in range(clusters.COUNT)]


def play(numbers: Sequence[int], progress: Progress) -> Iterator[dict[int, Outcome]]:
    """What the scheduler does with the environments of these numbers: sandbox after sandbox."""
    for start in range(0, len(numbers), _BATCH):
        progress(f"{start} of {len(numbers)} environments")
        drawn = [clusters.drawn(number) for number in numbers[start : start + _BATCH]]
        cases = [Played(each, expecting.expected(each)) for each in drawn]
        with sandbox(lambda _: None, scheduled_sandbox(cases)) as cluster:
            played = scheduling.play(cluster, cases)
        yield {each.drawn.number: outcomes.outcome(*each, played[each.drawn.number]) for each in cases}


def scheduled_sandbox(cases: Iterable[Played]) -> Wanted:
    """A sandbox with the nodes of all these environments, under Basalt's own configuration of the scheduler."""
    nodes = (node for each in cases for node in each.drawn.nodes)
    return manifests.wanted(expecting.compiled([clusters.ENVIRONMENT, clusters.ballast(), *nodes]))


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes docs/agreement.md.")
    parser.add_argument("--changed", action="store_true", help="play only the environments that were not played before")
    options = parser.parse_args()

    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    kept = outcomes.read() if options.changed else {}
    due = [number for number in range(clusters.COUNT) if not outcomes.is_current(kept, number)]
    try:
        with sandbox(progress) as cluster:
            heard = hear(cluster, all_cases(), progress)
        for found in play(due, progress):
            kept |= found
            outcomes.write(kept)  # --changed goes on from here
    except (Refusal, Failed, Stuck) as refusal:
        print(f"agreement: {refusal}", file=sys.stderr)
        return 1
    FILE.write_text(text(heard, compared()), encoding="utf-8")
    print(FILE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
