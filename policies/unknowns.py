"""Values that only the update will tell, and secrets, which are nobody's business: what can be said without them. Pure.

What only the pods read is filled in several ways: what is said whichever way it is filled does not depend on it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pulumi_policy import proxy

from basalt.gathering import expanding
from basalt.pointers import Pointer

SENTINELS = frozenset(
    (
        proxy.UNKNOWN_ARCHIVE_VALUE,
        proxy.UNKNOWN_ARRAY_VALUE,
        proxy.UNKNOWN_ASSET_VALUE,
        proxy.UNKNOWN_BOOLEAN_VALUE,
        proxy.UNKNOWN_NUMBER_VALUE,
        proxy.UNKNOWN_OBJECT_VALUE,
        proxy.UNKNOWN_STRING_VALUE,
    )
)
SECRET = proxy.UNKNOWN_STRING_VALUE  # as what secrets are given to the rules

_Object = dict[str, Any]
_Schema = Mapping[str, Any]
_ABSENT = object()
_CONTAINERS = ("containers", "initContainers")
_OF_JOBS = ("batch", "batch.volcano.sh")
_READ_BY_PODS = (("env",), ("envFrom",))
_RUN_BY_PODS = (("args",), ("command",), ("image",))
_VALUES: Mapping[str, tuple[Any, Any]] = {
    "boolean": (False, True),
    "integer": (1, 1000),
    "number": (1, 1000),
    "string": ("1", "1000"),  # a name, a label, an amount, a port
}


def places(value: Any, at: Pointer = ()) -> Iterator[Pointer]:
    """Where nothing is known."""
    if isinstance(value, str):
        if value in SENTINELS:
            yield at
        return
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*at, key))


def is_own(value: _Object, at: Pointer) -> bool:
    """Whether nothing but the pods themselves reads what stands there. What runs tells exporters and operators from
    others, but in a job."""
    where = [number for number, part in enumerate(at) if part in _CONTAINERS]
    if not where:
        return False
    field = at[where[-1] + 2 : where[-1] + 3]
    group = str(value.get("apiVersion")).rpartition("/")[0]
    return field in _READ_BY_PODS or (group in _OF_JOBS and field in _RUN_BY_PODS)


def removed(value: _Object) -> _Object:
    """The object without what is unknown."""
    found: _Object = _filled(value, lambda _: _ABSENT)
    return found


def small(value: _Object) -> _Object:
    """The object with small values for what is unknown."""
    return _with(value, 0)


def large(value: _Object) -> _Object:
    return _with(value, 1)


def _with(value: _Object, which: int) -> _Object:
    found: _Object = _filled(value, lambda at: _filling(_schema(value, at), which))
    return found


def _schema(value: _Object, at: Pointer) -> _Schema:
    kind = expanding.newest().find(str(value.get("apiVersion")), str(value.get("kind")))
    return (kind.shape.at(at) if kind else None) or {}


def _plain_type(schema: _Schema) -> str | None:
    types = schema.get("type", ())
    found = [each for each in ([types] if isinstance(types, str) else types) if each in _VALUES]
    if not found and not types:
        found = ["string"] if "enum" in schema or "anyOf" in schema else []
    return min(found, key=list(_VALUES).index) if found else None


def _filling(schema: _Schema, which: int) -> Any:
    if "enum" in schema:
        return schema["enum"][-which]
    kind = _plain_type(schema)
    return _ABSENT if kind is None else _VALUES[kind][which]


def _filled(value: Any, choose: Callable[[Pointer], Any], at: Pointer = ()) -> Any:
    if isinstance(value, Mapping):
        pairs = ((key, _filled(each, choose, (*at, key))) for key, each in value.items())
        return {key: each for key, each in pairs if each is not _ABSENT}
    if isinstance(value, list):
        items = (_filled(each, choose, (*at, index)) for index, each in enumerate(value))
        return [each for each in items if each is not _ABSENT]
    return choose(at) if isinstance(value, str) and value in SENTINELS else value


FILLINGS: Sequence[Callable[[_Object], _Object]] = (removed, small, large)
