"""How much input is read, and what stops the reading of a file."""

from basalt.loading.marks import Mark
from basalt.pointers import Pointer

DEPTH = 200  # levels of nesting
ALIAS_NODES = 1_000_000  # nodes that aliases may add to one document
YAML_BYTES = 64 * 1024**2
INVENTORY_BYTES = 2 * 1024**3
ONE_KEY = "keep one of them: readers take one of the two, and not all the same"


class Fault(Exception):
    """What is wrong with a text: the rule, where, the fact and the way out. Raised where reading cannot go on."""

    def __init__(self, rule: str, mark: Mark, message: str, hint: str = "", pointer: Pointer = ()) -> None:
        super().__init__(message)
        self.rule = rule
        self.mark = mark
        self.message = message
        self.hint = hint
        self.pointer = pointer
