"""Registers the HyperNodes of hypernodes.json in the working directory as bare CustomResources with an engine that only
echoes; with --print, prints them too, as JSON documents."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import json_format
from pulumi.runtime import mocks, set_mocks
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import run_pulumi_func

_KIND = "kubernetes:topology.volcano.sh/v1alpha1:HyperNode"


class _Mocks(mocks.Mocks):
    def call(self, _args: mocks.MockCallArgs) -> tuple[dict[Any, Any], None]:
        return {}, None

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        raise NotImplementedError(args)  # the monitor answers itself


class _Monitor(mocks.MockMonitor):
    def __init__(self) -> None:
        super().__init__(_Mocks())
        self.registered: list[Any] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  # the engine's name
        if request.type == _KIND:
            self.registered.append(request.object)
        urn = self.make_urn(request.parent, request.type, request.name)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id", object=request.object)


def _register() -> None:
    for each in json.loads(Path("hypernodes.json").read_text(encoding="utf-8"))["hyperNodes"]:
        members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in each["nodes"]]
        hyper_node = {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": each["name"], "labels": {"app.kubernetes.io/managed-by": "basalt"}},
            "spec": {"tier": 1, "tierName": "rack", "members": members},
        }
        pulumi.CustomResource(_KIND, each["name"], hyper_node)


async def _run(monitor: _Monitor) -> None:
    set_mocks(_Mocks(), project="peers", stack="bench", preview=False, monitor=monitor)
    await run_pulumi_func(_register)


_monitor = _Monitor()
asyncio.run(_run(_monitor))
if "--print" in sys.argv:
    for registered in _monitor.registered:
        print("---", json.dumps(json_format.MessageToDict(registered)), sep="\n")
