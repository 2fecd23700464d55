"""How charts and objects reach the cluster: pinned, supported, and in an order that works."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
