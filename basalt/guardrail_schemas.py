"""Cerberus, for Guardrails: whether a schema is one, and the validator of it.

Cerberus takes 50 ms to import and few folders have a Guardrail, so it is imported when the first one is met.
"""

from functools import cache
from typing import Any

from basalt import patterns


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


def fault(schema: Any) -> str | None:
    """Why it is no Cerberus schema, else None."""
    from cerberus import SchemaError

    try:
        validator(schema)
    except SchemaError as error:
        return str(error)
    except (TypeError, ValueError, AttributeError, KeyError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"  # Cerberus lets through some of what is no schema
    return next((f"{text} is not an RE2 expression" for text in _regexes(schema) if patterns.fault(text)), None)


def _regexes(schema: Any) -> list[str]:
    """Every `regex` in the schema."""
    found: list[str] = []
    stack = [schema]
    while stack:
        current = stack.pop()
        if isinstance(current, dict):
            if isinstance(current.get("regex"), str):
                found.append(current["regex"])
            stack.extend(current.values())
        elif isinstance(current, list):
            stack.extend(current)
    return found
