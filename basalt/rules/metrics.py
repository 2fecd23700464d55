"""Who produces which metric, who reads it, and whether the two meet."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
