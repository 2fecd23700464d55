"""The values that somebody gives to a Helm chart, wherever they stand: in a Flux HelmRelease, an Argo CD Application, a
Helm release of Pulumi, or a values file."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place
from basalt.gathering import places
from basalt.gathering.chart_values import charts_in
from basalt.gathering.documents import Document
from basalt.objects import RELEASE, KubeObject, mapping, sequence
from basalt.pointers import Pointer, get, has
from basalt.views import embedding
from basalt.views.embedding import Embedded, Text, Unreadable

VOLCANO = "volcano"
_DOT = re.compile(r"(?<!\\)\.")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_TYPED = {"true": True, "false": False, "null": None}


class Parameter(NamedTuple):
    """One of an Application's helm.parameters: which value it sets, to what, and where it stands in the object."""

    pointer: tuple[str, ...]
    value: Any
    at: Pointer

    @property
    def nested(self) -> dict[str, Any]:
        found = self.value
        for key in reversed(self.pointer):
            found = {key: found}
        return {**found}


class Values(NamedTuple):
    """The values that one chart gets. They stand at base in the place, or in the text that is embedded there. below
    are those that they override, the strongest first; merged is what comes of all; unread is where others come from."""

    chart: str
    place: Place
    base: Pointer
    embedded: Embedded | None = None
    below: tuple["Values", ...] = ()
    merged: Mapping[str, Any] | None = None
    unread: tuple[str, ...] = ()
    parameters: tuple["Parameter", ...] = ()

    @property
    def value(self) -> Mapping[str, Any]:
        return self.own if self.merged is None else self.merged

    @property
    def own(self) -> Mapping[str, Any]:
        if self.parameters:
            found: dict[str, Any] = {}
            for each in self.parameters:
                found = _over(each.nested, found)
            return found
        return mapping(get(self._root, self.base))

    def _holder(self, pointer: Pointer) -> "Values":
        """Whichever gives the value at the pointer, or would."""
        return next((each for each in (self, *self.below) if has(each.own, pointer)), self)

    @property
    def _root(self) -> Any:
        return places.value(self.place) if self.embedded is None else self.embedded.value

    def get(self, pointer: Pointer) -> Any:
        return get(self.value, pointer)

    def at(self, pointer: Pointer) -> tuple[Place, Pointer]:
        """The place and the pointer of a finding about the value at the pointer, or about its absence."""
        holder = self._holder(pointer) if pointer and self.below else self
        if holder is not self:
            return holder.at(pointer)
        if self.parameters:
            given = (each.at for each in self.parameters if each.pointer[: len(pointer)] == pointer)
            return self.place, next(given, self.base)
        if self.embedded is None:
            return self.place, (*self.base, *pointer)
        return self.embedded.place((*self.base, *pointer)), self.embedded.pointer

    def text(self, pointer: Pointer) -> Text | None:
        """The text at the pointer, as one that holds a configuration."""
        holder = self._holder(pointer) if self.below else self
        if holder is not self:
            return holder.text(pointer)
        if self.embedded is None:
            return embedding.text_at(self.place, self.at(pointer)[1])
        return self.embedded.inner((*self.base, *pointer))


def values(objects: Iterable[KubeObject], documents: Iterable[Document]) -> Iterator[Values]:
    """Every chart's values; documents are the values files."""
    objects = tuple(objects)
    holders = {
        (each.ref.kind, each.ref.namespace, each.name): each
        for each in objects
        if each.ref.api_version == "v1" and each.ref.kind in ("ConfigMap", "Secret")
    }
    for document in documents:
        yield from (Values(chart, document, pointer) for chart, pointer in charts_in(document.value))
    for declared in objects:
        kind = (declared.ref.group, declared.ref.kind)
        if kind == ("helm.toolkit.fluxcd.io", "HelmRelease"):
            chart = get(declared.value, ("spec", "chart", "spec", "chart")) or get(
                declared.value, ("spec", "chartRef", "name")
            )
            for found in _of_chart(chart, declared, ("spec", "values")):
                yield _with_references(found, declared, holders)
        elif kind == ("argoproj.io", "Application"):
            yield from _application(declared)
        elif (declared.ref.api_version, declared.ref.kind) == RELEASE:
            yield from _of_chart(declared.spec.get("chart"), declared, ("spec", "values"))


_Holders = Mapping[tuple[str, str | None, str], KubeObject]


def _with_references(own: Values, declared: KubeObject, holders: _Holders) -> Values:
    """With what the release takes from ConfigMaps: a later one overrides an earlier one, the release's own all."""
    below: list[Values] = []
    unread: list[str] = []
    for reference in map(mapping, sequence(declared.spec.get("valuesFrom"))):
        kind, name = reference.get("kind"), reference.get("name")
        if not isinstance(kind, str) or not isinstance(name, str):
            continue
        found = _referenced(own, reference, holders.get((kind, declared.ref.namespace, name)))
        if isinstance(found, Values):
            below.insert(0, found)
        else:
            unread.append(found)
    merged: Mapping[str, Any] | None = own.own if below else None
    for each in below:
        merged = _over(merged or {}, each.own)
    return own._replace(below=tuple(below), merged=merged, unread=tuple(unread))


def _referenced(own: Values, reference: Mapping[str, Any], holder: KubeObject | None) -> Values | str:
    """The values, or why they are not known."""
    what = f"the {reference['kind']} {reference['name']}"
    if holder is None:
        return f"{what}, which is not here"
    if holder.ref.kind == "Secret" or reference.get("targetPath"):
        return f"{what}, which is not read"
    key = reference.get("valuesKey") or "values.yaml"
    text = embedding.text_at(holder, ("data", str(key)))
    found = embedding.read(text) if text is not None else None
    if found is None or isinstance(found, Unreadable):
        return f"{what}, whose {key} cannot be read"
    return Values(own.chart, holder, (), found)


def _over(upper: Mapping[str, Any], lower: Mapping[str, Any]) -> dict[str, Any]:
    """The values as Helm merges them: maps by their keys, anything else as a whole."""
    merged = {**lower, **upper}
    for key, below in lower.items():
        if isinstance(below, Mapping) and isinstance(above := upper.get(key), Mapping):
            merged[key] = _over(above, below)
    return merged


def _application(declared: KubeObject) -> Iterator[Values]:
    sources: list[tuple[Pointer, Any]] = [(("spec", "source"), declared.spec.get("source"))]
    sources += [(("spec", "sources", at), each) for at, each in enumerate(sequence(declared.spec.get("sources")))]
    for pointer, source in sources:
        helm = mapping(mapping(source).get("helm"))
        chart = mapping(source).get("chart")
        parameters = tuple(_parameters(helm.get("parameters"), (*pointer, "helm", "parameters")))
        if "valuesObject" in helm or not isinstance(helm.get("values"), str):
            found = _of_chart(chart, declared, (*pointer, "helm", "valuesObject"))
        else:
            text = embedding.text_at(declared, (*pointer, "helm", "values"))
            found = (Values(str(chart), declared, (), each) for each in [*embedding.documents(text)][:1] if chart)
        yield from (_with_parameters(each, parameters) if parameters else each for each in found)


def _with_parameters(own: Values, parameters: tuple[Parameter, ...]) -> Values:
    """The values with the parameters, which go before them."""
    above = Values(own.chart, own.place, parameters[0].at[:-2], parameters=parameters)
    return above._replace(below=(own,), merged=_over(above.own, own.own))


def _parameters(declared: Any, at: Pointer) -> Iterator[Parameter]:
    """The parameters that set a value by its name, as helm --set does; not those that set items of lists."""
    for index, each in enumerate(map(mapping, sequence(declared))):
        name, text = each.get("name"), each.get("value")
        if isinstance(name, str) and isinstance(text, str) and name and "[" not in name:
            keys = tuple(key.replace("\\.", ".") for key in _DOT.split(name))
            yield Parameter(keys, text if each.get("forceString") else _typed(text), (*at, index, "value"))


def _typed(text: str) -> Any:
    return int(text) if _NUMBER.fullmatch(text) else _TYPED.get(text, text)


def _of_chart(chart: Any, declared: KubeObject, pointer: Pointer) -> Iterator[Values]:
    if isinstance(chart, str) and chart:
        yield Values(chart.rpartition("/")[2], declared, pointer)
