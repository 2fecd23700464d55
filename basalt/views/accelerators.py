"""Under which names GPUs are offered, and by whom: the one place that resolves the names of accelerators, from the
configuration of whatever offers them to the resources of each node. Jobs, queues, quotas and alerts ask it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from basalt import names
from basalt.loading.nodes import Node
from basalt.objects import KubeObject
from basalt.quantities import parse
from basalt.views.charts import Values
from basalt.views.gpu_operator import is_gpu_node
from basalt.views.gpu_providers import ANYTHING, Provider, providers

_FAMILIES = ("nvidia.com/gpu", "nvidia.com/mig-", "volcano.sh/vgpu-")
_OTHERS = "volcano.sh/"  # what NVIDIA's own plugin never offers


@dataclass(frozen=True, eq=False)
class Accelerators:
    """What is declared of the software that offers GPUs, and the nodes; resolves names."""

    objects: Sequence[KubeObject]
    values: Sequence[Values]
    node_source: Callable[[], Sequence[Node]]  # asked where something offers GPUs

    @property
    def nodes(self) -> Sequence[Node]:
        return self.node_source()

    @cached_property
    def providers(self) -> tuple[Provider, ...]:
        return tuple(providers(self.objects, self.values))

    @cached_property
    def gpu_nodes(self) -> tuple[Node, ...]:
        return tuple(filter(is_gpu_node, self.nodes))

    @property
    def is_known(self) -> bool:
        """Whether anything is declared that offers GPUs."""
        return bool(self.providers) and not (self.nodes and not self.gpu_nodes)

    def resources(self, node: Node | None) -> frozenset[str]:
        """The GPU resources of the node; of any node, where none is declared. A name may end with `*`."""
        found = [each.resources(node) for each in self.providers if each.covers(node)]
        if node is not None:
            offered = [name for name, amount in node.allocatable.items() if is_gpu(name) and (parse(amount) or 0) > 0]
            found.append(frozenset(name for name in offered if not found or name.startswith(_OTHERS)))
        return frozenset().union(*found)

    @cached_property
    def _by_node(self) -> Mapping[str, frozenset[str]]:
        return {node.name: self.resources(node) for node in self.gpu_nodes}

    def offered(self, selector: Mapping[str, str] | None = None) -> frozenset[str]:
        """The names under which pods get GPUs: on the nodes that the selector selects, on all where it selects none."""
        if not self.gpu_nodes:
            return self.resources(None)
        chosen = [node for node in self.gpu_nodes if node.carries(selector or {})] or self.gpu_nodes
        return frozenset().union(*(self._by_node[node.name] for node in chosen))

    def resolves(self, resource: str, offered: frozenset[str]) -> bool:
        """Whether the name is among the offered ones, or no GPU's at all."""
        return not is_gpu(resource) or any(fnmatchcase(resource, name) for name in offered)

    @cached_property
    def conflicts(self) -> tuple["Conflict", ...]:
        """The pairs of providers that hand out the same GPUs."""
        return tuple(_conflicts(self.providers, self.gpu_nodes)) if len(self.providers) > 1 else ()


@dataclass(frozen=True, eq=False)
class Conflict:
    """Two providers of the same GPUs, in the order in which they stand in the files. nodes are those where both are,
    as far as nodes are declared."""

    first: Provider
    second: Provider
    nodes: tuple[Node, ...]

    @property
    def resources(self) -> list[str]:
        """The names that both offer; none where these are unknown, or differ for the same GPUs."""
        both = (self.first.resources(node) & self.second.resources(node) for node in self.nodes or (None,))
        return sorted(frozenset().union(*both) - {ANYTHING})


def _conflicts(found: Sequence[Provider], nodes: Sequence[Node]) -> Iterator[Conflict]:
    ordered = sorted(found, key=lambda each: each.order)
    for number, second in enumerate(ordered):
        for first in ordered[:number]:
            both = tuple(node for node in nodes if first.covers(node) and second.covers(node))
            if both or (not nodes and not first.is_apart_from(second)):
                yield Conflict(first, second, both)
                break


def is_gpu(resource: str) -> bool:
    """Whether the name is one that NVIDIA's GPUs are offered under."""
    return resource.startswith(_FAMILIES)


def shown(offered: Iterable[str]) -> str:
    """The names for a message; `*` stands for a profile."""
    return names.listed(sorted(name.replace("*", "<profile>") for name in offered))
