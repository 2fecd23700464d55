"""One case after the other before the API server."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from basalt.cluster.connection import Cluster, Refusal
from basalt.compiling import Compilation
from basalt.objects import KubeObject
from tests.cases import Case
from tools.agreement import needs
from tools.agreement.asking import Answer, Verdict, ask
from tools.agreement.stage import KEPT, Stage

HAS_NONE = re.compile('namespaces "(.*)" not found')


class Heard(NamedTuple):
    """A case, what Basalt made of it, and what the API server says to each of its objects."""

    case: Case
    compilation: Compilation
    answers: Sequence[tuple[KubeObject, Answer]]


def hear(cluster: Cluster, cases: Iterable[tuple[Case, Compilation]], progress: Callable[[str], None]) -> list[Heard]:
    """All of them, in the order given."""
    cases = list(cases)
    absent = [needs.needs(compilation).no_definitions for _, compilation in cases]
    stage = Stage(cluster, needs.definitions(compilation for _, compilation in cases))
    stage.begin(absent=frozenset().union(*absent))
    found = {}
    order = sorted(range(len(cases)), key=lambda number: not absent[number])  # those first, to remove no stand-in
    for done, number in enumerate(order):
        case, compilation = cases[number]
        if done % 100 == 0:
            progress(f"{done} of {len(cases)} cases")
        found[number] = Heard(case, compilation, _answers(cluster, stage, compilation))
    return [found[number] for number in range(len(cases))]


def _answers(cluster: Cluster, stage: Stage, compilation: Compilation) -> list[tuple[KubeObject, Answer]]:
    objects, wanted = needs.sent(compilation), needs.needs(compilation)
    stage.prepare(wanted)
    try:
        answers = [_answer(cluster, stage, each) for each in objects]
        stage.add_namespaces(wanted.no_namespaces)
        return [
            (each, _again(cluster, each, answer) if each.ref.namespace in wanted.no_namespaces else answer)
            for each, answer in zip(objects, answers, strict=True)
        ]
    finally:
        stage.clear()


def _again(cluster: Cluster, declared: KubeObject, answer: Answer) -> Answer:
    """The answer where the object has its namespace: what else is wrong does not hide behind its absence."""
    if not HAS_NONE.fullmatch(answer.message):
        return answer
    return ask(cluster, declared.value, declared.ref)._replace(lacking=answer.message)


def _answer(cluster: Cluster, stage: Stage, declared: KubeObject) -> Answer:
    answer = ask(cluster, declared.value, declared.ref)
    if (declared.ref.group, declared.ref.kind) in KEPT:
        instead = needs.stand_in(declared) if answer.verdict is Verdict.REFUSED else declared.value
        if instead is not None:
            with suppress(Refusal):  # a name that nothing can have
                stage.make(instead)
    return answer
