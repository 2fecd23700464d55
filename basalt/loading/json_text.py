"""JSON text to a value, and to the position of each value. Iterative, so that no depth of nesting overflows; each
key that repeats is reported with both of its lines.
"""

import json
import re
from bisect import bisect_right
from typing import Any

from basalt.loading.limits import DEPTH, Fault
from basalt.loading.yaml_text import Mark, Parsed
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


def document(text: str, *, with_positions: bool = False) -> Parsed:
    """The one document of the text; raises Fault where the text is not JSON or nested too deep."""
    return _Reader(text, with_positions).read()


class _Reader:
    def __init__(self, text: str, with_positions: bool) -> None:
        self.text = text
        self.offset = 0
        self.token_at = 0
        self.faults: list[Fault] = []
        self.positions: dict[Pointer, Mark] | None = {} if with_positions else None
        self.newlines: list[int] | None = None

    def read(self) -> Parsed:
        kind, token = self._next()
        if kind == "end":
            return Parsed(None, Mark(1, 1), None, (), ())
        start = self.mark(self.token_at)
        value = self._value(kind, token)
        if self._next()[0] != "end":
            raise Fault("document-parses", self.mark(self.token_at), "not JSON: something follows the document")
        return Parsed(value, start, self.positions, tuple(self.faults), ())

    def mark(self, offset: int) -> Mark:
        if self.newlines is None:
            self.newlines = [-1, *(found.start() for found in re.finditer("\n", self.text))]
        line = bisect_right(self.newlines, offset - 1)
        return Mark(line, offset - self.newlines[line - 1])

    def _next(self) -> tuple[str, str]:
        matched = _TOKEN.match(self.text, self.offset)
        if matched is None:
            blank = re.compile(r"[ \t\n\r]*").match(self.text, self.offset)
            raise Fault("document-parses", self.mark(blank.end() if blank else self.offset), "not JSON")
        kind = matched.lastgroup or ""
        self.offset = matched.end()
        self.token_at = matched.start(kind)
        return kind, matched.group(kind)

    def _expect(self, wanted: str) -> str:
        _, token = self._next()
        if token not in wanted or not token:
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
            return float(token) if any(letter in token for letter in ".eE") else int(token)
        if kind == "word":
            return _WORDS[token]
        if token == "{":
            return {}
        if token == "[":
            return []
        raise Fault("document-parses", self.mark(self.token_at), "not JSON: a value is expected here")

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

    def _member(self, container: Any, pointer: Pointer, kind: str, token: str) -> tuple[str, str, str]:
        if kind != "string":
            raise Fault("document-parses", self.mark(self.token_at), "not JSON: a key in quotes is expected here")
        key = self._text(token)
        if key in container:
            message = f"the key {key} stands here again; readers keep one of the two, and not the same"
            self.faults.append(
                Fault("keys-are-unique", self.mark(self.token_at), message, "keep one of them", (*pointer, key))
            )
        if self.positions is not None:
            self.positions[(*pointer, key)] = self.mark(self.token_at)
        self._expect(":")
        return (key, *self._next())
