"""What each object needs to be there before it, for whoever applies objects side by side. Pure.

The whole apply order as edges would make everything wait for everything; these are the edges that the API server, the
webhooks and the controllers ask for. Where many need a whole group, such as the settings of a namespace, the last of
the group waits for the others, and the many for it alone: edges stay about as many as objects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from basalt.objects import KubeObject, defined_kind, mapping, sequence
from basalt.pointers import get
from basalt.rendering import layout
from basalt.views import chart_catalogue
from basalt.views.releases import Release, releases
from modules import delivery

# What a namespace's pods find there when they start.
_SETTINGS = frozenset(
    "ConfigMap LimitRange NetworkPolicy PersistentVolumeClaim ResourceQuota Role RoleBinding Secret "
    "ServiceAccount".split()
)
_BUILT_IN = frozenset(("", "networking.k8s.io", "rbac.authorization.k8s.io"))
_RUNNING = frozenset((("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "StatefulSet")))
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_POLICY = "ValidatingAdmissionPolicy"
_JOBS = "90-jobs"
_QUEUE_NAME = "scheduling.volcano.sh/queue-name"

Key = tuple[str, str, str | None, str]  # group, kind, namespace, name


class Placed(NamedTuple):
    """An object in an order in which all can be applied; needs are the places of earlier ones in it."""

    object: KubeObject
    needs: tuple[int, ...]


def in_order(objects: Iterable[KubeObject]) -> list[Placed]:
    """The objects that compile writes, and the charts that Pulumi installs, each after all that it needs. An edge that
    would close a circle is left out."""
    every = list(objects)
    charts = sorted((each for each in every if layout.is_release(each)), key=lambda each: each.ref)
    known = _Known([*charts, *layout.in_apply_order(every)])
    needs = [list(dict.fromkeys(known.needs(place))) for place in range(len(known.objects))]
    return _sorted(known.objects, needs)


def _sorted(objects: Sequence[KubeObject], needs: Sequence[Sequence[int]]) -> list[Placed]:
    """Depth first, without recursion: chains of queues may be long."""
    done: dict[int, int] = {}
    found: list[Placed] = []
    for start in range(len(objects)):
        trail, open_ = [start], {start}
        while trail:
            place = trail[-1]
            missing = next((each for each in needs[place] if each not in done and each not in open_), None)
            if missing is not None and place not in done:
                trail.append(missing)
                open_.add(missing)
                continue
            trail.pop()
            open_.discard(place)
            if place not in done:
                found.append(Placed(objects[place], tuple(sorted(done[each] for each in needs[place] if each in done))))
                done[place] = len(done)
    return found


class _Known:
    """The objects, found by what others call them."""

    def __init__(self, objects: Sequence[KubeObject]) -> None:
        self.objects = objects
        self.places = {_key(each): place for place, each in enumerate(objects)}
        self._bringing: dict[tuple[str, str], list[int]] = {}
        groups = self._groups()
        self._gates = {group: places[-1] for group, places in groups.items()}
        self._after: dict[int, list[int]] = {}  # the last of a group -> the others
        for places in groups.values():
            self._after.setdefault(places[-1], []).extend(places[:-1])

    def needs(self, place: int) -> Iterator[int]:
        each = self.objects[place]
        yield from self._after.get(place, ())
        yield from self._found(("", "Namespace", None, each.ref.namespace or ""))
        yield from self._definition(each)
        yield from self._named(each)
        if layout.is_release(each):
            yield from self._of_release(each)
        elif each.ref.kind in _WEBHOOKS:
            yield from self._serving(each)
        elif _is_running(each):
            yield from self._of_pods(each)

    def _found(self, key: Key) -> Iterator[int]:
        if key in self.places:
            yield self.places[key]

    def _definition(self, each: KubeObject) -> Sequence[int]:
        """What defines the object's kind, its CustomResourceDefinition or the charts that bring it, and the webhooks
        that judge its objects. Built-in kinds are not asked: the webhooks' own programs are made of them."""
        kind = (each.ref.group, each.ref.kind)
        if "." not in kind[0] or layout.is_release(each):
            return ()
        if kind not in self._bringing:
            charts = (chart for chart in self._charts if chart_catalogue.brings(chart.chart, *kind))
            found = [self.places[_key(chart.object)] for chart in charts if _key(chart.object) in self.places]
            self._bringing[kind] = [*self._definitions.get(kind, ()), *found, *self._webhooks(*kind)]
        return self._bringing[kind]

    def _webhooks(self, group: str, kind: str) -> Iterator[int]:
        for place, each in self._of_kinds(_WEBHOOKS):
            rules = [rule for hook in _hooks(each) for rule in map(mapping, sequence(hook.get("rules")))]
            if any(_is_judged(rule, group, kind) for rule in rules):
                yield place

    def _serving(self, webhook: KubeObject) -> Iterator[int]:
        """What answers the webhook: the Deployments in the namespace of its Service."""
        asked = {get(hook, ("clientConfig", "service", "namespace")) for hook in _hooks(webhook)}
        yield from (place for place, each in self._of_kinds(("Deployment",)) if each.ref.namespace in asked)

    def _of_kinds(self, kinds: tuple[str, ...]) -> list[tuple[int, KubeObject]]:
        return [(place, each) for place, each in enumerate(self.objects) if each.ref.kind in kinds]

    @cached_property
    def _charts(self) -> tuple[Release, ...]:
        return tuple(each for each in releases(self.objects) if each.has_crds)

    @cached_property
    def _definitions(self) -> Mapping[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        for place, each in enumerate(self.objects):
            if each.ref.kind == "CustomResourceDefinition":
                found.setdefault(defined_kind(each), []).append(place)
        return found

    def _named(self, each: KubeObject) -> Iterator[int]:
        """What the object names: a queue its parent, a HyperNode its members, a binding its role, a flow its steps."""
        names = _NAMED.get(each.ref.kind)
        for key in names(each) if names else ():
            yield from self._found(key)

    def _queue(self, name: Any) -> Iterator[int]:
        yield from self._found(("scheduling.volcano.sh", "Queue", None, str(name)))

    def _of_pods(self, each: KubeObject) -> Iterator[int]:
        """What must be there before pods are made: their classes and queue, the tree of the network where they say
        where in it they run, the namespace's settings, and the policies that judge them."""
        yield from self._gate(each.ref.namespace or "")
        for spec in _specs(each):
            yield from self._queue(spec.get("queue"))
            for template in _templates(spec):
                yield from self._found(("scheduling.k8s.io", "PriorityClass", None, str(template)))
            if "networkTopology" in spec:
                yield from self._gate(_TREE)
        annotations = mapping(mapping(each.value.get("metadata")).get("annotations"))
        yield from self._queue(annotations.get(_QUEUE_NAME))
        yield from self._gate(_ADMISSION)

    def _of_release(self, each: KubeObject) -> Iterator[int]:
        """The settings of the namespace, and the charts whose CRDs and webhooks its own objects may need."""
        namespace = str(each.spec.get("namespace") or each.ref.namespace)
        yield from self._found(("", "Namespace", None, namespace))
        yield from self._gate(namespace)
        own = delivery.wave(str(each.spec.get("chart")))
        waves = {place: delivery.wave(str(other.spec.get("chart"))) for place, other in self._releases}
        before = max((wave for wave in waves.values() if wave < own), default=None)
        yield from (place for place, wave in waves.items() if wave == before)

    @cached_property
    def _releases(self) -> list[tuple[int, KubeObject]]:
        return [(place, each) for place, each in enumerate(self.objects) if layout.is_release(each)]

    def _gate(self, group: str) -> Iterator[int]:
        if group in self._gates:
            yield self._gates[group]

    def _groups(self) -> Mapping[str, list[int]]:
        """What others need as a whole: the settings of a namespace by its name, the tree of the network, and the
        bindings of admission policies."""
        groups: dict[str, list[int]] = {}
        for place, each in enumerate(self.objects):
            if each.ref.namespace and each.ref.kind in _SETTINGS and each.ref.group in _BUILT_IN:
                groups.setdefault(each.ref.namespace, []).append(place)
            elif each.ref.kind == f"{_POLICY}Binding":
                groups.setdefault(_ADMISSION, []).append(place)
        tops = self._tops()
        return {**groups, _TREE: tops} if tops else groups

    def _tops(self) -> list[int]:
        """The HyperNodes that are members of no other."""
        trees = [place for place, each in enumerate(self.objects) if each.ref.kind == "HyperNode"]
        held = {below for place in trees for below in self._named(self.objects[place])}
        return [place for place in trees if place not in held]


def _parent(queue: KubeObject) -> Iterator[Key]:
    yield queue.ref.group, "Queue", None, str(queue.spec.get("parent"))


def _members(hyper_node: KubeObject) -> Iterator[Key]:
    for member in map(mapping, sequence(hyper_node.spec.get("members"))):
        if member.get("type") == "HyperNode":
            name = get(member, ("selector", "exactMatch", "name"))
            yield hyper_node.ref.group, "HyperNode", None, str(name)


def _role(binding: KubeObject) -> Iterator[Key]:
    role = mapping(binding.value.get("roleRef"))
    namespace = binding.ref.namespace if role.get("kind") == "Role" else None
    yield binding.ref.group, str(role.get("kind")), namespace, str(role.get("name"))


def _policy(binding: KubeObject) -> Iterator[Key]:
    yield binding.ref.group, _POLICY, None, str(binding.spec.get("policyName"))


def _steps(flow: KubeObject) -> Iterator[Key]:
    for step in map(mapping, sequence(flow.spec.get("flows"))):
        yield flow.ref.group, "JobTemplate", flow.ref.namespace, str(step.get("name"))


def _source(release: KubeObject) -> Iterator[Key]:
    source = mapping(get(release.spec, ("chart", "spec", "sourceRef")))
    namespace = source.get("namespace") or release.ref.namespace
    yield "source.toolkit.fluxcd.io", str(source.get("kind")), namespace, str(source.get("name"))


_NAMED: Mapping[str, Callable[[KubeObject], Iterator[Key]]] = {
    "Queue": _parent,
    "HyperNode": _members,
    "RoleBinding": _role,
    "ClusterRoleBinding": _role,
    f"{_POLICY}Binding": _policy,
    "JobFlow": _steps,
    "HelmRelease": _source,
}
_TREE, _ADMISSION = " tree", " admission"  # no names of namespaces


def _key(each: KubeObject) -> Key:
    ref = each.ref
    return ref.group, ref.kind, ref.namespace, ref.name


def _hooks(configuration: KubeObject) -> Iterator[Mapping[str, Any]]:
    yield from map(mapping, sequence(configuration.value.get("webhooks")))


def _is_judged(rule: Mapping[str, Any], group: str, kind: str) -> bool:
    """Whether a webhook's rule asks about objects of the kind; the names of resources are guessed from it."""
    resources = {str(each).partition("/")[0] for each in sequence(rule.get("resources"))}
    is_named = not resources.isdisjoint(("*", f"{kind.lower()}s", f"{kind.lower()}es", f"{kind.lower()[:-1]}ies"))
    return is_named and not {group, "*"}.isdisjoint(sequence(rule.get("apiGroups")))


def _is_running(each: KubeObject) -> bool:
    """Whether pods come of it."""
    return layout.part_of(each) == _JOBS or (each.ref.group, each.ref.kind) in _RUNNING


def _specs(each: KubeObject) -> Iterator[Mapping[str, Any]]:
    """The specs in which a job may stand, that of a CronJob's jobs included."""
    yield each.spec
    yield mapping(get(each.spec, ("jobTemplate", "spec")))


def _templates(spec: Mapping[str, Any]) -> Iterator[Any]:
    """The PriorityClasses that a job or its pods name."""
    yield spec.get("priorityClassName")
    yield get(spec, ("template", "spec", "priorityClassName"))
    for task in map(mapping, sequence(spec.get("tasks"))):
        yield get(task, ("template", "spec", "priorityClassName"))
