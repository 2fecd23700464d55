"""Which schedulers of Volcano are declared, by the names that pods call them by."""

from collections.abc import Iterable

from basalt.views import charts
from basalt.views.charts import Values

DEFAULT = "volcano"  # --scheduler-name of vc-scheduler


def names(values: Iterable[Values]) -> tuple[str, ...]:
    """The names that the values of Volcano's charts give; the default one where none does."""
    given = [each.get(("custom", "scheduler_name")) for each in values if each.chart == charts.VOLCANO]
    return tuple(str(name) for name in given if name) or (DEFAULT,)
