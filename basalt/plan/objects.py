"""The objects that come, go and change."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from basalt.api import immutable, structural
from basalt.api.kinds import Catalog
from basalt.cluster import comparing
from basalt.cluster.comparing import Change
from basalt.objects import KubeObject
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
    kind = catalog.find(*head.ref[:2])
    quantities = {at for at, _, _ in structural.quantities(kind.trie, head.value)} if kind else set()
    found = [each for each in comparing.changes(base.value, head.value) if each.pointer != _NAMESPACE]
    changes = tuple(each for each in found if each.pointer not in quantities or not _is_same_amount(each))
    refused = tuple(each for each in changes if immutable.refuses(head.ref, base.value, *each))
    return Changed(base, head, changes, refused)


def _is_same_amount(change: Change) -> bool:
    """Whether the two quantities are spellings of one: 1 and 1000m."""
    amount = parse(change.before)
    return amount is not None and amount == parse(change.after)
