"""Helm chart values that stand in a file of their own, with no apiVersion and no kind: known by the names in them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from basalt.pointers import Pointer

# The values of Volcano's chart that hardly another chart has (installer/helm/chart/volcano/values.yaml).
_OF_VOLCANO = re.compile(
    r"(admission|controller|scheduler|agent|agent_scheduler|webhooks)_[a-z_]+"
    r"|enabled_admissions|leader_elect_enable|(vap|map|colocation|metrics)_enable"
)


def is_chart_values(value: Any) -> bool:
    """Whether a document is values of a chart that Basalt knows, at its top or (an umbrella chart's) below one key."""
    is_bare = isinstance(value, Mapping) and not {"apiVersion", "kind"} & value.keys()
    return is_bare and next(of_volcano(value), None) is not None


def of_volcano(value: Mapping[str, Any]) -> Iterator[Pointer]:
    """The pointers to maps in the value that are values of Volcano's chart."""
    if _is_of_volcano(value):
        yield ()
    for key, below in value.items():
        if isinstance(below, Mapping) and _is_of_volcano(below):
            yield (key,)


def _is_of_volcano(value: Mapping[str, Any]) -> bool:
    custom = value.get("custom")
    return isinstance(custom, Mapping) and any(_OF_VOLCANO.fullmatch(str(key)) for key in custom)
