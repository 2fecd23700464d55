"""The objects that come, go and change."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from basalt.api import immutable, structural
from basalt.api.kinds import Catalog
from basalt.cluster import comparing
from basalt.cluster.comparing import Change
from basalt.findings import Ref
from basalt.objects import KubeObject
from basalt.plan.stored import stored
from basalt.pointers import Pointer
from basalt.quantities import parse

_Identity = tuple[str, str, str, str]  # API group, kind, namespace, name: what the API server tells objects by
_NAMESPACE = ("metadata", "namespace")  # the same on both sides, or written on one and the default on the other


class Changed(NamedTuple):
    """An object that is on both sides and differs. refused are the changes that the API takes in no update, so that the
    object has to be replaced."""

    base: KubeObject
    head: KubeObject
    changes: tuple[Change, ...]
    refused: tuple[Change, ...]


class Difference(NamedTuple):
    """All that differs, each part by kind, namespace and name."""

    added: tuple[KubeObject, ...] = ()
    changed: tuple[Changed, ...] = ()
    replaced: tuple[Changed, ...] = ()
    removed: tuple[KubeObject, ...] = ()


def difference(base: Iterable[KubeObject], head: Iterable[KubeObject], catalog: Catalog) -> Difference:
    """What differs; catalog is the head's."""
    before, after = _by_identity(base), _by_identity(head)
    both = [(before[key], after[key]) for key in after if key in before]
    differing = [each for pair in both if (each := _changed(*pair, catalog)).changes]
    return Difference(
        tuple(sorted((each for key, each in after.items() if key not in before), key=_order)),
        tuple(sorted((each for each in differing if not each.refused), key=lambda each: _order(each.head))),
        tuple(sorted((each for each in differing if each.refused), key=lambda each: _order(each.head))),
        tuple(sorted((each for key, each in before.items() if key not in after), key=_order)),
    )


def _by_identity(objects: Iterable[KubeObject]) -> Mapping[_Identity, KubeObject]:
    """Of two objects of one identity, which object-is-declared-once speaks about, the first."""
    found: dict[_Identity, KubeObject] = {}
    for each in objects:
        ref = each.ref
        found.setdefault((ref.group, ref.kind, ref.namespace or "default", ref.name), each)
    return found


def _order(each: KubeObject) -> tuple[str, str, str, str]:
    ref = each.ref
    return ref.kind, ref.namespace or "", ref.name, ref.api_version


def _changed(base: KubeObject, head: KubeObject, catalog: Catalog) -> Changed:
    if base.value == head.value:
        return Changed(base, head, (), ())
    changes = changes_between(base.value, head.value, head.ref, catalog)
    refused = tuple(each for each in changes if immutable.refuses(head.ref, base.value, *each))
    return Changed(base, head, changes, refused)


def changes_between(base: Mapping[str, Any], head: Mapping[str, Any], ref: Ref, catalog: Catalog) -> tuple[Change, ...]:
    """What differs for a cluster that takes them, as it is written: not what two spellings of one object differ by."""
    real = [each.pointer for each in stored_changes(base, head, ref, catalog)]
    written = _amount_wise(base, head, ref, catalog) if real else []
    if ref.kind == "HyperNode":  # whose members stand elsewhere in what is stored
        return tuple(written)
    return tuple(each for each in written if any(_overlap(each.pointer, pointer) for pointer in real))


def stored_changes(base: Mapping[str, Any], head: Mapping[str, Any], ref: Ref, catalog: Catalog) -> list[Change]:
    """What differs between the objects that a cluster makes of them."""
    return _amount_wise(stored(base, ref), stored(head, ref), ref, catalog)


def _amount_wise(before: Mapping[str, Any], after: Mapping[str, Any], ref: Ref, catalog: Catalog) -> list[Change]:
    kind = catalog.find(*ref[:2])
    quantities = {at for at, _, _ in structural.quantities(kind.trie, after)} if kind else set()
    found = [each for each in comparing.changes(before, after) if each.pointer != _NAMESPACE]
    return [each for each in found if each.pointer not in quantities or not _is_same_amount(each)]


def _overlap(one: Pointer, other: Pointer) -> bool:
    return all(left == right for left, right in zip(one, other, strict=False))


def _is_same_amount(change: Change) -> bool:
    """Whether the two quantities are spellings of one: 1 and 1000m."""
    amount = parse(change.before)
    return amount is not None and amount == parse(change.after)
