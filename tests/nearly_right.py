"""Documents that are nearly right: the cases of the rules and the example environments, with a few things changed."""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from basalt.rendering import yaml_writer
from tests import cases
from tests.cases import Case

ROOT = Path(__file__).resolve().parent.parent
_LOADER = yaml.CSafeLoader
Files = dict[str, str]
_MOST = 100_000  # values of a text

# What stands in place of a value.
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e300, "", " ", "0", "-1", "1e3",
    "1e99",
    "01", "1Ki", "1.5Gi", "-5m", "1e-9", "9" * 40, "n", "no",
    "null", "*", "/", "..", "../..", ".", "-", "a.b/c",
    "A_b", "a" * 64, "a" * 254, "\u00e9", "\u202e", "\x1b[31m", "\U0001f600", "a\nb", "\t", "{{ .x }}", "$(x)",
    "^(a+)+$", "(", "[",
    "default", "root", "volcano", "v1", "Job", "1.13", "99.99", "12:30", "2001-13-40", "24h", "-1s", "25:61", "{}",
    [], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"name": "a"}, [{"name": "a"}, {"name": "a"}], ["a", "a"],
)  # fmt: skip
_LETTERS = "\0\x07\x1b\u202e\ufeff\t\n \"'{}[]:,&*!|>%@`#-?~<=\\aA0é😀"


@cache
def corpus() -> tuple[Files, ...]:
    """Every input that a case has, and the example environments with what they extend in one folder."""
    found = [case.files for case in _cases()]
    for names in (("seed",), ("base", "prod")):
        paths = [path for name in names for path in sorted((ROOT / "stacks" / name).rglob("*.*"))]
        environment = {f"{path.parent.name}-{path.name}": path.read_text() for path in paths if path.is_file()}
        found.append({name: text.replace("extends: [../base]", "extends: []") for name, text in environment.items()})
    return tuple(found)


def _cases() -> Iterator[Case]:
    for path in sorted(cases.FOLDER.glob("*.yaml")):
        yield from cases.read(path.stem)


def changed(files: Files, changes: Sequence[int]) -> Files:
    """The files after changes, each told by its number: of one value in a document, or of a few letters in a text."""
    for number in changes:
        chance = random.Random(number)
        name = chance.choice(sorted(files))
        change = _letters if chance.random() < 0.25 else _value
        files = {**files, name: change(files[name], chance)}
    return files


def _letters(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    end = min(len(text), at + chance.choice((0, 0, 1, 2, 20, 200)))
    put = "".join(chance.choice(_LETTERS) for _ in range(chance.choice((0, 1, 1, 3))))
    if chance.random() < 0.1:
        put += text[at:end] * chance.choice((2, 50))
    return text[:at] + put + text[end:]


def _value(text: str, chance: random.Random) -> str:
    try:
        documents = list(yaml.load_all(text, _LOADER))
        places = _places(documents)
        if not places:
            return _letters(text, chance)
        _change(*chance.choice(places), [value for holder, key in places for value in [holder[key]]], chance)
        _places(documents)  # which may be far more now, where one is in many
        return "---\n".join(yaml_writer.document(document) for document in documents)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return _letters(text, chance)  # no YAML, or none that can be written again


def _places(documents: list[Any]) -> list[tuple[Any, Any]]:
    """Every value, as what holds it and its key there; ValueError where aliases make too many to write them out."""
    found: list[tuple[Any, Any]] = []
    stack = list(documents)
    while stack:
        holder = stack.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            found.append((holder, key))
            stack.append(holder[key])
        if len(found) > _MOST:
            raise ValueError
    return found


def _change(holder: Any, key: Any, values: list[Any], chance: random.Random) -> None:
    what = chance.choice(("put", "put", "swap", "drop", "rename", "nest", "repeat"))
    if what == "put":
        holder[key] = chance.choice(_VALUES)
    elif what == "swap":
        holder[key] = _copied(chance.choice(values))
    elif what == "nest":
        holder[key] = chance.choice(([holder[key]], {"a": holder[key]}, {"items": [holder[key]]}))
    elif isinstance(holder, list):
        holder.extend([_copied(holder[key])] * chance.choice((1, 2, 30))) if what == "repeat" else holder.pop(key)
    elif what == "drop":
        del holder[key]
    else:
        new = chance.choice((f"{key}s", str(key)[:-1], str(key).upper(), "", "name", "a.b/c", "\u00e9"))
        holder[new] = holder[key] if what == "repeat" else holder.pop(key)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(child) for key, child in value.items()}
    return [_copied(child) for child in value] if isinstance(value, list) else value
