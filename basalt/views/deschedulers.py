"""The deschedulers that are installed: as workloads, known by their image, or by the kubernetes-sigs' chart."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place
from basalt.gathering import places
from basalt.gathering.places import described
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, get, has
from basalt.views import images
from basalt.views.charts import Values
from basalt.views.descheduler_catalogue import Engine
from basalt.views.pod_templates import TEMPLATES

CHART = "descheduler"
_ENGINES = {  # by the last part of the image's name
    "descheduler": Engine.SIGS,
    "vc-descheduler": Engine.VOLCANO,
    "volcano-descheduler": Engine.VOLCANO,
}
_DRY_RUN = re.compile(r"(?<!\S)--dry-run(=(1|t|T|true|True|TRUE))?(?!\S)")


class Installed(NamedTuple):
    """One descheduler: where it is declared, and the ConfigMaps that it mounts. evicts is False for one that is
    suspended, has no replicas or only says what it would do."""

    place: Place
    pointer: Pointer
    engine: Engine
    evicts: bool
    config_maps: frozenset[str] = frozenset()
    namespace: str | None = None

    def __str__(self) -> str:
        return described(self.place, self.pointer)

    def mounts(self, config_map: KubeObject) -> bool:
        return config_map.name in self.config_maps and config_map.ref.namespace == self.namespace


def installed(objects: Iterable[KubeObject], values: Iterable[Values]) -> Iterator[Installed]:
    """The deschedulers among the objects, then those that come as charts."""
    for declared in objects:
        template = TEMPLATES.get((declared.ref.group, declared.ref.kind))
        if template is not None:
            yield from _workload(declared, (*template, "spec"))
    for each in values:
        if each.chart == CHART:
            engine = _ENGINES.get(images.program(each.get(("image", "repository")))) or Engine.SIGS
            yield Installed(each.place, _chart_pointer(each), engine, _chart_evicts(each))


def _workload(declared: KubeObject, at: Pointer) -> Iterator[Installed]:
    spec = mapping(get(declared.value, at))
    for number, container in enumerate(map(mapping, sequence(spec.get("containers")))):
        engine = _ENGINES.get(images.program(container.get("image")))
        if engine is None:
            continue
        words = " ".join([*strings(container.get("command")), *strings(container.get("args"))])
        is_idle = declared.spec.get("suspend") is True or declared.spec.get("replicas") == 0
        yield Installed(
            declared,
            (*at, "containers", number, "image"),
            engine,
            not is_idle and not _DRY_RUN.search(words),
            frozenset(_config_maps(spec)),
            declared.ref.namespace,
        )
        return


def _config_maps(spec: Mapping[str, Any]) -> Iterator[str]:
    for volume in map(mapping, sequence(spec.get("volumes"))):
        sources = [volume, *map(mapping, sequence(mapping(volume.get("projected")).get("sources")))]
        names = (mapping(source.get("configMap")).get("name") for source in sources)
        yield from (name for name in names if isinstance(name, str))


def _chart_pointer(values: Values) -> Pointer:
    """Where the chart is named, else the whole object."""
    value = places.value(values.place)
    base = values.base if values.embedded is None else values.embedded.pointer
    candidates: list[Pointer] = [("spec", "chart", "spec", "chart"), ("spec", "chartRef", "name")]
    if "helm" in base:
        candidates.append((*base[: base.index("helm")], "chart"))
    return next((pointer for pointer in candidates if has(value, pointer)), ("kind",))


def _chart_evicts(values: Values) -> bool:
    is_suspended = values.get(("suspend",)) is True and values.get(("kind",)) in (None, "CronJob")
    options = mapping(values.get(("cmdOptions",)))
    is_dry = "dry-run" in options and str(options["dry-run"]).casefold() in ("none", "true", "1", "t")
    return not is_suspended and not is_dry
