"""The policies of both deschedulers, and whether they leave gangs whole."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
