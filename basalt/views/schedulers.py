"""Which schedulers of Volcano are declared, by the names that pods call them by."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import get
from basalt.views import charts, images
from basalt.views.charts import Values

DEFAULT = "volcano"  # --scheduler-name of vc-scheduler
_SCHEDULER, _AGENT = "vc-scheduler", "vc-agent-scheduler"
_DEFAULTS = {_SCHEDULER: DEFAULT, _AGENT: "agent-scheduler"}  # cmd/*scheduler/app/options/options.go
_FLAG = "--scheduler-name"


def names(values: Iterable[Values], deployments: Iterable[KubeObject] = ()) -> tuple[str, ...]:
    """The names that the values of Volcano's charts and the schedulers' own Deployments give, those of agent schedulers
    last; the default one where none is given."""
    given: dict[str, list[Any]] = {program: [] for program in _DEFAULTS}
    for each in values:
        if each.chart == charts.VOLCANO:
            given[_SCHEDULER].append(each.get(("custom", "scheduler_name")))
            if each.get(("custom", "agent_scheduler_enable")):
                given[_AGENT].append(each.get(("custom", "agent_scheduler_name")) or _DEFAULTS[_AGENT])
    for deployment in deployments:
        for program, name in _of_deployment(deployment):
            given[program].append(name)
    schedulers = [str(name) for name in given[_SCHEDULER] if name] or [DEFAULT]
    return tuple(dict.fromkeys([*schedulers, *map(str, given[_AGENT])]))


def _of_deployment(deployment: KubeObject) -> Iterator[tuple[str, str]]:
    """The schedulers that it runs, each with a name."""
    pod = mapping(get(deployment.value, ("spec", "template", "spec")))
    for container in map(mapping, sequence(pod.get("containers"))):
        if (program := images.program(container.get("image"))) in _DEFAULTS:
            words = " ".join([*strings(container.get("command")), *strings(container.get("args"))]).split()
            yield from ((program, name) for name in _flagged(words) or [_DEFAULTS[program]])


def _flagged(words: list[str]) -> list[str]:
    """Every name given; the flag may be repeated (StringArrayVar in cmd/scheduler/app/options/options.go)."""
    return [
        *(word.partition("=")[2].strip("'\"") for word in words if word.startswith(f"{_FLAG}=")),
        *(after for word, after in pairwise(words) if word == _FLAG),
    ]
