"""The single checks of the Pod Security Standards: each looks at a pod and gives a reason to refuse it, or None.

Source: policy/check_*.go of k8s.io/pod-security-admission v0.36.1, whose words they use.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from basalt.objects import mapping, sequence, strings
from basalt.pointers import Pointer, get

_FIELDS = ("initContainers", "containers", "ephemeralContainers")  # as visitContainers goes through them
_DEFAULT_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split()
)
_PROFILES = ("RuntimeDefault", "Localhost")
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP = ("seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/")
_VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_SE_LINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t")
_SYSCTLS: Mapping[int, str] = {
    0: "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies net.ipv4.ping_group_range "
    "net.ipv4.ip_unprivileged_port_start",
    27: "net.ipv4.ip_local_reserved_ports",
    29: "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl "
    "net.ipv4.tcp_keepalive_probes",
    32: "net.ipv4.tcp_rmem net.ipv4.tcp_wmem",
}  # the minor from which they are allowed


class Violation(NamedTuple):
    """One reason to refuse a pod, in the API server's words, and the places in the pod's spec that give it."""

    text: str
    pointers: tuple[Pointer, ...]


class Container(NamedTuple):
    pointer: Pointer
    value: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.value.get("name", ""))

    @property
    def security(self) -> Mapping[str, Any]:
        return mapping(self.value.get("securityContext"))


def containers_of(spec: Mapping[str, Any]) -> Iterator[Container]:
    for field in _FIELDS:
        for index, container in enumerate(sequence(spec.get(field))):
            yield Container((field, index), mapping(container))


@dataclass(frozen=True, slots=True)
class Pod:
    spec: Mapping[str, Any]
    security: Mapping[str, Any]
    annotations: Mapping[str, Any]
    containers: tuple[Container, ...]
    minor: int

    @property
    def is_windows(self) -> bool:
        """Windows knows none of the fields that `restricted` asks for."""
        return self.minor >= 25 and mapping(self.spec.get("os")).get("name") == "windows"

    @property
    def is_in_user_namespace(self) -> bool:
        return self.minor >= 35 and self.spec.get("hostUsers") is False

    def setters(self, *field: str) -> Iterator[tuple[Container | None, Any, Pointer]]:
        """Who sets the field of a securityContext: the pod (None), then containers; with its value and its place."""
        at: Pointer = ("securityContext", *field)
        if (value := get(self.security, field)) is not None:
            yield None, value, at
        for container in self.containers:
            if (value := get(container.security, field)) is not None:
                yield container, value, (*container.pointer, *at)


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _of(containers: list[Container]) -> str:
    return f"{_plural('container', len(containers))} {_quoted(each.name for each in containers)}"


def _who(setters: Iterable[Container | None], annotations: int = 0) -> str:
    """The pod, its containers, and how many of its annotations, joined as the API server does."""
    every = list(setters)
    containers = [each for each in every if each is not None]
    parts = ["pod"] if None in every else []
    parts += [_of(containers)] if containers else []
    return " and ".join(parts + ([_plural("annotation", annotations)] if annotations else []))


def app_armor(pod: Pod) -> Violation | None:
    bad = [each for each in pod.setters("appArmorProfile", "type") if _is_other(each[1])]
    annotated = sorted(
        f'{key}="{value}"'
        for key, value in pod.annotations.items()
        if str(key).startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not _is_local(value)
    )
    if not bad and not annotated:
        return None
    values = [*sorted({str(value) for _, value, _ in bad}), *annotated]
    detail = f"{_who((who for who, _, _ in bad), len(annotated))} must not set AppArmor profile type to"
    noun = _plural("forbidden AppArmor profile", len(values))
    return Violation(f"{noun} ({detail} {_quoted(values)})", tuple(at for _, _, at in bad) or ((),))


def _is_other(profile: Any) -> bool:
    return isinstance(profile, str) and profile not in _PROFILES


def _is_local(profile: Any) -> bool:
    return isinstance(profile, str) and profile.startswith("localhost/")


def default_capabilities(pod: Pod) -> Violation | None:
    bad, added = _adding(pod, _DEFAULT_CAPABILITIES)
    if not bad:
        return None
    return Violation(f"non-default capabilities ({_must_not_add(bad, added)})", tuple(map(_place_of_added, bad)))


def _adding(pod: Pod, allowed: Iterable[str]) -> tuple[list[Container], set[str]]:
    """The containers that add other capabilities than those allowed, and which."""
    added = [(each, set(strings(_capabilities(each).get("add"))).difference(allowed)) for each in pod.containers]
    return [each for each, more in added if more], {name for _, more in added for name in more}


def _capabilities(container: Container) -> Mapping[str, Any]:
    return mapping(container.security.get("capabilities"))


def _place_of_added(container: Container) -> Pointer:
    return (*container.pointer, "securityContext", "capabilities", "add")


def _must_not_add(bad: list[Container], added: set[str]) -> str:
    return f"{_of(bad)} must not include {_quoted(sorted(added))} in securityContext.capabilities.add"


def only_bound_capabilities(pod: Pod) -> Violation | None:
    if pod.is_windows:
        return None
    keeping = [each for each in pod.containers if "ALL" not in strings(_capabilities(each).get("drop"))]
    bad, added = _adding(pod, ("NET_BIND_SERVICE",))
    if not keeping and not bad:
        return None
    details = [f'{_of(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    details += [_must_not_add(bad, added)] if bad else []
    places = [(*each.pointer, "securityContext", "capabilities", "drop") for each in keeping]
    return Violation(f"unrestricted capabilities ({'; '.join(details)})", (*places, *map(_place_of_added, bad)))


def host_namespaces(pod: Pod) -> Violation | None:
    fields = [field for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field) is True]
    detail = ", ".join(f"{field}=true" for field in fields)
    return Violation(f"host namespaces ({detail})", tuple((field,) for field in fields)) if fields else None


def _volumes(pod: Pod) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
    for index, volume in enumerate(sequence(pod.spec.get("volumes"))):
        if isinstance(volume, Mapping):
            yield ("volumes", index), volume


def host_paths(pod: Pod) -> Violation | None:
    bad = [(at, str(volume.get("name"))) for at, volume in _volumes(pod) if volume.get("hostPath") is not None]
    detail = f"{_plural('volume', len(bad))} {_quoted(name for _, name in bad)}"
    return Violation(f"hostPath volumes ({detail})", tuple((*at, "hostPath") for at, _ in bad)) if bad else None


def volume_types(pod: Pod) -> Violation | None:
    bad = [(at, volume) for at, volume in _volumes(pod) if not any(volume.get(kind) is not None for kind in _VOLUMES)]
    if not bad:
        return None
    types = {next((key for key in each if key != "name" and each[key] is not None), "unknown") for _, each in bad}
    named = _quoted(str(volume.get("name")) for _, volume in bad)
    uses = "uses" if len(bad) == 1 else "use"
    noun = _plural("restricted volume type", len(types))
    detail = f"{_plural('volume', len(bad))} {named} {uses} {noun} {_quoted(sorted(types))}"
    return Violation(f"restricted volume types ({detail})", tuple(at for at, _ in bad))


def host_ports(pod: Pod) -> Violation | None:
    """With hostNetwork every port is one of the host (defaultHostNetworkPorts in pkg/apis/core/v1/defaults.go)."""
    bad: dict[int, Container] = {}
    places: list[Pointer] = []
    ports: set[str] = set()
    for number, container in enumerate(pod.containers):
        is_shared = pod.spec.get("hostNetwork") is True and container.pointer[0] != "ephemeralContainers"
        for index, port in enumerate(map(mapping, sequence(container.value.get("ports")))):
            if value := port.get("hostPort") or (is_shared and port.get("containerPort")):
                bad[number] = container
                ports.add(str(value))
                places.append((*container.pointer, "ports", index))
    if not bad:
        return None
    uses = f"{'uses' if len(bad) == 1 else 'use'} {_plural('hostPort', len(ports))}"
    return Violation(f"hostPort ({_of([*bad.values()])} {uses} {', '.join(sorted(ports))})", tuple(places))


def probe_hosts(pod: Pod) -> Violation | None:
    found = [(each, *place) for each in pod.containers for place in _hosts(each)]
    if not found:
        return None
    names = sorted({container.name for container, _, _ in found})
    hosts = sorted({host for _, _, host in found})
    who = f"{_plural('container', len(names))} {_quoted(names)} {'uses' if len(names) == 1 else 'use'}"
    noun = "probe or lifecycle host"
    detail = f"{who} {_plural(noun, len(hosts))} {_quoted(hosts)}"
    return Violation(f"{noun} ({detail})", tuple(at for _, at, _ in found))


def _hosts(container: Container) -> Iterator[tuple[Pointer, str]]:
    """The hosts that a container's probes and lifecycle handlers name."""
    handlers = [(probe,) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    for handler in (*handlers, ("lifecycle", "postStart"), ("lifecycle", "preStop")):
        for kind in ("httpGet", "tcpSocket"):
            host = get(container.value, (*handler, kind, "host"))
            if isinstance(host, str) and host:
                yield (*container.pointer, *handler, kind, "host"), host


def privileged(pod: Pod) -> Violation | None:
    bad = [each for each in pod.containers if each.security.get("privileged") is True]
    places = tuple((*each.pointer, "securityContext", "privileged") for each in bad)
    return Violation(f"privileged ({_of(bad)} must not set securityContext.privileged=true)", places) if bad else None


def proc_mounts(pod: Pod) -> Violation | None:
    found = [(each, each.security.get("procMount")) for each in pod.containers]
    bad = [(each, str(value)) for each, value in found if value not in (None, "Default")]
    if not bad:
        return None
    values = _quoted(sorted({value for _, value in bad}))
    detail = f"{_of([each for each, _ in bad])} must not set securityContext.procMount to {values}"
    places = tuple((*each.pointer, "securityContext", "procMount") for each, _ in bad)
    return Violation(f"procMount ({detail})", places)


def proc_mounts_outside(pod: Pod) -> Violation | None:
    return None if pod.is_in_user_namespace else proc_mounts(pod)


def se_linux(pod: Pod) -> Violation | None:
    allowed = (*_SE_LINUX_TYPES, "container_engine_t") if pod.minor >= 31 else _SE_LINUX_TYPES
    found = [(who, mapping(value), at) for who, value, at in pod.setters("seLinuxOptions")]
    bad = [
        (who, value, at)
        for who, value, at in found
        if (value.get("type") or "") not in allowed or value.get("user") or value.get("role")
    ]
    if not bad:
        return None
    types = sorted({str(value.get("type") or "") for _, value, _ in bad} - {*allowed})
    data = [f"{_plural('type', len(types))} {_quoted(types)}"] if types else []
    data += [f"{part} may not be set" for part in ("user", "role") if any(value.get(part) for _, value, _ in bad)]
    who = _who(who for who, _, _ in bad)
    detail = f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return Violation(f"seLinuxOptions ({detail})", tuple(at for _, _, at in bad))


def seccomp_annotations(pod: Pod) -> Violation | None:
    keys = [_SECCOMP[0], *(_SECCOMP[1] + each.name for each in pod.containers)]
    found = {key: pod.annotations[key] for key in keys if key in pod.annotations}
    allowed = ("runtime/default", "docker/default")
    bad = sorted(f'{key}="{value}"' for key, value in found.items() if value not in allowed and not _is_local(value))
    noun = f"forbidden {_plural('annotation', len(bad))}"
    return Violation(f"seccompProfile ({noun} {', '.join(bad)})", ((),)) if bad else None


def seccomp(pod: Pod) -> Violation | None:
    bad = [each for each in pod.setters("seccompProfile", "type") if _is_other(each[1])]
    if not bad:
        return None
    values = _quoted(sorted({str(value) for _, value, _ in bad}))
    detail = f"{_who(who for who, _, _ in bad)} must not set securityContext.seccompProfile.type to {values}"
    return Violation(f"seccompProfile ({detail})", tuple(at for _, _, at in bad))


def seccomp_set(pod: Pod) -> Violation | None:
    if pod.is_windows or (explicit := seccomp(pod)):
        return None if pod.is_windows else explicit
    missing = _without(pod, "seccompProfile", "type")
    text = f'pod or {_of(missing)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation(f"seccompProfile ({text})", tuple(each.pointer for each in missing)) if missing else None


def _without(pod: Pod, *field: str) -> list[Container]:
    """The containers for which neither they nor the pod set the field."""
    setters = [who for who, _, _ in pod.setters(*field)]
    return [] if None in setters else [each for each in pod.containers if each not in setters]


def sysctls(pod: Pod) -> Violation | None:
    allowed = {name for since, names in _SYSCTLS.items() if pod.minor >= since for name in names.split()}
    found = [(index, mapping(each).get("name")) for index, each in enumerate(sequence(pod.security.get("sysctls")))]
    bad = [(index, name) for index, name in found if isinstance(name, str) and name not in allowed]
    places = tuple(("securityContext", "sysctls", index) for index, _ in bad)
    return Violation(f"forbidden sysctls ({', '.join(name for _, name in bad)})", places) if bad else None


def host_processes(pod: Pod) -> Violation | None:
    bad = [each for each in pod.setters("windowsOptions", "hostProcess") if each[1] is True]
    detail = f"{_who(who for who, _, _ in bad)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation(f"hostProcess ({detail})", tuple(at for _, _, at in bad)) if bad else None


def escalation(pod: Pod) -> Violation | None:
    bad = [each for each in pod.containers if each.security.get("allowPrivilegeEscalation") is not False]
    if not bad or pod.is_windows:
        return None
    detail = f"{_of(bad)} must set securityContext.allowPrivilegeEscalation=false"
    places = tuple((*each.pointer, "securityContext", "allowPrivilegeEscalation") for each in bad)
    return Violation(f"allowPrivilegeEscalation != false ({detail})", places)


def non_root(pod: Pod) -> Violation | None:
    if pod.is_in_user_namespace:
        return None
    bad = [each for each in pod.setters("runAsNonRoot") if each[1] is False]
    if bad:
        detail = f"{_who(who for who, _, _ in bad)} must not set securityContext.runAsNonRoot=false"
        return Violation(f"runAsNonRoot != true ({detail})", tuple(at for _, _, at in bad))
    missing = _without(pod, "runAsNonRoot")
    detail = f"pod or {_of(missing)} must set securityContext.runAsNonRoot=true"
    return Violation(f"runAsNonRoot != true ({detail})", tuple(each.pointer for each in missing)) if missing else None


def root_user(pod: Pod) -> Violation | None:
    bad = [each for each in pod.setters("runAsUser") if each[1] == 0 and each[1] is not False]
    if not bad or pod.is_in_user_namespace:
        return None
    detail = f"{_who(who for who, _, _ in bad)} must not set runAsUser=0"
    return Violation(f"runAsUser=0 ({detail})", tuple(at for _, _, at in bad))
