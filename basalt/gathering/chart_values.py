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


def _is_of_dex(value: Mapping[str, Any]) -> bool:
    config = value.get("config")
    return isinstance(config, Mapping) and "issuer" in config and ("connectors" in config or "storage" in config)


def _has(*keys: str, least: int = 1) -> Callable[[Mapping[str, Any]], bool]:
    """Whether so many of the keys are there: together hardly another chart has them."""
    return lambda value: sum(key in value for key in keys) >= least


def _is_of_prometheus_adapter(value: Mapping[str, Any]) -> bool:
    rules = value.get("rules")
    return isinstance(rules, Mapping) and not {"custom", "external", "resource"}.isdisjoint(rules)


def _is_of_prometheus_stack(value: Mapping[str, Any]) -> bool:
    prometheus = value.get("prometheus")
    return isinstance(prometheus, Mapping) and "prometheusSpec" in prometheus


_OF_GPU_OPERATOR = ("dcgmExporter", "migManager", "clusterPolicy", "nodeStatusExporter", "toolkit", "devicePlugin")
_CHARTS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "descheduler": _is_of_descheduler,
    "dex": _is_of_dex,
    "gpu-operator": _has(*_OF_GPU_OPERATOR, least=2),
    "kube-prometheus-stack": _is_of_prometheus_stack,
    "metrics-server": _has("defaultArgs"),
    "network-operator": _has("sriovNetworkOperator", "maintenanceOperator"),
    "nvidia-device-plugin": _has("migStrategy", "deviceListStrategy", "deviceIDStrategy"),
    "prometheus-adapter": _is_of_prometheus_adapter,
    "volcano": _is_of_volcano,
}
