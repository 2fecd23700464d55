"""Writes dist/hypernodes.k8s.yaml from hypernodes.json in the working directory."""

import json
from pathlib import Path

from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, JsonPatch

app = App()
chart = Chart(app, "hypernodes")
for each in json.loads(Path("hypernodes.json").read_text(encoding="utf-8"))["hyperNodes"]:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in each["nodes"]]
    hyper_node = ApiObject(
        chart,
        each["name"],
        api_version="topology.volcano.sh/v1alpha1",
        kind="HyperNode",
        metadata=ApiObjectMetadata(name=each["name"], labels={"app.kubernetes.io/managed-by": "basalt"}),
    )
    hyper_node.add_json_patch(JsonPatch.add("/spec", {"tier": 1, "tierName": "rack", "members": members}))
app.synth()
