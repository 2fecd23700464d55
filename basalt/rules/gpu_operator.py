"""The drivers of GPUs and NICs that operators install: whether they are what the nodes take, and spare running jobs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.loading.nodes import Node
from basalt.objects import mapping
from basalt.pointers import Pointer
from basalt.rules.rule import Rule
from basalt.views import gpu_operator as operator
from basalt.views import network_operator
from basalt.views.gangs import Gang, Priorities, gangs
from basalt.views.gpu_operator import Settings, awaits_driver, deploys, has_own_driver, is_gpu_node, selects
from basalt.views.gpu_products import Architecture, architecture

_OS = ("feature.node.kubernetes.io/system-os_release.ID", "feature.node.kubernetes.io/system-os_release.VERSION_ID")
_ONLY_MAJOR = ("ol", "rocky", "rhel")  # whose images are tagged without the minor version
_OPEN_ONLY = (Architecture.BLACKWELL, Architecture.GRACE_HOPPER)
_GDS_OPEN_SINCE = (2, 17, 5)
_GDS_DEFAULT = "2.29.4"
_DEPLOY_DRIVER = "nvidia.com/gpu.deploy.driver"
_MODULES: Pointer = ("kernelModuleType",)
Fault = tuple[Pointer, str, str]


def driver_matches_pool(index: Index) -> Iterator[Problem]:
    policies, drivers = operator.policies(index.others, index.chart_values), operator.drivers(index.others)
    nodes = [node for node in index.nodes if is_gpu_node(node)] if policies or drivers else []
    for policy in policies:
        if operator.manages_drivers(policy):
            reach = [node for node in nodes if deploys(node, "driver") or has_own_driver(node)]
            for fault in (
                *_driver_faults(policy, ("driver",), reach),
                *_systems(reach),
                *_host_drivers(policy, ("driver", "enabled"), nodes),
            ):
                yield _problem(policy, fault)
        elif not policy.is_enabled(("driver",)) and not drivers:
            yield from _undriven(policy, nodes)
    for driver in drivers:
        reach = [node for node in nodes if selects(driver, node)]
        for fault in (*_driver_faults(driver, (), reach), *_host_drivers(driver, ("nodeSelector",), reach)):
            yield _problem(driver, fault)
    yield from _selection(drivers, nodes)


def _problem(settings: Settings, fault: Fault) -> Problem:
    return Problem(*settings.at(fault[0]), fault[1], fault[2])


def _named(nodes: Sequence[Node]) -> str:
    return names.listed(node.name for node in nodes)


def _driver_faults(settings: Settings, at: Pointer, nodes: Sequence[Node]) -> Iterator[Fault]:
    """at is where the driver's fields stand; GDS stands beside it in a ClusterPolicy, and in an NVIDIADriver too."""
    modules = settings.get((*at, *_MODULES))
    yield from _kernel_modules(modules, (*at, *_MODULES), nodes)
    uses_gds = settings.get(("gds", "enabled")) is True
    version = settings.get(("gds", "version"))
    if uses_gds and modules != "open" and _needs_open(version):
        given = modules if isinstance(modules, str) and modules else "auto"
        message = (
            f"kernelModuleType is {given}; gds {version or _GDS_DEFAULT} takes open only, also where auto means it"
        )
        yield (*at, *_MODULES), message, "set kernelModuleType to open"
    if settings.get((*at, "usePrecompiled")) is not True:
        return
    extra = [part for part in ("gds", "gdrcopy") if settings.get((part, "enabled")) is True]
    if extra:
        message = f"usePrecompiled with {' and '.join(extra)}: there is no precompiled image with it"
        yield (*at, "usePrecompiled"), message, f"set usePrecompiled to false, or switch {' and '.join(extra)} off"
    driver_version = settings.get((*at, "version"))
    if isinstance(driver_version, str) and driver_version.startswith("sha256:"):
        message = "usePrecompiled with a digest as version: the image's tag is made of version, kernel and system"
        yield (*at, "version"), message, "write the driver's version, or set usePrecompiled to false"


def _needs_open(version: Any) -> bool:
    parts = str(version or _GDS_DEFAULT).removeprefix("v").split("-")[0].split(".")
    numbers = tuple(int(part) for part in parts if part.isdecimal())
    return len(numbers) != len(parts) or numbers >= _GDS_OPEN_SINCE


def _kernel_modules(modules: Any, at: Pointer, nodes: Sequence[Node]) -> Iterator[Fault]:
    """Open modules begin with Turing's GPUs; Blackwell and Grace Hopper take nothing else."""
    refused = {"proprietary": _OPEN_ONLY, "open": (Architecture.BEFORE_TURING,)}.get(str(modules), ())
    found: dict[Architecture, list[Node]] = {}
    for node in nodes if refused else ():
        kind = architecture(node.labels)
        if kind in refused and kind is not None:
            found.setdefault(kind, []).append(node)
    for kind, wrong in found.items():
        message = f"kernelModuleType is {modules}, which the GPUs of {_named(wrong)} do not take ({kind})"
        yield at, message, "set kernelModuleType to auto, or give these nodes an NVIDIADriver of their own"


def _systems(nodes: Sequence[Node]) -> Iterator[Fault]:
    """A ClusterPolicy takes the operating system of one GPU node for that of all (getGPUNodeOSInfo)."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        name, version = (node.labels.get(label) for label in _OS)
        if name and version:
            major = version.partition(".")[0] if name in _ONLY_MAJOR else version
            found.setdefault(f"{name}{major}", []).append(node)
    if len(found) > 1:
        terms = "; ".join(f"{system}: {_named(some)}" for system, some in sorted(found.items()))
        message = f"one driver image for {len(found)} operating systems ({terms})"
        yield ("driver",), message, "install drivers by NVIDIADrivers, which make one image for each system"


def _host_drivers(settings: Settings, at: Pointer, nodes: Sequence[Node]) -> Iterator[Fault]:
    own = [node for node in nodes if has_own_driver(node)]
    if not own and nodes and not any(deploys(node, "driver") for node in nodes):
        own = list(nodes)
    if own:
        has = "has a driver of its own" if len(own) == 1 else "have drivers of their own"
        message = f"{_named(own)} {has} ({_DEPLOY_DRIVER}={own[0].labels.get(_DEPLOY_DRIVER)})"
        message += f"; {settings.title} is to install another"
        if own == list(nodes):
            hint = "set driver.enabled to false" if at[0] == "driver" else "take the NVIDIADriver away"
        else:
            hint = f"label these nodes {_DEPLOY_DRIVER}=false" if at[0] == "driver" else "select other nodes"
        yield at, message, hint


def _undriven(policy: Settings, nodes: Sequence[Node]) -> Iterator[Problem]:
    waiting = [node for node in nodes if awaits_driver(node)]
    if waiting:
        message = f"driver.enabled is false, and no driver has been seen on {_named(waiting)}"
        message += f" ({_DEPLOY_DRIVER}=true)"
        yield _problem(
            policy, (("driver", "enabled"), message, "set driver.enabled to true, or put drivers on the hosts")
        )


def _selection(drivers: Sequence[Settings], nodes: Sequence[Node]) -> Iterator[Problem]:
    """What the operator refuses of NVIDIADrivers together (internal/validator/validator.go)."""
    defaults = [driver for driver in drivers if driver.get(("default",)) is True]
    others = [driver for driver in drivers if driver.get(("default",)) is not True]
    for driver in defaults:
        if mapping(driver.get(("nodeSelector",))):
            message = "a default NVIDIADriver takes no nodeSelector: it is for the nodes that no other selects"
            yield _problem(driver, (("nodeSelector",), message, "take nodeSelector out, or set default to false"))
    for extra in defaults[1:]:
        message = f"a second default NVIDIADriver; the first is {defaults[0].title.rpartition(' ')[2]}"
        yield _problem(extra, (("default",), message, "keep one default, and give the others a nodeSelector"))
    for number, second in enumerate(others):
        for first in others[:number]:
            if (fault := _overlap(first, second, nodes)) is not None:
                yield _problem(second, fault)
                break
    left = [node for node in nodes if deploys(node, "driver") and not any(selects(each, node) for each in others)]
    if drivers and not defaults and left:
        message = f"no NVIDIADriver selects {_named(left)}, and none is the default"
        hint = "select these nodes too, or declare an NVIDIADriver with default: true"
        yield _problem(others[-1], (("nodeSelector",), message, hint))


def _overlap(first: Settings, second: Settings, nodes: Sequence[Node]) -> Fault | None:
    both = [node for node in nodes if selects(first, node) and selects(second, node)]
    one, other = (mapping(each.get(("nodeSelector",))) for each in (first, second))
    name = first.title.rpartition(" ")[2]
    if both:
        message = f"selects {_named(both)}, as does the NVIDIADriver {name}"
    elif not nodes and (_implies(one, other) or _implies(other, one)):
        message = f"selects nodes that the NVIDIADriver {name} selects too"
    else:
        return None
    return ("nodeSelector",), f"{message}: the operator then installs neither", "let each node be selected once"


def _implies(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(key) == value for key, value in other.items())


def driver_upgrade_spares_gangs(index: Index) -> Iterator[Problem]:
    found = list(_upgraded(index))
    if not found:
        return
    trained = list(gangs(index.workloads, index.of_kind("PodGroup"), index.others, Priorities(())))
    for settings, at, is_on in found:
        yield from _upgrade(settings, at, trained, is_on=is_on)


def _upgraded(index: Index) -> Iterator[tuple[Settings, Pointer, bool]]:
    """Whatever upgrades drivers: where it says how, and whether it does where nothing is said."""
    for policy in operator.policies(index.others, index.chart_values):
        if operator.manages_drivers(policy) or (policy.is_chart and policy.is_enabled(("driver",))):
            yield policy, ("driver", "upgradePolicy"), False  # the chart's own default is on, and is known as given
    for driver in operator.drivers(index.others):
        yield driver, ("upgradePolicy",), True
    for policy in (*network_operator.policies(index.others), *network_operator.node_policies(index.others)):
        at: Pointer = ("ofedDriver", "upgradePolicy")
        if network_operator.has_driver(policy) and policy.get((*at, "drain", "enable")) is not False:
            yield policy, at, False


def _upgrade(settings: Settings, at: Pointer, trained: Sequence[Gang], *, is_on: bool) -> Iterator[Problem]:
    """is_on: whether autoUpgrade is on where nothing is said."""
    given = settings.get((*at, "autoUpgrade"))
    if not (given is True or (given is None and is_on)):
        return
    selector = settings.get((*at, "waitForCompletion", "podSelector"))
    hint = "set waitForCompletion.podSelector to a label of the jobs' pods, or autoUpgrade to false"
    if not selector:
        message = f"{settings.title} upgrades drivers by itself and waits for no pods: pods with GPUs are deleted"
        message += " node by node, and the gangs they belong to with them"
        yield _problem(settings, (_nearest(settings, (*at, "waitForCompletion", "podSelector")), message, hint))
        return
    timeout = settings.get((*at, "waitForCompletion", "timeoutSeconds"))
    if isinstance(timeout, int) and not isinstance(timeout, bool) and timeout > 0:
        message = f"{settings.title} waits {timeout} s for {selector}, then deletes the pods with GPUs all the same"
        pointer = (*at, "waitForCompletion", "timeoutSeconds")
        yield _problem(settings, (pointer, message, "set timeoutSeconds to 0, which waits as long as it takes"))
    missed = [gang for gang in trained if _is_missed(str(selector), gang)]
    if missed:
        listed = names.listed(str(gang.object.ref) for gang in missed)
        message = f"{settings.title} waits for {selector}, which no pod of {listed} has"
        yield _problem(settings, ((*at, "waitForCompletion", "podSelector"), message, hint))


def _nearest(settings: Settings, pointer: Pointer) -> Pointer:
    """The switch where it is given: that is what to change."""
    switch = (*pointer[:-2], "autoUpgrade")
    return switch if settings.has(switch) and not settings.has(pointer) else pointer


def _is_missed(selector: str, gang: Gang) -> bool:
    """Whether the gang has GPUs and no pod that a selector of plain equalities selects."""
    terms = [term.strip().replace("==", "=").partition("=") for term in selector.split(",")]
    if any(not sign or "!" in key or " " in key.strip() for key, sign, _ in terms):
        return False
    users = [pods for pods in gang.pods if any("gpu" in name or "/mig-" in name for name in pods.requests)]
    labels = [pods.labels for pods in users]
    known = [each for each in labels if each is not None]
    return bool(users) and len(known) == len(labels) and not any(_has(each, terms) for each in known)


def _has(labels: Mapping[str, Any], terms: Sequence[tuple[str, str, str]]) -> bool:
    return all(labels.get(key.strip()) in (value.strip(), "") and key.strip() in labels for key, _, value in terms)


def rdma_stack_is_complete(index: Index) -> Iterator[Problem]:
    policies = network_operator.policies(index.others)
    for extra in policies[1:]:
        message = f"a second NicClusterPolicy; the first is {policies[0].title.rpartition(' ')[2]}"
        yield _problem(extra, ((), message, "keep one: the operator follows one and ignores the others"))
    having = [each for each in (*policies, *network_operator.node_policies(index.others))
              if network_operator.has_driver(each)]  # fmt: skip
    is_known = index.knows(Fact.NETWORK_OPERATOR) and not network_operator.is_made(index.chart_values)
    for settings, at in _gpu_drivers(index):
        if settings.get((*at, "rdma", "enabled")) is not True:
            continue
        uses_host = settings.get((*at, "rdma", "useHostMofed")) is True
        if uses_host and having:
            message = (
                f"useHostMofed takes the NICs' driver of the host; {having[0].title} installs another (ofedDriver)"
            )
            yield _problem(
                settings, ((*at, "rdma", "useHostMofed"), message, "set it to false, or take ofedDriver out")
            )
        elif not uses_host and not having and is_known:
            message = "rdma.enabled waits for the NICs' driver, and no NicClusterPolicy installs one (ofedDriver)"
            message += ": the GPU driver never becomes ready"
            hint = "declare a NicClusterPolicy with ofedDriver, or set useHostMofed where the hosts have it"
            yield _problem(settings, ((*at, "rdma", "enabled"), message, hint))


def _gpu_drivers(index: Index) -> Iterator[tuple[Settings, Pointer]]:
    for policy in operator.policies(index.others, index.chart_values):
        if operator.manages_drivers(policy) or (policy.is_chart and policy.is_enabled(("driver",))):
            yield policy, ("driver",)
    for driver in operator.drivers(index.others):
        yield driver, ()


RULES = (
    Rule("driver-matches-pool", Severity.ERROR, driver_matches_pool, partly_needs=(Fact.NODES,)),
    Rule("driver-upgrade-spares-gangs", Severity.WARNING, driver_upgrade_spares_gangs),
    Rule("rdma-stack-is-complete", Severity.ERROR, rdma_stack_is_complete, partly_needs=(Fact.NETWORK_OPERATOR,)),
)
