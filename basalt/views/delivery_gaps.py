"""What the rules of delivery cannot look at: charts whose contents are not known, folders that were not read."""

from collections.abc import Iterable, Iterator, Sequence

from basalt.findings import Skipped
from basalt.loading.files import SourceFile
from basalt.objects import KubeObject
from basalt.views import chart_catalogue
from basalt.views.application_folders import folders
from basalt.views.charts import Values
from basalt.views.releases import Release, giving


def gaps(
    objects: Sequence[KubeObject], releases: Sequence[Release], values: Iterable[Values], files: Sequence[SourceFile]
) -> Iterator[Skipped]:
    """The parts of rules that are skipped, each with the reason, in order and once."""
    reasons = sorted({each for given in values if given.value and (each := _of_values(given, releases))})
    yield from (Skipped("chart-values-are-known", reason) for reason in reasons)
    unread = sorted({folder.path for folder in folders(objects, files) if folder.files is None})
    yield from (Skipped("application-within-limit", f"no files of the folder {path} were read") for path in unread)


def _of_values(given: Values, releases: Sequence[Release]) -> str | None:
    release = giving(releases, given)
    chart = release.chart if release else given.chart
    version = release.exact if release else None
    if version is None:
        return f"no exact version of the chart {chart}"
    if chart_catalogue.find(chart, version) is None:
        return f"the values of the chart {chart} {version} are not known"
    return None
