"""Volcano's HyperNode discovery, as volcano-controller.conf switches it on."""

from collections.abc import Iterable, Iterator

from basalt.gathering.places import Spot
from basalt.loading import scalars
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.views import embedding
from basalt.views.embedding import Embedded

_KEY = "volcano-controller.conf"
_LIST = "networkTopologyDiscovery"


def enabled_sources(config_maps: Iterable[KubeObject]) -> Iterator[tuple[Spot, Pointer, str]]:
    """Each source that a controller's configuration switches on: its place, and its name."""
    for declared in config_maps:
        text = mapping(declared.value.get("data")).get(_KEY)
        if isinstance(text, str):
            for document in [*embedding.documents(declared, ("data", _KEY), text)][:1]:  # the one that Volcano reads
                yield from _sources(document)


def _sources(document: Embedded) -> Iterator[tuple[Spot, Pointer, str]]:
    for index, source in enumerate(map(mapping, sequence(mapping(document.value).get(_LIST)))):
        enabled = source.get("enabled")
        if enabled is True or (isinstance(enabled, str) and scalars.as_boolean(enabled)):
            yield document.place((_LIST, index, "enabled")), document.pointer, str(source.get("source"))
