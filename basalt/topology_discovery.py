"""Volcano's HyperNode discovery, as volcano-controller.conf switches it on."""

from collections.abc import Iterable, Iterator

from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer
from basalt.scheduler_configuration import decode

_KEY = "volcano-controller.conf"


def enabled_sources(config_maps: Iterable[KubeObject]) -> Iterator[tuple[KubeObject, Pointer, str]]:
    """The ConfigMap, the pointer to the text, and the name of each source that is enabled in it."""
    for declared in config_maps:
        text = mapping(declared.value.get("data")).get(_KEY)
        settings = mapping(decode(text)) if isinstance(text, str) else {}
        for source in map(mapping, sequence(settings.get("networkTopologyDiscovery"))):
            if source.get("enabled") is True:
                yield declared, ("data", _KEY), str(source.get("source"))
