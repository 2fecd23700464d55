"""The policies of a job: which event or exit code leads to which action."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
