"""Volcano's job plugins that a framework needs, with their arguments."""

from collections.abc import Mapping
from typing import Any

from basalt.pointers import Pointer
from modules.jobs.pods import CONTAINER

_SSH_PORT = 22
# svc comes with every framework that Volcano's webhook adds it to, ssh with mpi; index reads VC_TASK_INDEX (env) and
# VC_WORKER_NUM (svc).
_PLUGINS: dict[str, dict[str, list[str]]] = {
    "pytorch": {"env": [], "pytorch": ["--master=master", "--worker=worker", "--port=23456"], "svc": []},
    "tensorflow": {"env": [], "svc": [], "tensorflow": []},
    "mpi": {"env": [], "mpi": ["--master=master", "--worker=worker", "--port=22"], "ssh": [], "svc": []},
    "ray": {"ray": [], "svc": []},
    "index": {"env": [], "svc": []},
    "plain": {},
}
# The first worker holds the rendezvous, under a name that must be known before it is ready.
_ELASTIC: dict[str, list[str]] = {"env": [], "svc": ["--publish-not-ready-addresses"]}


def plugins(spec: Mapping[str, Any]) -> dict[str, list[str]]:
    framework = spec["framework"]
    found = _ELASTIC if "elastic" in spec else _PLUGINS[framework]
    made = {name: list(arguments) for name, arguments in found.items()}
    if framework == "mpi":
        made |= _of_mpi(spec.get("mpi", {}))
    elif framework == "ray":
        made["ray"] = _of_ray(spec["roles"])
    return made


def _of_mpi(declared: Mapping[str, Any]) -> dict[str, list[str]]:
    port = declared.get("port", _SSH_PORT)
    ssh = [f"--ssh-key-file-path={declared['sshKeyFilePath']}"] if "sshKeyFilePath" in declared else []
    ssh += [f"--ssh-port={port}"] if port != _SSH_PORT else []
    return {"mpi": ["--master=master", "--worker=worker", f"--port={port}"], "ssh": ssh}


def _of_ray(roles: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The plugin starts ray in the containers of these names, in place of their own command: only where they have
    none."""
    started = [role for role in ("head", "worker") if "command" not in roles.get(role, {})]
    return [f"--{role}Container={CONTAINER}" for role in started]


def origins(spec: Mapping[str, Any]) -> dict[Pointer, Pointer]:
    if "elastic" in spec:
        return {("plugins",): ("spec", "elastic")}
    return {("plugins", name): ("spec", "mpi") for name in ("mpi", "ssh")} if "mpi" in spec else {}
