"""The volumes of a job, as Volcano mounts them into every task."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
