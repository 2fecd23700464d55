import os
import sys

# `python -m` looks for packages in the current folder first, whose modules/ may be anybody's.
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if os.path.abspath(sys.path[0]) == os.getcwd() != _HOME:
    del sys.path[0]

from basalt.start import main  # noqa: E402 (the path comes first)

sys.exit(main())
