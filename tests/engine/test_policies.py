"""The policy pack under the real engine: `pulumi preview --policy-pack`, of a program that knows nothing of Basalt."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pulumi
import pytest
from pulumi.automation import CommandError, EngineEvent, Stack

from tests.engine.stacks import Engine
from tests.sandbox.conftest import ROOT

pytestmark = pytest.mark.slow
PACK = ROOT / "policies"
# What the engine asks for where it has no pulumi-language-python: Pulumi's own boot of a pack.
_BOOT = """\
#!/bin/sh
exec {python} -u -m pulumi.policy "$1" "$2"
"""
QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "vision"}}


@pytest.fixture(scope="module")
def path(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with the provider, and with something that starts a policy pack."""
    folders = [str(engine.provider), os.environ["PATH"]]
    if which("pulumi-language-python") is None:
        boot = tmp_path_factory.mktemp("analyzer") / "pulumi-analyzer-policy-python"
        boot.write_text(_BOOT.format(python=sys.executable))
        boot.chmod(0o755)
        folders.insert(0, str(boot.parent))
    return os.pathsep.join(folders)


def registers(spec: dict[str, object], folder: Path, *, is_secret: bool) -> Callable[[], None]:
    """A program with one queue, which is rendered and not applied."""

    def program() -> None:
        arguments = {"renderYamlToDirectory": str(folder)}
        provider = pulumi.ProviderResource("kubernetes", "rendering", arguments)
        kind = "kubernetes:scheduling.volcano.sh/v1beta1:Queue"
        options = pulumi.ResourceOptions(provider=provider)
        pulumi.CustomResource(
            kind, "vision", {**QUEUE, "spec": pulumi.Output.secret(spec) if is_secret else spec}, options
        )

    return program


def stack(engine: Engine, path: str, folder: Path, spec: dict[str, object], *, is_secret: bool = False) -> Stack:
    return engine.stack(
        "dev", folder / "state", registers(spec, folder / "out", is_secret=is_secret), "/nowhere", PATH=path
    )


def previewed(stack: Stack, *configs: str) -> list[tuple[str, str]]:
    """Level and words of each violation of a preview."""
    found: list[tuple[str, str]] = []

    def heard(event: EngineEvent) -> None:
        if (said := event.policy_event) is not None:
            found.append((said.enforcement_level, said.message))

    stack.preview(policy_packs=[str(PACK)], policy_pack_configs=list(configs) or None, on_event=heard)
    return found


def test_sound_program_passes(engine: Engine, path: str, tmp_path: Path) -> None:
    assert previewed(stack(engine, path, tmp_path, {"capability": {"cpu": 8}})) == []


def test_error_stops_the_preview(engine: Engine, path: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as error:
        previewed(stack(engine, path, tmp_path, {"wieght": 3}))

    assert "spec.wieght: unknown field wieght [object-matches-schema]" in str(error.value)
    assert "hint: did you mean weight?" in str(error.value)


def test_configuration_reaches_the_pack(engine: Engine, path: str, tmp_path: Path) -> None:
    """A guardrail that only warns does not stop the preview."""
    schema = {"spec": {"type": "dict", "schema": {"weight": {"type": "integer", "required": True}}}}
    spec = {"match": {"kinds": ["Queue"]}, "severity": "warning", "schema": schema}
    guardrail = {"apiVersion": "basalt.dev/v1alpha1", "kind": "Guardrail", "metadata": {"name": "weighed"}}
    (tmp_path / "weighed.json").write_text(json.dumps({**guardrail, "spec": spec}))
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"basalt-warnings": {"guardrails": str(tmp_path / "weighed.json")}}))

    found = previewed(stack(engine, path, tmp_path, {"capability": {"cpu": 8}}), str(config))

    ((level, words),) = found
    assert level == "advisory"
    assert "spec: weight is missing [guardrail/weighed]" in words


def test_secret_is_not_shown(engine: Engine, path: str, tmp_path: Path) -> None:
    """A queue whose parent does not exist, which is said by its name unless it is a secret."""
    with pytest.raises(CommandError) as error:
        previewed(stack(engine, path, tmp_path / "plain", {"parent": "hunter2"}))
    secret = stack(engine, path, tmp_path / "secret", {"parent": "hunter2"}, is_secret=True)

    assert "hunter2" in str(error.value)
    assert previewed(secret) == []
