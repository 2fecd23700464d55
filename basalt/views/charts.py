"""The values that somebody gives to a Helm chart, wherever they stand: in a Flux HelmRelease, an Argo CD Application, a
Helm release of Pulumi, or a values file."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.findings import Place
from basalt.gathering import places
from basalt.gathering.chart_values import charts_in
from basalt.gathering.documents import Document
from basalt.objects import RELEASE, KubeObject, mapping, sequence
from basalt.pointers import Pointer, get
from basalt.views import embedding
from basalt.views.embedding import Embedded, Text

VOLCANO = "volcano"


class Values(NamedTuple):
    """The values that one chart gets. They stand at base in the place, or in the text that is embedded there."""

    chart: str
    place: Place
    base: Pointer
    embedded: Embedded | None = None

    @property
    def value(self) -> Mapping[str, Any]:
        return mapping(get(self._root, self.base))

    @property
    def _root(self) -> Any:
        return places.value(self.place) if self.embedded is None else self.embedded.value

    def get(self, pointer: Pointer) -> Any:
        return get(self.value, pointer)

    def at(self, pointer: Pointer) -> tuple[Place, Pointer]:
        """The place and the pointer of a finding about the value at the pointer, or about its absence."""
        if self.embedded is None:
            return self.place, (*self.base, *pointer)
        return self.embedded.place((*self.base, *pointer)), self.embedded.pointer

    def text(self, pointer: Pointer) -> Text | None:
        """The text at the pointer, as one that holds a configuration."""
        if self.embedded is None:
            return embedding.text_at(self.place, (*self.base, *pointer))
        return self.embedded.inner((*self.base, *pointer))


def values(objects: Iterable[KubeObject], documents: Iterable[Document]) -> Iterator[Values]:
    """Every chart's values; documents are the values files."""
    for document in documents:
        yield from (Values(chart, document, pointer) for chart, pointer in charts_in(document.value))
    for declared in objects:
        kind = (declared.ref.group, declared.ref.kind)
        if kind == ("helm.toolkit.fluxcd.io", "HelmRelease"):
            chart = get(declared.value, ("spec", "chart", "spec", "chart")) or get(
                declared.value, ("spec", "chartRef", "name")
            )
            yield from _of_chart(chart, declared, ("spec", "values"))
        elif kind == ("argoproj.io", "Application"):
            yield from _application(declared)
        elif (declared.ref.api_version, declared.ref.kind) == RELEASE:
            yield from _of_chart(declared.spec.get("chart"), declared, ("spec", "values"))


def _application(declared: KubeObject) -> Iterator[Values]:
    sources: list[tuple[Pointer, Any]] = [(("spec", "source"), declared.spec.get("source"))]
    sources += [(("spec", "sources", at), each) for at, each in enumerate(sequence(declared.spec.get("sources")))]
    for pointer, source in sources:
        helm = mapping(mapping(source).get("helm"))
        chart = mapping(source).get("chart")
        if "valuesObject" in helm or not isinstance(helm.get("values"), str):
            yield from _of_chart(chart, declared, (*pointer, "helm", "valuesObject"))
            continue
        text = embedding.text_at(declared, (*pointer, "helm", "values"))
        yield from (Values(str(chart), declared, (), each) for each in [*embedding.documents(text)][:1] if chart)


def _of_chart(chart: Any, declared: KubeObject, pointer: Pointer) -> Iterator[Values]:
    if isinstance(chart, str) and chart:
        yield Values(chart.rpartition("/")[2], declared, pointer)
