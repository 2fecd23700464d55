"""The names that a job leads to: of pods, Services, volumes, and of the scheduler it asks for."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
