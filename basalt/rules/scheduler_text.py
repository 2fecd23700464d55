"""Whether volcano-scheduler.conf says what Volcano reads: its keys, names and types."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
