"""What starts jobs, and what jobs refer to: cron schedules, flows, templates, priorities."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
