"""What the declared plugins of Volcano's scheduler, beside predicates, ask of a node before a pod may go there.

Source: the predicates of nodegroup, tdm, numaaware, extender, deviceshare and resource-strategy-fit in
pkg/scheduler/plugins of Volcano v1.14. That of usage depends on metrics; on an empty cluster it holds.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from basalt.loading.nodes import Node
from basalt.objects import mapping, strings
from basalt.pointers import get
from basalt.quantities import Resources
from basalt.views.queue_tree import QueueTree
from basalt.views.scheduler_configuration import Configuration

_GROUP = "volcano.sh/nodegroup-name"
_ZONE = "volcano.sh/revocable-zone"
_POLICY = "volcano.sh/numa-topology-policy"
_PREFERRED, _REQUIRED = (f"{each}DuringSchedulingIgnoredDuringExecution" for each in ("preferred", "required"))


class Plugins:
    """The plugins, on the nodes that take pods; none where nothing says how the scheduler is configured."""

    def __init__(self, configuration: Configuration | None, tree: QueueTree, nodes: Iterable[Node]) -> None:
        self._nodes = tuple(nodes)
        self._tree = tree
        declared = configuration.plugins() if configuration else ()
        self._arguments = {plugin.name: mapping(plugin.settings.get("arguments")) for plugin in declared}
        self._inherits = configuration is not None and configuration.plugin_has("nodegroup", "enableHierarchy")
        self._open: dict[str | None, frozenset[str]] = {}

    def open_to(self, queue: str) -> frozenset[str]:
        """The nodes on which pods of the queue may run."""
        if queue not in self._open:
            found = (node for node in self._nodes if "tdm" not in self._arguments or _ZONE not in node.labels)
            if "nodegroup" in self._arguments:
                groups, is_strict = self._groups(queue), self._arguments["nodegroup"].get("strict") is not False
                found = (node for node in found if _may(node.labels.get(_GROUP), groups, is_strict=is_strict))
            self._open[queue] = frozenset(node.name for node in found)
        return self._open[queue]

    @property
    def are_choosy(self) -> bool:
        """Whether open_to can leave a node out."""
        return bool({"tdm", "nodegroup"} & self._arguments.keys())

    def _groups(self, name: str) -> frozenset[str] | None:
        """The groups of nodes that the queue may use; None where it says nothing of them."""
        queue = self._tree.queues.get(name)
        own = [queue, *(self._tree.ancestors(queue) if self._inherits else ())] if queue else []
        found = (each.object.spec.get("affinity") for each in own)
        affinity = next((each for each in found if isinstance(each, Mapping)), {})
        wanted, kept = ({*strings(get(affinity, ("nodeGroupAffinity", each)))} for each in (_REQUIRED, _PREFERRED))
        unwanted, avoided = (
            {*strings(get(affinity, ("nodeGroupAntiAffinity", each)))} for each in (_REQUIRED, _PREFERRED)
        )
        if not wanted | kept | unwanted | avoided:
            return None
        return frozenset((wanted | kept) - unwanted | avoided)

    def gap(self, requests: Resources, annotations: Mapping[str, Any], numa_policy: Any = None) -> str:
        """What a plugin asks for these pods that has no place in the problem; empty where nothing is."""
        policy = numa_policy or annotations.get(_POLICY) or "none"
        if "numaaware" in self._arguments and policy != "none":
            return f"it does not model numaaware's {policy}"
        if _ZONE in annotations and "tdm" in self._arguments:
            return "it does not model tdm, which opens revocable zones at certain times"
        devices = sorted(name for name in requests if name.startswith("volcano.sh/"))
        if devices and "deviceshare" in self._arguments:
            return f"it does not model deviceshare, which shares out {devices[0]}"
        return self._gap_of_all

    @cached_property
    def _gap_of_all(self) -> str:
        if get(self._arguments, ("extender", "extender.predicateVerb")):
            return "it does not know what the scheduler's extender answers"
        if any(str(name).startswith("proportional") for name in self._arguments.get("resource-strategy-fit", {})):
            return "it does not model resource-strategy-fit's proportional"
        return ""


def _may(group: str | None, groups: frozenset[str] | None, *, is_strict: bool) -> bool:
    """Whether pods of a queue with these groups may run on a node of that one."""
    if group is None:
        return groups is None and not is_strict
    return groups is not None and group in groups
