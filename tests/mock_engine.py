"""Pulumi's mocks, which stand for the engine: a program runs against them, and what it registers is kept."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf import json_format
from pulumi.runtime import mocks, set_all_config, set_mocks
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import run_pulumi_func

SECRET = "1b47061264138c4ac30d75fd1eb44270"  # what Pulumi's wire format marks a secret with
_KIND = "4dabf18193072939515e22adb298388d"


class Registered:
    """One resource as the engine is asked to register it."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.type: str = request.type
        self.name: str = request.name
        self.parent = str(request.parent).rpartition("::")[2]
        self.dependencies = frozenset(urn.rpartition("::")[2] for urn in request.dependencies)
        self.inputs: dict[str, Any] = json_format.MessageToDict(request.object)

    @property
    def is_object(self) -> bool:
        return self.type.startswith("kubernetes:")

    @property
    def identity(self) -> tuple[Any, ...]:
        metadata = self.inputs["metadata"]
        return self.inputs["apiVersion"], self.inputs["kind"], metadata.get("namespace"), metadata["name"]


class _Mocks(mocks.Mocks):
    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        return {}, None

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        raise NotImplementedError  # the monitor answers itself, without a thread's own event loop that nobody closes


class _Monitor(mocks.MockMonitor):
    def __init__(self) -> None:
        super().__init__(_Mocks())
        self.registered: list[Registered] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  # the engine's name
        if request.type != "pulumi:pulumi:Stack":
            self.registered.append(Registered(request))
        urn = self.make_urn(request.parent, request.type, request.name)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id", object=request.object)


class Engine:
    """What programs registered, in the order in which the engine was asked."""

    def __init__(self) -> None:
        self.registered: list[Registered] = []

    @property
    def objects(self) -> list[Registered]:
        return [each for each in self.registered if each.is_object]

    @property
    def by_name(self) -> Mapping[str, Registered]:
        return {each.name: each for each in self.registered}

    def behind(self, name: str) -> set[str]:
        """Everything that the resource waits for, directly or not."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            new = self.by_name[waiting.pop()].dependencies - found
            found |= new
            waiting += new
        return found

    def run(
        self,
        program: Callable[[], Any],
        *,
        stack: str = "seed",
        config: Mapping[str, str] | None = None,
        secret: tuple[str, ...] = (),
    ) -> "Engine":
        """Runs the program, whose exceptions come through; its resources are kept either way."""
        monitor = _Monitor()

        async def main() -> None:
            set_mocks(_Mocks(), project="basalt", stack=stack, preview=False, monitor=monitor)
            set_all_config(dict(config or {}), list(secret))
            await run_pulumi_func(lambda: program() and None)

        try:
            asyncio.run(main())
        finally:
            self.registered = monitor.registered
        return self


def secrets_in(value: Any) -> Iterator[Any]:
    """The values that are marked as secrets."""
    if isinstance(value, dict) and value.get(_KIND) == SECRET:
        yield value["value"]
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from secrets_in(each)


def plain(value: Any) -> Any:
    """The value as JSON has it: whole numbers are whole."""
    return json.loads(
        json.dumps(value), parse_float=lambda text: int(float(text)) if float(text).is_integer() else text
    )
