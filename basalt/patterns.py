"""Regular expressions that come from users, matched by RE2: linear time, and the syntax that Go's regexp takes."""

from functools import lru_cache

import re2


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> "re2._Regexp[str]":
    """The compiled pattern; ValueError with RE2's own words where it is not one."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        words = error.args[0] if error.args else "not an expression"
        raise ValueError(words.decode() if isinstance(words, bytes) else str(words)) from None


def fault(text: str) -> str | None:
    """Why the text is not an RE2 expression, else None."""
    try:
        compile_pattern(text)
    except ValueError as error:
        return str(error)
    return None
