"""The components for programs of one's own, under Pulumi's mocks."""

import dataclasses
import json
import runpy
from pathlib import Path
from typing import Any

import pulumi
import pytest

import pulumi_basalt as basalt
from basalt.api.schemas import document_shape
from basalt.deriving import _SWITCHED
from pulumi_basalt import arguments, components, writing
from tests.mock_engine import Engine, plain
from tests.test_program import stack
from tools.arguments import generate

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "docs" / "pulumi").glob("*/__main__.py"))
_NODES = json.loads((ROOT / "stacks" / "seed" / "nodes.json").read_bytes())
_RACK = basalt.TopologyTierArgs(name="rack", label="volcano.sh/rack")


def run(program: Any) -> Engine:
    return Engine().run(program)


def refused(program: Any) -> tuple[str, Engine]:
    """What the program is stopped with, and what was registered nevertheless."""
    engine = Engine()
    with pytest.raises(pulumi.RunError) as raised:
        engine.run(program)
    return str(raised.value), engine


# the arguments


def test_the_classes_of_the_arguments_are_current() -> None:
    assert generate.FILE.read_text(encoding="utf-8") == generate.text(), "run `make arguments`"


def test_every_field_of_the_documents_is_an_argument() -> None:
    """The names that classes give to documents are those that the schemas know, all of them."""
    for kind, args in (("Team", arguments.TeamArgs), ("TrainingJob", arguments.TrainingJobArgs)):
        schema = document_shape(kind).at(("spec",))
        metadata = document_shape(kind).at(("metadata",))
        assert schema is not None
        assert metadata is not None
        known = {field.metadata["named"] for field in dataclasses.fields(args)}
        assert known == set(schema["properties"]) | set(metadata["properties"]) - {"name"}


def test_arguments_say_what_the_document_says() -> None:
    job = basalt.TrainingJobArgs(
        namespace="a",
        framework="plain",
        roles={"worker": basalt.TrainingJobRoleArgs(replicas=1, shared_memory="1Gi", resources={"cpu": 1})},
        topology=basalt.TrainingJobTopologyArgs(highest_tier=2),
        retries=None,
        patch={"spec": {"maxRetry": None}},
    )

    assert writing.document(job) == {
        "namespace": "a",
        "framework": "plain",
        "roles": {"worker": {"replicas": 1, "sharedMemory": "1Gi", "resources": {"cpu": 1}}},
        "topology": {"highestTier": 2},
        "patch": {"spec": {"maxRetry": None}},  # a null of a patch says something
    }
    assert writing.argument(job, ("roles", "worker", "sharedMemory")) == '.roles["worker"].shared_memory'
    assert writing.argument(job, ("image",)) == ".image"


def test_an_output_is_refused() -> None:
    told, engine = refused(
        lambda: basalt.Queues("q", {"a": basalt.QueueArgs(parent=pulumi.Output.from_input("b"))})  # type: ignore[arg-type]
    )

    assert told == (
        "Queues q: args['a'].parent is an Output, whose value is known too late for the rules; give a plain value"
    )
    assert engine.registered == []


# the components


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.parent.name))
def test_the_programs_in_the_docs_register(example: Path) -> None:
    engine = run(lambda: runpy.run_path(str(example)))

    assert [each.name for each in engine.registered if not each.is_object] == [
        "network", "priorities", "queues", "vision", "allreduce",
    ]  # fmt: skip
    kinds = {each.inputs["kind"] for each in engine.objects}
    assert kinds >= {"HyperNode", "PriorityClass", "Queue", "Namespace", "ResourceQuota", "Job"}
    assert all(each.dependencies <= engine.by_name.keys() for each in engine.objects)
    behind = engine.behind("allreduce/job.batch.volcano.sh/vision-train/allreduce")
    assert behind >= {
        "queues/queue.scheduling.volcano.sh/research",
        "vision/namespace/vision-train",
        "priorities/priorityclass.scheduling.k8s.io/high",
        "network/hypernode.topology.volcano.sh/s0-s1",
    }


def test_every_module_is_a_component() -> None:
    found = {module for each in vars(components).values() for module in getattr(each, "modules", ())}

    assert found == {*_SWITCHED, "scheduler", "priorities", "queues", "topology", "tenancy", "jobs"}


def test_a_component_makes_what_the_environment_makes() -> None:
    tiers = [
        _RACK,
        basalt.TopologyTierArgs(name="leaf", label="volcano.sh/rack", pattern=r"^(s\d+-s\d+)-"),
        basalt.TopologyTierArgs(name="spine", label="volcano.sh/rack", pattern=r"^(s\d+)-"),
    ]
    engine = run(lambda: basalt.Topology("network", basalt.TopologyArgs(tiers=tiers, nodes=_NODES["items"])))
    seed = stack("seed")

    made = {each.identity: plain(each.inputs) for each in engine.objects}
    assert made == {each.identity: plain(each.inputs) for each in seed.objects if each.inputs["kind"] == "HyperNode"}


@pytest.mark.parametrize(
    ("make", "module"),
    [
        (lambda: basalt.Gpu("c", basalt.GpuArgs()), "gpu-operator"),
        (lambda: basalt.Network("c", basalt.NetworkArgs()), "network-operator"),
        (lambda: basalt.Metrics("c", basalt.MetricsArgs()), "kube-prometheus-stack"),
        (lambda: basalt.Descheduler("c", basalt.DeschedulerArgs()), "descheduler"),
        (lambda: basalt.Scheduler("c", basalt.SchedulerArgs(delivery=basalt.DeliveryArgs())), "volcano"),
    ],
)
def test_parts_with_charts_stand_alone(make: Any, module: str) -> None:
    engine = run(make)

    assert module in {each.inputs.get("chart") for each in engine.objects}
    assert {each.parent for each in engine.objects} == {"c"}


def test_a_broken_rule_names_the_argument() -> None:
    queues = {
        "parent": basalt.QueueArgs(capability={"nvidia.com/gpu": 8}),
        "child": basalt.QueueArgs(parent="parent", capability={"nvidia.com/gpu": 16}),
    }
    told, engine = refused(lambda: basalt.Queues("q", queues))

    assert told.startswith("Queues q has errors, nothing of it is registered\n")
    assert 'Queues q: args["child"].capability["nvidia.com/gpu"]: Queue/child' in told
    assert "16" in told
    assert engine.registered == []


def test_a_wrong_form_names_the_argument() -> None:
    tiers = [_RACK, basalt.TopologyTierArgs(name="leaf", label="volcano.sh/rack", name_template="{leaf}")]
    told, _ = refused(lambda: basalt.Topology("t", basalt.TopologyArgs(tiers=tiers, nodes=_NODES)))

    assert told.splitlines()[1] == (
        'Topology t: args.tiers[1].name_template: Environment/t spec.topology.tiers[1].nameTemplate: "{leaf}" has '
        "braces around something else [document-matches-schema]"
    )


def test_a_node_without_a_tier_is_named() -> None:
    nodes: list[dict[str, Any]] = [
        {"metadata": {"name": "a", "labels": {"volcano.sh/rack": "r1"}}},
        {"metadata": {"name": "b"}},
    ]
    told, _ = refused(lambda: basalt.Topology("t", basalt.TopologyArgs(tiers=[_RACK], nodes=nodes)))

    assert "\nTopology t: args.nodes[1]" in told
    assert "[node-has-every-tier]" in told


def test_what_stands_beside_counts() -> None:
    """A queue above its parent is refused where the parent is known, be it another component's."""

    def program() -> None:
        parent = basalt.Queues("parents", {"research": basalt.QueueArgs(capability={"nvidia.com/gpu": 8})})
        child = basalt.TeamQueueArgs(parent="research", capability={"nvidia.com/gpu": 16})
        basalt.Team("vision", basalt.TeamArgs(queue=child), beside=[parent])

    told, _ = refused(program)
    assert 'Team vision: args.queue.capability["nvidia.com/gpu"]: ' in told


def test_what_no_component_says_is_unknown() -> None:
    """A job names a queue, a class and a namespace; that nobody declares them here proves nothing."""
    args = basalt.TrainingJobArgs(
        namespace="elsewhere",
        framework="plain",
        image="registry.example.com/a/b:1.0.0",
        queue="theirs",
        priority="high",
        roles={"worker": basalt.TrainingJobRoleArgs(replicas=2, resources={"cpu": 1, "memory": "1Gi"})},
    )
    engine = run(lambda: basalt.TrainingJob("job", args))

    assert [each.name for each in engine.objects] == ["job/job.batch.volcano.sh/elsewhere/job"]


def test_cluster_roles_belong_to_the_first_team() -> None:
    def program() -> None:
        one = basalt.Team("one", basalt.TeamArgs(access=basalt.TeamAccessArgs(edit=["a"])))
        basalt.Team("two", basalt.TeamArgs(access=basalt.TeamAccessArgs(edit=["b"])), beside=[one])

    engine = run(program)

    roles = [each for each in engine.objects if each.inputs["kind"] == "ClusterRole"]
    assert {each.parent for each in roles} == {"one"}
    assert len(roles) == 4
    bindings = [each for each in engine.objects if each.inputs["kind"] == "ClusterRoleBinding"]
    assert {each.parent for each in bindings} == {"one", "two"}
    assert all("one/clusterrole" in "".join(each.dependencies) for each in bindings)


def step(*after: str) -> basalt.TrainingJobArgs:
    return basalt.TrainingJobArgs(
        namespace="flows",
        framework="plain",
        image="registry.example.com/a/b:1.0.0",
        roles={"worker": basalt.TrainingJobRoleArgs(replicas=1, resources={"cpu": 1, "memory": "1Gi"})},
        flow=basalt.TrainingJobFlowArgs(name="nightly", after=after),
    )


def test_the_steps_of_a_flow_stand_together() -> None:
    told, _ = refused(lambda: basalt.TrainingJob("one", step()))
    engine = run(lambda: basalt.Jobs("nightly", {"one": step(), "two": step("one")}))

    assert told == "TrainingJob one: args.flow: the steps of a flow stand together; use Jobs"
    flow = "nightly/jobflow.flow.volcano.sh/flows/nightly"
    assert len(engine.by_name[flow].dependencies) == 2


def test_manifests_are_judged_like_everything_else() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
    engine = run(lambda: basalt.Manifests("m", [config]))
    told, _ = refused(lambda: basalt.Manifests("m", [config, {**config, "dato": {}}]))

    assert [(each.name, plain(each.inputs)) for each in engine.objects] == [("m/configmap/b/a", config)]
    assert "\nManifests m: args[1]" in told
    assert "did you mean data?" in told


def test_an_object_of_two_components_is_refused() -> None:
    def program() -> None:
        first = basalt.Queues("first", {"a": basalt.QueueArgs(weight=1)})
        basalt.Queues("second", {"a": basalt.QueueArgs(weight=2)}, beside=[first])

    told, engine = refused(program)

    assert told == "Queues second: Queue/a is declared already, by Queues first; nothing of it is registered"
    assert [each.name for each in engine.registered if each.name.startswith("second")] == []


def test_a_component_is_no_other_of_its_name() -> None:
    def program() -> None:
        first = basalt.Queues("same", {"a": basalt.QueueArgs(weight=1)})
        basalt.Queues("same", {"b": basalt.QueueArgs(weight=2)}, beside=[first])

    told, _ = refused(program)

    assert told == "Queues same: Queue/a is declared already, by Queues same; nothing of it is registered"


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
OF_BASALT = {"apiVersion": "basalt.dev/v1alpha1", "metadata": {"name": "a"}, "spec": {}}
OF_ENVIRONMENT = (
    "Manifests m: args[0] is a document of the kind Environment, no object; use the component of each of its parts: "
    "Queues, Priorities, Topology, Gpu, ..."
)
EVERY = (
    basalt.Scheduler, basalt.Priorities, basalt.Queues, basalt.Topology, basalt.Gpu, basalt.Network, basalt.Identity,
    basalt.Metrics, basalt.Descheduler, basalt.Team, basalt.Jobs, basalt.TrainingJob, basalt.Manifests,
)  # fmt: skip


@pytest.mark.parametrize("component", EVERY)
@pytest.mark.parametrize("args", [
    None, 5, True, "a: b", [5], (), object(), {1: 2}, {"a": 5}, {"a": object()}, arguments.DeliveryArgs(),
], ids=repr)  # fmt: skip
def test_arguments_of_any_type_are_taken_or_refused_by_name(component: Any, args: Any) -> None:
    if component is basalt.Manifests and args == ():
        return  # a list of none

    told, engine = refused(lambda: component("c", args))

    assert told.startswith(f"{component.__name__} c"), told
    assert "args" in told
    assert engine.registered == []


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: basalt.Topology("t", None), "Topology t: args takes TopologyArgs, this is None"),  # type: ignore[arg-type]
        (lambda: basalt.Queues("q", []), "Queues q: args takes a map of names to QueueArgs, this is a list"),  # type: ignore[arg-type]
        (lambda: basalt.Jobs("j", {"a": 5}), 'Jobs j: args["a"] takes TrainingJobArgs, this is an int'),  # type: ignore[dict-item]
        (lambda: basalt.Queues("q", {}, beside=None), "Queues q: beside takes a list of components, this is None"),
        (lambda: basalt.Queues("q", {}, beside=["a"]), "Queues q: beside[0] takes a component, this is a str"),
        (lambda: basalt.Manifests("m", {}), "Manifests m: args takes a list of objects, this is a dict"),  # type: ignore[arg-type]
        (lambda: basalt.Manifests("m", [{"kind": "List", "apiVersion": "v1", "items": [CONFIG]}]),
         "Manifests m: args[0] is a List; give its items"),
        (lambda: basalt.Manifests("m", [CONFIG, {**OF_BASALT, "kind": "Team"}]),
         "Manifests m: args[1] is a document of the kind Team, no object; use the component Team"),
        (lambda: basalt.Manifests("m", [{**OF_BASALT, "kind": "Environment"}]), OF_ENVIRONMENT),
        (lambda: basalt.Manifests("m", [{**CONFIG, "data": {"a": {1}}}]),
         "Manifests m: args[0]['data']['a'] is a set; give texts, numbers, lists and maps"),
        (lambda: basalt.Manifests("m", [{**CONFIG, "data": {5: "a"}}]),
         "Manifests m: args[0]['data'] has the key 5; keys are texts"),
    ],
)  # fmt: skip
def test_what_an_argument_may_be_is_said(make: Any, told: str) -> None:
    found, engine = refused(make)

    assert found == told
    assert engine.registered == []
