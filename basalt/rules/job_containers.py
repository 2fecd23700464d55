"""How the containers of training jobs fit what they are given: memory, launchers, threads, networks, images."""

from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
