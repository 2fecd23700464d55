"""The rules of prometheus-adapter, and whether somebody gives the metrics and labels that expressions use."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.gathering.places import written
from basalt.index import Index
from basalt.rules.rule import Rule
from basalt.views import adapter_rules, counters, exporters
from basalt.views.exporters import SYNTHETIC, Exporter, Labels
from basalt.views.expressions import Expression, expressions
from basalt.views.monitoring import STACK
from basalt.views.promql import Grouping
from basalt.views.scrapes import Declared, Scrape, declared, exporter_of, has_unknown_sources, scrapes

_MONITORS = ("ServiceMonitor", "PodMonitor")
# Labels that a federation or a remote store adds.
_OUTER = frozenset({
    "__name__", "cluster", "datacenter", "env", "environment", "prometheus", "prometheus_replica", "region", "replica",
})  # fmt: skip
# Metrics of programs that nearly every cluster runs, and of client libraries. Basalt has no list of them.
_COMMON = (
    "aggregator_", "alertmanager_", "apiextensions_", "apiserver_", "attachdetach_", "authentication_",
    "authorization_", "certwatcher_", "cgroup_", "cluster_", "config_", "controller_runtime_", "coredns_",
    "cronjob_", "csi_", "endpoint_slice_", "etcd_", "ephemeral_", "field_validation_", "force_cleaned_",
    "garbagecollector_", "get_token_", "go_", "gpu_operator_", "grafana_", "grpc_", "http_", "job_controller_", "jvm_",
    "kube_apiserver_", "kube_customresource_", "kube_pod_resource_", "kubedns_", "kubelet_", "kubeproxy_",
    "kubernetes_", "leader_election_", "metrics_server_", "net_conntrack_", "node_", "number_of_", "plugin_manager_",
    "probe_", "process_", "prober_", "prometheus_", "promhttp_", "pv_", "python_", "reloader_", "replicaset_",
    "rest_client_", "root_ca_", "run_podsandbox_", "running_", "scheduler_", "service_controller_", "serviceaccount_",
    "storage_", "ttl_", "volume_", "watch_cache_", "workqueue_",
)  # fmt: skip


def adapter_rule_is_valid(index: Index) -> Iterator[Problem]:
    for found in adapter_rules.configurations(index.of_kind("ConfigMap"), index.chart_values):
        if found.unreadable is not None:
            spot, fault = found.unreadable
            yield Problem(spot, spot.pointer, fault.message, fault.hint)
            continue
        for each in adapter_rules.faults(found):
            yield found.written.problem(*each)


def metric_is_produced(index: Index) -> Iterator[Problem]:
    every = list(expressions(index.others, index.chart_values, index.descheduler_policies))
    world = _World(index, every) if every else None
    told: set[tuple[int, str, str]] = set()
    for expression in every:
        for subject, label, message, hint in world.faults(expression) if world else ():
            key = (id(written(expression.place)), subject, label)
            if key not in told:
                told.add(key)
                yield Problem(expression.place, expression.pointer, message, hint)


class _Fault(NamedTuple):
    """What is wrong with one metric, one of its labels, or all that comes from one exporter: said once an object."""

    subject: str
    label: str
    message: str
    hint: str


class _World:
    """The exporters of a run, and how their metrics arrive."""

    def __init__(self, index: Index, every: Sequence[Expression]) -> None:
        found = list(declared(index.others, index.chart_values))
        monitors = [each for kind in _MONITORS for each in index.of_kind(kind)]
        self._recorded = {each.records for each in every}
        self._exporters = {Exporter.KUBELET, *(each.exporter for each in found)}
        self._exporters.update(exporter for each in monitors if (exporter := exporter_of(each)) is not None)
        if index.environment is not None and index.environment.spec.get("volcano") is not None:
            self._exporters.add(Exporter.VOLCANO)
        self._scrapes = _by_exporter(scrapes(index.others, index.chart_values))
        self._has_stack = any(each.chart == STACK for each in index.chart_values)
        self._is_whole = index.is_whole
        self._knows_parts = self._is_whole or index.metric_sources.has_prometheus
        self._knows_parts &= not has_unknown_sources(index.others, index.chart_values, of_parts=True)
        self._knows_all = self._knows_parts and not has_unknown_sources(
            index.others, index.chart_values, of_parts=False
        )
        of_dcgm = [each for each in found if each.exporter is Exporter.DCGM]
        self._dcgm = counters.collected(of_dcgm, index.of_kind("ConfigMap"))
        self._namespaces = _namespaces([*found], monitors)

    def faults(self, expression: Expression) -> Iterator[_Fault]:
        """What the expression uses and nobody gives, a metric's labels only where there is the metric."""
        missing: set[str] = set()
        hidden: dict[str, dict[str, None]] = {}
        for selector in expression.uses.selectors:
            metric = selector.metric
            if metric is None or metric in missing:
                continue
            if fault := self._metric_fault(metric):
                missing.add(metric)
                source = exporters.source_of(metric)
                is_absent = source is not None and source not in self._exporters and self._is_missing(source)
                yield _Fault(str(source) if is_absent else metric, "", *fault)
        for metric, label, is_hidden in self._labels(expression, missing):
            if is_hidden:
                hidden.setdefault(metric, {})[label] = None
            else:
                yield _Fault(metric, label, *self._label_fault(metric, label))
        for metric, labels in hidden.items():
            yield _Fault(metric, ", ".join(labels), *_renamed(metric, [*labels]))

    def _metric_fault(self, metric: str) -> tuple[str, str] | None:
        source = exporters.source_of(metric)
        if metric in SYNTHETIC or metric in self._recorded:
            return None
        if source is None:
            return self._unknown(metric) if self._knows_all else None
        is_declared, table = source in self._exporters, self._table(source)
        if not is_declared and self._is_missing(source):
            message = f"{metric} comes from {source.value}, which is not declared"
            return message, f"declare {source.value}, or use a metric of another"
        if table is None or metric in table or exporters.may_be(metric, source):
            return None
        if source is Exporter.DCGM and not is_declared:
            return None
        if source is Exporter.DCGM and (exporters.is_off(metric) or metric in exporters.metrics(source)):
            hint = f"add {metric} to its list of counters, dcgm-metrics.csv"
            return f"{source.value} does not collect {metric}: its list of counters lacks it", hint
        hint = names.did_you_mean(metric, table, otherwise="name a metric that it gives")
        return f"{source.value} gives no metric {metric}", hint

    def _is_missing(self, source: Exporter) -> bool:
        """Whether an exporter that is not declared is not there. A folder that tells of no exporter leaves them open,
        and Volcano is there wherever its objects are judged."""
        if self._is_whole:
            return self._knows_parts
        return self._knows_parts and source is not Exporter.VOLCANO and self._exporters != {Exporter.KUBELET}

    def _unknown(self, metric: str) -> tuple[str, str] | None:
        if metric.startswith(_COMMON) or (":" in metric and self._has_stack):
            return None
        if ":" in metric:
            hint = names.did_you_mean(
                metric, (each for each in self._recorded if each), otherwise="record it in a rule"
            )
            return f"no rule records {metric}", hint
        known = [name for each in self._exporters for name in self._table(each) or ()]
        hint = names.did_you_mean(metric, known, otherwise="declare the monitor of the exporter that gives it")
        return f"no declared exporter gives {metric}", hint

    def _table(self, source: Exporter) -> Mapping[str, Labels] | None:
        return self._dcgm if source is Exporter.DCGM else exporters.metrics(source)

    def _known(self, metric: str | None) -> tuple[Labels, Sequence[Scrape]]:
        """The labels of a metric at its exporter, and how it is scraped; None where its labels are not known."""
        source = exporters.source_of(metric) if metric else None
        table = self._table(source) if source is not None else None
        if source is None or metric is None or metric in self._recorded or not table:
            return None, ()
        either = [Scrape(source, honors=True), Scrape(source, honors=False)]
        return table.get(metric), self._scrapes.get(source) or either

    def _has(self, metric: str | None, label: str) -> bool | None:
        """Whether series of the metric have the label; None where it is the target's, and the exporter's renamed."""
        own, ways = self._known(metric)
        if own is None or label in _OUTER:
            return True
        if all(each.hides(label, own) for each in ways):
            return None
        every = [each.labels(own) for each in ways]
        return any(labels is None or label in labels for labels in every)

    def _labels(self, expression: Expression, missing: set[str]) -> Iterator[tuple[str, str, bool]]:
        """The labels that metrics do not have, each with the metric; the last is true for one that is renamed."""
        for selector in expression.uses.selectors:
            metric = selector.metric
            for each in selector.matchers if metric is not None and metric not in missing else ():
                has = self._has(metric, each.label)
                is_meant = each.label == "namespace" and each.operator == "=" and each.value in self._namespaces
                if (has is None and not is_meant) or (has is False and each.needs_label):
                    yield str(metric), each.label, has is None
        for grouping in expression.uses.groupings:
            if missing.isdisjoint(str(each.metric) for each in grouping.selectors):
                yield from self._ungrouped(grouping)

    def _ungrouped(self, grouping: Grouping) -> Iterator[tuple[str, str, bool]]:
        """The labels that none of the series has, and that the expression does not make. To group by one that is not
        there changes nothing, unless somebody reads it; one that means another thing gives wrong groups."""
        for label in grouping.labels if grouping.selectors else ():
            having = [self._has(each.metric, label) for each in grouping.selectors]
            is_told = None in having or label in grouping.needed
            if is_told and label not in grouping.made and True not in having:
                at = having.index(None) if None in having else 0
                yield str(grouping.selectors[at].metric), label, None in having

    def _label_fault(self, metric: str, label: str) -> tuple[str, str]:
        own, ways = self._known(metric)
        bare = label.removeprefix("exported_")
        if bare != label and own and bare in own:
            why = "honorLabels is true" if ways and all(each.honors for each in ways) else "nothing renames it"
            return f"{metric} has no label {label}: {why}", f"write {bare}"
        every = {each for way in ways for each in way.labels(own) or ()}
        has = names.listed(sorted(own or ()))
        hint = names.did_you_mean(label, every, otherwise=f"its own labels: {has}" if has else "take it out")
        return f"{metric} has no label {label}", hint


def _renamed(metric: str, labels: Sequence[str]) -> tuple[str, str]:
    told, arriving = " and ".join(labels), " and ".join(f"exported_{each}" for each in labels)
    verb = "names" if len(labels) == 1 else "name"
    message = f"without honorLabels {told} of {metric} {verb} the exporter itself; the workload arrives as {arriving}"
    return message, f"write {arriving}, or set honorLabels: true in the monitor"


def _by_exporter(every: Iterator[Scrape]) -> Mapping[Exporter, Sequence[Scrape]]:
    found: dict[Exporter, list[Scrape]] = {}
    for each in every:
        found.setdefault(each.exporter, []).append(each)
    return found


def _namespaces(found: Sequence[Declared], monitors: Sequence[object]) -> frozenset[str]:
    """The namespaces that exporters run in: whoever names one means the exporter."""
    refs = [each.place.ref for each in found] + [getattr(each, "ref", None) for each in monitors]
    return frozenset({"gpu-operator", *(ref.namespace for ref in refs if ref is not None and ref.namespace)})


RULES: tuple[Rule, ...] = (
    Rule("adapter-rule-is-valid", Severity.ERROR, adapter_rule_is_valid),
    Rule("metric-is-produced", Severity.ERROR, metric_is_produced, needs=(Fact.PROMETHEUS,)),
)
