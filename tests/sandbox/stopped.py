"""`basalt` whose process gets a signal at its COUNT-th request that writes: before it is sent, or once it is answered.

python -m tests.sandbox.stopped SIGKILL|SIGINT COUNT before|after ARGUMENT...
"""

import itertools
import os
import signal
import sys
from typing import Any

from basalt import cli
from basalt.cluster.connection import Cluster


def main() -> int:
    name, count, moment, *arguments = sys.argv[1:]
    numbers = itertools.count(1)  # whose next() is one step, whatever thread takes it
    answer = Cluster._answer

    def stopped(self: Cluster, method: str, url: str, headers: dict[str, str], body: Any) -> bytes:
        is_due = method == "PATCH" and "dryRun" not in url and next(numbers) == int(count)
        if is_due and moment == "before":
            os.kill(os.getpid(), signal.Signals[name])
        found = answer(self, method, url, headers, body)
        if is_due and moment == "after":
            os.kill(os.getpid(), signal.Signals[name])
        return found

    Cluster._answer = stopped  # type: ignore[method-assign]
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
