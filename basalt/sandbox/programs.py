"""The sandbox's programs: pinned by the Go modules in tools/sandbox, kept in a folder of the cache that is named after
them. Nothing of Go is needed once they are there.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from basalt.sandbox import go_programs
from basalt.sandbox.go_programs import Refusal

_HERE = Path(__file__).resolve().parent
_INSTALLED = _HERE / "modules"  # where a wheel has them; in a checkout they stand in tools/
_MODULES = _INSTALLED if _INSTALLED.is_dir() else _HERE.parents[1] / "tools" / "sandbox"
KUBERNETES = "v1.34.4"
VOLCANO = "v1.14.1"
_STAMP = {"gitVersion": KUBERNETES, "gitMajor": "1", "gitMinor": "34", "gitTreeState": "clean"}
_PROGRAMS = {  # of the module, each with its package
    "control_plane": {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "vc-scheduler": "volcano.sh/volcano/cmd/scheduler",
        "vc-controller-manager": "volcano.sh/volcano/cmd/controller-manager",
        "vc-webhook-manager": "volcano.sh/volcano/cmd/webhook-manager",
    },
    "kwok": {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
}
_FILES = {  # what else is taken from the modules: the file here, the module, and the files there
    "volcano.yaml": ("control_plane", "volcano.sh/volcano", ("installer/volcano-development.yaml",)),
    "stages.yaml": ("kwok", "sigs.k8s.io/kwok", (
        "kustomize/stage/node/fast/node-initialize.yaml",
        "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "kustomize/stage/pod/fast/pod-ready.yaml",
        "kustomize/stage/pod/fast/pod-complete.yaml",
        "kustomize/stage/pod/fast/pod-delete.yaml",
        "kustomize/stage/volume/fast/pvc-provision.yaml",
        "kustomize/stage/volume/fast/pvc-delete.yaml",
        "kustomize/stage/volume/fast/pv-bind.yaml",
        "kustomize/stage/volume/fast/pv-delete.yaml",
    )),
    "storage-class.yaml": ("kwok", "sigs.k8s.io/kwok", ("kustomize/stage/volume/fast/storage-class.yaml",)),
}  # fmt: skip


class Programs(NamedTuple):
    """The folder that holds everything the sandbox starts from."""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / name)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def programs(progress: Callable[[str], None]) -> Programs:
    """The programs, built where they are not in the cache yet. Refusal where Go or a module is not to be had."""
    key = go_programs.fingerprint((_STAMP, _PROGRAMS, _FILES), sorted(_MODULES.glob("*/go.*")))
    target = go_programs.cache() / f"sandbox-{key}"
    return Programs(go_programs.once(target, lambda folder: _build(folder, progress)))


def _build(folder: Path, progress: Callable[[str], None]) -> None:
    if shutil.which("go") is None:
        raise Refusal("the sandbox is built from source once, which needs Go 1.26 or later: go is not on the PATH")
    steps = [(module, name, package) for module, built in _PROGRAMS.items() for name, package in built.items()]
    for number, (module, name, package) in enumerate(steps, 1):
        progress(f"building {name}, {number} of {len(steps)}; ten minutes in all, only this once")
        flags = " ".join(["-s", "-w", *(f"-X k8s.io/component-base/version.{key}={_STAMP[key]}" for key in _STAMP)])
        more = ("-pgo=off", "-ldflags", flags)
        go_programs.build(_MODULES / module, package, folder / name, *more, environment={"CGO_ENABLED": "0"})
    for name, (module, dependency, paths) in _FILES.items():
        source = go_programs.folder_of(_MODULES / module, dependency)
        texts = [(source / path).read_text(encoding="utf-8") for path in paths]
        (folder / name).write_text("\n---\n".join(texts), encoding="utf-8")
