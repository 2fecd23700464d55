"""The plugins of a job: what they are given, and what the job must have for them."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
