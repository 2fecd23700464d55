"""What may be a secret: keys that name one, texts that are one. And how none of them gets into a message.

A text may be of any length, and is only searched in linear time: where a pattern could begin at every letter, by RE2.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from basalt import patterns
from basalt.api.schemas import show
from basalt.pointers import Pointer, get

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_KEY = re.compile(
    r"(.*[-_./a-z0-9])?(passw(or)?d|passphrase|pwd|token|private[-_]?key|client[-_]?secret|api[-_]?key|secret[-_]?key"
    r"|secret[-_]?access[-_]?key|account[-_]?key|bind[-_]?pw)",
    re.IGNORECASE,
)
_TOKEN_OF_A_MODEL = re.compile(
    r".*(max|min|num|pad|eos|bos|unk|sep|cls|mask|stop|start|end|special|image|next|per)[-_.]?token", re.IGNORECASE
)
# A variable, a command, a path, stars, a placeholder, a template, a word that says no more than whether there is one.
_REFERENCE = re.compile(
    r"\$\w+|\$[({].*|`.*`|/[\w./-]*|\*+|x{3,}|\.{3}|<.*>|\{\{.*|(true|false|none|null|redacted)",
    re.IGNORECASE | re.DOTALL,
)
_KNOWN = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----",
    "a GitHub token": r"\b(ghp|gho|ghs|ghr|ghu)_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{40,}",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}\b",
    "an NVIDIA API key": r"\bnvapi-[A-Za-z0-9_-]{40,}",
    "an AWS access key": r"\b(AKIA|ASIA)[A-Z0-9]{16}\b",
    "a Google API key": r"\bAIza[A-Za-z0-9_-]{35}\b",
    "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a JSON Web Token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
}
_ANY_KNOWN = "|".join(_KNOWN.values())
# One of these stands in each of the known. To look for all of them costs an eighth of a search by the patterns.
_SIGNS = (
    "-----BEGIN ", "ghp_", "gho_", "ghs_", "ghr_", "ghu_", "github_pat_", "glpat-", "hf_", "nvapi-", "AKIA", "ASIA",
    "AIza", "xox", "eyJ",
)  # fmt: skip
_SHORTEST = 15  # letters of any of them: Slack's
_IN_URL = r"(?i)\b([a-z][a-z0-9+.-]{1,20}://[^\s/:@]*:)([^\s/@]+)(@)"
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)(=(.+))?", re.DOTALL)
_OF_KEYS = re.compile(r"passw|passphrase|pwd|token|secret|key|bind", re.IGNORECASE)  # one stands in each key
_PAIR = r"""["']?([A-Za-z][\w./-]*)["']?\s*[:=]\s*["']?([^\s"',}{\[\]]+)"""
_WORDS = r"""--?([A-Za-z][\w.-]*)["']?[,\s]+["']?([^\s"',}{\[\]]+)"""  # of a command: --password, word
# A key and its value in a line of any language: in quotes; bare, as all that a part of the line says; as a flag.
_QUOTED = r"""([A-Za-z][\w./-]*)["']?\s*(?::=|[:=])\s*["']([^"']*\w[^"']*)["']"""
_BARE = (
    r"""\s*(?:-\s+|export\s+)?["']?([A-Za-z][\w./-]*)["']?\s*[:=]\s*"""
    r"""([^\s"';()\[\]]*\w[^\s"';()\[\]]*)\s*(?:[;#].*)?"""
)
_FLAG_GIVEN = r"""(?:^|\s)--?([A-Za-z][\w.-]*)=([^\s"',;()]*\w)"""
_FILLED_IN = re.compile(r"\$[\w({]|\{")  # a template, whose words are not the value yet
_LONGEST_LINE = 65_536  # letters; one that is longer, and names a secret, is taken for one
_SHORT_NUMBER = re.compile(r"[0-9]{1,9}")
_HIDDEN = "***"
_MAPS = (dict, Mapping)  # a dict is quick to tell, Mapping is not


class Literal(NamedTuple):
    """A secret that is written out: where in the value, and what it is."""

    pointer: Pointer
    what: str


def is_secret(value: Any) -> bool:
    """Whether it is Kubernetes' own Secret, which holds nothing else."""
    return isinstance(value, Mapping) and value.get("kind") == "Secret" and value.get("apiVersion") == "v1"


@lru_cache(maxsize=16384)
def names_a_secret(key: str) -> bool:
    name = _CAMEL.sub("_", key)
    return _KEY.fullmatch(name) is not None and _TOKEN_OF_A_MODEL.fullmatch(name) is None


def is_literal(value: Any, key: str = "password") -> bool:
    """Whether what stands under the key can be the secret itself; a reference, a path or a placeholder cannot."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    text = str(value)
    if not text or _REFERENCE.fullmatch(text):
        return False
    if key.lower().endswith("token") and _SHORT_NUMBER.fullmatch(text):
        return False  # a count
    return not (key.lower().endswith("key") and names_a_secret(text))  # the key in a Secret: secretKey: password


def kind_of(text: str) -> str | None:
    """What secret stands in the text, told by its own form; None where there is none."""
    if "://" in text and any(is_literal(password) for _, password, _ in _every(_IN_URL, text)):
        return "a password in a URL"
    if not _may_hold_known(text):
        return None
    return next((what for what, pattern in _KNOWN.items() if _compiled(pattern).search(_plain(text))), None)


def _may_hold_known(text: str) -> bool:
    return len(text) >= _SHORTEST and any(sign in text for sign in _SIGNS)


@cache
def _compiled(pattern: str) -> Any:
    return patterns.compile_pattern(pattern)


def _every(pattern: str, text: str) -> Iterable[tuple[str, ...]]:
    """The groups of each match."""
    found: Iterable[tuple[str, ...]] = _compiled(pattern).findall(_plain(text))
    return found


def _plain(text: str) -> str:
    """The text as RE2 takes it: without halves of pairs of surrogates, which no UTF-8 has."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def literals(value: Any) -> Iterator[Literal]:
    """Every secret written out in the value. Iterative over an explicit stack: depth is the input's choice."""
    stack: list[tuple[Any, Pointer]] = [(value, ())]
    while stack:
        current, at = stack.pop()
        if isinstance(current, _MAPS):
            yield from _in_map(current, at)
            stack += [(child, (*at, key)) for key, child in current.items() if not isinstance(child, str)]
        elif isinstance(current, list):
            yield from _in_list(current, at)
            stack += [(child, (*at, index)) for index, child in enumerate(current) if not isinstance(child, str)]


def _in_map(value: Mapping[str, Any], at: Pointer) -> Iterator[Literal]:
    named = value.get("name")
    is_reference = "remoteRef" in value  # an ExternalSecret's entry: its secretKey is a name
    is_client = "redirectURIs" in value  # of Dex
    for key, child in value.items():
        what = str(named) if key == "value" and isinstance(named, str) else key
        is_named = names_a_secret(what) or (is_client and key == "secret")
        if is_named and not is_reference and is_literal(child, what):
            yield Literal((*at, key), what)
        elif isinstance(child, str) and (found := kind_of(child)):
            yield Literal((*at, key), found)


def _in_list(items: list[Any], at: Pointer) -> Iterator[Literal]:
    """Of a list, such as a command's words: --password=..., or --password and then the word itself."""
    awaited = ""
    for index, item in enumerate(items):
        flag = _FLAG.fullmatch(item) if isinstance(item, str) else None
        name = flag[1] if flag and names_a_secret(flag[1]) else ""
        if flag is None and awaited and is_literal(item, awaited):
            yield Literal((*at, index), awaited)
        elif flag and name and is_literal(flag[3], name):
            yield Literal((*at, index), name)
        elif isinstance(item, str) and (found := kind_of(item)):
            yield Literal((*at, index), found)
        awaited = name if flag and flag[2] is None else ""


def is_at(value: Any, pointer: Pointer) -> bool:
    """Whether what stands at the pointer in the value is a secret, by the names around it."""
    if is_secret(value) and pointer[:1] in (("data",), ("stringData",)):
        return True
    if pointer[-1:] == ("value",) and names_a_secret(str(get(value, (*pointer[:-1], "name"), ""))):
        return True
    return any(isinstance(part, str) and names_a_secret(part) for part in pointer)


def is_in_line(line: str) -> bool:
    """Whether a line of a file may hold a secret."""
    if kind_of(line):
        return True
    if not _OF_KEYS.search(line):
        return False
    if len(line) > _LONGEST_LINE:
        return True
    pairs = [*_every(_PAIR, line), *_every(_WORDS, line)]
    is_env = any(key == "name" and names_a_secret(value) for key, value in pairs)
    return any((names_a_secret(key) or (is_env and key == "value")) and is_literal(value) for key, value in pairs)


def in_lines(text: str, *, is_code: bool) -> Iterator[tuple[int, str]]:
    """The secrets written out in a text whose structure is not known: the number of each line (from 0) that gives a
    key a value, and the key. Of code, only values in quotes: what stands bare there is a name."""
    if not _OF_KEYS.search(text):
        return
    for number, line in enumerate(text.split("\n")):
        if _OF_KEYS.search(line) and (key := _key_in_line(line, is_code=is_code)):
            yield number, key


def _key_in_line(line: str, *, is_code: bool) -> str | None:
    """The key that the line gives a secret, one that does not tell itself by its form; None where it gives none."""
    given = []
    if '"' in line or "'" in line:
        given += [pair for pair in _every(_QUOTED, line) if not _FILLED_IN.search(pair[1])]
    if not is_code and "-" in line:
        given += _every(_FLAG_GIVEN, line)
    if not is_code:
        parts = (_compiled(_BARE).fullmatch(part) for part in re.split("[,{}]", _plain(line)))
        given += [part.groups() for part in parts if part]
    for key, value in given:
        is_own = names_a_secret(value)  # password=password, --token=TOKEN
        if names_a_secret(key) and not is_own and is_literal(value, key) and kind_of(value) is None:
            return key
    return None


def hidden(text: str, value: Any = None) -> str:
    """The text without any secret that tells itself by its form, and without the value."""
    if "://" in text:
        text = _compiled(_IN_URL).sub(rf"\1{_HIDDEN}\3", _plain(text))
    if _may_hold_known(text):
        text = _compiled(_ANY_KNOWN).sub(_HIDDEN, _plain(text))
    if value is None or isinstance(value, bool | Mapping | list):
        return text
    for form in sorted({str(value), show(value), show(value)[1:-1]} - {""}, key=len, reverse=True):
        if form in text:
            text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", _HIDDEN, text)
    return text
