"""A Pulumi program of its own that takes the network's tree, queues, a team and a job from Basalt: no Environment, and
no YAML. Every component is judged before it registers anything."""

import json
from pathlib import Path

import pulumi_basalt as basalt

# What `kubectl get nodes -o json` prints.
seed = Path(__file__).resolve().parents[3] / "stacks" / "seed"
nodes = json.loads((seed / "nodes.json").read_text(encoding="utf-8"))

network = basalt.Topology(
    "network",
    basalt.TopologyArgs(
        tiers=[
            basalt.TopologyTierArgs(name="rack", label="volcano.sh/rack"),
            basalt.TopologyTierArgs(name="leaf", label="volcano.sh/rack", pattern=r"^(s\d+-s\d+)-"),
        ],
        nodes=nodes,
    ),
)
priorities = basalt.Priorities(
    "priorities",
    {"low": basalt.PriorityArgs(value=1000, default=True), "high": basalt.PriorityArgs(value=1_000_000)},
)
queues = basalt.Queues(
    "queues",
    {
        "research": basalt.QueueArgs(
            capability={"cpu": 760, "memory": "7Ti", "nvidia.com/gpu": 64},
            deserved={"cpu": 760, "memory": "7Ti", "nvidia.com/gpu": 64},
        )
    },
    beside=[network],
)
vision = basalt.Team(
    "vision",
    basalt.TeamArgs(
        access=basalt.TeamAccessArgs(admin=["vision-leads"], edit=["vision-research"]),
        namespaces={
            "vision-train": basalt.TeamNamespaceArgs(
                quota={"cpu": 512, "memory": "4Ti", "nvidia.com/gpu": 48, "pods": 500},
                defaults={"cpu": 1, "memory": "2Gi"},
            )
        },
        queue=basalt.TeamQueueArgs(
            parent="research",
            deserved={"cpu": 456, "memory": "4Ti", "nvidia.com/gpu": 40},
            capability={"cpu": 760, "memory": "7Ti", "nvidia.com/gpu": 64},
        ),
        priorities=["low", "high"],
    ),
    beside=[queues, priorities],
)
basalt.TrainingJob(
    "allreduce",
    basalt.TrainingJobArgs(
        namespace="vision-train",
        framework="plain",
        image="registry.example.com/vision/allreduce:2.1.0",
        priority="high",
        topology=basalt.TrainingJobTopologyArgs(mode="hard", highest_tier="leaf"),
        roles={
            "worker": basalt.TrainingJobRoleArgs(
                replicas=6,
                command=["python", "-m", "allreduce"],
                resources={"cpu": 16, "memory": "128Gi", "nvidia.com/gpu": 4},
                shared_memory="32Gi",
            )
        },
        volumes=[basalt.TrainingJobVolumeArgs(name="checkpoints", mount_path="/checkpoints", claim="allreduce")],
        ttl_after_finished="24h",
    ),
    beside=[vision],
)
