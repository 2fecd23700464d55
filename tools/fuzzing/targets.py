"""What is fuzzed: by name, what is done with some bytes. Each ends in one of its declared exceptions or in none, keeps
what it promises, and changes nothing that it is given."""

import copy
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from basalt import patterns, quantities
from basalt.api import cron, durations
from basalt.compiling import compile_folder
from basalt.findings import Severity
from basalt.gathering.documents import merge
from basalt.loading import json_text, yaml_text
from basalt.loading.limits import Fault
from basalt.rendering import layout
from basalt.reporting import json_format, text
from basalt.views import node_selection, promql, sensitive
from basalt.views.domains import Tier
from tests import cases

Target = Callable[[bytes], None]
_DIGITS = 1024  # of a quantity; beyond, exponents are cut


def yaml(data: bytes) -> None:
    """Positions change no value; each is of a value that is there."""
    said = data.decode("utf-8", "replace")
    plain, placed = _documents(yaml_text, said), _documents(yaml_text, said, with_positions=True)
    assert [each.value for each in plain] == [each.value for each in placed] or _has_nan(said)


def json_(data: bytes) -> None:
    """What is read is what Python reads; where that refuses, nothing is read."""
    said = data.decode("utf-8", "replace")
    plain, placed = _documents(json_text, said), _documents(json_text, said, with_positions=True)
    assert [each.value for each in plain] == [each.value for each in placed]
    if len(plain) == 1 and not plain[0].faults:
        assert _as_python_reads(said) in (plain[0].value, None)


def _as_python_reads(said: str) -> Any:
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return None  # more than one document, or nested deeper than it can


def _documents(reader: Any, said: str, *, with_positions: bool = False) -> list[Any]:
    found = []
    try:
        for each in reader.documents(said, with_positions=with_positions):
            found.append(each)
            assert all(mark.line > 0 and mark.column > 0 for mark in (each.positions or {}).values())
    except Fault as fault:
        str(fault)
    return found


def _has_nan(said: str) -> bool:
    return ".nan" in said.lower()


def merging(data: bytes) -> None:
    """As RFC 7386 has it; what is merged stays as it was."""
    base, _, over = data.decode("utf-8", "replace").partition("\n---\n")
    target, patch = (next(iter(_documents(yaml_text, each)), None) for each in (base, over))
    if target is None or patch is None or _has_nan(base + over):
        return
    given = copy.deepcopy((target.value, patch.value))
    found = merge(target.value, patch.value)
    assert (target.value, patch.value) == given
    assert found == _merged(*given)
    merge(target.value, patch.value, keep_nulls=True)


def _merged(target: Any, patch: Any) -> Any:
    """The pseudocode of the RFC."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def quantity(data: bytes) -> None:
    """What is shown is read back as the same amount; the other small texts of a manifest are judged."""
    said = data.decode("utf-8", "replace")
    amount = quantities.parse(said)
    if amount is not None and abs(amount) < 10**_DIGITS:
        for resource in ("", "memory", "nvidia.com/gpu"):
            shown = quantities.show(amount, resource)
            assert quantities.parse(shown) == amount, shown
            quantities.show_rounded(amount, resource)
    durations.fault(said)
    cron.schedule_fault(said)
    cron.zone_fault(said)
    promql.uses(said)
    promql.selector(said)


def pattern(data: bytes) -> None:
    """A pattern compiles, or the fact is told; one that does finds what it finds in any text."""
    said, _, label = data.decode("utf-8", "replace").partition("\n")
    if patterns.fault(said) is None:
        domain = Tier(1, "rack", "rack", said, "{domain}").reader()({"rack": label})
        assert domain is None or domain in label
    sensitive.is_in_line(said)
    sensitive.kind_of(label)
    sensitive.hidden(said, label)


def selector(data: bytes) -> None:
    """A label selector of any form selects or not."""
    base, _, over = data.decode("utf-8", "replace").partition("\n---\n")
    values = [next(iter(_documents(yaml_text, each)), None) for each in (base, over)]
    if all(each is not None and isinstance(each.value, dict) for each in values):
        given, labels = (each.value for each in values if each)
        texts = {key: value for key, value in labels.items() if isinstance(value, str)}
        assert node_selection.matches_labels(given, texts) in (True, False)


def document(data: bytes) -> None:
    """The bytes as the only file of a folder: everything that is said of them can be shown."""
    for name in ("input.json", "input.yaml"):
        Path(name).unlink(missing_ok=True)
    Path("input.json" if data.lstrip()[:1] in (b"{", b"[") else "input.yaml").write_bytes(data)
    compilation = compile_folder(Path(os.curdir))
    files = {file.name: file for file in compilation.files}
    shown = text.report(
        compilation.findings, compilation.skipped, lambda name, line: files[name].line(line), text.Paint(is_on=False)
    )
    found = json_format.text(json_format.report(compilation.name, compilation.findings, compilation.skipped))
    (shown + found).encode()
    if not any(each.severity is Severity.ERROR for each in compilation.findings):
        layout.render(compilation.objects, compilation.files, compilation.name, os.getcwd())


def _cases() -> Iterator[str]:
    for path in sorted(cases.FOLDER.glob("*.yaml")):
        for case in cases.read(path.stem):
            yield from case.files.values()


def _selectors() -> Iterator[str]:
    for operator in ("In, values: [a]", "NotIn, values: [b]", "Exists", "DoesNotExist", "Gt, values: ['1']"):
        yield f"matchLabels: {{a: b}}\nmatchExpressions: [{{key: a, operator: {operator}}}]\n---\na: b\nc: d\n"


_TEXTS = (
    "500m", "4Ti", "1e3", "-1.5Gi", "+.5", "1e-9", "24h", "1h30m", "-1.5us", "*/5 0-6 * * MON", "@every 1h",
    "Europe/Berlin", 'sum(rate(a{b="c"}[5m])) by (d)', "a / on(b) group_left(c) d offset 5m", "CRON_TZ=UTC 0 0 * * *",
)  # fmt: skip
_PATTERNS = (
    r"^(s\d+-s\d+)-", "(a+)+$", "[[:alpha:]]{1,9}", "(?i)x|y", r"\pL", "password: a", "https://a:b@c", "^$",
    "--token=abc",
)  # fmt: skip
_JSON = ('{"a": [1, -0.5e3, true, null, "\\u00e9"]}', '{"kind": "List", "items": [{"a": {}}]}', "[]", '"a" 1')

# By name: what is done, and what to begin from.
TARGETS: Mapping[str, tuple[Target, Callable[[], Iterable[str]]]] = {
    "yaml": (yaml, _cases),
    "json": (json_, lambda: _JSON),
    "merge": (merging, lambda: (f"{one}\n---\n{two}" for one, two in pairwise(_cases()))),
    "quantity": (quantity, lambda: _TEXTS),
    "pattern": (pattern, lambda: (f"{each}\ns0-s1-r2" for each in _PATTERNS)),
    "selector": (selector, _selectors),
    "document": (document, _cases),
}
