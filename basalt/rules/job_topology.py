"""Whether a job's networkTopology names a constraint that exists, and that the scheduler enforces."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
