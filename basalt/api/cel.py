"""CRD validation rules in CEL (x-kubernetes-validations), evaluated by Google's own runtime."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from basalt.pointers import Pointer

_RULES = "\0rules"  # no property is called that
_MAPS = (dict, Mapping)  # a dict is quick to tell, Mapping is not


class Rule(NamedTuple):
    """One rule of a schema; message is empty where the CRD gives none."""

    expression: str
    message: str


class Broken(NamedTuple):
    """Where a value fails which rule."""

    pointer: Pointer
    rule: Rule


def rules(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Where a schema's CEL rules stand: nested by property name, "*" for list items and map values, the rules of a
    value under a key of their own. Empty where there are none."""
    return _collect(schema, schema, ())


def _collect(schema: Mapping[str, Any], root: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = root.get("definitions", {}).get(name)
        if name in above or target is None:
            return {}  # a schema that contains itself has no CEL rules in Kubernetes
        return _collect(target, root, (*above, name))
    found: dict[str, Any] = {}
    if own := tuple(_own_rules(schema)):
        found[_RULES] = own
    children = dict(schema.get("properties", {}))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            children["*"] = schema[key]
    for name, child in children.items():
        if inner := _collect(child, root, above):
            found[name] = inner
    return found


def _own_rules(schema: Mapping[str, Any]) -> Iterator[Rule]:
    """The rules about a value alone; those that compare it with its old self only matter to an update."""
    for declared in schema.get("x-kubernetes-validations", ()):
        expression = declared.get("rule") if isinstance(declared, Mapping) else None
        if isinstance(expression, str) and "oldSelf" not in expression:
            message = declared.get("message")
            yield Rule(_one_line(expression), _one_line(message) if isinstance(message, str) else "")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def broken(trie: Mapping[str, Any], value: Any) -> list[Broken]:
    """Each rule that a value fails, and where. A rule that cannot be evaluated is silent."""
    found: list[Broken] = []
    _look(trie, value, (), found)
    return found


def _look(trie: Mapping[str, Any], value: Any, pointer: Pointer, found: list[Broken]) -> None:
    if own := trie.get(_RULES):
        found.extend(Broken(pointer, rule) for rule in own if not _passes(rule.expression, value))
    if isinstance(value, _MAPS):
        for key, child in value.items():
            if inner := trie.get(key) or trie.get("*"):
                _look(inner, child, (*pointer, key), found)
    elif isinstance(value, list) and (inner := trie.get("*")):
        for index, child in enumerate(value):
            _look(inner, child, (*pointer, index), found)


def unreadable(trie: Mapping[str, Any]) -> Iterator[str]:
    """The rules that cannot be evaluated: they do not compile, or use what only the API server has."""
    for key, inner in trie.items():
        if key == _RULES:
            yield from (rule.expression for rule in inner if _program(rule.expression) is None)
        else:
            yield from unreadable(inner)


def _passes(expression: str, value: Any) -> bool:
    fields = _fields_asked_for(expression)
    if fields is None or not isinstance(value, Mapping):
        return _evaluates(expression, value)
    found = tuple((name, value[name] is None) for name in fields if name in value)
    if (expression, found) not in _KNOWN:
        _KNOWN[expression, found] = _evaluates(expression, value)
    return _KNOWN[expression, found]


_KNOWN: dict[tuple[str, tuple[tuple[str, bool], ...]], bool] = {}  # of rules that ask only which fields there are
_HAS = re.compile(r"\bhas\(self\.(\w+)\)")


@cache
def _fields_asked_for(expression: str) -> tuple[str, ...] | None:
    """The fields of an expression that only asks which of them are there, as the union of a member selector does; None
    where it looks at values. 100,000 such selectors have few outcomes."""
    return None if "self" in _HAS.sub("", expression) else tuple(sorted(set(_HAS.findall(expression))))


def _evaluates(expression: str, value: Any) -> bool:
    program = _program(expression)
    if program is None:
        return True
    try:
        return program.eval(data={"self": value}).value() is not False
    except (RuntimeError, ValueError, TypeError, OverflowError):
        return True


@cache
def _program(expression: str) -> Any:
    """The compiled expression; None for one that uses what only the API server has (quantity(), isURL(), …)."""
    from cel_expr_python import cel  # a shared library of 16 MB: loaded when the first rule is met

    try:
        return cel.NewEnv(variables={"self": cel.Type.DYN}).compile(expression)
    except (RuntimeError, ValueError):
        return None
