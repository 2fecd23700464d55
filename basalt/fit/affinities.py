"""What pods ask of each other, from their specs: affinity, anti-affinity and topology spread, in the words of the
problem.

Only what is required counts. Source: the plugins InterPodAffinity and PodTopologySpread of Kubernetes 1.34, which
Volcano's predicates plugin runs for each pod, with the pods placed in the same session.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from basalt.fit.problem import Apart, Bond, Domain, Key, Slot, Spread
from basalt.objects import mapping, sequence, strings
from basalt.pointers import get
from basalt.views.node_fit import Fleet
from basalt.views.node_selection import matches_labels

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_FIELD = "topologySpreadConstraints"


class Pods(NamedTuple):
    """The pods of one slot: where they live, their labels (an empty text where only the cluster knows the value), and
    what their spec says."""

    slot: Slot
    namespace: str
    labels: Mapping[str, Any]
    spec: Mapping[str, Any]


class Wishes(NamedTuple):
    """What comes of all of it: for gangs their bonds and spreads, or what has no place in the problem."""

    aparts: tuple[Apart, ...]
    bonds: Mapping[Key, tuple[Bond, ...]]
    spreads: Mapping[Key, tuple[Spread, ...]]
    gaps: Mapping[Key, str]


class _Gap(Exception):
    """What is asked and cannot be modelled."""


def has_wishes(spec: Mapping[str, Any]) -> bool:
    return bool(_terms(spec, "podAffinity") or _terms(spec, "podAntiAffinity") or _spreads(spec))


def _terms(spec: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [*map(mapping, sequence(get(spec, ("affinity", kind, _REQUIRED))))]


def _spreads(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = map(mapping, sequence(spec.get(_FIELD)))
    return [each for each in found if (each.get("whenUnsatisfiable") or "DoNotSchedule") == "DoNotSchedule"]


def wishes(
    pods: Sequence[Pods], fleet: Fleet, left: frozenset[str], namespaces: Mapping[str, Mapping[str, str]]
) -> Wishes:
    """What the pods ask of each other, on those nodes of the fleet that are left; namespaces are the declared ones,
    with their labels."""
    reader = _Reader(pods, fleet, left, namespaces)
    aparts: list[Apart] = []
    bonds: dict[Key, dict[Bond, None]] = {}
    spreads: dict[Key, dict[Spread, None]] = {}
    gaps: dict[Key, str] = {}
    for each in pods:
        if not has_wishes(each.spec):
            continue
        key = each.slot[0]
        try:
            aparts.extend(reader.aparts(each))
            bonds.setdefault(key, {}).update(dict.fromkeys(reader.bonds(each)))
            spreads.setdefault(key, {}).update(dict.fromkeys(reader.spreads(each)))
        except _Gap as gap:
            gaps.setdefault(key, str(gap))
    for apart in aparts:
        if _is_one_sided(apart, aparts):
            gaps.setdefault(apart.slot[0], "it does not model podAntiAffinity that only some of its tasks ask for")
    listed = {key: (*each,) for key, each in bonds.items()}
    return Wishes(tuple(aparts), listed, {key: (*each,) for key, each in spreads.items()}, gaps)


def _is_one_sided(apart: Apart, every: Iterable[Apart]) -> bool:
    """Whether other pods of the gang would not ask in return: then the order decides, for Volcano looks only at what
    the pod that it places asks for, and at what ran before."""
    own = {slot for slot in apart.others if slot[0] == apart.slot[0]} - {apart.slot}
    if not own:
        return False
    asking = {each.slot for each in every if each.places is apart.places and apart.slot in each.others}
    return bool(own - asking)


class _Reader:
    def __init__(
        self, pods: Sequence[Pods], fleet: Fleet, left: frozenset[str], namespaces: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._pods = pods
        self._fleet = fleet
        self._left = left
        self._namespaces = namespaces
        self._matching: dict[str, frozenset[Slot]] = {}
        self._places: dict[str, Mapping[str, str]] = {}

    @cached_property
    def _by_label(self) -> Mapping[tuple[str, Any], list[Pods]]:
        found: dict[tuple[str, Any], list[Pods]] = {}
        for each in self._pods:
            for label in each.labels.items():
                found.setdefault(label, []).append(each)
        return found

    @cached_property
    def _by_slot(self) -> Mapping[Slot, Pods]:
        return {each.slot: each for each in self._pods}

    # whom a term means

    def matched(self, own: Pods, term: Mapping[str, Any], what: str) -> frozenset[Slot]:
        """The slots whose pods the term means. _Gap where that is not known."""
        if sequence(term.get("matchLabelKeys")) or sequence(term.get("mismatchLabelKeys")):
            raise _Gap(f"it does not model matchLabelKeys of {what}")
        if term.get("labelSelector") is None:
            return frozenset()  # none means no pod, an empty one every pod
        selector = mapping(term["labelSelector"])
        spaces = self._spaces(own, term, what)
        asked = repr((selector, spaces))
        if asked not in self._matching:
            found = [each for each in self._candidates(selector) if spaces is None or each.namespace in spaces]
            self._matching[asked] = frozenset(each.slot for each in found if self._meets(selector, each, what))
        return self._matching[asked]

    def _candidates(self, selector: Mapping[str, Any]) -> Sequence[Pods]:
        wanted = mapping(selector.get("matchLabels"))
        first = next(iter(wanted.items()), None)
        if first is None:
            return self._pods
        unsure = self._by_label.get((first[0], ""), [])
        return [*self._by_label.get(first, []), *(unsure if first[1] else [])]

    def _meets(self, selector: Mapping[str, Any], pods: Pods, what: str) -> bool:
        asked = (str(mapping(each).get("key")) for each in sequence(selector.get("matchExpressions")))
        keys = {*mapping(selector.get("matchLabels")), *asked}
        unknown = sorted(key for key in keys if pods.labels.get(key) == "" and key.startswith("volcano.sh/"))
        if unknown:
            raise _Gap(f"it does not model {what} by the label {unknown[0]}")
        return not any(selector.values()) or matches_labels(selector, pods.labels)

    def _spaces(self, own: Pods, term: Mapping[str, Any], what: str) -> frozenset[str] | None:
        """The namespaces that the term means; None for all of them."""
        named, selector = strings(term.get("namespaces")), term.get("namespaceSelector")
        if selector is None:
            return frozenset(named or [own.namespace])
        if not mapping(selector):
            return None
        if not self._namespaces:
            raise _Gap(f"nobody declares the namespaces that {what} selects")
        chosen = (name for name, labels in self._namespaces.items() if matches_labels(mapping(selector), labels))
        return frozenset([*named, *chosen])

    # places

    def places(self, key: str) -> Mapping[str, str]:
        """The label's value of each node that carries it."""
        if key not in self._places:
            of_key = self._fleet.values(key).items()
            places = {node.name: value for value, nodes in of_key for node in nodes if node.name in self._left}
            self._places[key] = places
        return self._places[key]

    def _domains(self, key: str, nodes: frozenset[str]) -> tuple[Domain, ...]:
        found: dict[str, set[str]] = {}
        places = self.places(key)
        for node in nodes & places.keys():
            found.setdefault(places[node], set()).add(node)
        return tuple(Domain(f"{key}={value}", 0, frozenset(each)) for value, each in sorted(found.items()))

    # what a slot asks for

    def aparts(self, own: Pods) -> Iterator[Apart]:
        for term in _terms(own.spec, "podAntiAffinity"):
            others = self.matched(own, term, "podAntiAffinity")
            if others:
                key = str(term.get("topologyKey"))
                yield Apart(own.slot, others, self.places(key), f"podAntiAffinity over {key}")

    def bonds(self, own: Pods) -> Iterator[Bond]:
        """Affinity to pods of the same gang that all ask for the same: one domain for all of them. The first of them
        may stand anywhere, as no other pod matches."""
        terms = _terms(own.spec, "podAffinity")
        if not terms:
            return
        meant = frozenset.intersection(*(self.matched(own, term, "podAffinity") for term in terms))
        if not meant:
            raise _Gap("its podAffinity waits for pods that no declared job has")
        asking = {slot: _terms(self._by_slot[slot].spec, "podAffinity") for slot in meant}
        alike = all(slot[0] == own.slot[0] and each == terms for slot, each in asking.items())
        if own.slot not in meant or not alike:
            raise _Gap("it does not model podAffinity to pods that do not all ask for the same")
        shapes = tuple(sorted(index for _, index in meant))
        for key in dict.fromkeys(str(term.get("topologyKey")) for term in terms):
            yield Bond(shapes, self._domains(key, self._left), f"podAffinity over {key}")

    def spreads(self, own: Pods) -> Iterator[Spread]:
        constraints = _spreads(own.spec)
        keys = [str(each.get("topologyKey")) for each in constraints]
        for each, key in zip(constraints, keys, strict=True):
            meant = self.matched(own, each, _FIELD)
            alike = all(slot[0] == own.slot[0] and self._is_alike(own, self._by_slot[slot]) for slot in meant)
            if own.slot not in meant or not alike:
                raise _Gap(f"it does not model {_FIELD} over pods that do not all ask for the same")
            nodes = self._eligible(own.spec, each)
            nodes = nodes.intersection(*(self.places(other).keys() for other in keys))
            domains = self._domains(key, nodes)
            skew, least = each.get("maxSkew"), each.get("minDomains")
            lifted = len(domains) >= (least if isinstance(least, int) else 1)
            shapes = tuple(sorted(index for _, index in meant))
            yield Spread(shapes, domains, skew if isinstance(skew, int) else 1, lifted, f"{_FIELD} over {key}")

    def _is_alike(self, own: Pods, other: Pods) -> bool:
        fields = ("nodeSelector", "tolerations", "affinity")
        same = all(own.spec.get(each) == other.spec.get(each) for each in fields)
        return same and _spreads(own.spec) == _spreads(other.spec)

    def _eligible(self, spec: Mapping[str, Any], constraint: Mapping[str, Any]) -> frozenset[str]:
        """The nodes whose domains count: those that the pod selects, be they closed to it or not, unless the constraint
        says otherwise."""
        selects = constraint.get("nodeAffinityPolicy") != "Ignore"
        nodes = self._fleet.selected(spec) if selects else self._fleet.nodes
        if constraint.get("nodeTaintsPolicy") == "Honor":
            nodes = [node for node in nodes if node.takes_pods and self._fleet.intolerable(node, spec) is None]
        return frozenset(node.name for node in nodes)
