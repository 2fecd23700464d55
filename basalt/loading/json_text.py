"""JSON text to values, and to the position of each value. Iterative, so that no depth of nesting overflows; each key
that repeats is reported.
"""

import json
import math
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from basalt.loading.limits import DEPTH, ONE_KEY, Fault
from basalt.loading.marks import Lines, Mark
from basalt.loading.yaml_text import Parsed
from basalt.pointers import Pointer

_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
        (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")
      | (?P<number>-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?(?:[eE][-+]?[0-9]{1,3})?)(?![0-9.eE])
      | (?P<word>true|false|null)\b
      | (?P<mark>[][{}:,])
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_WORDS = {"true": True, "false": False, "null": None}
_BLANK = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"[A-Za-z_][\w.-]{0,30}")


def documents(text: str, *, with_positions: bool = False) -> Iterator[Parsed]:
    """Each document of the text that has content, one after the other; raises Fault where the text is not JSON or
    nested too deep."""
    reader = _Reader(text, with_positions)
    while (parsed := reader.read()) is not None:
        if parsed.value is not None:
            yield parsed


def _fault_at(text: str, offset: int) -> tuple[str, str]:
    """Why the text is not JSON from the offset on, and the way out."""
    first = text[offset : offset + 1]
    if not first:
        return "not JSON: the text ends before the document does", ""
    if first == '"':
        return "not JSON: this text does not end, or holds a line break, a control character or an unknown escape", ""
    if first == "'":
        return "not JSON: texts stand in double quotes", ""
    if first in "/#":
        return "not JSON: there are no comments", "take it out, or write YAML in a .yaml file"
    if first in "+-.0123456789":
        return "not JSON: no number of JSON, or one of more than 400 digits", ""
    if word := _WORD.match(text, offset):
        return f"not JSON: {word[0]} is no value of JSON", "put it in double quotes, or write YAML in a .yaml file"
    return f"not JSON: {first} begins no value", ""


class _Reader:
    def __init__(self, text: str, with_positions: bool) -> None:
        self.text = text
        self.offset = 0
        self.token_at = 0
        self.faults: list[Fault] = []
        self.with_positions = with_positions
        self.positions: dict[Pointer, Mark] | None = None

    def read(self) -> Parsed | None:
        """The next document; None at the end of the text."""
        kind, token = self._next()
        if kind == "end":
            return None
        self.faults, self.positions = [], {} if self.with_positions else None
        start = self.mark(self.token_at)
        value = self._value(kind, token)
        return Parsed(value, start, self.positions, tuple(self.faults), ())

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    def mark(self, offset: int) -> Mark:
        return self.lines.mark(offset)

    def _next(self) -> tuple[str, str]:
        matched = _TOKEN.match(self.text, self.offset)
        if matched is None:
            blank = _BLANK.match(self.text, self.offset)
            offset = blank.end() if blank else self.offset
            raise Fault("document-parses", self.mark(offset), *_fault_at(self.text, offset))
        kind = matched.lastgroup or ""
        self.offset = matched.end()
        self.token_at = matched.start(kind)
        return kind, matched.group(kind)

    def _expect(self, wanted: str) -> str:
        kind, token = self._next()
        if kind != "mark" or token not in wanted:
            choice = " or ".join(wanted)
            raise Fault("document-parses", self.mark(self.token_at), f"not JSON: {choice} is expected here")
        return token

    def _value(self, kind: str, token: str) -> Any:
        """The value that begins with the token, containers included, without recursion."""
        root: list[Any] = []
        stack: list[tuple[Any, Pointer]] = []  # open containers, innermost last, each with its pointer
        container: Any = root
        pointer: Pointer = ()
        key: str | int = 0
        while True:
            value = self._scalar(kind, token)
            here = (*pointer, key) if container is not root else ()
            self._place(container, key, value, here)
            if token in ("{", "[") and kind == "mark":
                if len(stack) >= DEPTH:
                    message = f"nested deeper than {DEPTH} levels"
                    raise Fault("input-within-limits", self.mark(self.token_at), message, "flatten the text")
                stack.append((container, pointer))
                container, pointer = value, here
                step = self._first(container, here)
            else:
                step = self._after(container, pointer) if container is not root else None
            while step is None:  # the container is complete: go on in the one around it
                if container is root or not stack:
                    return root[0]
                container, pointer = stack.pop()
                step = self._after(container, pointer) if container is not root else None
                if container is root:
                    return root[0]
            key, kind, token = step

    def _place(self, container: Any, key: str | int, value: Any, here: Pointer) -> None:
        if isinstance(container, list):
            container.append(value)
            if self.positions is not None:
                self.positions[here] = self.mark(self.token_at)
        else:
            container[key] = value

    def _scalar(self, kind: str, token: str) -> Any:
        if kind == "string":
            return self._text(token)
        if kind == "number":
            return self._number(token)
        if kind == "word":
            return _WORDS[token]
        if token == "{":
            return {}
        if token == "[":
            return []
        raise Fault("document-parses", self.mark(self.token_at), "not JSON: a value is expected here")

    def _number(self, token: str) -> int | float:
        if not any(letter in token for letter in ".eE"):
            return int(token)
        if not math.isfinite(number := float(token)):
            raise Fault("document-parses", self.mark(self.token_at), f"{token} is beyond every number that JSON holds")
        return number

    def _text(self, token: str) -> str:
        text: str = json.loads(token)
        if "\\u" in token and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise Fault("document-parses", self.mark(self.token_at), "half a surrogate pair, which is no character")
        return text

    def _first(self, container: Any, pointer: Pointer) -> tuple[str | int, str, str] | None:
        """The first member of a container that was just opened; None where it is empty."""
        kind, token = self._next()
        if isinstance(container, list):
            return None if token == "]" and kind == "mark" else (0, kind, token)
        return None if token == "}" and kind == "mark" else self._member(container, pointer, kind, token)

    def _after(self, container: Any, pointer: Pointer) -> tuple[str | int, str, str] | None:
        """The member after the one that was just read; None at the container's end."""
        if isinstance(container, list):
            if self._expect(",]") == "]":
                return None
            return (len(container), *self._next())
        if self._expect(",}") == "}":
            return None
        return self._member(container, pointer, *self._next())

    def _repeated(self, pointer: Pointer) -> Fault:
        first = (self.positions or {}).get(pointer, Mark(1, 1)).line
        message = f"the key {pointer[-1]} stands here and on line {first}"
        return Fault("keys-are-unique", self.mark(self.token_at), message, ONE_KEY, pointer)

    def _member(self, container: Any, pointer: Pointer, kind: str, token: str) -> tuple[str, str, str]:
        if kind != "string":
            raise Fault("document-parses", self.mark(self.token_at), "not JSON: a key in quotes is expected here")
        key = self._text(token)
        if key in container:
            self.faults.append(self._repeated((*pointer, key)))
        if self.positions is not None:
            self.positions[(*pointer, key)] = self.mark(self.token_at)
        self._expect(":")
        return (key, *self._next())
