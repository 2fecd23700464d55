"""The part of docs/agreement.md about verdicts: what the real scheduler did with the environments. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from basalt.fit.verdicts import State
from basalt.sandbox import programs
from tools.agreement import clusters
from tools.agreement.expecting import Expected, called
from tools.agreement.outcomes import Outcome

_ABOUT = """## Verdicts and the scheduler

{environments} random environments (`tools/agreement/clusters.py`, the number of each is its seed) with {jobs} jobs, put
to the scheduler of Volcano {volcano} under Basalt's own configuration: racks of unequal size and domains of tier 2,
nodes of several shapes, some tainted or cordoned, queues with parents, capabilities and guarantees, two to six jobs of
two priorities with one or two kinds of pods, a minimum of all pods or fewer, and a hard topology of tier 1 or 2, a soft
one or none. In the last {company} jobs ask for company too: pod affinity, anti-affinity or topology spread.

Many environments stand in one sandbox, kept apart by node selectors. A node that no job may use gives the root queue
more than enough of everything; the limits that count are those of the environment's own queues: guarantees are set
aside below a parent that holds just the environment's nodes.

Each job runs alone on its empty cluster first, `contended` or not; then, in every second environment, all its jobs run
together. A job is Pending when nothing more happens to it for a number of the scheduler's sessions: at least 25 where
Basalt says that it runs, 10 where it calls the job tight, 2 where it says never.

| called | jobs | ran alone | stayed Pending |
|---|---|---|---|
{alone}

{rates}

Together, where `contended` promises nothing, and `fits` only that there is a placement, which the scheduler may miss
with the jobs in its own order:

| called | jobs | ran | stayed Pending |
|---|---|---|---|
{together}

The checker accepts where the gangs then stood in {sound} of {tried} environments.

### Where they differ

"""
_RATES = """- `never`: {never_ran} of {never} ran.
- `fits` or `contended`, and not tight: {fits_ran} of {fits} ran alone, {fits_share} %.
- tight: {tight_pending} of {tight} stayed Pending, {tight_share} %. Pods with the same number in their tasks are taken
  in the order of their UIDs, which are drawn once: a job is called tight where some of the orders lead nowhere."""
_FATES = {True: "ran", False: "stayed Pending"}
# The jobs whose verdict the scheduler did not follow, and why.
CAUSES: Mapping[str, str] = {}


class Compared(NamedTuple):
    """What Basalt says of an environment, and what the scheduler did."""

    expected: Expected
    outcome: Outcome


class Differing(NamedTuple):
    """A job that did what its verdict excludes: what it is called, and whether it ran."""

    job: str
    called: str
    ran: bool


def differing(compared: Sequence[Compared]) -> list[Differing]:
    """Of the jobs called never, those that ran, alone or together; of those called fits, those that did not, alone."""
    found = []
    for expected, outcome in compared:
        together = outcome.together or [False] * len(outcome.alone)
        for job, alone, jointly in zip(expected.verdicts, outcome.alone, together, strict=True):
            word = called(expected.verdicts[job])
            if (word == State.NEVER and (alone or jointly)) or (word == State.FITS and not alone):
                found.append(Differing(job, word, alone or jointly))
    return found


def counts(compared: Sequence[Compared]) -> Counter[tuple[str, bool]]:
    """How many jobs ran alone and did not, by what they are called."""
    return Counter(
        (called(verdict), ran)
        for expected, outcome in compared
        for verdict, ran in zip(expected.verdicts.values(), outcome.alone, strict=True)
    )


def text(compared: Sequence[Compared]) -> str:
    """The part of the page."""
    alone = counts(compared)
    together = Counter(
        (_jointly(expected, job), ran)
        for expected, outcome in compared
        for job, ran in zip(expected.verdicts, outcome.together, strict=False)  # none where that was not tried
    )
    tried = [each for each in compared if each.outcome.together]
    about = _ABOUT.format(
        environments=len(compared), company=clusters.COUNT - clusters.COMPANY, jobs=sum(alone.values()),
        volcano=programs.VOLCANO,
        alone="\n".join(_table(alone)), together="\n".join(_table(together)),
        rates=_rates(alone), tried=len(tried), sound=sum(each.outcome.is_sound for each in tried),
    )  # fmt: skip
    return about + "\n".join(_lines(differing(compared))) + "\n"


def _jointly(expected: Expected, job: str) -> str:
    verdict = expected.verdicts[job]
    return f"{verdict.state.value}, tight" if verdict.tight else verdict.state.value


def _table(found: Counter[tuple[str, bool]]) -> Iterator[str]:
    for word in sorted({word for word, _ in found}):
        ran, pending = found[word, True], found[word, False]
        yield f"| {word} | {ran + pending} | {ran} | {pending} |"


def _rates(alone: Counter[tuple[str, bool]]) -> str:
    never, fits, tight = ((alone[word, True], alone[word, False]) for word in ("never", "fits", "tight"))
    return _RATES.format(
        never_ran=never[0], never=sum(never),
        fits_ran=fits[0], fits=sum(fits), fits_share=_percent(fits[0], fits),
        tight_pending=tight[1], tight=sum(tight), tight_share=_percent(tight[1], tight),
    )  # fmt: skip


def _percent(part: int, whole: Sequence[int]) -> str:
    """Rounded down, so that 100 means all."""
    tenths = 1000 * part // (sum(whole) or 1)
    return f"{tenths / 10:g}"


def _lines(found: Sequence[Differing]) -> Iterator[str]:
    for each in found:
        cause = CAUSES.get(each.job, "the cause is not known")
        yield f"- {each.job}, called {each.called}, {_FATES[each.ran]}: {cause}"
    if not found:
        yield "Nowhere."
