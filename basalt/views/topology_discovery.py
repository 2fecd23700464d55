"""Volcano's HyperNode discovery, as volcano-controller.conf switches it on."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt.findings import Place
from basalt.loading import scalars
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.views import charts, embedding
from basalt.views.charts import Values

_KEY = "volcano-controller.conf"
_OVERRIDE = ("custom", "controller_config_override")
_LIST = "networkTopologyDiscovery"


def enabled_sources(
    config_maps: Iterable[KubeObject], values: Iterable[Values]
) -> Iterator[tuple[Place, Pointer, str]]:
    """Each source that a controller's configuration switches on: its place, the pointer there, and its name."""
    for declared in config_maps:
        text = embedding.text_at(declared, ("data", _KEY)) if _KEY in mapping(declared.value.get("data")) else None
        for document in [*embedding.documents(text)][:1]:  # the one that Volcano reads
            yield from ((document.place(at), document.pointer, name) for at, name in _sources(document.value))
    for each in values:
        if each.chart == charts.VOLCANO:
            for at, name in _sources(mapping(each.get(_OVERRIDE))):
                place, pointer = each.at((*_OVERRIDE, *at))
                yield place, pointer, name


def _sources(configuration: Mapping[str, Any]) -> Iterator[tuple[Pointer, str]]:
    for index, source in enumerate(map(mapping, sequence(mapping(configuration).get(_LIST)))):
        enabled = source.get("enabled")
        if enabled is True or (isinstance(enabled, str) and scalars.as_boolean(enabled)):
            yield (_LIST, index, "enabled"), str(source.get("source"))
