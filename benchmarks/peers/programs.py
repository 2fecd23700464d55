"""The programs that Basalt is compared with, built or installed as the lock files here say, once, into folders of the
user's cache that are named after these."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from basalt.sandbox import go_programs

Refusal = go_programs.Refusal
HERE = Path(__file__).resolve().parent
# What is built is what go.sum says, by the Go that is there.
_GO = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}


def go(name: str, package: str) -> Path:
    """The command of that package, built. Refusal, in one line, where it cannot be had; so too below."""

    def build(folder: Path) -> None:
        go_programs.build(HERE / name, package, folder / name, "-ldflags", "-s -w", environment=_GO)

    return _once(name, build, (package,)) / name


def python(name: str) -> Path:
    """The interpreter of a virtual environment with the packages that are locked."""

    def install(folder: Path) -> None:
        _run(name, [sys.executable, "-m", "venv", "--symlinks", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        _run(name, [*pip, "install", "--require-hashes", "-r", str(HERE / name / "requirements.txt")])

    return _once(name, install, sys.version_info[:3]) / "bin" / "python"


def node(name: str) -> Path:
    """The folder node_modules with the packages that are locked."""

    def install(folder: Path) -> None:
        for lock in (HERE / name).glob("package*.json"):
            shutil.copy(lock, folder)
        _run(name, [found("npm"), "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"], folder)

    return _once(name, install, "npm ci") / "node_modules"


def found(command: str) -> str:
    """The command on the PATH, with its folder."""
    if (path := shutil.which(command)) is None:
        raise Refusal(f"{command} is not on the PATH")
    return path


def _once(name: str, make: Callable[[Path], None], recipe: object) -> Path:
    locks = sorted(each for each in (HERE / name).iterdir() if each.is_file())
    target = go_programs.cache() / "peers" / f"{name}-{go_programs.fingerprint(recipe, locks)}"
    if not target.exists():
        print(f"{name}: made once, into {target}", file=sys.stderr, flush=True)
    return go_programs.once(target, make)


def _run(name: str, command: list[str], folder: Path = HERE) -> None:
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        said = (run.stderr or run.stdout).strip().splitlines() or [f"exit code {run.returncode}"]
        raise Refusal(f"{name} cannot be had: {said[-1]}")


_MODULES = {  # by folder: what the comparison is with, and the name it is pinned by
    "helm": ("Helm", "helm.sh/helm/v4"),
    "jsonnet": ("go-jsonnet", "github.com/google/go-jsonnet"),
    "kcl": ("KCL", "kcl-lib"),
    "cdk8s_node": ("cdk8s", "cdk8s"),
    "cdk8s_python": ("cdk8s for Python", "cdk8s"),
    "kustomize": ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5"),
    "kubeconform": ("kubeconform", "github.com/yannh/kubeconform"),
}


def versions() -> dict[str, str]:
    """The version of each, as it is pinned."""
    found = {}
    for folder, (title, module) in _MODULES.items():
        texts = (path.read_text(encoding="utf-8") for path in (HERE / folder).iterdir() if path.suffix != ".sum")
        pin = re.compile(rf'(?<![\w/-]){re.escape(module)}"?(?: v|==|: ")(\d[\w.]*)')
        found[title] = next(match[1] for match in map(pin.search, texts) if match)
    return found
