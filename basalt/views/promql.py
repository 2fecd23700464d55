"""What a PromQL expression uses: the metrics, the labels it matches on each, and the labels it groups by.

Reads any text: one that is not PromQL uses nothing. Variables of Grafana ($x, ${x}, [[x]]) and templates (<<.Series>>,
{{.x}}) may stand anywhere; what they are part of is unknown. Source: the lexer and grammar of Prometheus'
promql/parser.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from basalt.patterns import compile_pattern

_AGGREGATIONS = frozenset({
    "avg", "bottomk", "count", "count_values", "group", "limit_ratio", "limitk", "max", "min", "quantile", "stddev",
    "stdvar", "sum", "topk",
})  # fmt: skip
_GROUPINGS = ("by", "without")
_MATCHINGS = ("on", "ignoring", "group_left", "group_right")
_SETS = ("and", "or", "unless", "atan2")
_OPERATORS = frozenset({"+", "-", "*", "/", "%", "^", "==", "!=", "<", ">", "<=", ">=", *_SETS})
_NOT_METRICS = frozenset({"bool", "offset", *_GROUPINGS, *_MATCHINGS, *_SETS})
_NUMBERS = ("inf", "nan")
_LABEL_MAKERS = ("label_replace", "label_join")  # the second argument is the label that they make
_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
    |(?P<variable>\$\{[^}]*\}|\[\[\w+(?::\w+)?\]\]|<<.*?>>|\{\{.*?\}\}|\$\w+)
    |(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:ms|[smhdwy])?)(?:\d+(?:ms|[smhdwy]))*)
    |(?P<word>[A-Za-z_:][A-Za-z0-9_:]*)
    |(?P<operator>=~|!~|!=|==|<=|>=|[-+*/%^=<>(){}\[\],@:.])""",
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = "([{", ")]}"
_LONGEST = 20_000  # characters; nobody writes more
_DEEPEST = 100


class Matcher(NamedTuple):
    """One matcher of a selector. value is None where a variable stands in it."""

    label: str
    operator: str
    value: str | None

    @property
    def needs_label(self) -> bool:
        """Whether a series without the label does not match."""
        if self.value is None:
            return self.operator in ("=", "=~")
        takes_nothing = self.value == "" if self.operator in ("=", "!=") else _takes_nothing(self.value)
        return takes_nothing == (self.operator in ("!=", "!~"))


class Selector(NamedTuple):
    """The series of one metric. metric is None where its name is unknown."""

    metric: str | None
    matchers: tuple[Matcher, ...] = ()
    name_patterns: tuple[str, ...] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The regular expressions in it, that of the name first."""
        own = (each.value for each in self.matchers if each.operator in ("=~", "!~"))
        return (*self.name_patterns, *(value for value in own if value is not None))


class Grouping(NamedTuple):
    """Labels that an aggregation groups by, over the selectors in it. made are labels that the expression itself
    makes there, needed those that somebody reads of the result."""

    labels: tuple[str, ...]
    selectors: tuple[Selector, ...]
    made: frozenset[str]
    needed: frozenset[str] = frozenset()


class Uses(NamedTuple):
    """What an expression uses, in the order of its text."""

    selectors: tuple[Selector, ...] = ()
    groupings: tuple[Grouping, ...] = ()


class _Token(NamedTuple):
    kind: str
    text: str
    is_joined: bool  # nothing stands between it and the token before


def uses(expression: str) -> Uses:
    """What the expression uses; nothing where it cannot be read."""
    if len(expression) > _LONGEST:
        return Uses()
    try:
        reader = _Reader(list(_tokens(expression)))
        reader.expression(0)
        if reader.at < len(reader.tokens):
            return Uses()
    except ValueError:
        return Uses()
    return Uses(tuple(reader.selectors), tuple(reader.groupings))


def selector(text: str) -> Selector | None:
    """The one series selector that the text is, as a seriesQuery of prometheus-adapter; None where it is none."""
    found = uses(text).selectors
    return found[0] if len(found) == 1 else None


def _tokens(text: str) -> Iterator[_Token]:
    at, end = 0, -1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.end() == at:
            raise ValueError("not PromQL")
        if found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found.group(), end == at)
            end = found.end()
        at = found.end()


class _Reader:
    """Goes through the tokens once."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = _merge(tokens)
        self.at = 0
        self.selectors: list[Selector] = []
        self.groupings: list[Grouping] = []
        self.made: set[str] = set()

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].text if at < len(self.tokens) and self.tokens[at].kind != "text" else ""

    def take(self) -> _Token:
        if self.at >= len(self.tokens):
            raise ValueError("ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, text: str) -> None:
        if self.take().text != text:
            raise ValueError(f"{text} expected")

    def expression(self, depth: int) -> None:
        """Operands and the operators between them, up to what is neither."""
        if depth > _DEEPEST:
            raise ValueError("too deep")
        while True:
            while self.peek() in ("+", "-"):
                self.take()
            self.operand(self.take(), depth)
            self.modifiers()
            if not self.operator():
                return

    def operand(self, token: _Token, depth: int) -> None:
        if token.text == "{" and token.kind == "operator":
            self.selector(None)
        elif token.text == "(" and token.kind == "operator":
            self.arguments(depth)
        elif token.kind in ("word", "variable"):
            self.word(token, depth)
        elif token.kind not in ("number", "text"):
            raise ValueError("no operand")

    def word(self, token: _Token, depth: int) -> None:
        name = token.text.lower()
        if token.kind == "word" and name in _AGGREGATIONS and self.peek().lower() in ("(", *_GROUPINGS):
            self.aggregation(name, depth)
        elif token.kind == "word" and self.peek() == "(":
            self.take()
            first = self.at
            self.arguments(depth)
            if name in _LABEL_MAKERS:
                self.made.update(_texts_at(self.tokens[first : self.at], 1))
        elif self.peek() == "{":
            self.take()
            self.selector(token.text if token.kind == "word" else "")
        elif name in _NOT_METRICS:
            raise ValueError("no operand")
        elif token.kind == "word" and name not in _NUMBERS:
            self.selectors.append(Selector(token.text))

    def modifiers(self) -> None:
        """Ranges, offsets and fixed times."""
        while True:
            if self.peek() == "[":
                self.skip("]")
            elif self.peek().lower() == "offset" or self.peek() == "@":
                self.take()
                if self.peek() == "-":
                    self.take()
                self.take()
                if self.peek() == "(":
                    self.skip(")")
            else:
                return

    def operator(self) -> bool:
        """Whether an operator, with what belongs to it, leads to another operand."""
        if self.peek().lower() not in _OPERATORS and not self._is_variable():
            return False
        self.take()
        if self.peek().lower() == "bool":
            self.take()
        while self.peek().lower() in _MATCHINGS:
            makes = self.take().text.lower().startswith("group_")
            if self.peek() == "(" and not (makes and self._opens_operand()):
                self.take()
                labels = self.labels()
                self.made.update(labels if makes else ())
        return True

    def _is_variable(self) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].kind == "variable"

    def _opens_operand(self) -> bool:
        """Whether the parenthesis after a bare group_left is that of the operand: no other comes after it."""
        depth = 0
        for at in range(self.at, len(self.tokens)):
            text = self.tokens[at].text if self.tokens[at].kind != "text" else ""
            depth += (text == "(") - (text == ")")
            if depth == 0:
                after = self.peek(at + 1 - self.at)
                return not after or after in {*_CLOSE, ","} or after.lower() in _OPERATORS
        return False

    def arguments(self, depth: int) -> None:
        """What stands in the parentheses, of which the first is taken already."""
        while self.peek() != ")":
            self.expression(depth + 1)
            if self.peek() != ",":
                break
            self.take()
        self.expect(")")

    def aggregation(self, name: str, depth: int) -> None:
        grouped = self.grouping()
        self.expect("(")
        first, start, before = len(self.selectors), self.at, self.made
        self.made = set()
        self.arguments(depth)
        if name == "count_values":
            before = before | set(_texts_at(self.tokens[start : self.at], 0))
        grouped = grouped or self.grouping()
        if grouped:
            self.groupings.append(Grouping(grouped, tuple(self.selectors[first:]), frozenset(self.made)))
        self.made |= before

    def grouping(self) -> tuple[str, ...]:
        """The labels of `by (...)`; none of `without (...)`."""
        word = self.peek().lower()
        if word not in _GROUPINGS:
            return ()
        self.take()
        self.expect("(")
        labels = tuple(self.labels())
        return labels if word == "by" else ()

    def labels(self) -> list[str]:
        found: list[str] = []
        while (token := self.take()).text != ")":
            if token.kind == "word":
                found.append(token.text)
            elif token.kind == "text":
                found.append(token.text[1:-1])
            elif token.kind != "variable" and token.text != ",":
                raise ValueError("no label")
        return found

    def selector(self, name: str | None) -> None:
        """The matchers up to the closing brace; name is "" where a variable is the metric's name."""
        matchers: list[Matcher] = []
        while (token := self.take()).text != "}":
            if token.text == "," or token.kind == "variable":
                continue
            if token.kind not in ("word", "text"):
                raise ValueError("no matcher")
            label = token.text[1:-1] if token.kind == "text" else token.text
            if self.peek() in ("=", "!=", "=~", "!~"):
                operator, value = self.take().text, self.take()
                if value.kind not in ("text", "variable"):
                    raise ValueError("no value")
                matchers.append(Matcher(label, operator, _value(value)))
            elif token.kind == "text" and name is None:
                name = label
            else:
                raise ValueError("no operator")
        named = [each for each in matchers if each.label == "__name__"]
        if name is None:
            name = next((each.value for each in named if each.operator == "=" and each.value), None)
        patterns = tuple(each.value for each in named if each.value is not None and "~" in each.operator)
        rest = tuple(each for each in matchers if each.label != "__name__")
        self.selectors.append(Selector(name or None, rest, patterns))

    def skip(self, closing: str) -> None:
        while self.take().text != closing:
            pass


def _merge(tokens: Iterable[_Token]) -> list[_Token]:
    """The tokens, a variable and the words that it is joined to made one variable: $prefix_total."""
    merged: list[_Token] = []
    for token in tokens:
        last = merged[-1] if merged else None
        kinds = {token.kind, last.kind if last else ""}
        if last and token.is_joined and "variable" in kinds and kinds <= {"variable", "word", "number"}:
            merged[-1] = last._replace(kind="variable", text=last.text + token.text)
        else:
            merged.append(token)
    return merged


def _texts_at(tokens: Iterable[_Token], place: int) -> Iterator[str]:
    """The text that is the argument at the place, of the arguments that the tokens are; none where it is no text."""
    depth = commas = 0
    for token in tokens:
        if token.kind == "text":
            if depth == 0 and commas == place:
                yield token.text[1:-1]
        elif token.text in _OPEN:
            depth += 1
        elif token.text in _CLOSE:
            depth -= 1
        elif token.text == "," and depth == 0:
            commas += 1


def _takes_nothing(pattern: str) -> bool:
    """Whether the pattern matches the empty value, which is that of a label that a series does not have."""
    try:
        return compile_pattern(pattern).fullmatch("") is not None
    except ValueError:
        return True


def _value(token: _Token) -> str | None:
    if token.kind == "variable" or re.search(r"\$|\[\[|<<|\{\{", token.text[1:-1].rstrip("$")):
        return None
    return token.text[1:-1]
