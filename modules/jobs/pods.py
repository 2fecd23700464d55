"""The pods of a role: one container, what it is told, what it mounts, and where it may run."""

from collections.abc import Mapping
from typing import Any

from basalt.pointers import Pointer
from basalt.quantities import as_written
from modules.jobs import network, security, variables, volumes
from modules.jobs.context import Built, Context, Variable, Volume, moved
from modules.jobs.network import Network
from modules.jobs.tasks import Task

CONTAINER = "main"
_FROM_JOB = ("terminationGracePeriodSeconds", "serviceAccountName")
_FROM_ROLE = ("nodeSelector", "tolerations")
_HOSTFILE_VOLUME = "hostfile"
_RAY_PORTS = {"gcs": 6379, "dashboard": 8265, "client-server": 10001}  # of the Service that Volcano's plugin makes
# Waits until every worker's sshd answers, five minutes at most, and lists the workers as mpirun reads them.
_HOSTFILE_SCRIPT = """set -e
tries=0
for host in $(echo "$MPI_HOST" | tr , ' '); do
  until ssh -o ConnectTimeout=5 "$host" true; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ]
    sleep 5
  done
  echo "$host slots=$SLOTS"
done > {hostfile}
"""


def template(task: Task, spec: Mapping[str, Any], context: Context, job_name: str | None) -> Built:
    """The pod template of a task."""
    role, at = spec["roles"][task.role], ("spec", "roles", task.role)
    used = network.network(spec, task.role)
    mounted = list(volumes.volumes(spec, task.role))
    container = _container(spec, task.role, used, mounted, context, job_name)
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [container.value]}
    origins: dict[Pointer, Pointer] = {(): at, **moved(container.origins, ("containers", 0))}
    pod |= {field: role[field] for field in _FROM_ROLE if role.get(field)}
    origins |= _add_from_job(pod, spec)
    if found := security.of_pod(role, context):
        pod["securityContext"] = found
        origins[("securityContext",)] = (*at, "securityContext")
    if affinity := _affinity(task, spec, job_name):
        pod["affinity"] = affinity
        origins[("affinity",)] = (*at, "spread")
    if mounted:
        pod["volumes"] = [{"name": each.mount["name"], **each.source} for each in mounted]
        origins |= _volume_origins(mounted)
    if spec["framework"] == "mpi" and task.role == "master" and "worker" in spec["roles"]:
        _add_hostfile(pod, spec)
    annotated = network.annotations(used)
    metadata = {"metadata": {"annotations": annotated}} if annotated else {}
    annotation_origins = moved(network.annotation_origins(used), ("metadata",))
    value = {**metadata, "spec": pod}
    return Built(value, {(): at, **annotation_origins, **moved(origins, ("spec",))})


def _add_from_job(pod: dict[str, Any], spec: Mapping[str, Any]) -> dict[Pointer, Pointer]:
    """What all pods of the job have in common."""
    common = [field for field in _FROM_JOB if field in spec]
    pod |= {field: spec[field] for field in common}
    origins: dict[Pointer, Pointer] = {(field,): ("spec", field) for field in common}
    secrets: Pointer = ("imagePullSecrets",)
    if spec.get("imagePullSecrets"):
        pod["imagePullSecrets"] = [{"name": name} for name in spec["imagePullSecrets"]]
    for index, _ in enumerate(spec.get("imagePullSecrets", ())):
        origins |= {(*secrets, index, *part): ("spec", *secrets, index) for part in ((), ("name",))}
    return origins


def _container(
    spec: Mapping[str, Any],
    name: str,
    used: Network | None,
    mounted: list[Volume],
    context: Context,
    job_name: str | None,
) -> Built:
    role, at = spec["roles"][name], ("spec", "roles", name)
    value: dict[str, Any] = {"name": CONTAINER}
    origins: dict[Pointer, Pointer] = {(): at, ("image",): (*at, "image") if "image" in role else ("spec", "image")}
    if image := role.get("image", spec.get("image")):
        value["image"] = image
    value |= {key: list(role[key]) for key in ("command", "args") if key in role}
    if "elastic" in spec and name == "worker" and job_name is None and "command" in role:
        value["command"] = variables.rendezvous(value["command"])
        before = len(value["command"]) - len(role["command"])
        for index in range(len(value["command"])):
            moved_to = (*at, "command", index - before) if index >= before else (*at, "command")
            origins[("command", index)] = moved_to
    _add_environment(value, origins, role, [*variables.variables(spec, name, job_name), *network.variables(used)], at)
    _add_resources(value, origins, role, network.devices(used, role, context), at)
    if ports := _ports(spec, name):
        value["ports"] = ports
    if found := security.of_container(role, context, network.capabilities(used, context)):
        value["securityContext"] = found
        origins |= _security_origins(role, used, at)
    if mounted:
        value["volumeMounts"] = [dict(each.mount) for each in mounted]
        origins |= {("volumeMounts", index): each.origin for index, each in enumerate(mounted)}
    return Built(value, origins)


def _security_origins(role: Mapping[str, Any], used: Network | None, at: Pointer) -> dict[Pointer, Pointer]:
    found: dict[Pointer, Pointer] = {("securityContext",): (*at, "securityContext")}
    if used is not None and used.is_rdma and "capabilities" not in role.get("securityContext", {}):
        found[("securityContext", "capabilities")] = used.at
    return found


def _add_environment(
    value: dict[str, Any],
    origins: dict[Pointer, Pointer],
    role: Mapping[str, Any],
    more: list[Variable],
    at: Pointer,
) -> None:
    """The role's variables, and then those that Basalt adds and the role does not set itself."""
    own = role.get("env", {})
    every = [Variable(name, text, (*at, "env", name)) for name, text in own.items()]
    every += [each for each in more if each.name not in own]
    if not every:
        return
    value["env"] = [{"name": each.name, "value": each.value} for each in every]
    for index, each in enumerate(every):
        origins[("env", index)] = origins[("env", index, "value")] = each.origin


def _add_resources(
    value: dict[str, Any],
    origins: dict[Pointer, Pointer],
    role: Mapping[str, Any],
    devices: tuple[dict[str, Any], Pointer],
    at: Pointer,
) -> None:
    amounts, origin = devices
    every = {**role.get("resources", {}), **amounts}
    if every:
        value["resources"] = {kind: as_written(every) for kind in ("requests", "limits")}
    for kind in ("requests", "limits"):
        origins[("resources", kind)] = (*at, "resources")
        origins |= {("resources", kind, resource): origin for resource in amounts}


def _ports(spec: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The role's ports, and those that a Service of ray's plugin looks for by name where the plugin does not open
    them, because the head has a command of its own."""
    role = spec["roles"][name]
    found = [dict(each) for each in role.get("ports", ())]
    if spec["framework"] == "ray" and name == "head" and "command" in role:
        named = {each.get("name") for each in found}
        found += [{"name": port, "containerPort": n} for port, n in _RAY_PORTS.items() if port not in named]
    return found


def _affinity(task: Task, spec: Mapping[str, Any], job_name: str | None) -> dict[str, Any]:
    """Pods of the task on nodes of their own: parameter servers share a node's network otherwise."""
    is_server = spec["framework"] == "tensorflow" and task.role == "ps"
    spread = spec["roles"][task.role].get("spread", "preferred" if is_server and task.replicas > 1 else "none")
    if spread == "none":
        return {}
    labels = {"volcano.sh/task-spec": task.name, **({"volcano.sh/job-name": job_name} if job_name else {})}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    if spread == "required":
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def _volume_origins(mounted: list[Volume]) -> dict[Pointer, Pointer]:
    found: dict[Pointer, Pointer] = {}
    for index, each in enumerate(mounted):
        found[("volumes", index)] = each.origin
        found |= moved(each.parts, ("volumes", index))
    return found


def _add_hostfile(pod: dict[str, Any], spec: Mapping[str, Any]) -> None:
    """The workers with their slots, in a file that an init container writes: Volcano's plugin gives bare names."""
    (container,) = pod["containers"]
    slots = spec.get("mpi", {}).get("slots", variables.gpus(spec["roles"]["worker"]) or 1)
    folder, _, _ = variables.HOSTFILE.rpartition("/")
    mount = {"name": _HOSTFILE_VOLUME, "mountPath": folder}
    script = _HOSTFILE_SCRIPT.replace("{hostfile}", variables.HOSTFILE)
    writer: dict[str, Any] = {"name": _HOSTFILE_VOLUME}
    writer |= {field: container[field] for field in ("image",) if field in container}
    writer |= {"command": ["sh", "-c", script], "env": [{"name": "SLOTS", "value": str(slots)}]}
    amounts = container.get("resources", {}).get("requests", {})
    small = {name: amounts[name] for name in ("cpu", "memory") if name in amounts}
    if small:
        writer["resources"] = {"requests": small, "limits": dict(small)}
    if "securityContext" in container:
        writer["securityContext"] = container["securityContext"]
    pod["initContainers"] = [{**writer, "volumeMounts": [mount]}]
    container["volumeMounts"] = [*container.get("volumeMounts", ()), {**mount, "readOnly": True}]
    pod["volumes"] = [*pod.get("volumes", ()), {"name": _HOSTFILE_VOLUME, "emptyDir": {"sizeLimit": "16Mi"}}]
