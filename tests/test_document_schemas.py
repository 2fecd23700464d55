"""The JSON Schemas of Basalt's documents: what they accept and reject, and that they explain every field."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from basalt.api.schemas import PARTS, document_schema

FOLDER = Path(__file__).parent.parent / "schemas" / "documents"
KINDS = ("Environment", "Team", "TrainingJob", "Guardrail")

# The documents of contract section 3; its {...} are filled in.
ENVIRONMENT = r"""
apiVersion: basalt.dev/v1alpha1
kind: Environment
metadata: {name: seed}
spec:
  extends: [../base]          # folders of documents read first, relative to this folder, inside the project
  kubernetes: {version: "1.34"}
  topology:
    nodeSelector: {}          # which nodes take part; default all
    unplaced: error           # error | allow: nodes without a tier's label
    members: exact            # exact: leaf HyperNodes name their nodes; label: they select by label
    tiers:                    # from the leaf up; the first is tier 1
      - {name: rack,  label: volcano.sh/rack}
      - {name: leaf,  label: volcano.sh/rack, pattern: '^(s\d+-s\d+)-'}   # first group = the domain's name
      - {name: spine, label: volcano.sh/rack, pattern: '^(s\d+)-'}
                              # a tier's nameTemplate: "{tier}-{domain}" where two tiers share domain names
  volcano:
    version: 1.15.1           # 1.13, 1.14 or 1.15
    scheduler:                # typed form of volcano-scheduler.conf; same field names as upstream. Left out: Basalt's
                              # own default, in which gangs, queue hierarchy and topology really take effect
      actions: [enqueue, allocate, backfill]
      tiers: [{plugins: [{name: priority}, {name: gang, enablePreemptable: false}]}]
      configurations: []
  priorities:                 # -> PriorityClass
    low: {value: 1000, default: true}
    high: {value: 1000000, preemption: Never}
  queues:                     # queues that are not a team's own; parent defaults to root
    research: {capability: {nvidia.com/gpu: 48}, deserved: {nvidia.com/gpu: 40}, guarantee: {}, weight: 1, priority: 0, reclaimable: true, parent: root}
  gpu: {}                     # each part documents its fields in its schema;
  network: {}                 # a part left out is not installed
  identity: {}
  metrics: {}
  descheduler: {}
  delivery: {engine: pulumi}  # pulumi | argocd | flux: who installs the charts
"""  # noqa: E501  the contract's own line
TEAM = """
apiVersion: basalt.dev/v1alpha1
kind: Team
metadata: {name: vision}
spec:
  access: {admin: [vision-leads], edit: [vision-research], view: []}    # groups of the identity provider
  namespaces:
    vision-train:
      quota: {cpu: 512, memory: 4Ti, nvidia.com/gpu: 32, pods: 500}     # -> ResourceQuota, with legal keys
      defaults: {cpu: 1, memory: 2Gi}                                   # -> LimitRange
      security: baseline                                                # privileged | baseline | restricted
      network: isolated                                                 # isolated | open
  queue:                                                                # named after the team
    {parent: research, guarantee: {nvidia.com/gpu: 8}, deserved: {nvidia.com/gpu: 24}, capability: {memory: 4Ti}}
  priorities: [low, high]     # PriorityClasses the team may use; the first is its default
"""
TRAINING_JOB = """
apiVersion: basalt.dev/v1alpha1
kind: TrainingJob
metadata: {name: resnet, namespace: vision-train}
spec:
  framework: pytorch          # pytorch | tensorflow | mpi | ray | index | plain
  image: registry.example.com/vision/resnet:1.4.2
  queue: vision               # default: the queue of the namespace's team
  priority: high              # default: the team's first
  roles:
    worker:
      replicas: 4
      minAvailable: 4         # default: replicas
      command: [torchrun, train.py]
      env: {EPOCHS: "90"}
      resources: {cpu: 16, memory: 128Gi, nvidia.com/gpu: 8}   # requests = limits
      sharedMemory: 64Gi      # /dev/shm
  topology: {mode: hard, highestTier: leaf}    # a tier's name or number
  volumes: [{name: data, mountPath: /data, claim: imagenet}]
  retries: 3
  ttlAfterFinished: 24h
  patch: {}                   # JSON Merge Patch on the generated object, before it is judged
"""
GUARDRAIL = """
apiVersion: basalt.dev/v1alpha1
kind: Guardrail
metadata: {name: pinned-registry}
spec:
  match: {kinds: [Job], namespaces: ["vision-*"]}
  severity: error
  message: images come from the internal registry
  schema: {spec: {type: dict, allow_unknown: true, schema: {queue: {type: string, required: true}}}}
"""
DOCUMENTS: dict[str, Any] = {
    kind: yaml.safe_load(text) for kind, text in zip(KINDS, (ENVIRONMENT, TEAM, TRAINING_JOB, GUARDRAIL), strict=True)
}

# volcano.sh/volcano v1.15.1, pkg/scheduler/conf/scheduler_conf.go (PluginOption) and plugins/defaults.go
FLAGS = {
    "enableJobOrder": True, "enableHierarchy": False, "enableJobReady": True, "enableJobPipelined": True,
    "enableTaskOrder": True, "enablePreemptable": True, "enableReclaimable": True, "enablePreemptive": True,
    "enableQueueOrder": True, "EnabledClusterOrder": False, "enablePredicate": True, "enableBestNode": True,
    "enableNodeOrder": True, "enableTargetJob": True, "enableReservedNodes": True, "enableJobEnqueued": True,
    "enabledVictim": True, "enableJobStarving": True, "enabledOverused": True, "enabledAllocatable": True,
    "enabledHyperNodeOrder": True, "enabledSubJobReady": True, "enabledSubJobPipelined": True,
    "enabledSubJobOrder": True, "enabledHyperNodeGradient": True,
}  # fmt: skip


SCHEMAS: dict[str, Any] = {kind: document_schema(kind) for kind in KINDS}


def errors(kind: str, document: Any) -> list[tuple[str, str]]:
    """(pointer, message) of everything the kind's schema has against the document."""
    found = jsonschema_rs.Draft202012Validator(SCHEMAS[kind]).iter_errors(document)
    return [("".join(f"/{part}" for part in error.instance_path), error.message) for error in found]


def changed(kind: str, pointer: str, *value: Any) -> Any:
    """A copy of the contract's document of the kind, with the value at the pointer; without a value it is removed."""
    document = copy.deepcopy(DOCUMENTS[kind])
    *parents, last = (int(part) if part.isdigit() else part for part in pointer.split("/")[1:])
    place = document
    for part in parents:
        place = place[part]
    if value:
        place[last] = value[0]
    else:
        del place[last]
    return document


def subschemas(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every schema within a schema, with a path that names it."""
    yield path, node
    for keyword in ("$defs", "properties"):
        for name, child in node.get(keyword, {}).items():
            yield from subschemas(child, f"{path}/{keyword}/{name}")
    for keyword in ("additionalProperties", "items"):
        if isinstance(node.get(keyword), dict):
            yield from subschemas(node[keyword], f"{path}/{keyword}")


NODES = [(kind, path, node) for kind in KINDS for path, node in subschemas(SCHEMAS[kind], kind)]
FIELDS = [
    pytest.param(kind, field, id=f"{path}/{name}")
    for kind, path, node in NODES
    for name, field in node.get("properties", {}).items()
]
DEFAULTS = [pytest.param(kind, node, id=path) for kind, path, node in NODES if "default" in node]
OBJECTS = [pytest.param(node, id=path) for _, path, node in NODES if node.get("type") == "object"]


@pytest.mark.parametrize("kind", KINDS)
def test_schema_is_valid_draft_2020_12(kind: str) -> None:
    assert SCHEMAS[kind]["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(SCHEMAS[kind])


def test_every_schema_file_is_of_a_known_kind() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(KINDS)
    assert sorted(path.stem for path in (FOLDER.parent / "parts").iterdir()) == sorted(PARTS)


@pytest.mark.parametrize(("kind", "field"), FIELDS)
def test_every_field_says_what_it_is_in_whole_sentences(kind: str, field: Any) -> None:
    assert field["description"][0].isupper()
    assert field["description"].endswith(".")


@pytest.mark.parametrize(("kind", "field"), FIELDS)
def test_every_field_has_examples_and_all_of_them_are_valid(kind: str, field: Any) -> None:
    validator = jsonschema_rs.Draft202012Validator({**field, "$defs": SCHEMAS[kind].get("$defs", {})})

    assert field["examples"]
    assert [error.message for example in field["examples"] for error in validator.iter_errors(example)] == []


@pytest.mark.parametrize(("kind", "field"), DEFAULTS)
def test_every_default_is_valid(kind: str, field: Any) -> None:
    validator = jsonschema_rs.Draft202012Validator({**field, "$defs": SCHEMAS[kind].get("$defs", {})})

    assert validator.is_valid(field["default"])


@pytest.mark.parametrize("node", OBJECTS)
def test_every_object_is_closed_or_a_map(node: Any) -> None:
    """A map has no fields but the annotation that Basalt reads; a free object says so with true."""
    fields = set(node.get("properties", {})) - {"basalt.dev/waive"}
    values = node["additionalProperties"]

    assert values is False or (not fields and (values is True or isinstance(values, dict)))


def test_scheduler_flags_are_upstreams_to_the_letter() -> None:
    plugin = SCHEMAS["Environment"]["$defs"]["plugin"]["properties"]

    assert {name: field["default"] for name, field in plugin.items() if field["type"] == "boolean"} == FLAGS


@pytest.mark.parametrize("kind", KINDS)
def test_the_contracts_document_is_accepted(kind: str) -> None:
    assert errors(kind, DOCUMENTS[kind]) == []


PLUGIN = "/spec/volcano/scheduler/tiers/0/plugins/0"
QUEUE = "/spec/queues/research"
WORKER = "/spec/roles/worker"
ACCEPTED = [
    ("Environment", "/metadata/labels", {"basalt.dev/purpose": "development"}),
    ("Environment", "/metadata/annotations", {"basalt.dev/waive": "image-is-pinned: a demo", "team": "infra"}),
    ("Environment", "/spec", {}),
    ("Environment", "/spec/volcano/version", "1.14"),
    ("Environment", "/spec/volcano/version", 1.13),
    ("Environment", "/spec/volcano/scheduler", {}),
    ("Environment", "/spec/topology/tiers/0/nameTemplate", "{tier}-{domain}"),
    ("Environment", f"{PLUGIN}/arguments", {"weight": 1, "resources": {"cpu": {"type": "MostAllocated"}}}),
    ("Environment", f"{PLUGIN}/name", "a-plugin-of-one's-own"),
    ("Environment", "/spec/volcano/scheduler/actions", ["gangPreempt"]),
    ("Environment", "/spec/volcano/scheduler/metrics", {"type": "prometheus", "tls.insecureSkipVerify": True}),
    ("Environment", "/spec/priorities/low/value", 2_000_000_000),
    ("Environment", f"{QUEUE}/weight", 65535),
    ("Environment", f"{QUEUE}/capability", {"cpu": "many", "memory": -1, "nvidia.com/gpu": 0.5}),
    ("Team", "/spec", {}),
    ("Team", "/spec/namespaces/Not_A_Name", {}),
    ("TrainingJob", f"{WORKER}/replicas", 0),
    ("TrainingJob", f"{WORKER}/minAvailable", 9),
    ("TrainingJob", f"{WORKER}/tolerations", [{"operator": "Exists"}]),
    ("TrainingJob", "/spec/topology", {"mode": "hard"}),
    ("TrainingJob", "/spec/topology/highestTier", 2),
    ("TrainingJob", "/spec/topology/survive", "rack"),
    ("TrainingJob", "/spec/topology/survive", 1),
    ("TrainingJob", "/spec/ttlAfterFinished", "1h30m"),
    ("TrainingJob", "/spec/ttlAfterFinished", 0),
    ("TrainingJob", "/spec/patch", {"spec": {"maxRetry": None}}),
    ("Guardrail", "/spec/match", {}),
    ("Guardrail", "/spec/match/kinds", []),
    ("Guardrail", "/spec/schema", {"spec": {"type": "no type of Cerberus"}}),
]
OPTIONAL = [
    ("Environment", "/spec"),
    ("Environment", "/spec/kubernetes"),
    ("Environment", "/spec/volcano"),
    ("Environment", "/spec/volcano/version"),
    ("Environment", "/spec/topology/tiers"),
    ("Team", "/spec"),
    ("TrainingJob", "/spec/image"),
    ("TrainingJob", "/spec/topology"),
    ("Guardrail", "/spec/message"),
    ("Guardrail", "/spec/match/kinds"),
]


@pytest.mark.parametrize(("kind", "pointer", "value"), ACCEPTED)
def test_value_is_accepted(kind: str, pointer: str, value: Any) -> None:
    """Names, quantities and what fields say of each other are for rules with better messages."""
    assert errors(kind, changed(kind, pointer, value)) == []


@pytest.mark.parametrize(("kind", "pointer"), OPTIONAL)
def test_field_may_be_left_out(kind: str, pointer: str) -> None:
    assert errors(kind, changed(kind, pointer)) == []


REJECTED = [
    ("Environment", "/apiVersion", "basalt.dev/v1", '"basalt.dev/v1alpha1" was expected'),
    ("Environment", "/kind", "Team", '"Environment" was expected'),
    ("Environment", "/metadata/name", "", '"" is shorter than 1 character'),
    ("Environment", "/metadata/labels", {"a": 1}, '1 is not of type "string"'),
    ("Environment", "/spec/kubernetes/version", 1.34, '1.34 is not of type "string"'),
    ("Environment", "/spec/kubernetes/version", "v1.34", '"v1.34" does not match'),
    ("Environment", "/spec/topology/unplaced", "ignore", '"ignore" is not one of "error" or "allow"'),
    ("Environment", "/spec/topology/members", "regex", '"regex" is not one of "exact" or "label"'),
    ("Environment", "/spec/volcano/version", "1.12.0", '"1.12.0" does not match'),
    ("Environment", "/spec/volcano/version", 1.16, "1.16 is not one of 1.13, 1.14 or 1.15"),
    ("Environment", "/spec/volcano/scheduler/actions", "enqueue, allocate", 'is not of type "array"'),
    ("Environment", "/spec/volcano/scheduler/actions", [], "[] has less than 1 item"),
    ("Environment", f"{PLUGIN}/enableJobOrder", "yes", '"yes" is not of type "boolean"'),
    ("Environment", "/spec/priorities/low/value", 1.5, '1.5 is not of type "integer"'),
    ("Environment", "/spec/priorities/low/value", -2_147_483_649, "is less than the minimum of -2147483648"),
    ("Environment", "/spec/priorities/low/preemption", "Always", 'is not one of "Never" or "PreemptLowerPriority"'),
    ("Environment", f"{QUEUE}/weight", 0, "0 is less than the minimum of 1"),
    ("Environment", f"{QUEUE}/weight", 65536, "65536 is greater than the maximum of 65535"),
    ("Environment", f"{QUEUE}/priority", -1, "-1 is less than the minimum of 0"),
    ("Environment", f"{QUEUE}/capability", {"cpu": [1]}, '[1] is not of types "number", "string"'),
    ("Environment", f"{QUEUE}/dequeueStrategy", "lifo", '"lifo" is not one of "fifo" or "traverse"'),
    ("Environment", "/spec/delivery/engine", "helm", '"helm" is not one of "pulumi", "argocd" or "flux"'),
    ("Team", "/spec/access/admin", "vision-leads", '"vision-leads" is not of type "array"'),
    ("Team", "/spec/namespaces/vision-train/security", "none", "is not one of"),
    ("Team", "/spec/namespaces/vision-train/network", "closed", '"closed" is not one of "isolated" or "open"'),
    ("Team", "/spec/queue/weight", 0, "0 is less than the minimum of 1"),
    ("TrainingJob", "/spec/framework", "jax", '"jax" is not one of'),
    ("TrainingJob", "/spec/image", "", '"" is shorter than 1 character'),
    ("TrainingJob", "/spec/roles", {}, "{} has less than 1 property"),
    ("TrainingJob", f"{WORKER}/replicas", -1, "-1 is less than the minimum of 0"),
    ("TrainingJob", f"{WORKER}/command", "torchrun train.py", 'is not of type "array"'),
    ("TrainingJob", f"{WORKER}/env", {"EPOCHS": 90}, '90 is not of type "string"'),
    ("TrainingJob", f"{WORKER}/tolerations", [{"effect": "Never"}], '"Never" is not one of'),
    ("TrainingJob", "/spec/topology/mode", "strict", '"strict" is not one of "hard" or "soft"'),
    ("TrainingJob", "/spec/topology/highestTier", 1.5, '1.5 is not of types "integer", "string"'),
    ("TrainingJob", "/spec/topology/survive", True, 'true is not of types "integer", "string"'),
    ("TrainingJob", "/spec/topology/survive", "", '"" is shorter than 1 character'),
    ("TrainingJob", "/spec/retries", 0, "0 is less than the minimum of 1"),
    ("TrainingJob", "/spec/ttlAfterFinished", "24 hours", '"24 hours" does not match'),
    ("TrainingJob", "/spec/ttlAfterFinished", "", '"" is shorter than 1 character'),
    ("TrainingJob", "/spec/ttlAfterFinished", -1, "-1 is less than the minimum of 0"),
    ("Guardrail", "/spec/severity", "fatal", '"fatal" is not one of "error", "warning" or "info"'),
    ("Guardrail", "/spec/schema", [], '[] is not of type "object"'),
]


@pytest.mark.parametrize(("kind", "pointer", "value", "message"), REJECTED)
def test_value_is_rejected_where_it_stands(kind: str, pointer: str, value: Any, message: str) -> None:
    [(where, said)] = errors(kind, changed(kind, pointer, value))

    assert where.startswith(pointer)
    assert message in said


REQUIRED = [
    *((kind, f"/{field}") for kind in KINDS for field in ("apiVersion", "kind", "metadata")),
    *((kind, "/metadata/name") for kind in KINDS),
    ("Environment", "/spec/topology/tiers/0/name"),
    ("Environment", "/spec/topology/tiers/0/label"),
    ("Environment", "/spec/volcano/scheduler/tiers/0/plugins"),
    ("Environment", f"{PLUGIN}/name"),
    ("Environment", "/spec/priorities/low/value"),
    ("TrainingJob", "/metadata/namespace"),
    ("TrainingJob", "/spec"),
    ("TrainingJob", "/spec/framework"),
    ("TrainingJob", "/spec/roles"),
    ("TrainingJob", f"{WORKER}/replicas"),
    ("TrainingJob", "/spec/volumes/0/name"),
    ("TrainingJob", "/spec/volumes/0/mountPath"),
    ("TrainingJob", "/spec/volumes/0/claim"),
    ("Guardrail", "/spec"),
    ("Guardrail", "/spec/match"),
    ("Guardrail", "/spec/schema"),
]


@pytest.mark.parametrize(("kind", "pointer"), REQUIRED)
def test_field_is_required(kind: str, pointer: str) -> None:
    parent, _, field = pointer.rpartition("/")

    assert errors(kind, changed(kind, pointer)) == [(parent, f'"{field}" is a required property')]


UNKNOWN = [
    *((kind, f"/{field}") for kind in KINDS for field in ("status", "metadata/generateName", "spec/nodes")),
    *((kind, "/metadata/namespace") for kind in KINDS if kind != "TrainingJob"),
    *(("Environment", f"/spec/{part}/enabled") for part in ("gpu", "network", "identity", "metrics", "descheduler")),
    ("Environment", "/spec/kubernetes/provider"),
    ("Environment", "/spec/topology/racks"),
    ("Environment", "/spec/topology/tiers/0/labels"),
    ("Environment", "/spec/volcano/chart"),
    ("Environment", "/spec/volcano/scheduler/plugins"),
    ("Environment", "/spec/volcano/scheduler/tiers/0/name"),
    ("Environment", f"{PLUGIN}/enabledJobOrder"),
    ("Environment", f"{PLUGIN}/enableClusterOrder"),
    ("Environment", "/spec/priorities/low/globalDefault"),
    ("Environment", f"{QUEUE}/deserves"),
    ("Environment", "/spec/delivery/tool"),
    ("Team", "/spec/access/owner"),
    ("Team", "/spec/namespaces/vision-train/limits"),
    ("Team", "/spec/queue/name"),
    ("TrainingJob", f"{WORKER}/replica"),
    ("TrainingJob", "/spec/topology/highestTierAllowed"),
    ("TrainingJob", "/spec/volumes/0/claimName"),
    ("Guardrail", "/spec/match/names"),
]


@pytest.mark.parametrize(("kind", "pointer"), UNKNOWN)
def test_unknown_field_is_rejected_by_name(kind: str, pointer: str) -> None:
    parent, _, field = pointer.rpartition("/")
    message = f"Additional properties are not allowed ('{field}' was unexpected)"

    assert errors(kind, changed(kind, pointer, 1)) == [(parent, message)]


def test_metrics_keys_are_flat_because_volcano_refuses_the_whole_file_otherwise() -> None:
    """Upstream reads metrics into map[string]string, so a nested tls, as its design document has it, fails to parse."""
    document = changed("Environment", "/spec/volcano/scheduler/metrics", {"tls": {"insecureSkipVerify": "false"}})

    assert errors("Environment", document) == [
        ("/spec/volcano/scheduler/metrics", "Additional properties are not allowed ('tls' was unexpected)")
    ]
