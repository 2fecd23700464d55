"""What NetworkPolicies leave open, as far as the rules ask: egress, and DNS in it."""

from collections.abc import Mapping
from typing import Any

from basalt.objects import KubeObject, mapping, sequence, strings

_DNS = 53
_NAME_LABEL = "kubernetes.io/metadata.name"


def isolates_egress(policy: KubeObject) -> bool:
    """Whether the policy closes egress for the pods that it selects; policyTypes left out, it does where it has
    egress rules."""
    types = policy.spec.get("policyTypes")
    return "Egress" in strings(types) if types is not None else "egress" in policy.spec


def selector_of(policy: KubeObject) -> Mapping[str, Any]:
    return mapping(policy.spec.get("podSelector"))


def allows_dns(policy: KubeObject) -> bool:
    """Whether one of its egress rules lets a pod ask the cluster's DNS by UDP."""
    return any(_rule_allows_dns(mapping(rule)) for rule in sequence(policy.spec.get("egress")))


def _rule_allows_dns(rule: Mapping[str, Any]) -> bool:
    ports = sequence(rule.get("ports"))
    if ports and not any(_is_dns(mapping(port)) for port in ports):
        return False
    peers = sequence(rule.get("to"))
    return not peers or any(_reaches_dns(mapping(peer)) for peer in peers)


def _is_dns(port: Mapping[str, Any]) -> bool:
    if port.get("protocol", "TCP") != "UDP":
        return False
    number = port.get("port")
    if number is None or isinstance(number, str):
        return True  # every port, or a named one whose number the pods decide
    last = port.get("endPort", number)
    return isinstance(number, int) and isinstance(last, int) and number <= _DNS <= last


def _reaches_dns(peer: Mapping[str, Any]) -> bool:
    """Whether the peer can be the DNS pods of kube-system; labels that only the cluster knows are taken to fit."""
    if "ipBlock" in peer:
        return True
    if "namespaceSelector" not in peer:
        return False  # a podSelector alone stays in the policy's own namespace
    wanted = mapping(mapping(peer["namespaceSelector"]).get("matchLabels"))
    return bool(wanted.get(_NAME_LABEL, "kube-system") == "kube-system")
