"""What the Pulumi engine starts. It runs this folder as a program, so the folder around it is not among Python's."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from policies import pack

pack.serve()
