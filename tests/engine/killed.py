"""An `up` whose engine is killed when so many objects are there, in a process of its own: what Pulumi's threads say
when their engine is gone goes with it. Prints the processes that the engine had started.

python -m tests.engine.killed COUNT ROOT PROVIDER FOLDER KUBECONFIG
"""

import os
import sys
from pathlib import Path

import psutil
from pulumi.automation import CommandError, EngineEvent, PulumiCommand

from pulumi_basalt import program
from tests.engine.stacks import FAST, Engine


def main() -> None:
    count, root, provider, folder, kubeconfig = sys.argv[1:]
    command = PulumiCommand(root)
    stack = Engine(command, Path(provider)).stack("seed", Path(folder), program.main, kubeconfig, **FAST)
    left = int(count)

    def heard(event: EngineEvent) -> None:
        nonlocal left
        if event.res_outputs_event and event.res_outputs_event.metadata.type.startswith("kubernetes:"):
            left -= 1
            if left == 0:
                (cli,) = (each for each in psutil.Process().children() if each.exe() == command.command)
                started = [each.pid for each in cli.children(recursive=True)]
                cli.kill()
                print(*started, flush=True)

    try:
        stack.up(on_event=heard)
    except CommandError as error:
        os._exit(0 if "code: -9" in str(error) else 1)
    os._exit(1)


if __name__ == "__main__":
    main()
