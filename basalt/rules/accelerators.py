"""The drivers and device plugins of GPUs and NICs, and what they offer under which name."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
