"""What NVIDIA's GPUs are, by the labels that gpu-feature-discovery gives their nodes: architecture and MIG profiles.

Source: NVIDIA's MIG user guide and assets/state-mig-manager/0400_configmap.yaml of the GPU operator v26.7.0 for the
profiles; the driver's release notes for what the kernel modules take.
"""

import enum
import re
from collections.abc import Mapping

PRODUCT = "nvidia.com/gpu.product"
_FAMILY = "nvidia.com/gpu.family"
_MAJOR, _MINOR = "nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor"
_SUFFIX = re.compile(r"(-SHARED|-MIG-.*)+$")  # what gpu-feature-discovery adds to the product's name
_PROFILE = re.compile(r"(\d+)g\.(\d+)gb(\.me|\.gfx|\.me\.all|-me)?")


class Architecture(enum.StrEnum):
    """As the kernel modules tell GPUs apart."""

    BEFORE_TURING = "before Turing"
    TURING_TO_HOPPER = "Turing to Hopper"
    GRACE_HOPPER = "Grace Hopper"
    BLACKWELL = "Blackwell"


# getArchFamily in internal/lm/resource.go of NVIDIA/k8s-device-plugin.
_FAMILIES: Mapping[str, Architecture] = {
    **dict.fromkeys("tesla fermi kepler maxwell pascal volta".split(), Architecture.BEFORE_TURING),
    **dict.fromkeys("turing ampere ada-lovelace hopper".split(), Architecture.TURING_TO_HOPPER),
    "blackwell": Architecture.BLACKWELL,
}
_GRACE_HOPPER = re.compile(r"\bGH200\b")
# By name, the first that fits: GTX 16xx and TITAN RTX are Turing, other GTX and TITAN are older.
_ARCHITECTURES: tuple[tuple[re.Pattern[str], Architecture], ...] = (
    (_GRACE_HOPPER, Architecture.GRACE_HOPPER),
    (re.compile(r"\bG?B[123]00\b|\bGB10\b|Blackwell|\bRTX-50[5-9]0\b|\bRTX-PRO-\d"), Architecture.BLACKWELL),
    (re.compile(r"\bRTX\b|\bGTX-16\d\d"), Architecture.TURING_TO_HOPPER),
    (re.compile(r"\b[KMP]\d+[A-Z]*\b|\bV100S?\b|\bG[PV]100\b|\bTITAN\b|\bGTX?\b"), Architecture.BEFORE_TURING),
    (re.compile(r"\b(T4G?|T\d{3,4}|A\d+G?|L(4|20|40S?)|H(20|[128]00))\b"), Architecture.TURING_TO_HOPPER),
)
_OLD = "K20 K40 K80 M4 M6 M10 M40 M60 P4 P6 P40 P100 V100 V100S TITAN GTX".split()
_WITHOUT_MIG = (*_OLD, *"T4 T4G A2 A10 A10G A16 A40 A6000 A5000 A4000 L4 L20 L40 L40S".split())
_OF_RTX = " ".join(
    f"{size}{kind}" for size in ("1g.24gb", "2g.48gb", "4g.96gb") for kind in ("", ".gfx", ".me.all", "-me")
)
_PROFILES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), profiles)
    for pattern, profiles in (
        (r"A[18]00-.*40GB", "1g.5gb 1g.5gb.me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        (r"[AH][18]00-.*80GB|H[18]00-PCIe$", "1g.10gb 1g.10gb.me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        (r"\bA30\b", "1g.6gb 1g.6gb.me 2g.12gb 2g.12gb.me 4g.24gb"),
        (r"H[18]00-NVL", "1g.12gb 1g.12gb.me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),
        (r"H100-.*96GB|GH200-480GB", "1g.12gb 1g.12gb.me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),
        (r"GH200-144G", "1g.18gb 1g.18gb.me 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb"),
        (r"\bH200\b", "1g.18gb 1g.18gb.me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
        (r"\bB200\b", "1g.23gb 1g.23gb.me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
        (r"\bGB200\b", "1g.23gb 1g.23gb.me 1g.47gb 2g.47gb 3g.93gb 3g.95gb 4g.93gb 4g.95gb 7g.186gb 7g.189gb"),
        (r"\bB300\b", "1g.34gb 1g.34gb.me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb"),
        (r"\bGB300\b", "1g.35gb 1g.35gb.me 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb"),
        (r"RTX-PRO-6000-Blackwell", _OF_RTX),
    )
)


def product(labels: Mapping[str, str]) -> str:
    """The product's name without what sharing and MIG add to it; empty where the node does not tell."""
    return _SUFFIX.sub("", labels.get(PRODUCT, ""))


def architecture(labels: Mapping[str, str]) -> Architecture | None:
    """What the labels of family and compute capability say, else what the product's name does; None where neither
    tells. GH200 has the capability of H100, so that there the name decides."""
    name = product(labels)
    told = _FAMILIES.get(labels.get(_FAMILY, "").lower()) or _of_capability(labels)
    if told is Architecture.TURING_TO_HOPPER and _GRACE_HOPPER.search(name):
        return Architecture.GRACE_HOPPER
    return told or next((kind for pattern, kind in _ARCHITECTURES if pattern.search(name)), None)


def _of_capability(labels: Mapping[str, str]) -> Architecture | None:
    major, minor = labels.get(_MAJOR, ""), labels.get(_MINOR, "0")
    if not major.isdecimal() or not minor.isdecimal():
        return None
    if (int(major), int(minor)) < (7, 5):
        return Architecture.BEFORE_TURING
    return Architecture.BLACKWELL if int(major) >= 10 else Architecture.TURING_TO_HOPPER


def profiles(name: str) -> tuple[str, ...] | None:
    """The MIG profiles of a product; empty for one that has no MIG, None for one that is not known."""
    found = next((profiles for pattern, profiles in _PROFILES if pattern.search(name)), None)
    if found is not None:
        return tuple(found.split())
    return () if any(token in _WITHOUT_MIG for token in name.split("-")) else None


def is_profile(text: str) -> bool:
    """Whether the text is of a MIG profile's form: 1g.10gb."""
    return _PROFILE.fullmatch(text) is not None
