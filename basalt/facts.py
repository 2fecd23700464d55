"""What a rule may need to know of an environment."""

import enum


class Fact(enum.StrEnum):
    """What a rule may need to know. The value is the reason given where it is unknown."""

    NODES = "no node inventory"
    HYPER_NODES = "no HyperNodes"
    QUEUES = "no Queues"
    PRIORITIES = "no PriorityClasses"
    NAMESPACES = "no Namespaces"
    QUOTAS = "no ResourceQuotas"
    SCHEDULER = "no scheduler configuration"
    TEAMS = "no Teams"
    JOB_TEMPLATES = "no JobTemplates"
    PROMETHEUS = "no Prometheus"
    METRICS_SERVER = "no metrics-server"
    TOPOLOGY = "no Environment with a topology"
    CRDS = "no CustomResourceDefinitions"
    KUBERNETES = "no Kubernetes version"
    KUBELET = "no KubeletConfiguration"
    NETWORK_OPERATOR = "no NicClusterPolicy"
