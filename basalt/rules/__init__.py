"""The rules. Each is a claim that holds when all is well: one short function from the index to the places where it
does not, its page in pages/<rule>.md, its cases in tests/cases/<rule>.yaml. Rules never see each other.
"""

from basalt.rules import (
    descheduler,
    inputs,
    job_topology,
    jobs,
    kubernetes,
    priorities,
    queues,
    scheduler,
    tenancy,
    topology,
)
from basalt.rules.rule import Rule

FAMILIES: dict[str, tuple[Rule, ...]] = {
    "Input": inputs.RULES,
    "Kubernetes objects": kubernetes.RULES,
    "Topology": topology.RULES,
    "Jobs and topology": job_topology.RULES,
    "Queues": queues.RULES,
    "Volcano jobs, cron jobs, flows and pod groups": jobs.RULES,
    "Tenancy": tenancy.RULES,
    "Priorities": priorities.RULES,
    "Scheduler configuration": scheduler.RULES,
    "Descheduler": descheduler.RULES,
}

RULES: dict[str, Rule] = {rule.name: rule for family in FAMILIES.values() for rule in family}
