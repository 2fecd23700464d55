"""Whether a team's jobs get through what guards its namespaces: quotas, queues, priorities, policies."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
