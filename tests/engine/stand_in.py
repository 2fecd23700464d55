"""A stand-in for pulumi-resource-kubernetes, which no registry of packages has: it answers Pulumi's provider protocol
as far as Basalt's programs ask, and does to a cluster what the provider does. Charts it does not install.

What it copies of the provider 4.32, for the tests depend on it: a first apply is a POST that an existing object
refuses, or server-side apply where `upsertExistingObjects` is set; previews are dry runs, which webhooks see; every
object has a field manager of its own with a random name that only the state knows; a diff compares the last live object
with what is declared.
"""

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from basalt.cluster import connection
from basalt.cluster.connection import Refusal, Unreachable
from basalt.findings import Ref
from basalt.rendering import yaml_writer
from tests.engine import differences, live
from tests.engine.live import Live, Object

VERSION = metadata.version("pulumi-kubernetes")
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # what a preview has for a value that is not known yet
_LARGEST = 400 << 20  # bytes of a message, as everywhere in Pulumi
_INPUTS, _MANAGER = "__inputs", "__fieldManager"
_PAUSE = 0.2
_READ_ONLY = ("creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "uid")


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """One provider, configured once."""

    def __init__(self) -> None:
        self._live: Live | None = None
        self._mutable: frozenset[str] = frozenset()  # kinds that are changed in place
        self._folder: Path | None = None  # where manifests go instead of to a cluster

    def GetPluginInfo(self, _: Any, __: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetSchema(self, _: Any, __: Any) -> Any:
        schema = {"name": "kubernetes", "version": VERSION}
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))

    def CheckConfig(self, request: Any, _: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, _: Any) -> Any:
        changed = sorted(differences.differences(_object(request.olds), _object(request.news), is_typed=False))
        replaced = [each for each in changed if each[0] in ("clusterIdentifier", "renderYamlToDirectory")]
        return provider_pb2.DiffResponse(
            changes=_changes(changed), diffs=list(map(differences.path, changed)), replaces=[*map(str, replaced)]
        )

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        given = {key: str(value) for key, value in _object(request.args).items()}
        self._mutable = frozenset(kind for kind in ("ConfigMap", "Secret") if _is_on(given, f"enable{kind}Mutable"))
        if folder := given.get("renderYamlToDirectory"):
            self._folder = Path(folder)
        else:
            self._live = _answered(context, lambda: _connected(given))
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        value = _object(request.news)
        if value.get("apiVersion") == "helm.sh/v3" or ":helm.sh/" in request.urn:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "the stand-in for the Kubernetes provider installs no charts")
        for each in _READ_ONLY:
            value.get("metadata", {}).pop(each, None)
        return provider_pb2.CheckResponse(inputs=_struct(value))

    def Diff(self, request: Any, _: Any) -> Any:
        state, new = _object(request.olds), _object(request.news)
        before, found = differences.pruned(state, state.get(_INPUTS, {})), live.ref(new)
        changed = list(differences.differences(before, new, is_typed=differences.is_typed(found)))
        replaced = [each for each in changed if differences.replaces(each, found, self._mutable)]
        is_same_name = _place(state) == _place(new)
        return provider_pb2.DiffResponse(
            changes=_changes(changed),
            replaces=list(map(differences.path, replaced)),
            deleteBeforeReplace=bool(replaced) and is_same_name,
            hasDetailedDiff=True,
            detailedDiff={differences.path(each): _kind(each in replaced) for each in changed},
        )

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        value = _object(request.properties)
        if self._live is None:
            return provider_pb2.CreateResponse(id=_id(value), properties=self._written(value, request.preview))
        if request.preview and (_UNKNOWN in json.dumps(value) or not self._live.serves(value)):
            return provider_pb2.CreateResponse(properties=request.properties)
        manager = live.new_manager(value)
        try:
            made = self._live.create(value, manager, is_preview=request.preview)
            if not request.preview:
                made = self._live.wait(value, made)
        except (Refusal, Unreachable) as error:
            if request.preview and _is_of_preview(error):
                return provider_pb2.CreateResponse(properties=request.properties)
            text = f'resource "{request.urn}" was not successfully created by the Kubernetes API server: {error}'
            context.abort(grpc.StatusCode.UNKNOWN, text)
        if value["kind"] == "CustomResourceDefinition":
            self._live.cluster.forget_kinds()
        made_id = "" if request.preview else _id(made)
        return provider_pb2.CreateResponse(id=made_id, properties=_state(value, made, manager))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        state, value = _object(request.olds), _object(request.news)
        if self._live is None:
            return provider_pb2.UpdateResponse(properties=self._written(value, request.preview))
        if request.preview and (_UNKNOWN in json.dumps(value) or not self._live.serves(value)):
            return provider_pb2.UpdateResponse(properties=request.news)
        manager = live.annotation(value, "patchFieldManager") or state.get(_MANAGER) or live.new_manager(value)
        to_cluster, before = self._live, f'update of resource "{request.urn}" failed'
        made = _answered(context, lambda: to_cluster.update(value, manager, is_preview=request.preview), before)
        if not request.preview:
            made = _answered(context, lambda: to_cluster.wait(value, made), before)
        return provider_pb2.UpdateResponse(properties=_state(value, made, manager))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        state, inputs = _object(request.properties), _object(request.inputs)
        if (to_cluster := self._live) is None:
            return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)
        found = live.ref(inputs or state)
        seen = _answered(context, lambda: to_cluster.cluster.get(found))
        if seen is None:
            return provider_pb2.ReadResponse()
        now = differences.pruned(seen, inputs)
        made = _state(now, seen, state.get(_MANAGER) or live.new_manager(inputs))
        return provider_pb2.ReadResponse(id=request.id, properties=made, inputs=_struct(now))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        state = _object(request.properties)
        if (to_cluster := self._live) is None:
            self._file(state).unlink(missing_ok=True)
        else:
            namespace, _, name = request.id.rpartition("/")
            found = Ref(state["apiVersion"], state["kind"], namespace or None, name)
            _answered(context, lambda: to_cluster.delete(found))
        return empty_pb2.Empty()

    def Cancel(self, _: Any, __: Any) -> Any:
        return empty_pb2.Empty()

    def _written(self, value: Object, is_preview: bool) -> struct_pb2.Struct:
        """The state of a manifest that goes to a folder instead of to a cluster."""
        if not is_preview:
            path = self._file(value)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml_writer.document(value), encoding="utf-8")
        return _state(value, value, "")

    def _file(self, value: Object) -> Path:
        assert self._folder is not None
        folder = "0-crd" if value["kind"] == "CustomResourceDefinition" else "1-manifest"
        version = value["apiVersion"].replace("/", "_").replace(":", "_")
        namespace, name = _place(value)
        return self._folder / folder / f"{version}-{value['kind'].lower()}-{namespace or 'default'}-{name}.yaml"


def _connected(given: Mapping[str, str]) -> Live:
    """given: the provider's arguments, as texts."""
    where = given.get("kubeconfig") or os.environ.get("KUBECONFIG")
    with tempfile.NamedTemporaryFile("w") as file:
        if (where and "\n" in where.strip()) or (where or "").startswith("{"):
            file.write(where or "")
            file.flush()
            where = file.name
        cluster = connection.connect(where, given.get("context"))
    return Live(cluster, _is_on(given, "upsertExistingObjects"), _is_on(given, "enablePatchForce"))


def _is_on(given: Mapping[str, str], name: str) -> bool:
    words = "".join(f"_{each}" if each.isupper() else each.upper() for each in name)
    return (given.get(name) or os.environ.get(f"PULUMI_K8S_{words}") or "").lower() == "true"


def _answered(context: grpc.ServicerContext, ask: Callable[[], Any], before: str = "") -> Any:
    """What comes of it; what the cluster refuses is the call's error."""
    try:
        return ask()
    except (Refusal, Unreachable) as error:
        context.abort(grpc.StatusCode.UNKNOWN, f"{before}: {error}" if before else str(error))


def _is_of_preview(error: Refusal | Unreachable) -> bool:
    """Whether it says nothing about the object: it is to be replaced, its namespace is yet to come, or the account may
    only read."""
    if isinstance(error, Unreachable):
        return False
    is_namespace = error.status == 404 and error.message.startswith("namespaces ")
    return is_namespace or error.reason in ("AlreadyExists", "Forbidden")


def _state(inputs: Object, seen: Object, manager: str) -> struct_pb2.Struct:
    """What the engine keeps: the live object, what was declared, and who applied it."""
    return _struct({**seen, _INPUTS: inputs, "__initialApiVersion": inputs.get("apiVersion"), _MANAGER: manager})


def _place(value: Object) -> tuple[str, str]:
    named = value["metadata"]
    return named.get("namespace") or "", named["name"]


def _id(value: Object) -> str:
    return "/".join(filter(None, _place(value)))


def _changes(changed: list[Any]) -> Any:
    return provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE


def _kind(is_replaced: bool) -> Any:
    kinds = provider_pb2.PropertyDiff
    return kinds(kind=kinds.UPDATE_REPLACE if is_replaced else kinds.UPDATE)


def _object(struct: struct_pb2.Struct) -> Object:
    found: Object = _whole(json_format.MessageToDict(struct))
    return found


def _whole(value: Any) -> Any:
    """Protocol buffers know no whole numbers."""
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _struct(value: Object) -> struct_pb2.Struct:
    return json_format.ParseDict(value, struct_pb2.Struct())


def main() -> None:
    """Serves until the engine that started it is gone."""
    engine = os.getppid()
    limits = [("grpc.max_send_message_length", _LARGEST), ("grpc.max_receive_message_length", _LARGEST)]
    server = grpc.server(futures.ThreadPoolExecutor(connection.PARALLEL * 2), options=limits)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(StandIn(), server)
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    sys.stdout.flush()
    server.start()
    stop = threading.Event()
    while os.getppid() == engine:  # a killed engine ends nobody
        stop.wait(_PAUSE)
    os._exit(0)


if __name__ == "__main__":
    main()
