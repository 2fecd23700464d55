"""What libyaml says about a text that is not YAML, in words for people and at the place that is to be mended."""

from collections.abc import Callable
from typing import Any

from basalt.loading.limits import Fault
from basalt.loading.marks import Lines, Mark

_RULE = "document-parses"
_UNCLOSED = "while scanning a quoted scalar"
_NODE = "while parsing a flow node"
_KEY = "while scanning a simple key"
_FLOW = {"while parsing a flow mapping": "{", "while parsing a flow sequence": "["}
_TEMPLATE = "this looks like a template: render it first (helm template), and check what comes out"


_ESCAPE = "an escape that is no character", "write the character itself"
_PROBLEMS = {
    "found character that cannot start any token": (
        "no plain text begins with this character",
        "put the text in quotes",
    ),
    "found invalid Unicode character escape code": _ESCAPE,
    "found incompatible YAML document": ("a version of YAML that nobody reads", "take the %YAML line out"),
    "mapping values are not allowed in this context": (
        "a second ':' on this line, or a line that is indented too deep",
        "put a text with ': ' in quotes, or mend the indentation",
    ),
    "did not find expected key": ("no key where the map goes on", "mend the indentation, or quote the text before it"),
}


def of_marked(error: Any, text: str, mark: Callable[[Any], Mark], opened: Any) -> Fault:
    """The Fault of a MarkedYAMLError; opened is libyaml's mark of the innermost bracket that is open there, if any."""
    raw, context, problem = error.problem_mark or error.context_mark, str(error.context or ""), str(error.problem)
    if raw is None:
        return Fault(_RULE, Mark(1, 1), f"not YAML: {problem}")
    fact, hint = _PROBLEMS.get(problem, (problem.removeprefix("found "), ""))
    if error.context == _NODE and opened is not None and not text[raw.index :].strip():
        raw, (fact, hint) = opened, (f"the {text[opened.index]} that begins here is never closed", "close it")
    elif error.context_mark is not None and (own := _own_words(error, text)) is not None:
        raw, (fact, hint) = error.context_mark, own
    elif text[raw.index : raw.index + 1] == "\t":
        fact, hint = "a tab where only spaces indent", "indent with spaces"
    elif error.context in _FLOW:
        begins = f"the {_FLOW[error.context]} of line {mark(error.context_mark).line}"
        fact, hint = f"no ',' before this, nor an end of {begins}", "separate the items by commas"
    elif error.context_mark is not None and error.context_mark.line != raw.line:
        fact += f" ({context}, which begins on line {mark(error.context_mark).line})"
    return Fault(_RULE, mark(raw), f"not YAML: {fact}", _TEMPLATE if "{{" in _line(text, raw) else hint)


def _own_words(error: Any, text: str) -> tuple[str, str] | None:
    """The fact and the way out where the fault lies at the context's beginning: something that is never closed."""
    if error.context == _UNCLOSED and "unexpected" in error.problem:
        return "the quotation that begins here does not end", "close it"
    if error.context == _KEY:
        return "no ':' follows this line's key", "write key: value, or indent the line into the text above"
    if error.context in _FLOW and _is_outside(error, text):
        return f"the {_FLOW[error.context]} that begins here is never closed", "close it"
    return None


def _is_outside(error: Any, text: str) -> bool:
    """Whether the problem lies beyond what the open bracket can have meant to hold: at the end of the text, or on a
    later line that is indented no deeper."""
    problem, context = error.problem_mark, error.context_mark
    if not text[problem.index :].strip():
        return True
    if problem.line == context.line:
        return False
    return _indentation(_line(text, problem)) <= _indentation(_line(text, context))


def _line(text: str, mark: Any) -> str:
    start = text.rfind("\n", 0, mark.index) + 1
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def of_character(error: Any, text: str) -> Fault:
    """The Fault of a ReaderError, whose position counts bytes of UTF-8."""
    offset = len(text.encode()[: error.position].decode(errors="ignore"))
    shown = f"U+{ord(text[offset]):04X}" if offset < len(text) else "a character"
    hint = "save the file as UTF-8" if shown == "U+0000" else "take it out, or write it as an escape in double quotes"
    return Fault(_RULE, Lines(text).mark(offset), f"not YAML: {shown} is a control character", hint)
