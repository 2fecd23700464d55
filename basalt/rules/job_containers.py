"""How the containers of training jobs fit what they are given: memory, launchers, threads, networks, images."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from basalt.api import booleans
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping, sequence
from basalt.pointers import Pointer, get
from basalt.quantities import Amount, parse, show
from basalt.rules.rule import Rule
from basalt.views import containers, devices, launchers, shared_memory
from basalt.views.containers import Container, Pod
from basalt.views.launchers import Said
from basalt.views.minimum_gang import minimum_gang
from basalt.views.shared_memory import Shared
from basalt.views.workloads import Task, Workload

_LOCK = "IPC_LOCK"
_IN_TEXT = re.compile(r"\bNCCL_IB_(?!DISABLE=1)[A-Z0-9_]+(?==)")
_THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
_WHOLE = re.compile(r"\s*([0-9]{1,10})\s*(?:,.*)?")
_RESTARTS = frozenset({"RestartJob", "RestartPod", "RestartTask", "RestartPartition"})
_PREEMPTABLE = "volcano.sh/preemptable"
# The volumes that go with their pod, or that nothing can be written to (Volume in k8s.io/api/core/v1/types.go).
_PASSING = frozenset({
    "name", "configMap", "downwardAPI", "emptyDir", "ephemeral", "gitRepo", "image", "projected", "secret",
})  # fmt: skip
_HOST_DNS = "ClusterFirstWithHostNet"
_LATEST = "latest"


def multi_gpu_has_shared_memory(index: Index) -> Iterator[Problem]:
    every = index.pods
    yield from containers.once(problem for pod in every for problem in _without_shared_memory(pod))


def _without_shared_memory(pod: Pod) -> Iterator[Problem]:
    """The first container of the pod that lacks it."""
    for container in pod.containers:
        gpus = devices.gpus(container.requests)
        if sum(gpus.values()) > 1 and shared_memory.lacks(pod, container):
            is_ours = pod.object.module is not None
            hint = "set sharedMemory in the role, below its memory" if is_ours else _MOUNT
            message = f"{container.name} has {_listed(gpus)} and no memory at /dev/shm beyond the usual 64Mi"
            yield Problem(pod.object, container.place_of(next(iter(gpus))), message, hint)
            return


_MOUNT = "mount an emptyDir with medium: Memory and a sizeLimit at /dev/shm"


def _listed(amounts: Mapping[str, Amount]) -> str:
    return " and ".join(f"{show(amount)} {name}" for name, amount in amounts.items())


def shared_memory_is_bounded(index: Index) -> Iterator[Problem]:
    every = index.pods
    yield from containers.once(
        problem for pod in every for shared in shared_memory.volumes(pod) for problem in _unbounded(pod, shared)
    )


def _unbounded(pod: Pod, shared: Shared) -> Iterator[Problem]:
    at: Pointer = (*shared.pointer, "emptyDir")
    volume = mapping(shared.volume.get("emptyDir"))
    limit, holder = _memory_limit(pod, shared)
    size = parse(volume.get("sizeLimit"))
    if volume.get("sizeLimit") is None or size == 0:
        bound = f": it counts towards the {show(limit, 'memory')} of {holder}" if limit else ""
        pointer = (*at, "sizeLimit") if size == 0 else at
        yield Problem(
            pod.object, pointer, f"{shared_memory.PATH} in memory without sizeLimit{bound}", _below(pod, limit)
        )
    elif size is not None and limit is not None and size >= limit:
        relation = "as much as" if size == limit else "more than"
        message = f"{shared_memory.PATH} may hold {show(size, 'memory')}, {relation} the memory limit of {holder}"
        if size > limit:
            message += f", {show(limit, 'memory')}"
        yield Problem(
            pod.object, (*at, "sizeLimit"), f"{message}: what lies there counts towards it", _below(pod, limit)
        )


def _memory_limit(pod: Pod, shared: Shared) -> tuple[Amount | None, str]:
    """The largest memory limit of those that use the volume, and whose it is; None where one of them has no limit."""
    limits = [(each.limits.get("memory"), each.name) for each in shared.containers]
    known = [(limit, name) for limit, name in limits if limit]
    whole = parse(get(pod.spec, ("resources", "limits", "memory")))
    if whole and len(known) < len(limits):
        return whole, "the pod"
    return max(known, default=(None, "")) if len(known) == len(limits) else (None, "")


def _below(pod: Pod, limit: Amount | None) -> str:
    field = "sharedMemory" if pod.object.module is not None else "sizeLimit"
    return f"set {field} below {show(limit, 'memory')}" if limit else f"set {field}, below the memory limit"


def rdma_is_complete(index: Index) -> Iterator[Problem]:
    network = index.environment.spec.get("network") if index.environment else None
    is_raised = mapping(network).get("memlock") == "unlimited"  # by the nodes' container runtime
    for pods in _gangs(index):
        every = [container for pod in pods for container in pod.containers]
        has_devices = any(devices.may_be_rdma(each) for container in every for each in container.requests)
        faults = (_rdma_faults(each, has_devices=has_devices, is_raised=is_raised) for each in every)
        yield from containers.once(problem for some in faults for problem in some)


def _gangs(index: Index) -> Iterator[list[Pod]]:
    """The pods of each job, and those that Volcano places beside by the PodGroup that they name, else one by one."""
    found: dict[tuple[object, ...], list[Pod]] = {}
    for pod in index.volcano_pods:
        alone = (id(pod.object), pod.job.pointer if pod.job is not None else ())
        group = (pod.object.ref.namespace, pod.group) if pod.job is None and pod.group else alone
        found.setdefault(group, []).append(pod)
    yield from found.values()


def _rdma_faults(container: Container, *, has_devices: bool, is_raised: bool) -> Iterator[Problem]:
    rdma = [name for name, amount in container.requests.items() if amount > 0 and devices.is_rdma(name)]
    if rdma and not is_raised and not _may_lock_memory(container):
        at = _existing(container, ("securityContext", "capabilities", "add"))
        message = f"{container.name} requests {rdma[0]} without the capability {_LOCK}: it cannot pin memory for RDMA"
        hint = f"add {_LOCK} to securityContext.capabilities.add; waive this where the nodes raise the memlock limit"
        yield Problem(container.object, at, message, hint)
    if rdma or any(amount > 0 and devices.may_be_rdma(name) for name, amount in container.requests.items()):
        return
    is_unknown = container.is_patch and "resources" not in container.value
    if container.is_privileged or container.has_claims or is_unknown:
        return
    is_launcher = has_devices and not devices.gpus(container.requests)  # it hands its settings on to the workers
    if not is_launcher and (setting := _infiniband(container)) is not None:
        pointer, shown = setting
        message = f"{container.name} sets {shown} and requests no RDMA resource: NCCL finds no InfiniBand device"
        hint = "request the RDMA resource of the nodes, such as rdma/hca: 1, or take the setting out"
        yield Problem(container.object, pointer, message, hint)


def _infiniband(container: Container) -> tuple[Pointer, str] | None:
    """The first setting that is for InfiniBand: of a variable, or in the command; none where it is switched off."""
    variables = {name: (at, value) for name, at, value in container.environment}
    if variables.get("NCCL_IB_DISABLE", ((), ""))[1] == "1":
        return None
    for name, (at, value) in variables.items():
        if name.startswith("NCCL_IB_") or (name == "NCCL_NET" and str(value).upper() == "IB"):
            return (*at, "value") if value is not None else at, name if value is None else f"{name}={value}"
    for at, text in container.words:
        if "NCCL_IB_DISABLE=1" not in text and (found := _IN_TEXT.search(text)) is not None:
            return at, found[0]
    return None


def _may_lock_memory(container: Container) -> bool:
    capabilities = mapping(get(container.value, ("securityContext", "capabilities")))
    added, dropped = (set(map(str, sequence(capabilities.get(kind)))) for kind in ("add", "drop"))
    has_lock = not added.isdisjoint({_LOCK, "ALL"}) and _LOCK not in dropped
    is_unknown = container.is_patch and "securityContext" not in container.value
    return has_lock or container.is_privileged or is_unknown


def _existing(container: Container, at: Pointer) -> Pointer:
    """The pointer into the container, shortened to what is there."""
    while at and get(container.value, at) is None:
        at = at[:-1]
    return (*container.pointer, *at)


def launcher_matches_gpus(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        pods = list(containers.of_jobs([job]))
        found = [problem for pod in pods for container in pod.containers for problem in _processes(container)]
        yield from containers.once([*found, *_nodes(job, pods)])
    beside = (pod for pod in index.volcano_pods if pod.job is None)
    yield from (problem for pod in beside for container in pod.containers for problem in _processes(container))


def _processes(container: Container) -> Iterator[Problem]:
    said = launchers.processes(container)
    is_unknown = container.has_claims or (container.is_patch and "resources" not in container.value)
    if said is None or is_unknown:
        return
    gpus = devices.gpus(container.limits) or devices.gpus(container.requests)
    count = sum(gpus.values())
    if count in (0, said.least):
        return  # without a GPU any number of processes may share the CPUs
    flag = said.text.partition("=")[0]
    hint = f"write {flag}={show(count)}, or request {said.least} GPUs"
    yield Problem(container.object, said.pointer, f"{said.text}, and {container.name} has {_listed(gpus)}", hint)


def _nodes(job: Workload, pods: list[Pod]) -> Iterator[Problem]:
    """Where the launchers count on other pods than start."""
    said = [(pod.task, each) for pod in pods for container in pod.containers if (each := launchers.nodes(container))]
    gang = minimum_gang(job)
    groups: dict[tuple[int, int], list[tuple[Task, Said]]] = {}
    for task, each in said if not job.is_patch else ():
        if task is not None:
            groups.setdefault((each.least, each.most), []).append((task, each))
    launching = {task.name: task.replicas or 0 for task, _ in (each for group in groups.values() for each in group)}
    total = sum(launching.values())
    for (least, most), group in groups.items():
        alike = sum({task.name: task.replicas or 0 for task, _ in group}.values())
        counts = {total, job.replicas or 0} if "pytorch" in job.plugins else {total, alike, job.replicas or 0}
        minimum = min(gang.pods, total) if gang is not None else total
        is_range = least != most
        fits = any(least <= count <= most for count in counts) and (not is_range or minimum >= least)
        if not total or fits or (not is_range and least == minimum):
            continue
        yield _other_pods(job, group[0][1], total, minimum)


def _other_pods(job: Workload, said: Said, total: int, minimum: int) -> Problem:
    flag = said.text.partition("=")[0]
    if said.least <= total <= said.most:
        message = f"{said.text}, and the gang starts with {minimum} of {total} pods"
        hint = f"set minAvailable to {said.least}, or write {flag}={minimum}:{said.most}"
        return Problem(job.object, said.pointer, message, hint)
    started = f"{minimum} to {total} pods" if minimum != total else f"{total} pod{'' if total == 1 else 's'}"
    hint = f"write {flag}={total}, or change the replicas"
    return Problem(job.object, said.pointer, f"{said.text}, and the gang has {started}", hint)


def threads_match_cpus(index: Index) -> Iterator[Problem]:
    yield from containers.once(
        problem for pod in index.volcano_pods for container in pod.containers for problem in _threads(pod, container)
    )


def _threads(pod: Pod, container: Container) -> Iterator[Problem]:
    limit = container.limits.get("cpu") or parse(get(pod.spec, ("resources", "limits", "cpu")))
    for name, pointer, value in container.environment if limit else ():
        number = _WHOLE.fullmatch(value or "") if name in _THREADS else None
        if number is not None and limit and int(number[1]) > max(limit, 1):
            message = f"{name} is {number[1]}, the CPU limit of {container.name} is {show(limit)}"
            hint = f"set it to {max(int(limit), 1)} or less, or raise the limit"
            yield Problem(container.object, (*pointer, "value"), message, hint)


def image_is_pinned(index: Index) -> Iterator[Problem]:
    told = set()
    for pod in index.volcano_pods:
        for container in pod.containers:
            image = container.value.get("image")
            if isinstance(image, str) and (fault := _loose(image)) and (id(pod.object), image) not in told:
                told.add((id(pod.object), image))
                hint = "name the version that the job was tried with, or a digest"
                yield Problem(pod.object, (*container.pointer, "image"), f"the image {image} {fault}", hint)


def _loose(image: str) -> str | None:
    """Why the image may be another one tomorrow."""
    name, at, _ = image.partition("@")
    if at or not image.strip():
        return None
    tag = name.rpartition("/")[2].partition(":")[2]
    if not tag:
        return "has no tag, which means latest: pods of one job may differ"
    return "has the tag latest: pods of one job may differ" if tag == _LATEST else None


def checkpoint_survives(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        if job.is_patch or not job.tasks or any(map(_is_kept, _volumes(job))):
            continue
        if (reason := next(_interruptions(job), None)) is not None:
            pointer, fact = reason
            hint = "mount a claim, in volumes: [{mountPath: /checkpoints, volumeClaimName: ...}]"
            if job.object.module:
                hint = "mount a claim, in volumes: [{name: checkpoints, mountPath: /checkpoints, claim: ...}]"
            yield Problem(
                job.object, pointer, f"{fact}, and no volume outlives them: training begins again from nothing", hint
            )


def _volumes(job: Workload) -> Iterator[Mapping[str, Any]]:
    """Those of the job, which are claims, and those of its pods that some container mounts."""
    for volume in map(mapping, sequence(job.spec.get("volumes"))):
        yield {"persistentVolumeClaim": volume.get("volumeClaimName") or volume.get("volumeClaim")}
    for pod in containers.of_jobs([job]):
        mounted = {str(each.get("name")) for container in pod.containers for each in _mounts(container)}
        yield from (volume for _, volume in pod.volumes if str(volume.get("name")) in mounted)


def _mounts(container: Container) -> Iterator[Mapping[str, Any]]:
    for field in ("volumeMounts", "volumeDevices"):
        yield from map(mapping, sequence(container.value.get(field)))


def _is_kept(volume: Mapping[str, Any]) -> bool:
    return any(value is not None for kind, value in volume.items() if kind not in _PASSING)


def _interruptions(job: Workload) -> Iterator[tuple[Pointer, str]]:
    """What ends pods that then start anew."""
    for at, holder in ((job.pointer, job.spec), *((task.pointer, task.value) for task in job.tasks)):
        for index, policy in enumerate(map(mapping, sequence(holder.get("policies")))):
            if (action := str(policy.get("action"))) in _RESTARTS:
                yield (*at, "policies", index, "action"), f"{action} starts pods anew"
    # A JobFlow copies a JobTemplate's spec only.
    own = () if job.object.ref.kind == "JobTemplate" else (job.pointer[:-1],)
    for base in (*own, *((*task.pointer, "template") for task in job.tasks)):
        metadata: Pointer = (*base, "metadata")
        said = [(*metadata, field, _PREEMPTABLE) for field in ("annotations", "labels")]
        pointer = next((each for each in said if get(job.object.value, each) is not None), said[0])
        if str(get(job.object.value, pointer)) in booleans.TRUE:  # the annotation counts before the label
            yield pointer, f"{_PREEMPTABLE} lets other jobs take the pods"


def host_network_is_sound(index: Index) -> Iterator[Problem]:
    for job in index.workloads:
        pods = list(containers.of_jobs([job]))
        yield from containers.once([*_resolvers(pods), *_shared_ports(pods)])
    yield from _resolvers([pod for pod in index.volcano_pods if pod.job is None])


def _resolvers(pods: list[Pod]) -> Iterator[Problem]:
    for pod in pods:
        policy = pod.spec.get("dnsPolicy")
        if pod.spec.get("hostNetwork") is not True:
            continue
        if pod.job is None and policy in (None, ""):  # Volcano's webhook completes jobs only
            message = "hostNetwork without a dnsPolicy means ClusterFirst: the pods cannot find each other by name"
            at = pod.pointer if policy is None else (*pod.pointer, "dnsPolicy")
            yield Problem(pod.object, at, message, f"write dnsPolicy: {_HOST_DNS}")
        elif isinstance(policy, str) and policy not in ("", _HOST_DNS):
            message = f"dnsPolicy {policy} with hostNetwork: the pods cannot find each other by name"
            yield Problem(pod.object, (*pod.pointer, "dnsPolicy"), message, f"write {_HOST_DNS}, or leave it out")


def _shared_ports(pods: list[Pod]) -> Iterator[Problem]:
    """Ports of the node that two tasks take: a node has each only once."""
    owners: dict[tuple[int, str, str], str] = {}
    for pod in pods:
        for pointer, port in _host_ports(pod) if not pod.is_unwanted else ():
            name = pod.task.name if pod.task is not None else ""
            owner = owners.setdefault(port, name)
            if owner != name:
                message = f"{name} takes port {port[0]} of its node, as {owner} does: no node can run both"
                yield Problem(pod.object, pointer, message, "give each task a port of its own")


def _host_ports(pod: Pod) -> Iterator[tuple[Pointer, tuple[int, str, str]]]:
    is_host = pod.spec.get("hostNetwork") is True
    for container in pod.containers:
        if container.is_init and container.value.get("restartPolicy") != "Always":
            continue
        for index, port in enumerate(map(mapping, sequence(container.value.get("ports")))):
            field = "containerPort" if is_host and not port.get("hostPort") else "hostPort"
            number = port.get(field)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                at = (*container.pointer, "ports", index, field)
                yield at, (number, str(port.get("protocol") or "TCP"), str(port.get("hostIP") or ""))


RULES: tuple[Rule, ...] = (
    Rule("multi-gpu-has-shared-memory", Severity.WARNING, multi_gpu_has_shared_memory),
    Rule("shared-memory-is-bounded", Severity.ERROR, shared_memory_is_bounded),
    Rule("rdma-is-complete", Severity.ERROR, rdma_is_complete),
    Rule("launcher-matches-gpus", Severity.WARNING, launcher_matches_gpus),
    Rule("threads-match-cpus", Severity.WARNING, threads_match_cpus),
    Rule("image-is-pinned", Severity.WARNING, image_is_pinned),
    Rule("checkpoint-survives", Severity.WARNING, checkpoint_survives),
    Rule("host-network-is-sound", Severity.ERROR, host_network_is_sound),
)
