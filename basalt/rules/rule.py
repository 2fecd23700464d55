"""What a rule is."""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.plan.pair import Pair

Check = Callable[[Index], Iterable[Problem]]
PlanCheck = Callable[[Pair], Iterable[Problem]]
PAGES = Path(__file__).resolve().parent / "pages"


class Scope(enum.Enum):
    """What a rule has to look at together. Nodes and HyperNodes are many, and seldom change."""

    ALL = enum.auto()
    FABRIC = enum.auto()  # nodes, HyperNodes and the topology, and nothing else
    APART = enum.auto()  # these by themselves, and everything else by itself


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule's name, severity and check.

    needs are the facts without which it cannot be judged at all; partly_needs those without which it judges a part.
    A general rule stays silent about a value that a specific one speaks about. A private rule's findings never show
    the source line, because a secret may stand in it. One that follows from everything else stays silent where there is
    an error in what it follows from: the documents, the topology, the queues, or the same object. on_plan is what the
    rule says about the step from one environment to another. The scope is what has to be looked at together.
    """

    name: str
    severity: Severity
    check: Check
    needs: tuple[Fact, ...] = ()
    partly_needs: tuple[Fact, ...] = ()
    is_general: bool = False
    is_private: bool = False
    follows: bool = False
    on_plan: PlanCheck | None = None
    scope: Scope = Scope.ALL

    @property
    def page(self) -> str:
        """The page that `basalt explain` prints: Markdown, from what the rule says to the way out."""
        return (PAGES / f"{self.name}.md").read_text(encoding="utf-8")


def of_plans(name: str, severity: Severity, check: PlanCheck) -> Rule:
    """A rule about plans alone: it has nothing to say about an environment by itself."""
    return Rule(name, severity, _nothing, on_plan=check)


def _nothing(_: Index) -> Iterable[Problem]:
    return ()


def noted(rule: str) -> Check:
    """The check of a rule whose problems are seen while the input is read."""
    return lambda index: index.noted.get(rule, ())
