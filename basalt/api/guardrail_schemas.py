"""Cerberus, for Guardrails: whether a schema is one, and what a value breaks of it.

Cerberus takes 50 ms to import and few folders have a Guardrail, so it is imported when the first one is met.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from basalt import patterns
from basalt.api.schemas import show
from basalt.pointers import Pointer

# What Cerberus lets out of a schema that it took for one, or of a value that a rule was not made for.
_SURPRISES = (TypeError, ValueError, AttributeError, KeyError, IndexError, RuntimeError)


_ALTERNATIVE = "of definition "  # anyof definition 0


class Breach(NamedTuple):
    """What a value breaks of a schema, and where."""

    pointer: Pointer
    fact: str


@cache
def _validator_class() -> Any:
    from cerberus import Validator
    from cerberus.errors import REGEX_MISMATCH

    class LinearValidator(Validator):  # type: ignore[misc]  # Cerberus has no types
        """A Validator whose patterns are RE2's, fully matched: a site's pattern may not hang the check."""

        def _validate_regex(self, pattern: str, field: str, value: Any) -> None:
            """{'type': 'string'}"""  # Cerberus reads the rule's own schema from here
            if isinstance(value, str) and patterns.compile_pattern(pattern).fullmatch(value) is None:
                self._error(field, REGEX_MISMATCH)

    return LinearValidator


def validator(schema: Any) -> Any:
    """The validator of a Guardrail's schema. It allows what the schema does not name: a Guardrail speaks of what it
    names."""
    return _validator_class()(schema, allow_unknown=True, require_all=False)


def faults(schema: Any) -> list[Breach]:
    """Why it is no Cerberus schema, and where in it; nothing for one that is."""
    from cerberus import DocumentError, SchemaError

    try:
        validator(schema)
    except SchemaError as error:
        return list(_words(error.args[0] if error.args else error, ()))
    except (*_SURPRISES, DocumentError):
        return [Breach((), "a schema maps each field to a map of rules, such as {type: string, required: true}")]
    return list(_not_re2(schema))


def _words(errors: Any, path: Pointer) -> Iterator[Breach]:
    """Cerberus's nested words, {field: [text, {nested}]}: the innermost ones, each with where it is about."""
    if isinstance(errors, list):
        nested = [each for each in errors if isinstance(each, dict)]
        for each in nested or errors:
            yield from _words(each, path)
    elif isinstance(errors, dict):
        alternatives = [list(_words(inner, path)) for field, inner in errors.items() if _ALTERNATIVE in str(field)]
        if alternatives:  # of which the one with the fewest errors was meant
            yield from min(alternatives, key=len)
            return
        for field, inner in errors.items():
            yield from _words(inner, (*path, field if isinstance(field, int) else str(field)))
    else:
        text = str(errors).rstrip(".")
        yield Breach(path, f"{path[-1]}: {text[:1].lower()}{text[1:]}" if path else text)


def _not_re2(schema: Any) -> Iterator[Breach]:
    """Every `regex` in the schema that RE2 does not read."""
    stack: list[tuple[Any, Pointer]] = [(schema, ())]
    while stack:
        current, at = stack.pop()
        if isinstance(current, dict):
            text = current.get("regex")
            if isinstance(text, str) and (fault := patterns.fault(text)):
                yield Breach((*at, "regex"), f"{show(text)} is no RE2 expression: {fault.replace('invalid', 'bad')}")
            stack.extend((child, (*at, key)) for key, child in current.items())
        elif isinstance(current, list):
            stack.extend((child, (*at, index)) for index, child in enumerate(current))


def breaches(found: Any, value: Any) -> Iterator[Breach]:
    """What the value breaks of the validator's schema; nothing where Cerberus itself cannot judge it."""
    from cerberus import DocumentError

    try:
        if not found.validate(value, normalize=False):
            yield from _each(found._errors)  # noqa: SLF001  only these know the path of each error
    except (*_SURPRISES, DocumentError):
        return


def _each(errors: Iterable[Any]) -> Iterator[Breach]:
    from cerberus import errors as codes

    for error in errors:
        pointer = tuple(error.document_path)
        if error.is_group_error and not error.is_logic_error and error.child_errors:
            yield from _each(error.child_errors)
        elif error.code == codes.REQUIRED_FIELD.code:
            yield Breach(pointer[:-1], f"{pointer[-1]} is missing")
        else:
            yield Breach(pointer, _fact(error))


_FACTS = {
    "allowed": "{shown} is none of {wanted}",
    "allow_unknown": "unknown field {field}",
    "anyof": "{shown} fits none of the alternatives",
    "empty": "is empty",
    "forbidden": "{shown} is forbidden",
    "max": "{shown} is above {wanted}",
    "maxlength": "is longer than {wanted}",
    "min": "{shown} is below {wanted}",
    "minlength": "is shorter than {wanted}",
    "noneof": "{shown} fits an alternative that is excluded",
    "nullable": "is null",
    "oneof": "{shown} fits none, or several, of the alternatives",
    "regex": "{shown} does not match {wanted}",
    "type": "takes {wanted}, this is {shown}",
}


def _fact(error: Any) -> str:
    """What is wrong, with the value and what the rule asks for; in Cerberus's own words for its rarer rules."""
    from cerberus.errors import UNKNOWN_FIELD, BasicErrorHandler

    rule = "allow_unknown" if error.code == UNKNOWN_FIELD.code else str(error.rule)
    wanted = error.constraint
    words = ", ".join(map(str, wanted)) if isinstance(wanted, list | tuple) else str(wanted)
    if rule in _FACTS:
        return _FACTS[rule].format(shown=show(error.value), wanted=words, field=error.field)
    text = str(BasicErrorHandler.messages.get(error.code, "breaks the rule {constraint}"))
    return text.format(*error.info, constraint=words, field=error.field, value=show(error.value))
