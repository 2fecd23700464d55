"""Kubernetes resource quantities as exact numbers. The only place that reads or writes one.

Grammar and suffixes: k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

Amount = int | Fraction
Resources = dict[str, Amount]

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|([KMGTPE]i|[numkMGTPE])|)")
_LONGEST = 64  # characters; apimachinery caps values at 2^63, so a longer text says nothing
_BINARY = {suffix: 1024**power for power, suffix in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL: dict[str, Amount] = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
}  # fmt: skip


@lru_cache(maxsize=65536)
def _parse_text(text: str) -> Amount | None:
    matched = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if matched is None:
        return None
    number, exponent, suffix = matched.groups()
    scale: Amount = Fraction(10) ** int(exponent[1:]) if exponent else _suffix_scale(suffix or "")
    amount = Fraction(number) * scale
    return amount.numerator if amount.denominator == 1 else amount


def _suffix_scale(suffix: str) -> Amount:
    return _BINARY[suffix] if suffix in _BINARY else _DECIMAL[suffix]


def parse(value: Any) -> Amount | None:
    """The exact number that a quantity ("500m", "4Ti", 8) stands for; None where it is not one."""
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) else _parse_text(repr(value))


def parse_map(values: Any) -> Resources:
    """The readable part of a resource map: {"cpu": 8, "memory": 137438953472}; what does not parse is left out,
    because quantity-is-valid speaks about it."""
    if not isinstance(values, Mapping):
        return {}
    parsed = {str(name): parse(value) for name, value in values.items()}
    return {name: amount for name, amount in parsed.items() if amount is not None}


def as_written(values: Mapping[str, Any]) -> dict[str, Any]:
    """A resource map for a manifest: as declared, but fractions as text, because CRDs take no fraction in digits."""
    return {name: repr(value) if isinstance(value, float) else value for name, value in values.items()}


def add(*maps: Mapping[str, Amount]) -> Resources:
    """The sum, resource by resource."""
    total: Resources = {}
    for amounts in maps:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


def is_extended(resource: str) -> bool:
    """Whether it is an extended resource (a domain outside kubernetes.io), which is counted in whole units.

    Source: IsExtendedResourceName in k8s.io/kubernetes/pkg/apis/core/v1/helper/helpers.go.
    """
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def show(amount: Amount, resource: str = "") -> str:
    """The shortest usual text: 64Gi for memory, 500m for a fraction, plain digits otherwise."""
    if amount < 0:
        return "-" + show(-amount, resource)
    if isinstance(amount, Fraction) and amount.denominator != 1:
        return _show_fraction(amount)
    amount = int(amount)
    if resource.rpartition(".")[2] in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-"):
        return _show_bytes(amount)
    return str(amount)


def _show_fraction(amount: Fraction) -> str:
    milli = amount * 1000
    return f"{milli.numerator}m" if milli.denominator == 1 else f"{float(amount):.6g}"


def _show_bytes(amount: int) -> str:
    for suffix, scale in reversed(_BINARY.items()):
        if amount >= scale > 1:
            whole, rest = divmod(amount, scale)
            return f"{whole}{suffix}" if not rest else f"{amount / scale:.1f}{suffix}"
    return str(amount)
