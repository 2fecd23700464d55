"""The environment variables that a framework wants beside those of Volcano's plugins."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from basalt.pointers import Pointer
from basalt.quantities import parse
from modules.jobs.context import Variable

RENDEZVOUS_PORT = 29400
HOSTFILE = "/etc/mpi/hostfile"
_GPU = re.compile(r"[^/]+/(?:gpu|gpu\.shared|mig-[\w.]+)")
_ALTERNATING = 2  # operations that TensorFlow runs side by side, each on all threads of the other setting


def variables(spec: Mapping[str, Any], role: str, job_name: str | None) -> Iterator[Variable]:
    """Those of a role's container; job_name is None where only the cluster will know it."""
    if "elastic" in spec and role == "worker":
        yield from _elastic(spec, job_name)
    elif spec["framework"] == "tensorflow":
        yield from _threads(spec["roles"][role], ("spec", "roles", role, "resources"))
    elif spec["framework"] == "mpi" and role == "master":
        yield from (Variable(name, HOSTFILE, ("spec", "framework")) for name in _HOSTFILE_OF)
        if "sshKeyFilePath" not in spec.get("mpi", {}):  # the keys are root's, and so are the ranks
            yield from (Variable(name, "1", ("spec", "framework")) for name in _AS_ROOT)
    elif spec["framework"] == "ray" and role not in ("head", "worker") and job_name is not None:
        yield Variable("RAY_ADDRESS", f"ray://{job_name}-head-svc:10001", ("spec", "framework"))
        yield Variable("RAY_API_SERVER_ADDRESS", f"http://{job_name}-head-svc:8265", ("spec", "framework"))


_HOSTFILE_OF = ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile")  # Open MPI 4, and 5
_AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")  # without both mpirun refuses to run as root


def _elastic(spec: Mapping[str, Any], job_name: str | None) -> Iterator[Variable]:
    """torchrun takes each of its options from PET_<OPTION> too (torch/distributed/argparse_util.py)."""
    elastic, worker = spec["elastic"], spec["roles"]["worker"]
    at: Pointer = ("spec", "elastic")
    yield Variable("PET_NNODES", f"{elastic['min']}:{elastic.get('max', worker['replicas'])}", at)
    yield Variable("PET_MAX_RESTARTS", str(elastic.get("maxRestarts", 3)), (*at, "maxRestarts"))
    yield Variable("PET_RDZV_BACKEND", "c10d", at)
    if job_name is not None:
        yield Variable("PET_RDZV_ID", job_name, at)
        yield Variable("PET_RDZV_ENDPOINT", f"{job_name}-worker-0.{job_name}:{RENDEZVOUS_PORT}", at)
    if gpus(worker):
        yield Variable("PET_NPROC_PER_NODE", "gpu", ("spec", "roles", "worker", "resources"))


def rendezvous(command: list[str]) -> list[str]:
    """The command with the first worker's address, which a CronJob's job learns from Volcano's plugin svc."""
    script = (
        'export PET_RDZV_ID="${HOSTNAME%-worker-*}" '
        f'PET_RDZV_ENDPOINT="${{VC_WORKER_HOSTS%%,*}}:{RENDEZVOUS_PORT}"; exec "$@"'
    )
    return ["sh", "-c", script, "sh", *command]


def gpus(role: Mapping[str, Any]) -> int:
    """How many GPUs, or slices of some, each pod of the role has."""
    amounts = (parse(amount) for name, amount in role.get("resources", {}).items() if _GPU.fullmatch(name))
    return int(sum(amount or 0 for amount in amounts))


def _threads(role: Mapping[str, Any], at: Pointer) -> Iterator[Variable]:
    """TensorFlow and OpenMP count the node's CPUs, not those that the pod may use."""
    limit = parse(role.get("resources", {}).get("cpu"))
    if not limit:
        return
    cpus = max(int(limit), 1)
    yield Variable("OMP_NUM_THREADS", str(cpus), (*at, "cpu"))
    yield Variable("TF_NUM_INTRAOP_THREADS", str(cpus), (*at, "cpu"))
    yield Variable("TF_NUM_INTEROP_THREADS", str(min(_ALTERNATING, cpus)), (*at, "cpu"))
