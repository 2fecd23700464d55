"""The kubelets' configurations: objects that no API server has, or texts in ConfigMaps, as kubeadm keeps them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt.objects import KubeObject, mapping
from basalt.views import embedding

_KIND = "KubeletConfiguration"


def configurations(objects: Iterable[KubeObject]) -> Iterator[Mapping[str, Any]]:
    for declared in objects:
        if declared.ref.kind == _KIND:
            yield declared.value
        elif (declared.ref.group, declared.ref.kind) == ("", "ConfigMap"):
            for key, text in mapping(declared.value.get("data")).items():
                if isinstance(text, str) and _KIND in text:
                    found = embedding.documents(embedding.text_at(declared, ("data", key)))
                    yield from (mapping(each.value) for each in found if mapping(each.value).get("kind") == _KIND)


def is_declared(objects: Iterable[KubeObject]) -> bool:
    """Whether the configuration of some kubelet is known."""
    return next(configurations(objects), None) is not None


def has_static_cpus(objects: Iterable[KubeObject]) -> bool:
    """Whether some kubelet gives whole CPUs to the pods that ask for them."""
    return any(each.get("cpuManagerPolicy") == "static" for each in configurations(objects))
