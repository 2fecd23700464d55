"""What Basalt says beside what the API server says. Pure."""

import enum
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from basalt import judging
from basalt.api.kinds import Catalog
from basalt.api.versions import Version, parse
from basalt.compiling import Compilation
from basalt.findings import Finding, Ref, Severity
from basalt.objects import KubeObject
from basalt.sandbox import programs
from tests.cases import Case
from tools.agreement import needs
from tools.agreement.asking import Answer, Verdict
from tools.agreement.hearing import HAS_NONE, Heard

_UNSERVED = re.compile(r'no matches for kind "(?P<kind>[^"]+)"')
_ORDER = "order-is-complete"  # what is not there is its business
_TEXTS = ("ConfigMap", "Secret")


class Fate(enum.Enum):
    """What the API server makes of an object that Basalt rejects."""

    BOTH = "refuses it too"
    SHARED = "refuses it, perhaps for what another rule says of it"
    PRUNED = "refuses it where fields are validated strictly, else prunes it in silence"
    VERSION = "takes it, and so does Basalt for its versions"
    ALONE = "takes it"
    UNASKED = "never sees it"


class Rejected(NamedTuple):
    """A case that Basalt rejects: its fate, and where there is one, the object refused and the words."""

    case: Case
    fate: Fate
    object: Ref | None = None
    message: str = ""


class Disagreement(NamedTuple):
    """An object that the API server refuses and Basalt takes."""

    case: Case
    object: Ref
    message: str
    is_of_version: bool  # for the API server's versions, Basalt refuses it too


def rejected(heard: Heard) -> Rejected:
    """The fate of a case with findings: the first of the above that one of the objects has."""
    own = [found for found in heard.compilation.findings if found.rule == heard.case.rule]
    fates = [each for found in own for each in _fates(found, heard)]
    if not fates:
        return Rejected(heard.case, Fate.UNASKED)
    first = min(fates, key=lambda each: list(Fate).index(each.fate))
    if first.fate is Fate.ALONE and heard.case.rule not in {found.rule for found in _elsewhere(heard.compilation)}:
        return Rejected(heard.case, Fate.VERSION)
    return first


def _fates(found: Finding, heard: Heard) -> Iterator[Rejected]:
    """Of the finding's object, or of what its document became. None where the API server has no opinion: it takes any
    text into a ConfigMap, and anything of a kind that is only stood in for."""
    if found.object is None or (found.object.kind in _TEXTS and found.pointer[:1] == ("data",)):
        return
    for declared, answer in heard.answers:
        is_refused_peer = answer.verdict is Verdict.REFUSED and _is_peer(found, declared)
        if found.object not in (declared.ref, declared.written.ref) and not is_refused_peer:
            continue
        if _is_defined(declared, heard.compilation) or answer.verdict is Verdict.REFUSED or answer.lacking:
            fate, message = _fate(found.rule, declared, answer, heard)
            yield Rejected(heard.case, fate, declared.ref, message)


def _fate(rule: str, declared: KubeObject, answer: Answer, heard: Heard) -> tuple[Fate, str]:
    if answer.lacking and rule == _ORDER:
        return Fate.BOTH, answer.lacking
    if answer.verdict is Verdict.TAKEN:
        return Fate.ALONE, ""
    if _UNSERVED.match(answer.message) and rule not in needs.UNINSTALLED:
        return Fate.UNASKED, ""
    if answer.verdict is Verdict.PRUNED:
        return Fate.PRUNED, answer.message
    findings = [*heard.compilation.findings, *_elsewhere(heard.compilation)]
    others = {found.rule for found in _errors(findings) if found.object == declared.ref}
    if answer.lacking:
        others.discard(_ORDER)
    return (Fate.SHARED if others - {rule} else Fate.BOTH), answer.message


def _is_defined(declared: KubeObject, compilation: Compilation) -> bool:
    """Whether its kind is really known there, and not stood in for."""
    catalog = compilation.index.catalog
    return catalog.product(declared.ref.api_version) is not None or catalog.find(*declared.ref[:2]) is not None


def disagreements(heard: Heard) -> Iterator[Disagreement]:
    """The objects that are refused without an error finding that says why."""
    for declared, answer in heard.answers:
        for message in filter(None, (answer.lacking, answer.message)):
            if not _explains(heard.compilation.findings, declared, message):
                is_of_version = _explains(_elsewhere(heard.compilation), declared, message)
                yield Disagreement(heard.case, declared.ref, message, is_of_version)


def _explains(findings: Sequence[Finding], declared: KubeObject, message: str) -> bool:
    """Whether an error is about the object or its document. What several objects lack is told once, of the first: there
    the words name what they lack."""
    lacking = HAS_NONE.match(message) or _UNSERVED.match(message)
    for found in _errors(findings):
        if found.rule == _ORDER and not lacking:
            continue
        if found.object in (declared.ref, declared.written.ref) or _is_peer(found, declared):
            return True
        if found.rule == _ORDER and lacking and _names(found, lacking[1]):
            return True
    return False


def _is_peer(found: Finding, declared: KubeObject) -> bool:
    """Whether the words name the object beside another of its kind: what several make together, such as a cycle, is
    told once, of the first."""
    return found.object is not None and found.object.kind == declared.ref.kind and _names(found, declared.name)


def _names(found: Finding, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", found.message) is not None


def _errors(findings: Sequence[Finding]) -> list[Finding]:
    return [found for found in findings if found.severity is Severity.ERROR]


def _elsewhere(compilation: Compilation) -> Sequence[Finding]:
    """What Basalt says of the same objects, for the versions that were asked."""
    versions = [parse(version) for version in (programs.KUBERNETES, programs.VOLCANO)]
    kubernetes, volcano = (version for version in versions if isinstance(version, Version))
    catalog = Catalog(kubernetes, volcano)
    index = compilation.index
    catalog.add_definitions(each for each in index.objects if each.ref.kind == "CustomResourceDefinition")
    return judging.judge(index.on(catalog)).findings
