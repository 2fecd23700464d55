"""One index of everything that is known of an environment, or of a folder of plain manifests. Every rule asks here.

A fact that the input has nothing of is unknown, not absent: rules that need it are skipped, and said to be.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from basalt.api.groups import GROUPS
from basalt.api.kinds import Catalog
from basalt.api.versions import Version
from basalt.facts import Fact
from basalt.findings import Problem, Ref, Skipped
from basalt.gathering import node_documents
from basalt.gathering.documents import Declaration, Document
from basalt.gathering.folders import Gathered
from basalt.loading.nodes import Node
from basalt.loading.sources import SourceFile
from basalt.objects import RELEASE, KubeObject, is_for_development, mapping
from basalt.pointers import get
from basalt.quantities import Resources, add, parse, parse_map
from basalt.views import (
    charts,
    containers,
    delivery_gaps,
    kubelets,
    network_operator,
    network_topology,
    quotas,
    scheduler_configuration,
    schedulers,
    topology_discovery,
    volcano_version,
)
from basalt.views.charts import Values
from basalt.views.containers import Pod
from basalt.views.descheduler_policy import Policy, policies
from basalt.views.deschedulers import Installed, installed
from basalt.views.domains import Domains, participating, tiers_of
from basalt.views.fabric import is_hyper_node, of_topology
from basalt.views.hyper_nodes import HyperNodes
from basalt.views.metric_sources import Sources
from basalt.views.network_topology import ConstrainedJob, Tiers
from basalt.views.node_fit import Fleet
from basalt.views.node_labels import labelled, labels_given
from basalt.views.queue_tree import QueueTree
from basalt.views.quota_demands import Demand, demands
from basalt.views.quotas import Quotas
from basalt.views.releases import Release, releases
from basalt.views.scheduler_configuration import Configuration
from basalt.views.workloads import Workload, workloads


class Index:
    """The objects of a run and what follows from them. Immutable; every view is computed once, when first asked for."""

    def __init__(
        self,
        gathered: Gathered,
        objects: Iterable[KubeObject],
        catalog: Catalog,
        *,
        derived: Callable[[], Iterable[KubeObject]] = tuple,
        noted: Mapping[str, Sequence[Problem]],
        unusable: frozenset[Declaration] = frozenset(),
        broken: str | None = None,
        is_whole: bool = True,
    ) -> None:
        self.environment = gathered.environment
        self.declarations = gathered.declarations
        self.texts = tuple(gathered.reading.documents)
        every = tuple(objects)
        self.raw_hyper_nodes = tuple(each for each in every if is_hyper_node(each))
        self.others = tuple(each for each in every if not is_hyper_node(each))  # HyperNodes are many
        self._derived = derived  # the HyperNodes that follow from the topology
        self.catalog = catalog
        self.noted = noted  # rule -> problems that were seen while reading
        self.unusable = unusable  # documents whose form is wrong: nothing is derived from them
        self.broken = broken  # why the whole is not known: a document that cannot be used
        self.is_whole = is_whole and gathered.environment is not None  # what nobody declares is not there
        self._gathered = gathered

    def on(self, catalog: Catalog) -> "Index":
        """The same objects on a cluster of other versions."""
        return Index(self._gathered, self.without_nodes, catalog, **self._kept)

    def with_nodes(self, nodes: Iterable[Node]) -> "Index":
        """The same objects on a cluster of these nodes."""
        gathered = replace(self._gathered, node_source=lambda: tuple(nodes))
        return Index(gathered, self.without_nodes, self.catalog, **self._kept)

    @property
    def _kept(self) -> dict[str, Any]:
        told = {"noted": self.noted, "unusable": self.unusable, "broken": self.broken, "is_whole": self.is_whole}
        return {**told, "derived": self._derived}

    @cached_property
    def fabric(self) -> "Index":
        """The nodes, the HyperNodes and the topology by themselves: an index of nothing else."""
        own = of_topology(self.environment) if self.environment else None
        gathered = Gathered(
            environment=own,
            nodes=self._gathered.nodes,
            inventories=self._gathered.inventories,
            node_source=lambda: self.nodes,
        )
        unusable = frozenset({own} if own and self.environment in self.unusable else ())
        found = Index(gathered, self.raw_hyper_nodes, self.catalog, **{**self._kept, "noted": {}, "unusable": unusable})
        found.__dict__["fabric"] = found  # where it ends
        return found

    @property
    def fabric_sources(self) -> Iterator[Any]:
        """All that the index of the fabric is made from, as values whose repr tells them apart."""
        yield self.environment and of_topology(self.environment).value
        yield [self.environment in self.unusable, self.is_whole, self.broken]
        yield [(file.name, file.content_key) for file in self._gathered.inventories]
        yield [document.value for _, document in self._gathered.nodes]
        yield labels_given(self.others)
        yield [each.value for each in self.raw_hyper_nodes]
        yield self.catalog.sources

    @cached_property
    def beside_fabric(self) -> "Index":
        """The same without nodes and HyperNodes."""
        gathered = replace(self._gathered, node_source=tuple, nodes=(), inventories=())
        return Index(gathered, self.others, self.catalog, **{**self._kept, "derived": tuple})

    def knowing(self, facts: Mapping[str, Any]) -> "Index":
        """The same, with what is known already of some of its views, by their names."""
        known = copy.copy(self)
        known.__dict__.update(facts)
        return known

    # what is known

    @cached_property
    def unknown(self) -> Mapping[Fact, str]:
        """The facts that cannot be known, each with the reason."""
        if self.broken is not None:
            return dict.fromkeys(Fact, self.broken)
        present = {
            Fact.NODES: bool(self.node_count),
            Fact.HYPER_NODES: self.is_whole or bool(self.of_kind("HyperNode")),
            Fact.QUEUES: self.is_whole or bool(self.of_kind("Queue")),
            Fact.PRIORITIES: self.is_whole or bool(self.of_kind("PriorityClass")),
            Fact.NAMESPACES: self.is_whole or bool(self.of_kind("Namespace")),
            Fact.QUOTAS: self.is_whole or bool(self.of_kind("ResourceQuota")),
            Fact.SCHEDULER: self.scheduler is not None,
            Fact.TEAMS: self.is_whole or bool(self.teams),
            Fact.TOPOLOGY: self.is_whole or bool(self.topology),
            Fact.CRDS: self.is_whole or bool(self.of_kind("CustomResourceDefinition")),
            Fact.KUBERNETES: bool(self.environment) and "version" in mapping(self._spec.get("kubernetes")),
            Fact.JOB_TEMPLATES: self.is_whole or bool(self.of_kind("JobTemplate")),
            Fact.NETWORK_OPERATOR: self.is_whole or network_operator.is_declared(self.others, self.chart_values),
            Fact.PROMETHEUS: self.is_whole or self._has_prometheus,
            Fact.KUBELET: self.is_whole or kubelets.is_declared(self.others),
            Fact.METRICS_SERVER: self.is_whole or self.metric_sources.has_resource_metrics,
        }
        return {fact: fact.value for fact, is_known in present.items() if not is_known}

    def knows(self, fact: Fact) -> bool:
        return fact not in self.unknown

    @property
    def _spec(self) -> Mapping[str, Any]:
        return self.environment.spec if self.environment else {}

    @property
    def _has_prometheus(self) -> bool:
        kinds = ("ServiceMonitor", "PodMonitor", "ScrapeConfig")
        return self.metric_sources.has_prometheus or any(map(self.of_kind, kinds))

    @cached_property
    def metric_sources(self) -> Sources:
        return Sources(self.others, self.chart_values)

    @cached_property
    def gaps(self) -> tuple[Skipped, ...]:
        """What single rules could not look at, beside the facts above."""
        large = (
            Skipped("keys-are-unique", f"{file.name} is too large to look for repeated keys")
            for file in self._gathered.reading.unchecked
        )
        unknown = sorted(
            {f"{ref.api_version} {ref.kind}" for ref in (each.ref for each in self.others) if not self._is_known(ref)}
        )
        schemas = (Skipped("object-matches-schema", f"no schema of {each}") for each in unknown)
        rules = (Skipped("object-passes-cel", f"cannot evaluate: {rule}") for rule in self.catalog.unreadable_rules)
        return (
            *large,
            *schemas,
            *rules,
            *delivery_gaps.gaps(self.others, self.releases, self.chart_values, self.files),
            *quotas.gaps(self.of_kind("ResourceQuota")),
        )

    def _is_known(self, ref: Ref) -> bool:
        if (ref.api_version, ref.kind) == RELEASE:
            return True  # judged as a chart
        return self.catalog.product(ref.api_version) is not None or self.catalog.find(*ref[:2]) is not None

    # objects

    @cached_property
    def _by_kind(self) -> Mapping[str, tuple[KubeObject, ...]]:
        found: dict[str, list[KubeObject]] = {}
        for each in self.others:
            found.setdefault(each.ref.kind, []).append(each)
        return {kind: tuple(objects) for kind, objects in found.items()}

    @cached_property
    def objects(self) -> tuple[KubeObject, ...]:
        """All of them."""
        return (*self._derived(), *self.without_nodes)

    @property
    def without_nodes(self) -> tuple[KubeObject, ...]:
        """The objects that are known without the nodes: all but the HyperNodes that follow from the topology."""
        return (*self.raw_hyper_nodes, *self.others)

    def of_kind(self, kind: str) -> tuple[KubeObject, ...]:
        """The objects of a kind whose API group is the one that Kubernetes or Volcano gives it."""
        group = GROUPS[kind]
        if kind == "HyperNode":
            return (*self._derived(), *self.raw_hyper_nodes)
        return tuple(each for each in self._by_kind.get(kind, ()) if each.ref.group == group)

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        return tuple(workloads(self.others))

    @cached_property
    def fleet(self) -> Fleet:
        """The declared nodes, as pods ask about them: built where some pod does."""
        return Fleet(self.nodes)

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """Every pod, those of Volcano's jobs first."""
        return tuple(containers.everywhere(self.workloads, self.others))

    @cached_property
    def constrained_jobs(self) -> tuple[ConstrainedJob, ...]:
        """The jobs that say something of the network's topology."""
        return tuple(network_topology.constrained_jobs(self.others, self.workloads))

    @cached_property
    def job_tiers(self) -> Tiers | None:
        """The tiers that jobs may name; None where they are not known: Volcano finds them itself, or one cannot be
        read."""
        tiers = network_topology.tiers_of(self.hyper_nodes, self.topology)
        discovered = topology_discovery.enabled_sources(self.of_kind("ConfigMap"), self.chart_values)
        return None if tiers is None or (not tiers and any(discovered)) else tiers

    @cached_property
    def quotas(self) -> Quotas:
        return Quotas(self.of_kind("ResourceQuota"))

    @cached_property
    def quota_demands(self) -> tuple[Demand, ...]:
        """The jobs against the quotas of their namespaces."""
        return tuple(demands(self.workloads, self.quotas, self.of_kind("LimitRange")))

    @cached_property
    def deschedulers(self) -> tuple[Installed, ...]:
        return tuple(installed(self.others, self.chart_values))

    @cached_property
    def descheduler_policies(self) -> tuple[Policy, ...]:
        return tuple(policies(self.others, self.chart_values, self.deschedulers))

    @cached_property
    def volcano_pods(self) -> tuple[Pod, ...]:
        """The pods that Volcano places, those of its jobs first."""
        names = schedulers.names(self.chart_values, self.of_kind("Deployment"))
        return tuple(containers.placed_by(names, self.pods))

    @cached_property
    def queues(self) -> QueueTree:
        return QueueTree(self.of_kind("Queue"))

    @cached_property
    def hyper_nodes(self) -> HyperNodes:
        return (
            self.fabric.hyper_nodes
            if self.fabric is not self
            else HyperNodes(self.of_kind("HyperNode"), self.nodes or None)
        )

    @cached_property
    def scheduler(self) -> Configuration | None:
        """The scheduler's configuration: the first that decodes."""
        return next((found for found in self.scheduler_configurations if found.value is not None), None)

    @cached_property
    def scheduler_configurations(self) -> tuple[Configuration, ...]:
        return tuple(scheduler_configuration.configurations(self.of_kind("ConfigMap"), self.chart_values))

    @cached_property
    def volcano(self) -> Version | None:
        """The version of Volcano that is declared, or that something installs; None where any may run."""
        return self.catalog.versions["volcano"] if self.catalog.is_declared else volcano_version.installed(self.others)

    @cached_property
    def chart_values(self) -> tuple[Values, ...]:
        """The values that Helm charts get."""
        return tuple(charts.values(self.others, self._gathered.chart_values))

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """The charts that the objects have installed."""
        return tuple(releases(self.others))

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """Every file that was read."""
        return tuple(self._gathered.reading.files)

    def is_development(self, declared: KubeObject) -> bool:
        """Whether the object, or the whole environment, is for development only."""
        own = mapping(get(declared.written.value, _LABELS))
        environment = mapping(get(self.environment.value, _LABELS)) if self.environment else {}
        return any(map(is_for_development, (declared.labels, own, environment)))

    # documents

    @cached_property
    def teams(self) -> tuple[Declaration, ...]:
        return tuple(each for each in self.declarations if each.kind == "Team")

    @cached_property
    def topology(self) -> Mapping[str, Any]:
        if self.environment is None or self.environment in self.unusable:
            return {}
        return mapping(self.environment.spec.get("topology"))

    @cached_property
    def domains(self) -> Domains:
        return self.fabric.domains if self.fabric is not self else Domains(tiers_of(self.topology), self.participants)

    # nodes

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(labelled(self._gathered.all_nodes, self.others))

    @cached_property
    def node_count(self) -> int:
        return len(self.nodes)

    @cached_property
    def participants(self) -> tuple[Node, ...]:
        """The nodes that take part in the topology."""
        own = self.fabric is self
        return tuple(participating(self.topology, self.nodes)) if own else self.fabric.participants

    @cached_property
    def offered(self) -> frozenset[str]:
        """The resources that some declared node offers."""
        return frozenset(name for node in self.nodes for name in node.allocatable)

    @cached_property
    def offers(self) -> Mapping[str, Resources]:
        """What pods may request on each node. Few nodes differ: those that are alike share one map."""
        alike: dict[tuple[tuple[str, Any], ...], Resources] = {}
        found = {}
        for node in self.nodes:
            written = tuple(node.allocatable.items())
            if written not in alike:
                alike[written] = parse_map(node.allocatable)
            found[node.name] = alike[written]
        return found

    @cached_property
    def capacity(self) -> Resources:
        """What pods may request in the whole cluster: the allocatable of the nodes that take pods, summed; 0 of what
        only other nodes offer. A resource of which some node's amount cannot be read is left out."""
        total = add(*(self.offers[node.name] for node in self.nodes if node.takes_pods))
        unreadable = {name for node in self.nodes for name, amount in node.allocatable.items() if parse(amount) is None}
        return {name: total.get(name, 0) for name in self.offered - unreadable}

    @cached_property
    def _node_places(self) -> Mapping[str, Document]:
        found = {node.name: document for node, document in self._gathered.nodes}
        for file in self._gathered.inventories:
            for index, node in enumerate(file.inventory or ()):
                found[node.name] = node_documents.in_inventory(file, index, node)
        return found

    def place_of(self, node: Node) -> Document:
        """Where the node stands in its inventory."""
        return self._node_places[node.name]


_LABELS = ("metadata", "labels")
