"""A finding: one broken rule, as data. Printing it is the business of basalt/reporting."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from basalt.pointers import Pointer


class Severity(enum.StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Source(NamedTuple):
    """A place in a file; line and column count from 1, file is as the reader named it."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """As messages name it: jobs.yaml:12."""
        return f"{self.file}:{self.line}"


class Ref(NamedTuple):
    """Which object: the identity that Kubernetes gives it; namespace is None where it has none."""

    api_version: str
    kind: str
    namespace: str | None
    name: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Place(Protocol):
    """Anything a finding can be about: it has an identity and knows where each of its values was written."""

    @property
    def ref(self) -> Ref | None: ...

    def position(self, pointer: Pointer, /) -> Source: ...

    @property
    def waiver(self) -> str | None: ...


class Problem(NamedTuple):
    """What a rule yields: the place, the value in it, the fact with its arithmetic, and the way out."""

    place: Place
    pointer: Pointer
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule at one place."""

    rule: str
    severity: Severity
    message: str
    hint: str
    object: Ref | None
    pointer: Pointer
    source: Source
    reason: str | None = None  # why it is waived; None where it is not
    shows_source: bool = True  # False keeps the source line, which may hold a secret, out of every output

    @property
    def waived(self) -> bool:
        return self.reason is not None

    @property
    def order(self) -> tuple[Source, str, Pointer, str]:
        """File order, then rule; total, so that a report does not depend on the order rules ran in."""
        return (self.source, self.rule, tuple(map(str, self.pointer)), self.message)


class Skipped(NamedTuple):
    """A rule that could not be judged, or only in part, and why."""

    rule: str
    reason: str


def fails(findings: Sequence[Finding], *, strict: bool) -> bool:
    """Whether the run ends with exit code 1: an error that is not waived, or anything not waived under --strict."""
    return any(not found.waived and (strict or found.severity is Severity.ERROR) for found in findings)


def summary(findings: Sequence[Finding]) -> dict[str, int]:
    """How many of each severity, waived ones counted apart: {"error": 1, "warning": 0, "info": 0, "waived": 0}."""
    counts = {"error": 0, "warning": 0, "info": 0, "waived": 0}
    for found in findings:
        counts["waived" if found.waived else found.severity.value] += 1
    return counts
