"""Kubernetes resource quantities as exact numbers. The only place that reads or writes one.

Grammar, suffixes, and what is rounded and capped: k8s.io/apimachinery/pkg/api/resource/quantity.go. A text without
digits (Gi), which the code there takes for 0 and the grammar does not allow, is no quantity here.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

Amount = int | Fraction
Resources = dict[str, Amount]

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([eE][+-]?[0-9]{1,18})|([KMGTPE]i|[numkMGTPE])|)")
_LONGEST = 1024  # characters; nobody writes more digits, and Python refuses to print beyond 4300
_SHORTEST_EXPONENT = 20  # digits from which a number of whole thousands is shown with an exponent
_NANO = 10**9  # the smallest step; what lies between two is rounded away from zero
_LARGEST_BINARY = 2**63 - 1  # where a quantity with Ki, Mi, ... is capped
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
    scale = _exponent_scale(exponent[1:]) if exponent else _suffix_scale(suffix or "")
    amount = _rounded_to_nano(Fraction(number) * scale)
    if suffix in _BINARY and abs(amount) > _LARGEST_BINARY:
        amount = Fraction(_LARGEST_BINARY if amount > 0 else -_LARGEST_BINARY)
    return amount.numerator if amount.denominator == 1 else amount


def _exponent_scale(digits: str) -> Amount:
    """The power of ten, which ends where no number of the longest text can tell the difference."""
    return Fraction(10) ** max(-2 * _LONGEST, min(int(digits), 2 * _LONGEST))


def _suffix_scale(suffix: str) -> Amount:
    return _BINARY[suffix] if suffix in _BINARY else _DECIMAL[suffix]


def _rounded_to_nano(amount: Fraction) -> Fraction:
    if _NANO % amount.denominator == 0:
        return amount
    steps = -((-abs(amount) * _NANO) // 1)
    return Fraction(steps if amount > 0 else -steps, _NANO)


def parse(value: Any) -> Amount | None:
    """The exact number that a quantity ("500m", "4Ti", 8) stands for; None where it is not one."""
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        return _parse_text(repr(value))
    return value if abs(value) < 10**_LONGEST else None


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


def is_quota_key(key: str) -> bool:
    """Whether the key is one that a ResourceQuota alone uses: a request for an extended resource, a count of objects,
    or what a storage class or device class gives out.

    Source: MatchingResources of the evaluators in k8s.io/kubernetes/pkg/quota/v1/evaluator/core.
    """
    prefix, _, name = key.partition(".")
    return (
        (prefix == "requests" and is_extended(name))
        or key.startswith("count/")
        or ".storageclass.storage.k8s.io/" in key
        or ".deviceclass.resource.k8s.io/" in key
    )


def show(amount: Amount, resource: str = "") -> str:
    """The exact amount in the usual text: 64Gi for memory, 500m for a fraction, plain digits otherwise."""
    if amount < 0:
        return "-" + show(-amount, resource)
    if isinstance(amount, Fraction) and amount.denominator != 1:
        return _show_fraction(amount)
    amount = int(amount)
    return _show_bytes(amount) if _is_bytes(resource) else _show_digits(amount)


def show_rounded(amount: Amount, resource: str = "", *, up: bool = False) -> str:
    """The same where it is short; else with two decimals, never above the amount (up: never below it).

    For sums over nodes, whose memory nobody reads in kibibytes: 7.83Ti for 8410601472Ki.
    """
    exact = show(amount, resource)
    if len(exact) <= 6 or amount < 1 or not _is_bytes(resource):  # 8192Gi is read at a glance
        return exact
    suffix, scale = next(each for each in reversed(_BINARY.items()) if amount >= each[1])
    hundredths = -(-100 * amount // scale) if up else 100 * amount // scale
    whole, rest = divmod(int(hundredths), 100)
    return f"{whole}.{rest:02}{suffix}" if rest else f"{whole}{suffix}"


def _is_bytes(resource: str) -> bool:
    return resource.rpartition(".")[2] in ("memory", "ephemeral-storage", "storage") or "hugepages-" in resource


def _show_fraction(amount: Fraction) -> str:
    for suffix in ("m", "u"):
        steps = amount / _DECIMAL[suffix]
        if steps.denominator == 1:
            return f"{steps.numerator}{suffix}"
    return f"{_rounded_to_nano(amount) * _NANO}n"


def _show_bytes(amount: int) -> str:
    """The shortest of all exact texts, with a binary suffix where two are as short."""
    binary = _BINARY if amount <= _LARGEST_BINARY else {}
    suffixes = [*reversed(binary.items()), *((each, _DECIMAL[each]) for each in "EPTGMk")]
    whole = [f"{amount // scale}{suffix}" for suffix, scale in suffixes if amount and not amount % scale]
    return min([*whole, _show_digits(amount)], key=len)


def _show_digits(amount: int) -> str:
    """Plain digits; an exponent instead of a row of zeros that nobody counts."""
    digits = str(amount)
    zeros = len(digits) - len(digits.rstrip("0"))
    return digits if len(digits) < _SHORTEST_EXPONENT or zeros < 3 else f"{digits[:-zeros]}e{zeros}"
