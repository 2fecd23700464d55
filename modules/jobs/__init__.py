"""Volcano's Jobs, CronJobs, JobTemplates and JobFlows from TrainingJobs."""

from modules.jobs.context import Context
from modules.jobs.durations import seconds
from modules.jobs.filling import filled
from modules.jobs.flows import MEMBERS, Flow, flow, flow_of
from modules.jobs.job import job
from modules.jobs.network import is_memlock_raised, rdma_resource

__all__ = [
    "MEMBERS",
    "Context",
    "Flow",
    "filled",
    "flow",
    "flow_of",
    "is_memlock_raised",
    "job",
    "rdma_resource",
    "seconds",
]
