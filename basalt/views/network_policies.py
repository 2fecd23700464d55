"""What NetworkPolicies leave open, as far as the rules ask: which pods they select, egress, and DNS in it."""

from collections.abc import Mapping
from typing import Any

from basalt.objects import KubeObject, mapping, sequence, strings

_DNS = 53
_DNS_NAMESPACE = "kube-system"
_DNS_PODS = ("kube-dns", "coredns", "node-local-dns")
_NAME_LABEL = "kubernetes.io/metadata.name"
_EVERYONE = ("0.0.0.0/0", "::/0")
_OWN = "basalt.dev/"  # labels that only tenants' namespaces carry

Labels = Mapping[str, Any]


def isolates_egress(policy: KubeObject) -> bool:
    """Whether the policy closes egress for the pods that it selects; policyTypes left out or empty, it does where it
    has egress rules (SetDefaults_NetworkPolicy)."""
    types = strings(policy.spec.get("policyTypes"))
    return "Egress" in types if types else bool(sequence(policy.spec.get("egress")))


def selects(policy: KubeObject, labels: Labels) -> bool:
    """Whether the policy selects a pod with these labels."""
    return matches(mapping(policy.spec.get("podSelector")), labels)


def matches(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Whether the label selector takes these labels."""
    wanted = mapping(selector.get("matchLabels"))
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _fits(mapping(each), labels) for each in sequence(selector.get("matchExpressions"))
    )


def allows_dns(policy: KubeObject) -> bool:
    """Whether one of its egress rules lets a pod ask the cluster's DNS by UDP."""
    return any(_rule_allows_dns(mapping(rule)) for rule in sequence(policy.spec.get("egress")))


def _rule_allows_dns(rule: Mapping[str, Any]) -> bool:
    ports = [mapping(port) for port in sequence(rule.get("ports"))]
    if ports and not any(map(_is_dns, ports)):
        return False
    peers = sequence(rule.get("to"))
    return not peers or any(_reaches_dns(mapping(peer), is_meant=bool(ports)) for peer in peers)


def _is_dns(port: Mapping[str, Any]) -> bool:
    if port.get("protocol") != "UDP":
        return False
    number = port.get("port")
    if number is None or isinstance(number, str):
        return True  # every port, or a named one whose number the pods decide
    last = port.get("endPort", number)
    return isinstance(number, int) and isinstance(last, int) and number <= _DNS <= last


def _reaches_dns(peer: Mapping[str, Any], *, is_meant: bool) -> bool:
    """Whether the peer can be the DNS pods of kube-system; labels that only the cluster knows are taken to fit.

    is_meant: the rule is about port 53 alone, so its addresses are those of a DNS server.
    """
    if "ipBlock" in peer:
        return is_meant or mapping(peer["ipBlock"]).get("cidr") in _EVERYONE
    if "namespaceSelector" not in peer:
        return False  # a podSelector alone stays in the policy's own namespace
    pods = mapping(mapping(peer.get("podSelector")).get("matchLabels")).get("k8s-app", _DNS_PODS[0])
    return pods in _DNS_PODS and _may_be_kube_system(mapping(peer["namespaceSelector"]))


def _may_be_kube_system(selector: Mapping[str, Any]) -> bool:
    labels = mapping(selector.get("matchLabels"))
    if labels.get(_NAME_LABEL, _DNS_NAMESPACE) != _DNS_NAMESPACE or any(key.startswith(_OWN) for key in labels):
        return False
    return all(
        _fits(mapping(each), {_NAME_LABEL: _DNS_NAMESPACE})
        for each in sequence(selector.get("matchExpressions"))
        if mapping(each).get("key") == _NAME_LABEL
    )


def _fits(expression: Mapping[str, Any], labels: Labels) -> bool:
    key, values = str(expression.get("key")), strings(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
