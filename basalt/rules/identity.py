"""Who logs in and how: Dex, the API server's authentication, and the groups of the provider."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
