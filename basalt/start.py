"""Where the process begins. Little is imported before Ctrl-C is minded: the imports are most of a short run's time."""

import sys


def main() -> int:
    """Runs the command line; returns the exit code. Never raises."""
    try:
        from basalt import cli  # late, see above
    except KeyboardInterrupt:
        sys.stderr.write("basalt: interrupted\n")
        return 130
    return cli.main()
