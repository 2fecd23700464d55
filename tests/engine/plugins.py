"""The engine with a provider: the real one where it is installed, else the stand-in."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from pulumi.automation import PulumiCommand

from tests.engine import stand_in
from tests.engine.stacks import Engine
from tests.sandbox.conftest import ROOT
from tools.engine import programs

_PLUGIN = "pulumi-resource-kubernetes"
_SCRIPT = """\
#!/bin/sh
PYTHONPATH='{root}' exec '{python}' -m {module} "$@"
"""


def engine(folder: Path, progress: Callable[[str], None]) -> tuple[Engine, str]:
    """The engine, built on its first use, and in words which provider it has; the stand-in is put into the folder.
    Refusal where the engine cannot be built."""
    root = programs.engine(progress)
    if installed := shutil.which(_PLUGIN):
        return Engine(PulumiCommand(str(root)), Path(installed).parent), installed
    path = folder / "provider" / _PLUGIN
    path.parent.mkdir()
    path.write_text(_SCRIPT.format(root=ROOT, python=sys.executable, module=stand_in.__name__), encoding="utf-8")
    path.chmod(0o755)
    return Engine(PulumiCommand(str(root)), path.parent), f"a stand-in for {_PLUGIN}, which is not on the PATH"
