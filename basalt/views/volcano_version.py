"""Which Volcano runs, by what installs it: the version of its chart, or the tag of its scheduler's image."""

from collections.abc import Iterable, Iterator

from basalt.api import versions
from basalt.api.versions import Version
from basalt.objects import RELEASE, KubeObject, mapping, sequence
from basalt.pointers import get

_CHART = "volcano"
_IMAGE = "vc-scheduler"
# Where releases of charts say which chart, and which version of it.
_RELEASES = {
    ("helm.toolkit.fluxcd.io", "HelmRelease"): (("spec", "chart", "spec"), "chart", "version"),
    ("argoproj.io", "Application"): (("spec", "source"), "chart", "targetRevision"),
    (RELEASE[0].partition("/")[0], RELEASE[1]): (("spec",), "chart", "version"),
}


def installed(objects: Iterable[KubeObject]) -> Version | None:
    """The version that the objects install; None where none does, where two do, or where Basalt does not know it."""
    found = {versions.parse(text) for text in _told(objects)}
    version = found.pop() if len(found) == 1 else None
    return version if version in versions.known("volcano") else None


def _told(objects: Iterable[KubeObject]) -> Iterator[str]:
    for declared in objects:
        at = _RELEASES.get((declared.ref.group, declared.ref.kind))
        if at is not None:
            release = mapping(get(declared.value, at[0]))
            if str(release.get(at[1])).rpartition("/")[2] == _CHART:
                yield str(release.get(at[2])).removeprefix("v")
        elif declared.ref.kind == "Deployment":
            for container in map(mapping, sequence(get(declared.value, ("spec", "template", "spec", "containers")))):
                name, _, tag = str(container.get("image")).rpartition("/")[2].partition(":")
                if name == _IMAGE and tag:
                    yield tag.partition("@")[0].removeprefix("v")
