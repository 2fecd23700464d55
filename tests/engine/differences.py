"""How the Kubernetes provider compares: the last live object, cut to the shape of what was declared, with what is
declared now. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt import pointers, quantities
from basalt.findings import Ref
from basalt.pointers import Pointer

_NOTHING: tuple[Any, ...] = (None, "", [], {}, 0, False)
_IDENTITY = (("metadata", "name"), ("metadata", "namespace"), ("apiVersion",), ("kind",))
_CONTENTS: Mapping[tuple[str, str], tuple[Pointer, ...]] = {
    ("", "ConfigMap"): (("data",), ("binaryData",)),
    ("", "Secret"): (("data",), ("stringData",), ("type",)),
}
# Of what Basalt writes, the fields that the provider knows the API server not to change.
_FIXED: Mapping[tuple[str, str], tuple[Pointer, ...]] = {
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("storage.k8s.io", "StorageClass"): (("parameters",), ("provisioner",)),
    ("apps", "Deployment"): (("spec", "selector"),),
    ("apps", "DaemonSet"): (("spec", "selector"),),
}


def pruned(live: Any, shape: Any) -> Any:
    """Of the live value what the shape has too."""
    if isinstance(live, Mapping) and isinstance(shape, Mapping):
        return {key: pruned(value, shape[key]) for key, value in live.items() if key in shape}
    if isinstance(live, list) and isinstance(shape, list):
        if not live or not shape:
            return []
        return [pruned(value, like) for value, like in zip(live, shape, strict=False)]
    return live


def differences(old: Any, new: Any, *, is_typed: bool, at: Pointer = ()) -> Iterator[Pointer]:
    """Where they differ. is_typed: the provider knows the kind, for which "1000m" and 1 are the same, and so are
    nothing and an empty list."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in {**old, **new}:
            yield from differences(old.get(key), new.get(key), is_typed=is_typed, at=(*at, str(key)))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            pair = [each[index] if index < len(each) else None for each in (old, new)]
            yield from differences(*pair, is_typed=is_typed, at=(*at, index))
    elif not _is_same(old, new, is_typed=is_typed):
        yield at


def _is_same(old: Any, new: Any, *, is_typed: bool) -> bool:
    if old == new:
        return True
    if not is_typed:
        return False
    if old in _NOTHING and new in _NOTHING:
        return True
    amounts = [quantities.parse(str(each)) for each in (old, new)]
    return amounts[0] is not None and amounts[0] == amounts[1]


def is_typed(ref: Ref) -> bool:
    """Whether the kind is one of Kubernetes' own."""
    return "." not in ref.group or ref.group.endswith(".k8s.io")


def replaces(at: Pointer, ref: Ref, mutable: frozenset[str]) -> bool:
    """Whether the provider replaces an object of which that changes; mutable are the kinds that it was told to change
    in place."""
    is_sealed = (ref.group, ref.kind) in _CONTENTS and ref.kind not in mutable
    contents = _CONTENTS[ref.group, ref.kind] if is_sealed else ()
    fixed = (*_IDENTITY, *contents, *_FIXED.get((ref.group, ref.kind), ()))
    return any(at[: len(each)] == each for each in fixed)


def path(at: Pointer) -> str:
    """As Pulumi spells it."""
    return pointers.dotted(at)
