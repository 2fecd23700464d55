"""What the pods of training jobs ask of nodes and queues."""

from basalt.rules import job_containers
from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = (*job_containers.RULES,)
