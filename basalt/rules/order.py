"""The family Delivery, on order: what an object needs is there before it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.gathering import places
from basalt.gathering.documents import Document, annotation
from basalt.index import Index
from basalt.objects import RELEASE, KubeObject, defined_kind
from basalt.pointers import Pointer, get, has
from basalt.rules.rule import Rule
from basalt.views import chart_catalogue
from basalt.views.releases import Release

_WAVE = "argocd.argoproj.io/sync-wave"
_HOOK = "argocd.argoproj.io/hook"
_PHASES = {"PreSync": -1, "Sync": 0, "PostSync": 1}
# There from the start (kube-apiserver), or the homes of the engines that install everything else.
_GIVEN = frozenset({"default", "kube-system", "kube-public", "kube-node-lease", "argocd", "flux-system"})
# The kinds of what applies a folder are there before anything in it.
_ENGINES = ("argoproj.io", "helm.sh")
_FLUX = (".fluxcd.io", ".toolkit.fluxcd.io")
_SWITCH: Pointer = ("crds", "enabled")  # in a chart's values
# Files that programs read; the API server never sees them.
_FILES = (".config.k8s.io", "kubeadm.k8s.io", "audit.k8s.io", "client.authentication.k8s.io", "kind.x-k8s.io")


class _Moment(NamedTuple):
    """When Argo CD applies an object: hooks before and after the rest, and in each the waves by their numbers."""

    phase: int
    wave: int

    def __str__(self) -> str:
        phase = next(name for name, number in _PHASES.items() if number == self.phase)
        return f"wave {self.wave}" if self.phase == 0 else f"{phase}, wave {self.wave}"


class _Need(NamedTuple):
    """An object that needs a CRD or a namespace, and the value that says so."""

    object: KubeObject
    pointer: Pointer


def order_is_complete(index: Index) -> Iterator[Problem]:
    if index.knows(Fact.CRDS):
        yield from _definitions(index)
    if index.knows(Fact.NAMESPACES):
        yield from _namespaces(index)


def _definitions(index: Index) -> Iterator[Problem]:
    declared: dict[tuple[str, str], list[KubeObject]] = {}
    for each in index.of_kind("CustomResourceDefinition"):
        declared.setdefault(defined_kind(each), []).append(each)
    for each in index.others:
        if each.ref.kind == "APIService":  # an API server of its own serves the group
            declared.setdefault((str(each.spec.get("group")), ""), []).append(each)
    bringing = [each for each in index.releases if each.has_crds and not _is_switched_off(each, index)]
    for (group, kind), needs in _custom(index).items():
        charts = [each.object for each in bringing if chart_catalogue.brings(each.chart, group, kind)]
        installing = [*declared.get((group, kind), ()), *declared.get((group, ""), ()), *charts]
        if not installing:
            yield _missing(
                needs, f"the CustomResourceDefinition of {kind} ({group})", _from_where(group, kind, declared)
            )
        yield from _too_late(needs, installing, "its CustomResourceDefinition")


def _is_switched_off(release: Release, index: Index) -> bool:
    """Whether the values keep the chart from bringing CRDs, as kube-prometheus-stack and others spell it."""
    return any(release.gives(values) and values.get(_SWITCH) is False for values in index.chart_values)


def _custom(index: Index) -> Mapping[tuple[str, str], list[_Need]]:
    """The objects whose kind is no built-in one, by group and kind."""
    found: dict[tuple[str, str], list[_Need]] = {}
    for each in index.without_nodes:
        group = each.ref.group
        if "." not in group or group in _ENGINES or group.endswith((*_FLUX, *_FILES)):
            continue
        product = index.catalog.product(each.ref.api_version)
        # With an Environment, Volcano is what Basalt installs; without its CRDs nothing of it would make sense.
        if product == "kubernetes" or (product == "volcano" and index.environment is not None):
            continue
        found.setdefault((group, each.ref.kind), []).append(_Need(each, ("apiVersion",)))
    return found


def _from_where(group: str, kind: str, declared: Mapping[tuple[str, str], object]) -> str:
    charts = chart_catalogue.bringing(group, kind)
    if charts:
        return f"declare it, or a release of a chart that brings it: {names.listed(charts)}"
    close = names.nearest(kind, [other for of, other in declared if of == group and other])
    return f"did you mean {close}?" if close else "declare it"


def _namespaces(index: Index) -> Iterator[Problem]:
    declared: dict[str, list[KubeObject]] = {}
    for each in index.of_kind("Namespace"):
        declared.setdefault(each.name, []).append(each)
    created = {each.namespace: each.object for each in index.releases if each.creates_namespace and each.namespace}
    known = {*declared, *created, *_GIVEN}
    for namespace, needs in _placed(index).items():
        if namespace not in known and names.label_fault(namespace) is None:  # else name-is-valid speaks
            close = names.nearest(namespace, {*declared, *created})
            hint = f"did you mean {close}?" if close else f"declare the Namespace {namespace}"
            yield _missing(needs, f"the namespace {namespace}", hint)
        elif namespace in known and namespace not in created:
            yield from _too_late(needs, declared.get(namespace, []), f"the namespace {namespace}")


def _placed(index: Index) -> Mapping[str, list[_Need]]:
    """The objects in namespaces, and the charts that go into one, by namespace."""
    found: dict[str, list[_Need]] = {}
    for each in index.without_nodes:
        if each.ref.namespace is not None and _is_in_namespace(each, index):
            found.setdefault(each.ref.namespace, []).append(_Need(each, ("metadata", "namespace")))
    for release in index.releases:
        own = release.namespace_at[:1] == ("metadata",) and (release.object.ref.group != RELEASE[0].partition("/")[0])
        if release.namespace and not (own or release.from_git or release.creates_namespace):
            found.setdefault(release.namespace, []).append(_Need(release.object, release.namespace_at))
    return found


def _is_in_namespace(declared: KubeObject, index: Index) -> bool:
    group = declared.ref.group
    if group in _ENGINES or (group.endswith(_FLUX) and declared.module is not None) or group.endswith(_FILES):
        return False  # the engine's own namespace is older than the folder
    kind = index.catalog.find(declared.ref.api_version, declared.ref.kind)
    return kind.namespaced if kind is not None else "." in group


def _missing(needs: list[_Need], what: str, hint: str) -> Problem:
    """One finding for all that need it, at the first."""
    first, more = needs[0], len(needs) - 1
    others = f"; {more} more {'object needs' if more == 1 else 'objects need'} it" if more else ""
    return Problem(first.object, first.pointer, f"nothing installs {what}{others}", hint)


def _too_late(needs: list[_Need], installing: list[KubeObject], what: str) -> Iterator[Problem]:
    """Those that Argo CD applies before everything that installs what they need."""
    is_timed = bool(installing) and all(map(_says_when, installing))
    for need in needs:
        if not is_timed and not _says_when(need.object):
            continue  # something that it needs comes in wave 0, as it does itself
        own = _moment(need.object)
        later = [moment for each in installing if (moment := _compared(need.object, each)) is not None]
        if own is None or not installing or len(later) < len(installing) or min(later) <= own:
            continue
        first = min(later)
        message = f"{what} comes in {first}, this comes before it in {own}"
        at: Pointer = ("metadata", "annotations", _WAVE if first.phase == own.phase else _HOOK)
        hint = f"set {_WAVE} to {first.wave} or more" if first.phase == own.phase else "let both have the same hook"
        yield Problem(need.object, at if has(need.object.value, at) else need.pointer, message, hint)


def _compared(need: KubeObject, installing: KubeObject) -> _Moment | None:
    """When the installing object comes, where one Application has both: they say so, or lie in one folder."""
    if need.module is not None or installing.module is not None:
        return None
    if _says_when(need) and _says_when(installing):
        return _moment(installing)
    return _moment(installing) if _folder(need) == _folder(installing) else None


def _says_when(declared: KubeObject) -> bool:
    return any(annotation(declared.value, key) is not None for key in (_WAVE, _HOOK))


def _folder(declared: KubeObject) -> object:
    written = places.written(declared)
    return written.file.path.parent if isinstance(written, Document) else written


def _moment(declared: KubeObject) -> _Moment | None:
    """None where it is not known, or not written as Argo CD reads it."""
    hooks = (annotation(declared.value, _HOOK) or "Sync").split(",")
    phases = [_PHASES[name.strip()] for name in hooks if name.strip() in _PHASES]
    wave = get(declared.value, ("metadata", "annotations", _WAVE), "0")
    if not phases or not isinstance(wave, str) or not wave.lstrip("-").isdecimal() or len(wave) > 9:
        return None
    return _Moment(min(phases), int(wave))


RULES: tuple[Rule, ...] = (
    Rule("order-is-complete", Severity.ERROR, order_is_complete, partly_needs=(Fact.CRDS, Fact.NAMESPACES)),
)
