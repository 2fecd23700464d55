"""The tasks of a job: their names, numbers, partitions and dependencies."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
