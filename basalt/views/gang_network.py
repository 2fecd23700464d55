"""Whether the pods of one job reach each other past the NetworkPolicies of their namespace.

Where that cannot be known (addresses that may be those of pods, labels that only the cluster knows, ports by name),
they are taken to.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.api import booleans
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.views.job_plugins import read
from basalt.views.network_policies import Labels, isolates_egress, matches, selects
from basalt.views.workloads import FRAMEWORK_PLUGINS, UNKNOWN_LABELS, Task, Workload

_NAME_LABEL = "kubernetes.io/metadata.name"
# Where pods get their addresses from: private networks, and the one that providers share.
_PRIVATE = tuple(
    map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"))
)
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Direction(NamedTuple):
    """One of the two ways that a policy closes, and the fields that open it again."""

    name: str
    rules: str
    peers: str


DIRECTIONS = (Direction("Ingress", "ingress", "from"), Direction("Egress", "egress", "to"))


class Closed(NamedTuple):
    """The policy that keeps pods of a job apart, of those that do the one with the fewest rules."""

    policy: KubeObject
    direction: Direction
    port: str | None  # the port of the job's framework


class Namespace(NamedTuple):
    """Its policies, and its labels; is_declared: whether these are all."""

    policies: Sequence[KubeObject]
    labels: Labels
    is_declared: bool

    def matches(self, selector: Mapping[str, Any]) -> bool:
        return matches(selector if self.is_declared else _only_on(selector, {_NAME_LABEL}), self.labels)


def namespace(name: str, policies: Sequence[KubeObject], declared: KubeObject | None) -> Namespace:
    labels = declared.labels if declared is not None else {}
    return Namespace(policies, {**labels, _NAME_LABEL: name}, declared is not None)


def talks(job: Workload) -> bool:
    """Whether the job has several pods that look for each other: by a framework's plugin, or by the plugin svc."""
    return (job.replicas or 0) > 1 and bool({*FRAMEWORK_PLUGINS, "svc"} & job.plugins.keys())


def closed(job: Workload, around: Namespace) -> Iterator[Closed]:
    """What keeps the job's pods from reaching each other, in each direction at most once. Policies do not hold for pods
    in the host's network."""
    tasks = [task for task in job.tasks if (task.replicas or 0) > 0 and task.pod.get("hostNetwork") is not True]
    labels = {task: _labels(job, task) for task in tasks}
    port = _port(job)
    for direction in DIRECTIONS:
        if direction.rules == "ingress" and _opens_itself(job):
            continue
        for task in tasks:
            closing = [each for each in around.policies if _isolates(each, direction) and selects(each, labels[task])]
            others = [labels[other] for other in tasks if other is not task or (task.replicas or 0) > 1]
            if closing and not all(_admits(closing, direction, other, port, around) for other in others):
                fewest = min(closing, key=lambda each: len(sequence(each.spec.get(direction.rules))))
                yield Closed(fewest, direction, port)
                break


def _opens_itself(job: Workload) -> bool:
    """Whether the plugin svc adds a policy that lets the job's own pods in (createNetworkPolicyIfNotExist)."""
    return "svc" in job.plugins and read("svc", job.plugins["svc"]).text("disable-network-policy") not in booleans.TRUE


def _port(job: Workload) -> str | None:
    plugin = next((each for each in sorted(FRAMEWORK_PLUGINS) if each in job.plugins), None)
    return None if plugin is None else read(plugin, job.plugins[plugin]).text("port")


def _labels(job: Workload, task: Task) -> Labels:
    known = {"volcano.sh/job-namespace": job.object.ref.namespace or "default", "volcano.sh/queue-name": job.queue}
    return {**job.pod_labels(task), **known}


def _isolates(policy: KubeObject, direction: Direction) -> bool:
    if direction.rules == "egress":
        return isolates_egress(policy)
    types = strings(policy.spec.get("policyTypes"))
    return not types or "Ingress" in types


def _admits(
    policies: Sequence[KubeObject], direction: Direction, labels: Labels, port: str | None, around: Namespace
) -> bool:
    """Whether a rule of the policies is open to the job's pods with these labels."""
    rules = (mapping(rule) for policy in policies for rule in sequence(policy.spec.get(direction.rules)))
    return any(
        _has_port(sequence(rule.get("ports")), port)
        and (not (peers := sequence(rule.get(direction.peers))) or any(_is(mapping(p), labels, around) for p in peers))
        for rule in rules
    )


def _has_port(ports: Sequence[Any], wanted: str | None) -> bool:
    return not ports or any(_is_port(mapping(port), wanted) for port in ports)


def _is_port(port: Mapping[str, Any], wanted: str | None) -> bool:
    first = port.get("port")
    if port.get("protocol", "TCP") != "TCP":
        return False
    if wanted is None or not wanted.isdecimal() or not isinstance(first, int):
        return True
    last = port.get("endPort", first)
    return isinstance(last, int) and first <= int(wanted[:9]) <= last


def _is(peer: Mapping[str, Any], labels: Labels, around: Namespace) -> bool:
    if "ipBlock" in peer:
        return _may_hold_pods(mapping(peer["ipBlock"]))
    if "namespaceSelector" in peer and not around.matches(mapping(peer["namespaceSelector"])):
        return False
    known = {key for key, value in labels.items() if key not in UNKNOWN_LABELS or value}
    unknown = labels.keys() - known
    return matches(_without(mapping(peer.get("podSelector")), unknown), labels)


def _may_hold_pods(block: Mapping[str, Any]) -> bool:
    """Whether addresses that clusters give to pods are in the block and not excepted."""
    network = _network(block.get("cidr"))
    excepted = [each for each in map(_network, sequence(block.get("except"))) if each is not None]
    return network is None or any(
        _overlap(network, private) and not any(_covers(each, private) for each in excepted) for private in _PRIVATE
    )


def _network(text: Any) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if isinstance(text, str) else None
    except ValueError:
        return None


def _overlap(one: _Network, other: _Network) -> bool:
    return one.version == other.version and one.overlaps(other)


def _covers(one: _Network, other: _Network) -> bool:
    return one.version == other.version and one.prefixlen <= other.prefixlen and one.overlaps(other)


def _only_on(selector: Mapping[str, Any], keys: set[str]) -> Mapping[str, Any]:
    """The selector without what it asks of other labels."""
    return {
        "matchLabels": {key: value for key, value in mapping(selector.get("matchLabels")).items() if key in keys},
        "matchExpressions": [
            each for each in sequence(selector.get("matchExpressions")) if mapping(each).get("key") in keys
        ],
    }


def _without(selector: Mapping[str, Any], keys: set[str]) -> Mapping[str, Any]:
    """The selector without what it asks of these labels."""
    expressions = (mapping(each).get("key") for each in sequence(selector.get("matchExpressions")))
    asked = {*mapping(selector.get("matchLabels")), *(key for key in expressions if isinstance(key, str))}
    return _only_on(selector, asked - keys)
