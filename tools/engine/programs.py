"""The Pulumi CLI, built from the Go module in this folder into a folder of the user's cache that is named after it."""

import shutil
from collections.abc import Callable
from pathlib import Path

from basalt.sandbox import go_programs
from basalt.sandbox.go_programs import Refusal

VERSION = "v3.259.0"
_MODULE = Path(__file__).resolve().parent
_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
_FLAGS = ("-ldflags", f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={VERSION}")
# What is built is what go.sum says, by the Go that is there.
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}


def engine(progress: Callable[[str], None]) -> Path:
    """The folder whose bin/pulumi is the CLI, built on its first use. Refusal, in one line, where Go is missing or
    something that it is made from cannot be had."""
    key = go_programs.fingerprint((_PACKAGE, _FLAGS), sorted(_MODULE.glob("go.*")))
    return go_programs.once(go_programs.cache() / f"engine-{key}", lambda folder: _build(folder, progress))


def _build(folder: Path, progress: Callable[[str], None]) -> None:
    if shutil.which("go") is None:
        raise Refusal("the Pulumi CLI is built from source once, which needs Go 1.26 or later: go is not on the PATH")
    progress(f"building the Pulumi CLI {VERSION}; five minutes, only this once")
    (folder / "bin").mkdir()
    go_programs.build(_MODULE, _PACKAGE, folder / "bin" / "pulumi", *_FLAGS, environment=_ENVIRONMENT)
