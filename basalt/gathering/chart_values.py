"""Helm chart values that stand in a file of their own, with no apiVersion and no kind: known by the names in them."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from basalt.pointers import Pointer

# The values of Volcano's chart that hardly another chart has (installer/helm/chart/volcano/values.yaml).
_OF_VOLCANO = re.compile(
    r"(admission|controller|scheduler|agent|agent_scheduler|webhooks)_[a-z_]+"
    r"|enabled_admissions|leader_elect_enable|(vap|map|colocation|metrics)_enable"
)


def is_chart_values(value: Any) -> bool:
    """Whether a document is values of a chart that Basalt knows, at its top or (an umbrella chart's) below one key."""
    is_bare = isinstance(value, Mapping) and "apiVersion" not in value  # the descheduler's chart has a value `kind`
    return is_bare and next(charts_in(value), None) is not None


def charts_in(value: Mapping[str, Any]) -> Iterator[tuple[str, Pointer]]:
    """The charts whose values the value holds, each with the pointer to the map of its values."""
    for chart, is_of in _CHARTS.items():
        if is_of(value):
            yield chart, ()
        yield from ((chart, (key,)) for key, below in value.items() if isinstance(below, Mapping) and is_of(below))


def _is_of_volcano(value: Mapping[str, Any]) -> bool:
    custom = value.get("custom")
    return isinstance(custom, Mapping) and any(_OF_VOLCANO.fullmatch(str(key)) for key in custom)


def _is_of_descheduler(value: Mapping[str, Any]) -> bool:
    return "deschedulerPolicy" in value


_CHARTS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "descheduler": _is_of_descheduler,
    "volcano": _is_of_volcano,
}
