"""Where the kinds of Kubernetes that make pods keep the pod's template: its metadata and spec."""

from collections.abc import Mapping

from basalt.pointers import Pointer

_TEMPLATE: Pointer = ("spec", "template")
TEMPLATES: Mapping[tuple[str, str], Pointer] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
    ("batch", "Job"): _TEMPLATE,
}
