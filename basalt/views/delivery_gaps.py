"""What the rules of delivery cannot look at: charts whose contents are not known, folders that were not read."""

from collections.abc import Iterable, Iterator, Sequence

from basalt.findings import Skipped
from basalt.loading.sources import SourceFile
from basalt.objects import KubeObject, strings
from basalt.pointers import get
from basalt.views import chart_catalogue
from basalt.views.application_folders import folders
from basalt.views.charts import Values
from basalt.views.releases import Release, giving


def gaps(
    objects: Sequence[KubeObject], releases: Sequence[Release], values: Iterable[Values], files: Sequence[SourceFile]
) -> Iterator[Skipped]:
    """The parts of rules that are skipped, each with the reason, in order and once."""
    every = tuple(values)
    reasons = sorted(
        {
            *(each for given in every if given.value and (each := _of_values(given, releases))),
            *(f"{given.place.ref}: values come from {source}" for given in every for source in given.unread),
            *(each for release in releases for each in _files(release)),
        }
    )
    yield from (Skipped("chart-values-are-known", reason) for reason in reasons)
    unread = sorted({folder.path for folder in folders(objects, files) if folder.files is None})
    yield from (Skipped("application-within-limit", f"no files of the folder {path} were read") for path in unread)


def _files(release: Release) -> Iterator[str]:
    """The files of a repository that an Application takes values from."""
    named = strings(get(release.object.value, (*release.values_at, "valueFiles")))
    return (f"{release.object.ref}: values come from {name}, which is not here" for name in named)


def _of_values(given: Values, releases: Sequence[Release]) -> str | None:
    release = giving(releases, given)
    chart = release.chart if release else given.chart
    version = release.exact if release else None
    if version is None:
        return f"no exact version of the chart {chart}"
    if chart_catalogue.find(chart, version) is None:
        return f"the values of the chart {chart} {version} are not known"
    return None
