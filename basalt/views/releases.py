"""The charts that are installed: by a Flux HelmRelease, an Argo CD Application, or a Helm release of Pulumi. Which
chart, which version of it, from where, and into which namespace."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.gathering.documents import annotation
from basalt.objects import CHART_DIGEST, RELEASE, KubeObject, mapping, sequence
from basalt.pointers import Pointer, existing, get
from basalt.views.charts import Values

_HELM = "helm.toolkit.fluxcd.io"
_SOURCE = "source.toolkit.fluxcd.io"
_ARGO = "argoproj.io"
_OCI = "oci://"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NUMBERS = re.compile(r"=?\s*v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?([+_][0-9A-Za-z.-]+)?")


class Release(NamedTuple):
    """One chart that an object has installed. version is as it is written, at the pointer of the place; where it is
    absent, the pointer leads to the nearest map. from_git is set where the chart lies in a git repository."""

    object: KubeObject
    chart: str
    version: Any
    place: KubeObject
    at: Pointer
    digest: str | None = None
    digest_at: Pointer = ()
    repository: str | None = None
    namespace: str | None = None
    namespace_at: Pointer = ()
    creates_namespace: bool = False
    has_crds: bool = True
    values_at: Pointer = ()
    from_git: bool = False

    @property
    def exact(self) -> str | None:
        """The version without v and =, where it is an exact one."""
        return exact(self.version)

    @property
    def expected_digest(self) -> str | None:
        return annotation(self.object.value, CHART_DIGEST)

    def gives(self, values: Values) -> bool:
        """Whether the values are those of this release."""
        at = values.base if values.embedded is None else values.embedded.pointer
        return values.place is self.object and at[: len(self.values_at)] == self.values_at


def exact(version: Any) -> str | None:
    """The version without v and =, where it is three numbers: "1.2" stands for all of 1.2.x (Masterminds/semver)."""
    if not isinstance(version, str):
        return None
    found = _NUMBERS.fullmatch(version.strip())
    return found[0].lstrip("= v") if found else None


def is_commit(version: Any) -> bool:
    return isinstance(version, str) and _COMMIT.fullmatch(version) is not None


def releases(objects: Iterable[KubeObject]) -> Iterator[Release]:
    """Every chart that the objects have installed, in their order."""
    every = tuple(objects)
    sources = {(each.ref.kind, each.ref.namespace, each.name): each for each in every if each.ref.group == _SOURCE}
    for declared in every:
        kind = (declared.ref.group, declared.ref.kind)
        if kind == (_HELM, "HelmRelease"):
            yield from _helm_release(declared, sources)
        elif kind == (_ARGO, "Application"):
            yield from _application(declared, ("spec",))
        elif kind == (_ARGO, "ApplicationSet"):
            yield from _application(declared, ("spec", "template", "spec"))
        elif (declared.ref.api_version, declared.ref.kind) == RELEASE:
            yield from _of_pulumi(declared)


_Sources = Mapping[tuple[str, str | None, str], KubeObject]


def _helm_release(declared: KubeObject, sources: _Sources) -> Iterator[Release]:
    spec = declared.spec
    install = mapping(spec.get("install"))
    target = spec.get("targetNamespace")
    into = {
        "namespace": target if isinstance(target, str) and target else declared.ref.namespace,
        "namespace_at": ("spec", "targetNamespace") if target else ("metadata", "namespace"),
        "creates_namespace": install.get("createNamespace") is True,
        "has_crds": install.get("crds") != "Skip",
        "values_at": ("spec", "values"),
    }
    reference = mapping(spec.get("chartRef"))
    if not reference:
        if isinstance(spec.get("chart"), Mapping):
            yield from _of_template(declared, ("spec", "chart", "spec"), declared, sources, into)
        return
    source = _source(reference, declared, sources)
    if source is None:
        return
    if source.ref.kind == "HelmChart":
        yield from _of_template(source, ("spec",), declared, sources, into)
    elif source.ref.kind == "OCIRepository":
        yield _of_oci(source, declared, into)


def _source(reference: Mapping[str, Any], declared: KubeObject, sources: _Sources) -> KubeObject | None:
    namespace = reference.get("namespace") or declared.ref.namespace
    kind, name = reference.get("kind"), reference.get("name")
    if not isinstance(kind, str) or not isinstance(name, str) or not isinstance(namespace, str | None):
        return None
    return sources.get((kind, namespace, name))


def _of_template(
    place: KubeObject, at: Pointer, declared: KubeObject, sources: _Sources, into: Mapping[str, Any]
) -> Iterator[Release]:
    """The chart that a HelmChart, or its template in a HelmRelease, names."""
    spec = mapping(get(place.value, at))
    chart, reference = spec.get("chart"), mapping(spec.get("sourceRef"))
    if not isinstance(chart, str) or not chart:
        return
    source = _source(reference, place, sources)
    if reference.get("kind") in ("GitRepository", "Bucket"):  # there, Flux ignores the version
        if source is not None and source.ref.kind == "GitRepository":
            ref = mapping(source.spec.get("ref"))
            field = next((each for each in ("commit", "name", "semver", "tag", "branch") if ref.get(each)), "branch")
            version = str(ref.get(field, "")).removeprefix("refs/tags/")
            where = existing(source.value, ("spec", "ref", field))
            yield Release(declared, _name(chart), version, source, where, from_git=True, **into)
        return
    url = mapping(source.value.get("spec")).get("url") if source is not None else None
    repository = url if isinstance(url, str) else None
    version, _, digest = _text(spec.get("version"), "@")
    digested: dict[str, Any] = {"digest": digest, "digest_at": (*at, "version")} if digest else {}
    where = existing(place.value, (*at, "version"))
    yield Release(declared, _name(chart), version, place, where, repository=repository, **digested, **into)


def _of_oci(source: KubeObject, declared: KubeObject, into: Mapping[str, Any]) -> Release:
    """The chart that an OCIRepository holds. Of its references, Flux takes the digest, then semver, then the tag."""
    ref, url = mapping(source.spec.get("ref")), source.spec.get("url")
    field = "semver" if ref.get("semver") else "tag"
    version, digest = ref.get(field), ref.get("digest")
    digested: dict[str, Any] = (
        {"digest": digest, "digest_at": ("spec", "ref", "digest")} if isinstance(digest, str) and digest else {}
    )
    repository = url if isinstance(url, str) else None
    where = existing(source.value, ("spec", "ref", field))
    return Release(
        declared, _name(repository or source.name), version, source, where, repository=repository, **digested, **into
    )


def _application(declared: KubeObject, at: Pointer) -> Iterator[Release]:
    spec = mapping(get(declared.value, at))
    options = sequence(get(spec, ("syncPolicy", "syncOptions")))
    namespace = get(spec, ("destination", "namespace"))
    pointers: list[Pointer] = [(*at, "source")]
    pointers += [(*at, "sources", number) for number in range(len(sequence(spec.get("sources"))))]
    for pointer in pointers:
        source = mapping(get(declared.value, pointer))
        helm = mapping(source.get("helm"))
        named = _named(source)
        if named is None:
            continue
        chart, from_git = named
        version, digest = source.get("targetRevision"), None
        where = existing(declared.value, (*pointer, "targetRevision"))
        if isinstance(version, str) and version.startswith("sha256:"):
            version, digest = None, version
        repository = source.get("repoURL")
        yield Release(
            declared, chart, version, declared, where, digest, where,
            repository if isinstance(repository, str) else None,
            namespace if isinstance(namespace, str) and namespace else None,
            (*at, "destination", "namespace"), "CreateNamespace=true" in options,
            helm.get("skipCrds") is not True, (*pointer, "helm"), from_git,
        )  # fmt: skip


def _named(source: Mapping[str, Any]) -> tuple[str, bool] | None:
    """The chart of an Application's source, and whether it lies in git; None where it need not be a chart."""
    chart, url, path = source.get("chart"), source.get("repoURL"), source.get("path")
    if isinstance(chart, str) and chart:
        return _name(chart), False
    if isinstance(url, str) and url.startswith(_OCI):
        return (_name(url), False) if "helm" in source or "/charts/" in url else None
    if isinstance(path, str) and "helm" in source:
        return _name(path.rstrip("/")), True
    return None


def _of_pulumi(declared: KubeObject) -> Iterator[Release]:
    """A Helm release of Pulumi: metadata.namespace is its namespace too, as Basalt's own modules write it."""
    spec = declared.spec
    chart = spec.get("chart")
    if not isinstance(chart, str) or not chart or chart.startswith((".", "/")):
        return  # a chart in a folder of the program has no version to choose
    repository = mapping(spec.get("repositoryOpts")).get("repo")
    if chart.startswith(_OCI):
        repository = chart
    _, _, digest = chart.partition("@")
    own = "namespace" in spec
    namespace = spec.get("namespace") if own else declared.ref.namespace
    yield Release(
        declared, _name(chart), spec.get("version"), declared, existing(declared.value, ("spec", "version")),
        digest or None, ("spec", "chart"), repository if isinstance(repository, str) else None,
        namespace if isinstance(namespace, str) else None, ("spec" if own else "metadata", "namespace"),
        # What Basalt itself makes comes after the namespaces, or creates its own.
        spec.get("createNamespace") is True, spec.get("skipCrds") is not True, ("spec", "values"),
    )  # fmt: skip


def _text(value: Any, separator: str) -> tuple[Any, str, str]:
    return value.partition(separator) if isinstance(value, str) else (value, "", "")


def _name(chart: str) -> str:
    """The chart's own name: the last part of a path or reference, without tag and digest."""
    return chart.partition("@")[0].rpartition("/")[2].partition(":")[0]


def giving(every: Iterable[Release], values: Values) -> Release | None:
    """The release that the values are given to; None for those of a values file."""
    return next((release for release in every if release.gives(values)), None)
