"""The Pod Security Standards: what keeps a pod out of a namespace that enforces `baseline` or `restricted`.

Source: policy/ of k8s.io/pod-security-admission v0.36.1, the order of the checks included; a check has its versions by
the minor of Kubernetes from which it applies.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from basalt.objects import POD_SECURITY, mapping
from basalt.views import security_checks as checks
from basalt.views.security_checks import Pod, Violation

PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
_VERSION_LABEL = "pod-security.kubernetes.io/enforce-version"
_VERSION = re.compile(r"v1\.([0-9]|[1-9][0-9]{1,17})")


class Policy(NamedTuple):
    """What a namespace enforces: the level, the version as its labels say it, and the minor that means."""

    level: str
    version: str
    minor: int

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


def policy(labels: Mapping[str, Any], newest: int) -> Policy:
    """What the labels of a Namespace enforce, where newest is the cluster's minor; labels that cannot be read are taken
    for the strictest (PolicyToEvaluate)."""
    level, version = labels.get(POD_SECURITY, PRIVILEGED), str(labels.get(_VERSION_LABEL, "latest"))
    found = _VERSION.fullmatch(version)
    minor = min(int(found[1]), newest) if found else newest
    return Policy(level if level in (PRIVILEGED, BASELINE) else RESTRICTED, version if found else "latest", minor)


def violations(enforced: Policy, spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> list[Violation]:
    """All reasons to refuse the pod, in the API server's order."""
    if enforced.level == PRIVILEGED:
        return []
    containers = tuple(checks.containers_of(spec))
    pod = Pod(spec, mapping(spec.get("securityContext")), annotations, containers, enforced.minor)
    found = [row.check(pod) for row in _CHECKS if row.applies(enforced)]
    return [violation for violation in found if violation is not None]


class _Row(NamedTuple):
    """A check, the minors it applies to, and the minor from which `restricted` has a stricter one instead of it."""

    level: str
    check: Callable[[Pod], Violation | None]
    since: int = 0
    until: int = 10**9
    stricter: int = 10**9

    def applies(self, enforced: Policy) -> bool:
        if not self.since <= enforced.minor < self.until:
            return False
        return self.level == enforced.level if enforced.level == BASELINE else enforced.minor < self.stricter


_CHECKS = (
    _Row(BASELINE, checks.app_armor),
    _Row(BASELINE, checks.default_capabilities, stricter=22),
    _Row(BASELINE, checks.host_namespaces),
    _Row(BASELINE, checks.host_paths, stricter=0),
    _Row(BASELINE, checks.host_ports),
    _Row(BASELINE, checks.probe_hosts, since=34),
    _Row(BASELINE, checks.privileged),
    _Row(BASELINE, checks.proc_mounts_outside, stricter=35),
    _Row(BASELINE, checks.se_linux),
    _Row(BASELINE, checks.seccomp_annotations, until=19),
    _Row(BASELINE, checks.seccomp, since=19, stricter=19),
    _Row(BASELINE, checks.sysctls),
    _Row(BASELINE, checks.host_processes),
    _Row(RESTRICTED, checks.escalation, since=8),
    _Row(RESTRICTED, checks.only_bound_capabilities, since=22),
    _Row(RESTRICTED, checks.proc_mounts, since=35),
    _Row(RESTRICTED, checks.volume_types),
    _Row(RESTRICTED, checks.non_root),
    _Row(RESTRICTED, checks.root_user, since=23),
    _Row(RESTRICTED, checks.seccomp_set, since=19),
)  # in the order of their ids, as NewEvaluator sorts them
