"""The family Delivery: how charts and objects reach the cluster: pinned, supported, and in an order that works."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from basalt import names
from basalt.api import charts
from basalt.api.versions import Version
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer, get
from basalt.quantities import parse
from basalt.rules import order
from basalt.rules.rule import Rule
from basalt.views import chart_catalogue, gpu_operator, supported_versions
from basalt.views.application_folders import Folder, folders
from basalt.views.chart_catalogue import Known
from basalt.views.charts import VOLCANO
from basalt.views.pods import pods
from basalt.views.releases import Release, giving, is_commit
from basalt.views.supported_versions import Span

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_RANGE = re.compile(r"[*^~<>|,]|!=|\s-\s|\d\.[xX](\.|$)|^[xX]$")
_SHORT = re.compile(r"=?\s*v?\d+(\.\d+)?")
_DEFAULT_BRANCHES = ("", "HEAD")
_BYTES = 10_000_000  # --max-combined-directory-manifests-size of argocd-repo-server: 10M
_MB = 1_000_000
_LIMIT_KEY = "reposerver.max.combined.directory.manifests.size"
_DEPLOYED: Pointer = ("gpuCluster", "deployCR")
_PLACE = re.compile(r"((?:[^.\[\\]|\\.)+)(?:\[\d+\])*\.?")


def chart_is_pinned(index: Index) -> Iterator[Problem]:
    said: set[tuple[int, Pointer]] = set()
    for release in index.releases:
        problem = _unpinned(release) or _other_digest(release)
        if problem is not None and (id(problem.place), problem.pointer) not in said:
            said.add((id(problem.place), problem.pointer))
            yield problem


def _unpinned(release: Release) -> Problem | None:
    version = release.version
    if release.digest is not None:
        if _DIGEST.fullmatch(release.digest):
            return None
        message = f"{names.listed([release.digest])} is no digest: sha256: and 64 digits from 0 to f"
        return Problem(release.place, release.digest_at, message, "write the digest of the chart, or leave it out")
    if release.exact is not None or isinstance(version, Mapping | list | bool):
        return None
    text = "" if version is None else str(version).strip()
    if "{{" in text:  # the template of an ApplicationSet
        return None
    if release.from_git:
        return _on_a_branch(release, text)
    return Problem(release.place, release.at, _not_exact(release.chart, text), _exact_hint(release.chart))


def _on_a_branch(release: Release, text: str) -> Problem | None:
    """A chart of somebody else's that follows a branch; one beside the manifests is versioned with them."""
    if is_commit(text) or not _is_known(release.chart):
        return None
    what = "the default branch" if text in _DEFAULT_BRANCHES else text
    message = f"the chart {release.chart} follows {what} of a git repository, which moves"
    return Problem(release.place, release.at, message, "name a tag such as v1.2.3, or a commit")


def _not_exact(chart: str, text: str) -> str:
    if not text:
        return f"the chart {chart} has no version: whatever is the newest gets installed"
    if _RANGE.search(text):
        return f"the version {text} of the chart {chart} is a range: the newest in it gets installed"
    if _SHORT.fullmatch(text):
        return f"the version {text} of the chart {chart} stands for every {text.lstrip('= v')}.x"
    return f"the version {text} of the chart {chart} is no exact version"


def _exact_hint(chart: str) -> str:
    locked = _locked(chart)
    return f"write the exact version, such as {locked.version if locked else '1.2.3'}"


def _other_digest(release: Release) -> Problem | None:
    expected = release.expected_digest
    locked = _locked(release.chart)
    if expected is None and locked is not None and locked.version.removeprefix("v") == release.exact:
        # Repositories pack a chart anew: the same version has another digest in another one.
        is_there = (release.repository or "").rstrip("/") == locked.repository.rstrip("/")
        expected = locked.digest if is_there else None
    if expected is None or release.digest is None or expected == release.digest:
        return None
    what = f"the digest of the chart {release.chart} is {_short(release.digest)}, the lock has {_short(expected)}"
    return Problem(release.place, release.digest_at, what, "find out what changed before you take it into the lock")


def _short(digest: str) -> str:
    return f"{digest[:19]}..." if len(digest) > 22 else digest


def _locked(chart: str) -> charts.Chart | None:
    try:
        return charts.locked(chart)
    except KeyError:
        return None


def _is_known(chart: str) -> bool:
    return chart_catalogue.is_known(chart) or _locked(chart) is not None


def version_is_supported(index: Index) -> Iterator[Problem]:
    kubernetes = index.catalog.versions["kubernetes"]
    yield from _unsupported_volcano(index, kubernetes)
    yield from _gpu_clusters(index, kubernetes)
    for release in index.releases:
        version = str(release.version).strip().lstrip("= v")
        span = supported_versions.of_chart(release.chart, version)
        if span is not None and kubernetes not in span:
            yield Problem(release.place, release.at, *_unsupported(release.chart, version, span, kubernetes))
    said: set[tuple[str, str]] = set()
    for pod in pods(index.others):
        for field in ("initContainers", "containers"):
            for number, container in enumerate(sequence(pod.spec.get(field))):
                image = mapping(container).get("image")
                found = supported_versions.of_image(image) if isinstance(image, str) else None
                if found is not None and kubernetes not in found[2] and found[:2] not in said:
                    said.add(found[:2])  # one part, however many programs it has
                    pointer = (*pod.pointer, field, number, "image")
                    yield Problem(pod.object, pointer, *_unsupported(*found, kubernetes))


def _gpu_clusters(index: Index, kubernetes: Version) -> Iterator[Problem]:
    """What the GPU operator allocates by DRA."""
    span = supported_versions.GPU_CLUSTER
    message = f"a GPUCluster takes Kubernetes {span}, this one is {kubernetes}"
    hint = "use a ClusterPolicy, or a newer Kubernetes"
    for cluster in gpu_operator.of_kind(index.others, "GPUCluster") if kubernetes not in span else ():
        yield Problem(cluster, ("kind",), message, hint)
    for chart in gpu_operator.charts(index.chart_values) if kubernetes not in span else ():
        if chart.get(_DEPLOYED) is True:
            yield Problem(*chart.at(_DEPLOYED), message, hint)


def _unsupported_volcano(index: Index, kubernetes: Version) -> Iterator[Problem]:
    """Volcano's version as the Environment declares it, where no release carries it on."""
    environment = index.environment
    if environment is None or "volcano" not in environment.spec or any(map(_is_of_volcano, index.releases)):
        return
    declared = mapping(environment.spec["volcano"])
    version = str(declared.get("version", index.catalog.versions["volcano"]))
    span = supported_versions.of_chart(VOLCANO, version)
    if span is not None and kubernetes not in span:
        pointer: Pointer = ("spec", "volcano", "version") if "version" in declared else ("spec", "volcano")
        yield Problem(environment, pointer, *_unsupported(VOLCANO, version, span, kubernetes))


def _is_of_volcano(release: Release) -> bool:
    return release.chart == VOLCANO and release.object.module is not None


def _unsupported(part: str, version: str, span: Span, kubernetes: Version) -> tuple[str, str]:
    message = f"{part} {version} supports Kubernetes {span}, this one is {kubernetes}"
    better = supported_versions.supporting(part, kubernetes)
    if better is not None:
        return message, f"take {part} {better}"
    return message, f"take another version of {part}, or a Kubernetes that it supports"


def chart_values_are_known(index: Index) -> Iterator[Problem]:
    for values in index.chart_values:
        release = giving(index.releases, values)
        known = _known(release)
        if known is not None:
            for pointer, tree in _unknown(values.value, known.values or {}, ()):
                place, at = values.at(pointer)
                if at[-3:-2] != ("parameters",):  # told below, at the parameter's name
                    yield Problem(place, at, *_no_value(known, pointer, tree))
    for release in index.releases:
        known = _known(release)
        if known is not None:
            yield from _unknown_parameters(release, known)


def _known(release: Release | None) -> Known | None:
    version = release.exact if release is not None else None
    return chart_catalogue.find(release.chart, version) if release is not None and version else None


def _unknown(value: Any, tree: Mapping[str, Any], at: Pointer) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
    """The values that the tree does not have, each with the names that its place has."""
    for key, below in mapping(value).items():
        if key not in tree:
            yield (*at, key), tree
        elif tree[key] is not None:
            yield from _unknown(below, tree[key], (*at, key))


def _no_value(known: Known, pointer: Pointer, tree: Mapping[str, Any]) -> tuple[str, str]:
    path, name = ".".join(map(str, pointer)), str(pointer[-1])
    message = f"the chart {known.chart} {known.version} has no value {path}"
    elsewhere = [".".join(each) for each in _places(known.values or {}, name, ())]
    if names.nearest(name, tree) is None and len(elsewhere) == 1:
        return message, f"it has {elsewhere[0]}"
    return message, names.did_you_mean(name, tree, otherwise="see the chart's values.yaml")


def _places(tree: Mapping[str, Any], name: str, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, below in tree.items():
        if key == name:
            yield (*at, key)
        if below is not None:
            yield from _places(below, name, (*at, key))


def _unknown_parameters(release: Release, known: Known) -> Iterator[Problem]:
    """What an Application sets by path, as helm --set does."""
    base = (*release.values_at, "parameters")
    for number, parameter in enumerate(sequence(get(release.object.value, base))):
        name = mapping(parameter).get("name")
        if not isinstance(name, str):
            continue
        tree: Mapping[str, Any] | None = known.values
        path: Pointer = ()
        for part in (found.replace("\\", "") for found in _PLACE.findall(name)):
            path = (*path, part)
            if tree is not None and part not in tree:
                yield Problem(release.object, (*base, number, "name"), *_no_value(known, path, tree))
            if tree is None or part not in tree:
                break
            tree = tree[part]


def application_within_limit(index: Index) -> Iterator[Problem]:
    limit = _limit(index)
    for folder in folders(index.others, index.files):
        if folder.size > limit > 0:
            largest = max(folder.files or (), key=lambda file: file.size)
            size, allowed = _shown(folder.size, limit), _shown(limit, limit)
            message = f"{_count(folder)} of {folder.path} have {size}, Argo CD reads {allowed} of a folder"
            hint = f"split the folder; its largest file is {largest.path.name} with {_shown(largest.size, 0)}"
            yield Problem(folder.application, folder.pointer, message, hint)


def _limit(index: Index) -> int:
    """What argocd-cmd-params-cm allows; 0 for anything."""
    for declared in index.of_kind("ConfigMap"):
        text = mapping(declared.value.get("data")).get(_LIMIT_KEY)
        if declared.name == "argocd-cmd-params-cm" and isinstance(text, str) and (found := parse(text)) is not None:
            return int(found)
    return _BYTES


def _count(folder: Folder) -> str:
    number = len(folder.files or ())
    return f"the {number} files" if number > 1 else "the manifests"


def _shown(size: int, beside: int) -> str:
    """The size in MB, or in bytes where it is small or would look like the other."""
    if size < _MB or (size != beside and round(size / _MB, 1) == round(beside / _MB, 1)):
        return f"{size} bytes"
    return f"{size / _MB:.1f} MB".replace(".0 MB", " MB")


RULES: tuple[Rule, ...] = (
    Rule("chart-is-pinned", Severity.ERROR, chart_is_pinned),
    Rule("version-is-supported", Severity.ERROR, version_is_supported, needs=(Fact.KUBERNETES,)),
    Rule("chart-values-are-known", Severity.ERROR, chart_values_are_known),
    Rule("application-within-limit", Severity.ERROR, application_within_limit),
    *order.RULES,
)
