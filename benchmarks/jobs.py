"""What `basalt check` costs on raw Volcano Jobs, as a ratio to loading them with PyYAML's C loader in the same run.

Each figure is the median over fresh processes; the loader's is without the start of its interpreter, Basalt's with it.
Exit code 1 where the aim is missed.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.processes import Cost, median, run

AIM = 4.0  # times the CPU time of yaml.CSafeLoader
_QUEUES = 20
_SHAPES = (("pytorch", 8, 8), ("tensorflow", 4, 4), ("mpi", 2, 8), (None, 16, 1))  # plugin, workers, GPUs of each
_TASKS = {"pytorch": ("master", "worker"), "tensorflow": ("ps", "worker"), "mpi": ("master", "worker")}


def job(number: int) -> dict[str, Any]:
    """One of several shapes, as people write them: two tasks with policies, resources, volumes and environment."""
    plugin, workers, gpus = _SHAPES[number % len(_SHAPES)]
    names = _TASKS.get(plugin or "", ("worker",))
    tasks = [_task(name, 1 if name != "worker" else workers, gpus, number) for name in names]
    plugins: dict[str, list[str]] = {
        "env": [],
        "svc": [],
        **({plugin: []} if plugin else {}),
        **({"ssh": []} if plugin == "mpi" else {}),
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": f"train-{number}", "namespace": f"team-{number % _QUEUES}", "labels": {"app": "bench"}},
        "spec": {
            "schedulerName": "volcano",
            "queue": f"team-{number % _QUEUES}",
            "minAvailable": sum(task["replicas"] for task in tasks),
            "maxRetry": 3,
            "ttlSecondsAfterFinished": 86400,
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
            "plugins": plugins,
            "policies": [
                {"event": "PodEvicted", "action": "RestartJob"},
                {"event": "PodFailed", "action": "RestartJob"},
            ],
            "tasks": tasks,
        },
    }


def _task(name: str, replicas: int, gpus: int, number: int) -> dict[str, Any]:
    amounts = {"cpu": 16, "memory": "128Gi", "nvidia.com/gpu": gpus}
    container = {
        "name": "main",
        "image": f"registry.example.com/team/train:1.{number}.0",
        "command": ["sh", "-c", "exec python train.py --rank $VC_TASK_INDEX"],
        "env": [{"name": "EPOCHS", "value": "90"}, {"name": "NCCL_DEBUG", "value": "WARN"}],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "data", "mountPath": "/data"}],
    }
    volumes = [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}},
    ]
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": replicas,
        "maxRetry": 3,
        "template": {"metadata": {"labels": {"role": name}}, "spec": pod},
    }


def queue(number: int) -> dict[str, Any]:
    metadata = {"name": f"team-{number}"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": metadata, "spec": {"weight": 1}}


def write(path: Path, jobs: int) -> None:
    documents = [*map(queue, range(_QUEUES)), *map(job, range(jobs))]
    with path.open("w", encoding="utf-8") as file:
        yaml.dump_all(documents, file, Dumper=yaml.CSafeDumper, sort_keys=False)


def measure(jobs: int, runs: int, folder: Path) -> tuple[Cost, Cost]:
    """The median cost of loading so many jobs, and of checking them, in turn."""
    write(folder / "jobs.yaml", jobs)
    start = [sys.executable, "-c", "import yaml"]
    load = [sys.executable, "-c", "import yaml; list(yaml.load_all(open('jobs.yaml'), yaml.CSafeLoader))"]
    check = [sys.executable, "-m", "basalt", "check", "jobs.yaml", "--quiet"]
    reference, own = [], []
    for _ in range(runs):
        idle, loaded = run(start, folder).cpu, run(load, folder)
        reference.append(Cost(loaded.cpu - idle, loaded.memory))
        own.append(run(check, folder))
    return median(reference), median(own)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reference, own = measure(options.jobs, options.runs, Path(folder))
    ratio = own.cpu / reference.cpu
    print("| jobs | CSafeLoader CPU s | basalt check CPU s | ratio | peak MiB |")
    print("|---|---|---|---|---|")
    print(f"| {options.jobs} | {reference.cpu:.2f} | {own.cpu:.2f} | {ratio:.2f} | {own.memory:.0f} |")
    return int(ratio > AIM)


if __name__ == "__main__":
    sys.exit(main())
