"""Which parts of Volcano run in several replicas that do not elect a leader, so that each of them acts: by the values
of Volcano's chart, and by raw Deployments."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.api import booleans
from basalt.findings import Place
from basalt.loading import scalars
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer
from basalt.views import charts
from basalt.views.charts import Values

CHART_SWITCH = "leader_elect_enable"
FLAG = "--leader-elect"
# The parts whose main takes the flag and runs at once without it (cmd/*/app/server.go); webhooks keep no state.
_OF_CHART = {"scheduler": "vc-scheduler", "controller": "vc-controller-manager"}
_KINDS = ("Deployment", "StatefulSet", "ReplicaSet")
_CONTAINERS: Pointer = ("spec", "template", "spec", "containers")
_FLAG = re.compile(rf"{FLAG}(?:=(.*))?")
# What Go's strconv.ParseBool reads beside true and false.
_WORDS = {"1": True, "t": True, "T": True, "0": False, "f": False, "F": False}
_UNQUOTED_OFF = ("n", "N", "no", "No", "NO", "off", "Off", "OFF")  # to Helm; any other text is true to a template


class Leaderless(NamedTuple):
    """Parts that run in several replicas without a leader: each with its number, and what says that none leads."""

    place: Place
    pointer: Pointer
    replicas: Mapping[str, int]
    is_chart: bool
    reason: str


def leaderless(objects: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Leaderless]:
    """Every declaration of such parts, those of charts first."""
    for each in values:
        if each.chart == charts.VOLCANO:
            yield from _of_chart(each)
    for declared in objects:
        if declared.ref.group == "apps" and declared.ref.kind in _KINDS:
            yield from _of_pods(declared)


def says(value: Any) -> bool | None:
    """What a value means as a switch, be it a text (Go's strconv.ParseBool) or a word of YAML 1.1; None where it is no
    switch."""
    if isinstance(value, bool):
        return value
    return _WORDS.get(value, scalars.as_boolean(value)) if isinstance(value, str) else None


def _of_chart(values: Values) -> Iterator[Leaderless]:
    custom = mapping(values.get(("custom",)))
    switch = custom.get(CHART_SWITCH)
    if switch is not None and says(str(switch)) is not False:
        return
    several = {
        part: count
        for part in _OF_CHART
        if (count := _count(custom.get(f"{part}_replicas"))) > 1 and _is_installed(custom, part)
    }
    if several:
        at = CHART_SWITCH if CHART_SWITCH in custom else f"{next(iter(several))}_replicas"
        reason = f"{CHART_SWITCH} is false" + (" by default" if switch is None else "")
        replicas = {_OF_CHART[part]: count for part, count in several.items()}
        yield Leaderless(*values.at(("custom", at)), replicas, is_chart=True, reason=reason)


def _is_installed(custom: Mapping[str, Any], part: str) -> bool:
    """Whether the chart's template, {{- if .Values.custom.scheduler_enable }}, makes the part."""
    enable = custom.get(f"{part}_enable", True)
    return bool(enable) and enable not in _UNQUOTED_OFF


def _count(value: Any) -> int:
    """A number of replicas, which values may give as a text; 1 where it is none."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def _of_pods(declared: KubeObject) -> Iterator[Leaderless]:
    count = declared.spec.get("replicas")
    if not isinstance(count, int) or isinstance(count, bool) or count < 2:
        return
    pod = mapping(mapping(declared.spec.get("template")).get("spec"))
    for index, container in enumerate(sequence(pod.get("containers"))):
        name = _binary(mapping(container))
        flag = _last_flag(mapping(container)) if name else None
        if name and flag and flag[1] in booleans.FALSE:
            pointer = (*_CONTAINERS, index, *flag[0])
            yield Leaderless(declared, pointer, {name: count}, is_chart=False, reason=f"{FLAG}={flag[1]}")


def _binary(container: Mapping[str, Any]) -> str | None:
    """Which part of Volcano the container runs, by its image's name or its command."""
    image = container.get("image")
    base = image.partition("@")[0].rpartition("/")[2] if isinstance(image, str) else ""
    words = {word.rpartition("/")[2] for text in strings(container.get("command")) for word in text.split()}
    return next((name for name in _OF_CHART.values() if name in base or name in words), None)


def _last_flag(container: Mapping[str, Any]) -> tuple[Pointer, str] | None:
    """Where the flag is given and with what value, the last time, which counts; a shell's line may hold it too."""
    found: tuple[Pointer, str] | None = None
    for field in ("command", "args"):
        for at, text in enumerate(sequence(container.get(field))):
            for word in text.split() if isinstance(text, str) else ():
                if flag := _FLAG.fullmatch(word.strip("\"';")):
                    value = flag[1]
                    found = ((field, at), "true" if value is None else value.strip("\"'"))
    return found
