"""Each module of the platform as a component for any Pulumi program: typed arguments, no Environment. The compiler
makes the objects and judges them by the same rules; where one is broken, RunError says which argument breaks it, and
nothing of the component is registered.

Rules about how parts fit ask what else there is. beside names the components that a new one stands beside: they are
judged together, and what it needs of them is there before it. What no component says is unknown, not absent.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pulumi

from basalt.compiling import Compilation, compile_documents
from basalt.findings import Finding, Ref, Severity, fails
from basalt.gathering.documents import API_VERSION, Declaration, Document
from basalt.objects import KubeObject
from basalt.rendering.needs import in_order
from basalt.reporting import text
from pulumi_basalt import arguments, registering, writing
from pulumi_basalt.registering import Module, Registry
from pulumi_basalt.writing import Arguments

_Value = dict[str, Any]
_COMPONENTS = {
    "Environment": "the component of each of its parts: Queues, Priorities, Topology, Gpu, ...",
    "Team": "the component Team",
    "TrainingJob": "the component TrainingJob, or Jobs",
}


class Component(Module):
    """What all components have in common. resources are those registered, by the identity of their objects."""

    part: ClassVar[str] = ""  # the field of the Environment that the arguments stand in
    modules: ClassVar[tuple[str, ...]] = ()  # whose objects the component registers
    takes: ClassVar[type] = object  # the class of the arguments, or of each of them
    are_named: ClassVar[bool] = False  # whether they are a map, by name
    are_plain: ClassVar[bool] = True  # whether a map in the document's words may stand for the class

    def __init__(
        self,
        name: str,
        args: Any,
        *,
        beside: Sequence["Component"] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        self._args = args
        self._title = f"{type(self).__name__} {name}"
        self._refuse_other_types(args, beside)
        try:
            self._written = Arguments(self._title, list(self._documents(name)))
        except pulumi.RunError as error:
            raise pulumi.RunError(f"{self._title}: {error}") from None
        self._beside = tuple(_everything(beside))
        compilation = compile_documents(name, [each for other in (*self._beside, self) for each in other.written()])
        self._judge(compilation)
        self._refuse_twice(compilation)
        super().__init__(name, opts)
        self.resources = self._register(name, compilation)
        self.register_outputs({})

    def _refuse_other_types(self, args: Any, beside: Any) -> None:
        """An argument of another type would be left out, or end somewhere inside."""
        if isinstance(beside, str | Mapping) or not isinstance(beside, Sequence):
            raise self._refusal("beside", "a list of components", beside)
        for index, each in enumerate(beside):
            if not isinstance(each, Component):
                raise self._refusal(f"beside[{index}]", "a component", each)
        if self.are_named and not isinstance(args, Mapping):
            raise self._refusal("args", f"a map of names to {self.takes.__name__}", args)
        for at, each in (
            [(f'args["{name}"]', each) for name, each in args.items()] if self.are_named else [("args", args)]
        ):
            if not isinstance(each, (self.takes, Mapping) if self.are_plain else self.takes):
                raise self._refusal(at, self.takes.__name__, each)

    def _refusal(self, at: str, wanted: str, given: Any) -> pulumi.RunError:
        return pulumi.RunError(f"{self._title}: {at} takes {wanted}, this is {writing.a_type(given)}")

    def _documents(self, name: str) -> Iterator[_Value]:
        """The documents that the arguments make; the first is an Environment, which says no more than they do."""
        yield _environment(name, {self.part: writing.document(self._args)})

    def _where(self, index: int) -> tuple[str, Any, int]:
        """Of the document of that number: what leads to its arguments, these, and how deep they stand in it."""
        del index
        return "args", self._args, 2

    def _is_own(self, declared: KubeObject) -> bool:
        return declared.module in self.modules and declared.position(()).file == self._title

    def written(self) -> Iterator[Document]:
        """The documents, for whoever is judged beside the component."""
        for index, value in enumerate(self._written.documents):
            yield Document(self._written, index, value)

    def _judge(self, compilation: Compilation) -> None:
        shown = [self._shown(each) for each in compilation.findings if not each.waived]
        if fails(compilation.findings, strict=False):
            raise pulumi.RunError(f"{self._title} has errors, nothing of it is registered\n" + "\n".join(shown))
        for each in compilation.findings:
            if each.source.file == self._title and each.severity is Severity.WARNING and not each.waived:
                pulumi.log.warn(self._shown(each))

    def _refuse_twice(self, compilation: Compilation) -> None:
        """Two resources of one object would overwrite each other: documents that stand in one environment merge."""
        owners = {ref: other.title for other in self._beside for ref in other.resources}
        for each in compilation.objects:
            if self._is_own(each) and each.ref in owners:
                message = f"{each.ref} is declared already, by {owners[each.ref]}; nothing of it is registered"
                raise pulumi.RunError(f"{self._title}: {message}")

    def _shown(self, found: Finding) -> str:
        every = {other.title: other for other in (*self._beside, self)}

        def place(file: str, line: int) -> str:
            return f"{file}: {every[file].argument(line)}" if file in every else f"{file}:{line}"

        titles = "|".join(re.escape(title) for title in every)

        def named(words: str) -> str:
            return re.sub(rf"({titles}):(\d+)", lambda hit: place(hit[1], int(hit[2])), words)

        hint = f"\n       hint: {named(found.hint)}" if found.hint else ""
        label = f"{found.severity} " if found.severity is not Severity.ERROR else ""
        what = text.printable(named(text.said(found)))
        return f"{place(found.source.file, found.source.line)}: {label}{what} [{found.rule}]{hint}"

    @property
    def title(self) -> str:
        """What messages call the component: Topology network."""
        return self._title

    def argument(self, line: int) -> str:
        """The argument that a line of the component's documents comes from: args.tiers[0].name_template."""
        index, pointer = self._written.places.get(line, (0, ()))
        lead, value, depth = self._where(index)
        return lead + writing.argument(value, pointer[depth:])

    def _register(self, name: str, compilation: Compilation) -> Mapping[Ref, pulumi.Resource]:
        known = {ref: resource for other in self._beside for ref, resource in other.resources.items()}
        registry = Registry(None, prefix=f"{name}/")
        secret = registering.secret_objects(compilation)
        placed = in_order(compilation.objects)
        resources = registry.add(placed, lambda each: self if self._is_own(each) else None, secret=secret, known=known)
        registering.without_collector(resources)
        return registry.resources


def _everything(beside: Sequence[Component]) -> Iterator[Component]:
    """The components and those beside them, each once: what a queue's parent needs its child needs as well."""
    found: dict[str, Component] = {}
    for each in beside:
        for other in (*each._beside, each):  # noqa: SLF001  # of the same class
            found.setdefault(other.title, other)
    yield from found.values()


def _environment(name: str, spec: _Value) -> _Value:
    return {"apiVersion": API_VERSION, "kind": "Environment", "metadata": {"name": name}, "spec": spec}


class Scheduler(Component):
    """volcano-scheduler.conf, and the release of Volcano's chart where its delivery is declared."""

    part, modules = "volcano", ("scheduler",)
    takes = arguments.SchedulerArgs
    are_plain = False

    def __init__(self, name: str, args: arguments.SchedulerArgs, **options: Any) -> None:
        super().__init__(name, args, **options)

    def _documents(self, name: str) -> Iterator[_Value]:
        spec = {self.part: writing.document(self._args)}
        if self._args.delivery is not None:
            spec["delivery"] = writing.document(self._args.delivery, at="args.delivery")
        yield _environment(name, spec)


class Priorities(Component):
    """PriorityClasses by name."""

    part, modules = "priorities", ("priorities",)
    takes = arguments.PriorityArgs
    are_named = True

    def __init__(self, name: str, args: Mapping[str, arguments.PriorityArgs], **options: Any) -> None:
        super().__init__(name, args, **options)


class Queues(Component):
    """Volcano's Queues by name."""

    part, modules = "queues", ("queues",)
    takes = arguments.QueueArgs
    are_named = True

    def __init__(self, name: str, args: Mapping[str, arguments.QueueArgs], **options: Any) -> None:
        super().__init__(name, args, **options)


class Topology(Component):
    """The HyperNodes of the network, from the labels of the nodes."""

    part, modules = "topology", ("topology",)
    takes = arguments.TopologyArgs
    are_plain = False

    def __init__(self, name: str, args: arguments.TopologyArgs, **options: Any) -> None:
        super().__init__(name, args, **options)

    def _documents(self, name: str) -> Iterator[_Value]:
        yield from super()._documents(name)
        nodes: Any = self._args.nodes or ()
        for index, node in enumerate(nodes.get("items", ()) if isinstance(nodes, Mapping) else nodes):
            yield {"apiVersion": "v1", "kind": "Node", **writing.document(node, at=f"args.nodes[{index}]")}

    def _where(self, index: int) -> tuple[str, Any, int]:
        if index == 0:
            return super()._where(index)
        nodes = self._args.nodes
        lead, items = ('args.nodes["items"]', nodes["items"]) if isinstance(nodes, Mapping) else ("args.nodes", nodes)
        return f"{lead}[{index - 1}]", items[index - 1], 0


class Gpu(Component):
    """GPU drivers, device plugins and exporters."""

    part, modules = "gpu", ("gpu",)
    takes = arguments.GpuArgs

    def __init__(self, name: str, args: arguments.GpuArgs, **options: Any) -> None:
        super().__init__(name, args, **options)


class Network(Component):
    """Drivers and device plugins of the RDMA network."""

    part, modules = "network", ("network",)
    takes = arguments.NetworkArgs

    def __init__(self, name: str, args: arguments.NetworkArgs, **options: Any) -> None:
        super().__init__(name, args, **options)


class Identity(Component):
    """Login: Dex, and the API server's authentication."""

    part, modules = "identity", ("identity",)
    takes = arguments.IdentityArgs

    def __init__(self, name: str, args: arguments.IdentityArgs, **options: Any) -> None:
        super().__init__(name, args, **options)


class Metrics(Component):
    """Metrics of nodes, GPUs and Volcano, the alerts on them and a dashboard."""

    part, modules = "metrics", ("metrics",)
    takes = arguments.MetricsArgs

    def __init__(self, name: str, args: arguments.MetricsArgs, **options: Any) -> None:
        super().__init__(name, args, **options)


class Descheduler(Component):
    """Eviction of pods that stand in the wrong place."""

    part, modules = "descheduler", ("descheduler",)
    takes = arguments.DeschedulerArgs

    def __init__(self, name: str, args: arguments.DeschedulerArgs, **options: Any) -> None:
        super().__init__(name, args, **options)


class _Documented(Component):
    """A component whose arguments are documents of their own, beside an Environment that says nothing."""

    kind: ClassVar[str] = ""

    def _named(self) -> Mapping[str, Any]:
        """The arguments by the name of their document."""
        raise NotImplementedError

    def _documents(self, name: str) -> Iterator[_Value]:
        yield _environment(name, {})
        for own, args in self._named().items():
            given = {"name": own, "namespace": getattr(args, "namespace", None)}
            given |= {"labels": args.labels, "annotations": args.annotations}
            metadata = {key: writing.document(value) for key, value in given.items() if value is not None}
            spec = writing.document(args)
            spec = {key: value for key, value in spec.items() if key not in metadata or key == "name"}
            yield {"apiVersion": API_VERSION, "kind": self.kind, "metadata": metadata, "spec": spec}

    def _where(self, index: int) -> tuple[str, Any, int]:
        own = list(self._named())[index - 1] if index else ""
        return ("args", self._named().get(own), 1)


class Team(_Documented):
    """One tenant: its namespaces, quotas, access and queue. The ClusterRoles that all teams are bound to belong to the
    first: name it beside the others."""

    kind, modules = "Team", ("tenancy", "queues")
    takes = arguments.TeamArgs
    are_plain = False

    def __init__(self, name: str, args: arguments.TeamArgs, **options: Any) -> None:
        self._name = name
        super().__init__(name, args, **options)

    def _named(self) -> Mapping[str, Any]:
        return {self._name: self._args}

    def _is_own(self, declared: KubeObject) -> bool:
        if declared.ref.kind == "ClusterRole":
            return not any(isinstance(each, Team) for each in self._beside)
        return super()._is_own(declared)


class Jobs(_Documented):
    """Training jobs by name; those of one flow stand together."""

    kind, modules = "TrainingJob", ("jobs",)
    takes = arguments.TrainingJobArgs
    are_named, are_plain = True, False

    def __init__(self, name: str, args: Mapping[str, arguments.TrainingJobArgs], **options: Any) -> None:
        super().__init__(name, args, **options)

    def _named(self) -> Mapping[str, Any]:
        return dict(self._args)

    def _where(self, index: int) -> tuple[str, Any, int]:
        _, args, depth = super()._where(index)
        return f'args["{list(self._named())[index - 1]}"]' if index else "args", args, depth


class TrainingJob(_Documented):
    """One training run."""

    kind, modules = "TrainingJob", ("jobs",)
    takes = arguments.TrainingJobArgs
    are_plain = False

    def __init__(self, name: str, args: arguments.TrainingJobArgs, **options: Any) -> None:
        if getattr(args, "flow", None) is not None:
            raise pulumi.RunError(f"TrainingJob {name}: args.flow: the steps of a flow stand together; use Jobs")
        self._name = name
        super().__init__(name, args, **options)

    def _named(self) -> Mapping[str, Any]:
        return {self._name: self._args}


class Manifests(Component):
    """Kubernetes objects as they are, judged like everything else. A Guardrail among them judges them."""

    def __init__(self, name: str, args: Sequence[Mapping[str, Any]], **options: Any) -> None:
        self._title = f"Manifests {name}"
        if isinstance(args, str | Mapping) or not isinstance(args, Sequence):
            raise self._refusal("args", "a list of objects", args)
        for index, each in enumerate(args):
            self._refuse_documents(f"args[{index}]", each)
        super().__init__(name, args, **options)

    def _refuse_documents(self, at: str, value: Any) -> None:
        """What makes objects is a component's to take; here its objects would belong to nobody."""
        kind = value.get("kind") if isinstance(value, Mapping) else None
        if kind in _COMPONENTS and value.get("apiVersion") == API_VERSION:
            message = f"{at} is a document of the kind {kind}, no object"
            raise pulumi.RunError(f"{self._title}: {message}; use {_COMPONENTS[kind]}")
        if kind == "List" and value.get("apiVersion") == "v1":
            raise pulumi.RunError(f"{self._title}: {at} is a List; give its items")

    def _documents(self, name: str) -> Iterator[_Value]:
        yield _environment(name, {})
        yield from (writing.document(each, at=f"args[{index}]") for index, each in enumerate(self._args))

    def _where(self, index: int) -> tuple[str, Any, int]:
        return (f"args[{index - 1}]", self._args[index - 1], 0) if index else ("args", self._args, 0)

    def _is_own(self, declared: KubeObject) -> bool:
        is_raw = not isinstance(declared.written, Declaration)
        return is_raw and declared.position(()).file == self._title
