"""Kubernetes' rules for names, labels and annotations, and the nearest known name to a misspelt one.

Source: k8s.io/apimachinery/pkg/util/validation/validation.go.
"""

import difflib
import re
from collections.abc import Iterable

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_ALNUM = "letters, digits and '-', with a letter or digit at both ends"


def label_fault(name: str) -> str | None:
    """Why the name is not a DNS label (RFC 1123), else None."""
    if len(name) > LABEL_LENGTH:
        return f"has {len(name)} characters, {LABEL_LENGTH} are allowed"
    return None if _LABEL.fullmatch(name) else f"takes lower-case {_ALNUM}"


def label_1035_fault(name: str) -> str | None:
    """Why the name is not a DNS label that starts with a letter (RFC 1035), else None."""
    fault = label_fault(name)
    return fault or (None if _LABEL_1035.fullmatch(name) else "starts with a letter")


def subdomain_fault(name: str) -> str | None:
    """Why the name is not a DNS subdomain (RFC 1123), else None."""
    if len(name) > SUBDOMAIN_LENGTH:
        return f"has {len(name)} characters, {SUBDOMAIN_LENGTH} are allowed"
    return None if _SUBDOMAIN.fullmatch(name) else f"takes lower-case {_ALNUM}, in parts joined by '.'"


def path_segment_fault(name: str) -> str | None:
    """Why the name cannot be a path segment (RBAC objects), else None."""
    if name in (".", "..") or "/" in name or "%" in name:
        return "takes anything but '.', '..', '/' and '%'"
    return None


def qualified_fault(key: str) -> str | None:
    """Why the text is not a label or annotation key ([prefix/]name), else None."""
    prefix, slash, name = key.rpartition("/")
    if slash and (fault := subdomain_fault(prefix)):
        return f"its prefix {fault}"
    if len(name) > LABEL_LENGTH:
        return f"its name has {len(name)} characters, {LABEL_LENGTH} are allowed"
    if not _QUALIFIED.fullmatch(name):
        return "its name takes letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    return None


def label_value_fault(value: str) -> str | None:
    """Why the text is not a label value, else None."""
    if len(value) > LABEL_LENGTH:
        return f"has {len(value)} characters, {LABEL_LENGTH} are allowed"
    if value and not _QUALIFIED.fullmatch(value):
        return "takes letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    return None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that the reader most probably meant, else None."""
    candidates = sorted(known)
    folded = {candidate.casefold(): candidate for candidate in reversed(candidates)}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "", most: int = 12) -> str:
    """A hint: the nearest known name, else the whole list where it is short, else the given words."""
    names = sorted(known)
    if (close := nearest(name, names)) is not None:
        return f"did you mean {close}?"
    if names and len(names) <= most:
        return "known: " + ", ".join(names)
    return otherwise


def listed(names: Iterable[str], most: int = 6) -> str:
    """The names joined by commas, the rest counted: te1, te2 and 30 more."""
    every = list(names)
    if len(every) <= most:
        return ", ".join(every)
    return f"{', '.join(every[:most])} and {len(every) - most} more"


def counted(number: int, what: str) -> str:
    """1 pod, 2 pods."""
    return f"{number} {what}{'' if number == 1 else 's'}"
