"""CRD validation rules in CEL (x-kubernetes-validations), evaluated by Google's own runtime."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from basalt.pointers import Pointer

_RULES = "\0rules"  # no property is called that
_HAS = re.compile(r"\bhas\(self\.(\w+)\)")
_MAPS = (dict, Mapping)  # a dict is quick to tell, Mapping is not


class Rule(NamedTuple):
    """One rule of a schema; message is empty where the CRD gives none."""

    expression: str
    message: str


class Broken(NamedTuple):
    """Where a value fails which rule."""

    pointer: Pointer
    rule: Rule


class _Rules:
    """The rules of one value. Where they only ask which fields are there, as those of a member's selector do, 100,000
    values have few outcomes: each is found once."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        asked = [each.expression for each in rules]
        asks_values = any("self" in _HAS.sub("", each) for each in asked)
        self._fields = None if asks_values else sorted({name for each in asked for name in _HAS.findall(each)})
        self._known: dict[tuple[bool, ...], list[Rule]] = {}

    def broken_by(self, value: Any) -> list[Rule]:
        if self._fields is None or type(value) is not dict or None in value.values():
            return self._evaluated(value)
        found = tuple(map(value.__contains__, self._fields))
        if found not in self._known:
            self._known[found] = self._evaluated(value)
        return self._known[found]

    def _evaluated(self, value: Any) -> list[Rule]:
        return [each for each in self.rules if not _evaluates(each.expression, value)]


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
        found[_RULES] = _Rules(own)
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
    own = trie.get(_RULES)
    found = [Broken((), rule) for rule in own.broken_by(value)] if own else []
    inner = trie.get("*")
    if isinstance(value, _MAPS):
        for key in value if inner else value.keys() & trie.keys():
            if below := broken(trie.get(key) or inner or {}, value[key]):
                found += _under(key, below)
    elif inner and isinstance(value, list):
        for index, child in enumerate(value):
            if below := broken(inner, child):
                found += _under(index, below)
    return found


def _under(key: str | int, found: list[Broken]) -> list[Broken]:
    return [Broken((key, *pointer), rule) for pointer, rule in found]


def unreadable(trie: Mapping[str, Any]) -> Iterator[str]:
    """The rules that cannot be evaluated: they do not compile, or use what only the API server has."""
    for key, inner in trie.items():
        if key == _RULES:
            yield from (rule.expression for rule in inner.rules if _program(rule.expression) is None)
        else:
            yield from unreadable(inner)


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
