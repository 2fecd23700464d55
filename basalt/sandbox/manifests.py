"""What a sandbox is given so that it behaves as the environment's cluster: its nodes, Volcano's definitions and
webhooks, the scheduler's configuration, and how pretended pods live. Pure."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import yaml

from basalt.api.versions import Version
from basalt.compiling import Compilation
from basalt.loading.nodes import Node
from basalt.objects import KubeObject, defined_kind, mapping
from basalt.rendering import layout, yaml_writer
from basalt.views import claims
from basalt.views.quotas import namespace_of
from basalt.views.scheduler_catalogue import ACTIONS_SINCE
from basalt.views.scheduler_configuration import CHART_DEFAULT

NAMESPACE = "volcano-system"
RUN_FOR = "sandbox.basalt.dev/run-for"  # an annotation of pods: how long they run until they succeed
_MANAGED = "sandbox.basalt.dev/kubelet"  # an annotation of nodes: whether KWOK pretends to be their kubelet
KUBELETS = f"{_MANAGED}=kwok"
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_CLAIM = "PersistentVolumeClaim"
_VOLCANO = Version(1, 14)  # of the sandbox, as basalt.sandbox.programs pins it

Value = dict[str, Any]


class Wanted(NamedTuple):
    """What to make a sandbox from: node objects, the text of volcano-scheduler.conf, the kinds of objects that will be
    applied (API version and kind, and whether it is namespaced), the namespaces that must be there from the start, as
    they are declared, the names of those that nobody declares, the claims that nobody declares (namespace and name),
    and what the sandbox does otherwise than the environment asks."""

    nodes: Sequence[Value]
    scheduler: str
    kinds: Mapping[tuple[str, str], bool] = {}
    namespaces: Sequence[Value] = ()
    strange_namespaces: Sequence[str] = ()
    claims: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()


def wanted(compilation: Compilation) -> Wanted:
    """The sandbox of an environment, or of a folder of manifests."""
    index = compilation.index
    configuration = index.scheduler.value if index.scheduler else CHART_DEFAULT
    scheduler, dropped = adapted(mapping(configuration))
    notes = []
    if dropped:
        notes.append(f"Volcano {_VOLCANO} has no {', '.join(dropped)}: left out of the scheduler's actions")
    if index.volcano is not None and index.volcano > _VOLCANO:
        notes.append(f"the environment declares Volcano {index.volcano}, the sandbox runs {_VOLCANO}")
    applied = layout.in_apply_order(compilation.objects)
    defined = {defined_kind(each) for each in applied if each.ref.kind == "CustomResourceDefinition"}
    kinds = {(each.ref.api_version, each.ref.kind): each.ref.namespace is not None for each in applied}
    kinds = {kind: each for kind, each in kinds.items() if (kind[0].rpartition("/")[0], kind[1]) not in defined}
    mounted = sorted(_strange_claims(applied))
    declared = {each.name: dict(each.value) for each in applied if each.ref.kind == "Namespace"}
    strange = sorted({namespace_of(each) for each in applied} - declared.keys() - {"default", "kube-system"})
    early = sorted({*strange, *(space for space, _ in mounted), NAMESPACE})
    spaces = [declared.get(name) or _bare_namespace(name) for name in early]
    return Wanted([node(each) for each in index.nodes], scheduler, kinds, spaces, strange, mounted, notes)


def _strange_claims(objects: Sequence[KubeObject]) -> set[tuple[str, str]]:
    """The PersistentVolumeClaims, by namespace and name, that pods mount and nobody declares."""
    declared = {(namespace_of(each), each.name) for each in objects if each.ref.kind == _CLAIM}
    return claims.users(objects).keys() - declared


def adapted(configuration: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The scheduler's configuration without the actions that the sandbox's Volcano would refuse it for, as text; and
    those."""
    actions = [name.strip() for name in str(configuration.get("actions") or "").split(",")]
    dropped = [name for name in actions if ACTIONS_SINCE.get(name, _VOLCANO) > _VOLCANO]
    kept = ", ".join(name for name in actions if name not in dropped)
    return yaml_writer.document({**configuration, "actions": kept}), dropped


def node(declared: Node) -> Value:
    """The node as KWOK is given it. One that is not Ready gets no kubelet, and stays so."""
    value: Value = msgspec.to_builtins(declared)
    metadata = {"name": declared.name, "labels": declared.labels}
    is_ready = all(found.status == "True" for found in declared.status.conditions or () if found.type == "Ready")
    if is_ready:
        metadata["annotations"] = {_MANAGED: "kwok"}
    amounts = {
        "pods": "110",
        "cpu": "0",
        "memory": "0",
        **{key: str(each) for key, each in declared.allocatable.items()},
    }
    spec = {key: each for key, each in value["spec"].items() if each}
    # The node-lifecycle controller writes these itself, from the conditions.
    if taints := [each for each in spec.pop("taints", []) if not each["key"].startswith("node.kubernetes.io/")]:
        spec["taints"] = taints
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _bare_namespace(name: str) -> Value:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def claim(space: str, name: str) -> Value:
    """A claim that everybody may mount."""
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": _CLAIM, "metadata": {"name": name, "namespace": space}, "spec": spec}


def definitions(volcano: str) -> list[Value]:
    """The CustomResourceDefinitions of Volcano's installation manifest."""
    return [each for each in _documents(volcano) if each["kind"] == "CustomResourceDefinition"]


def webhooks(volcano: str, url: str, authority: bytes) -> list[Value]:
    """Volcano's webhook configurations, which call the server at that address instead of a Service."""
    bundle = base64.b64encode(authority).decode()
    found = [each for each in _documents(volcano) if each["kind"] in _WEBHOOKS]
    for configuration in found:
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"{url}{path}", "caBundle": bundle}
    return found


def only(text: str) -> Value:
    """The one document of a text."""
    (found,) = _documents(text)
    return found


def _documents(text: str) -> Iterator[Value]:
    yield from filter(None, yaml.load_all(text, yaml.CSafeLoader))


def paths(configurations: Iterable[Mapping[str, Any]], url: str) -> list[str]:
    """What the webhook configurations call."""
    return [webhook["clientConfig"]["url"].removeprefix(url) for each in configurations for webhook in each["webhooks"]]


def stand_ins(kinds: Mapping[tuple[str, str], bool]) -> list[Value]:
    """Definitions that take everything as it is, for kinds whose operators the sandbox does not run: API version and
    kind, and whether it is namespaced. The versions of a kind share one."""
    versions: dict[tuple[str, str, bool], list[str]] = {}
    for (api_version, kind), is_namespaced in sorted(kinds.items()):
        group, _, version = api_version.rpartition("/")
        versions.setdefault((group, kind, is_namespaced), []).append(version)
    return [_stand_in(*each, found) for each, found in versions.items()]


def _stand_in(group: str, kind: str, is_namespaced: bool, versions: Sequence[str]) -> Value:
    plural = _plural(kind.lower())
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [{"name": each, "served": True, "storage": each == versions[-1], "schema": schema} for each in versions]
    # Kubernetes reserves its own groups for definitions that it has seen (KEP-1111).
    annotations = {"api-approved.kubernetes.io": "unapproved, a stand-in of Basalt's sandbox"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": annotations},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced" if is_namespaced else "Cluster",
            "versions": served,
        },
    }


def _plural(word: str) -> str:
    """The plural of a kind's name as English has it, and nearly every definition."""
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


def stages(text: str) -> str:
    """KWOK's stages, two things changed. The stock pod-complete ends every pod of a Volcano Job at once, since that
    kind's name is Job too (kubernetes-sigs/kwok#762); here a pod ends when its annotation says so. And claims of every
    storage class get a volume, not only those of KWOK's own."""
    found = list(_documents(text))
    for stage in found:
        expressions = stage["spec"]["selector"]["matchExpressions"]
        expressions[:] = [each for each in expressions if "storageClassName" not in str(each.get("cel"))]
        if stage["metadata"]["name"] == "pod-complete":
            expressions[:] = [each for each in expressions if "ownerReferences" not in each["key"]]
            expressions.append({"key": f'.metadata.annotations["{RUN_FOR}"]', "operator": "Exists"})
            stage["spec"]["delay"] = {"durationFrom": {"expressionFrom": f'.metadata.annotations["{RUN_FOR}"]'}}
    return "".join(f"---\n{yaml_writer.document(each)}" for each in found)
