"""Whether the parts of a scheduler configuration fit together, and the rest of the environment."""

from basalt.rules import scheduler_text
from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = (*scheduler_text.RULES,)
