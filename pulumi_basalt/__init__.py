"""Basalt for Pulumi: the program of an environment, and each module as a component for programs of one's own."""

from pulumi_basalt import arguments
from pulumi_basalt.arguments import *  # noqa: F403  # generated: one class for each map of the documents
from pulumi_basalt.components import (
    Descheduler,
    Gpu,
    Identity,
    Jobs,
    Manifests,
    Metrics,
    Network,
    Priorities,
    Queues,
    Scheduler,
    Team,
    Topology,
    TrainingJob,
)

__all__ = [  # noqa: PLE0604  # with the names of a list
    "Descheduler",
    "Gpu",
    "Identity",
    "Jobs",
    "Manifests",
    "Metrics",
    "Network",
    "Priorities",
    "Queues",
    "Scheduler",
    "Team",
    "Topology",
    "TrainingJob",
    *arguments.__all__,
]
