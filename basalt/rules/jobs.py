"""Volcano jobs, and the templates that jobs are made from: a family in several files."""

from basalt.rules import flows, job_names, job_plugins, job_policies, job_tasks, job_volumes
from basalt.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    *job_tasks.RULES,
    *job_policies.RULES,
    *job_plugins.RULES,
    *job_names.RULES,
    *job_volumes.RULES,
    *flows.RULES,
)
