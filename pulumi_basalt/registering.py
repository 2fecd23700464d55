"""Objects as resources of the engine: one component a module, each object under its module's, after what it needs."""

import asyncio
import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pulumi
import pulumi_kubernetes

from basalt.compiling import Compilation
from basalt.findings import Ref
from basalt.objects import KubeObject, mapping
from basalt.rendering import layout
from basalt.rendering.needs import Placed
from pulumi_basalt import options

MANIFESTS = "manifests"  # the component of what was written as a raw manifest
Contents = Mapping[tuple[str, str], Mapping[str, str]]  # what Secrets hold, by namespace and name
_TYPE = "basalt:modules:Module"
_OCI = "oci://"
_QUEUE = "scheduling.volcano.sh/v1beta1"
_NAMES_A_QUEUE = {("scheduling.volcano.sh", "Queue"): "parent", ("batch.volcano.sh", "Job"): "queue"}
_PLAIN = ("apiVersion", "kind", "metadata")
_LITERAL = "secret-is-not-literal"


class Module(pulumi.ComponentResource):
    """One module of the platform. All have one type: an object that moves to another module keeps its URN, and with it
    its place in the cluster."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(_TYPE, name, None, opts)


class Registry:
    """Registers objects; resources are those registered so far, by the identity of their objects."""

    def __init__(
        self,
        provider: pulumi.ProviderResource | None,
        *,
        is_rendering: bool = False,
        prefix: str = "",
        contents: Contents | None = None,
    ) -> None:
        self.resources: dict[Ref, pulumi.Resource] = {}
        self._contents = contents or {}
        self._provider = provider
        self._is_rendering = is_rendering
        self._prefix = prefix
        self._names: dict[str, int] = {}
        self._version = version("pulumi-kubernetes")

    def add(
        self,
        placed: Sequence[Placed],
        component_of: Callable[[KubeObject], Module | None],
        *,
        secret: frozenset[Ref] = frozenset(),
        known: Mapping[Ref, pulumi.Resource] | None = None,
    ) -> list[pulumi.Resource]:
        """The resources of the objects that have a component, under it; secret are those whose content is one, known
        what others have registered of the rest."""
        scaled = options.scaled(each.object for each in placed)
        every = {**(known or {})}
        added = []
        for each in placed:
            declared = each.object
            if (component := component_of(declared)) is None:
                continue
            needed = [every[ref] for ref in (placed[place].object.ref for place in each.needs) if ref in every]
            chosen = options.of(declared, scaled=scaled)
            props = _release(declared) if layout.is_release(declared) else named(declared, every)
            resource = self._resource(declared, component, needed, chosen, props, is_secret=declared.ref in secret)
            every[declared.ref] = self.resources[declared.ref] = resource
            added.append(resource)
        return added

    def _resource(
        self,
        declared: KubeObject,
        component: Module,
        needed: list[pulumi.Resource],
        chosen: dict[str, Any],
        props: dict[str, Any],
        *,
        is_secret: bool,
    ) -> pulumi.Resource:
        if not self._is_rendering and not layout.is_release(declared):
            chosen["transforms"] = [options.told]
        opts = pulumi.ResourceOptions(
            parent=component, provider=self._provider, depends_on=needed or None, version=self._version, **chosen
        )
        if is_secret_object(declared) and (declared.ref.namespace or "", declared.name) in self._contents:
            content = self._contents[declared.ref.namespace or "", declared.name]
            props["stringData"] = pulumi.Output.secret(content)
        if is_secret:
            props = {key: value if key in _PLAIN else pulumi.Output.secret(value) for key, value in props.items()}
        token = options.of_kind(*declared.ref[:2]).type
        return pulumi.CustomResource(token, self._name(declared), props, opts)

    def _name(self, declared: KubeObject) -> str:
        """The same for the same object, whatever else there is; names that the API server makes up are counted."""
        name = self._prefix + name_of(declared)
        self._names[name] = count = self._names.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"


def name_of(declared: KubeObject) -> str:
    """The logical name of an object: queue.scheduling.volcano.sh/vision, resourcequota/vision-train/quota."""
    ref = declared.ref
    kind = ref.kind.lower() + (f".{ref.group}" if ref.group else "")
    name = ref.name or str(mapping(declared.value.get("metadata")).get("generateName", ""))
    return "/".join(part for part in (kind, ref.namespace, name) if part)


def named(declared: KubeObject, known: Mapping[Ref, pulumi.Resource]) -> dict[str, Any]:
    """The object as it is declared. A queue that it names is not known to a preview before that queue is there: the
    provider then makes no dry run, in which Volcano's webhook would refuse the object for the queue's sake."""
    props = {**declared.value}
    field = _NAMES_A_QUEUE.get((declared.ref.group, declared.ref.kind))
    if field and (queue := known.get(Ref(_QUEUE, "Queue", None, str(declared.spec.get(field))))):
        name = declared.spec[field]
        props["spec"] = {**declared.spec, field: queue.id.apply(lambda _: name)}  # type: ignore[attr-defined]
    return props


def _release(declared: KubeObject) -> dict[str, Any]:
    """The inputs of helm.v3.Release. A chart of a registry is named by its whole address."""
    spec = dict(declared.spec)
    repository = str(mapping(spec.get("repositoryOpts")).get("repo", ""))
    if repository.startswith(_OCI):
        spec["chart"] = f"{repository.rstrip('/')}/{spec['chart']}"
        del spec["repositoryOpts"]
    return {"name": declared.name, "namespace": declared.ref.namespace, "compat": "true", **spec}


def provider(name: str, settings: Mapping[str, Any], *, identifier: str) -> pulumi.ProviderResource:
    """The provider that applies everything, by server-side apply. It changes ConfigMaps and Secrets in place, and it
    stays the stack's provider where only the way to the cluster changes. Whether it takes over an object that is there
    already, so that the next run repairs what a killed one left, is up to its environment, which `make up` sets: as an
    argument it would hold for previews too, and try in a dry run to change what is to be replaced. settings are further
    arguments of pulumi_kubernetes.Provider."""
    if "render_yaml_to_directory" in settings:
        return pulumi_kubernetes.Provider(name, **settings)
    chosen = {
        "enable_server_side_apply": True,
        "enable_config_map_mutable": True,
        "enable_secret_mutable": True,
        "cluster_identifier": identifier,
        **settings,
    }
    return pulumi_kubernetes.Provider(name, pulumi.ResourceOptions(transforms=[options.unsaid]), **chosen)


def is_secret_object(declared: KubeObject) -> bool:
    return (declared.ref.group, declared.ref.kind) == ("", "Secret")


def secret_objects(compilation: Compilation) -> frozenset[Ref]:
    """The objects that hold a secret which a waiver lets stand: the state must not show it."""
    return frozenset(each.object for each in compilation.findings if each.rule == _LITERAL and each.object is not None)


def module_of(declared: KubeObject) -> str:
    return declared.module or MANIFESTS


def without_collector(resources: Iterable[pulumi.Resource]) -> None:
    """Keeps Python's garbage collector off until the resources are registered: it finds nothing, again and again, and
    takes a third of the time. The engine's runtime awaits the output that switches it on again."""
    if not gc.isenabled():
        return
    urns = [each.urn.future() for each in resources]
    gc.disable()

    async def collecting() -> bool:
        try:
            await asyncio.gather(*urns, return_exceptions=True)
        finally:
            gc.enable()
        return True

    _: pulumi.Output[bool] = pulumi.Output.from_input(collecting())
