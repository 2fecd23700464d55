"""The rules. Each is a claim that holds when all is well: one short function from the index to the places where it
does not, its page in pages/<rule>.md, its cases in tests/cases/<rule>.yaml. Rules never see each other.
"""

from basalt.rules import (
    accelerators,
    delivery,
    descheduler,
    identity,
    inputs,
    job_pods,
    job_topology,
    jobs,
    kubernetes,
    metrics,
    plans,
    priorities,
    queues,
    scheduler,
    tenancy,
    topology,
    verdicts,
)
from basalt.rules.rule import Rule

FAMILIES: dict[str, tuple[Rule, ...]] = {
    "Input": inputs.RULES,
    "Kubernetes objects": kubernetes.RULES,
    "Topology": topology.RULES,
    "Jobs and topology": job_topology.RULES,
    "Queues": queues.RULES,
    "Volcano jobs, cron jobs, flows and pod groups": jobs.RULES,
    "Pods of training jobs": (*job_pods.RULES, *verdicts.RULES),
    "Tenancy": tenancy.RULES,
    "Priorities": priorities.RULES,
    "Scheduler configuration": scheduler.RULES,
    "Descheduler": descheduler.RULES,
    "Accelerators": accelerators.RULES,
    "Identity": identity.RULES,
    "Metrics": metrics.RULES,
    "Delivery": delivery.RULES,
    "Plan": plans.RULES,
}

RULES: dict[str, Rule] = {rule.name: rule for family in FAMILIES.values() for rule in family}
