"""The jobs that must still run when any one domain of a tier has failed, and whether they do."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from basalt.fit import losing, verdicts
from basalt.fit.job import Job
from basalt.fit.problem import Key
from basalt.fit.refitting import Loss, Together, losses
from basalt.fit.verdicts import Solved, State, Verdict
from basalt.index import Index
from basalt.names import counted, listed
from basalt.views.survival import tier_of

_MOST_NODES = 20_000_000  # times jobs, judged anew, before a job's falls are no longer counted to the last


class Survival(NamedTuple):
    """What becomes of a job that must survive: in falls the verdict without each domain of which it does not survive
    the loss, in open the same where none was found; number is that of the domains, unseen that of those which were
    not looked at any more."""

    job: Job
    tier: str
    number: int
    falls: tuple[tuple[str, Verdict], ...] = ()
    open: tuple[tuple[str, Verdict], ...] = ()
    unseen: int = 0

    @property
    def text(self) -> str:
        """The fact, and the reason where the first domain is lost."""
        if not self.number:
            return f"tier {self.tier} has no domain that could fail"
        worst = self.falls or self.open
        if not worst:
            return f"survives the loss of any one of {counted(self.number, 'domain')} of tier {self.tier}"
        fact = "does not survive" if self.falls else "it is not known whether it survives"
        least = "at least " if self.unseen else ""
        where = f"the loss of {listed(name for name, _ in worst)}"
        reason = worst[0][1].reason
        why = f"without {worst[0][0]}, {reason.message if reason else 'it does not fit'}"
        return f"{fact} {where} ({least}{len(worst)} of {counted(self.number, 'domain')} of tier {self.tier}): {why}"


@lru_cache(maxsize=1)  # the rule and the command ask for the same
def of(index: Index) -> tuple[Survival, ...]:
    """Those of the jobs that fit as long as nothing has failed; a tier that does not exist has another rule."""
    if not any(tier_of(verdict.job.object) for verdict in verdicts.of(index)):
        return ()
    solved = verdicts.solved(index)
    tiers: dict[str, list[Job]] = {}
    for verdict in solved.verdicts:
        tier = tier_of(verdict.job.object)
        if tier is not None and verdict.state is State.FITS:
            tiers.setdefault(tier, []).append(verdict.job)
    search = _Search(index, solved)
    return tuple(each for tier, jobs in tiers.items() for each in search.of_tier(tier, jobs))


class _Search:
    """Looks for the losses that jobs do not survive: what is not seen quickly is judged anew, once for all jobs."""

    def __init__(self, index: Index, solved: Solved) -> None:
        self._index = index
        self._solved = solved
        self._judged: dict[frozenset[str], dict[Key, Verdict]] = {}
        self._size = len(index.nodes) * len(solved.verdicts)

    def of_tier(self, tier: str, jobs: Sequence[Job]) -> Iterator[Survival]:
        """Of jobs in the order of their verdicts."""
        domains = losing.domains_of(self._index, tier)
        open_: Sequence[Loss] = [*losses(self._index, self._solved.read.problem, domains)]
        doubts = {}
        for job in reversed(jobs):  # what all up to a job withstand, all up to an earlier one do
            together = self._up_to(job)
            doubts[job.key] = open_ = [loss for loss in open_ if not together.withstand(loss)]
        for job in jobs:
            yield self._of_job(job, Survival(job, tier, len(domains)), doubts[job.key])

    def _up_to(self, job: Job) -> Together:
        """The jobs that fit, up to this one: those after it give way."""
        gangs = []
        for verdict in self._solved.verdicts:
            if verdict.state is State.FITS:
                gangs.append(verdict.job.gang)
            if verdict.job is job:
                break
        return Together(self._solved.read.problem, gangs, self._solved.placement)

    def _of_job(self, job: Job, found: Survival, doubts: Iterable[Loss]) -> Survival:
        falls: list[tuple[str, Verdict]] = []
        open_: list[tuple[str, Verdict]] = []
        unseen = 0
        for loss in doubts:
            if (falls or open_) and self._is_spent() and loss.nodes not in self._judged:
                unseen += 1
                continue
            after = self._without(loss)[job.key]
            if after.state is State.UNKNOWN:
                open_.append((loss.domain, after))
            elif after.state is not State.FITS:
                falls.append((loss.domain, after))
        return found._replace(falls=tuple(falls), open=tuple(open_), unseen=unseen)

    def _is_spent(self) -> bool:
        return len(self._judged) * self._size >= _MOST_NODES

    def _without(self, loss: Loss) -> dict[Key, Verdict]:
        if loss.nodes not in self._judged:
            self._judged[loss.nodes] = {each.job.key: each for each in losing.without(self._index, loss.nodes)}
        return self._judged[loss.nodes]
