"""What the stack's configuration says, judged: an unknown key or a wrong value ends the run."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pulumi
from pulumi.runtime import config as runtime

from basalt import names

NAMESPACE = "basalt"
KEYS = {
    "environment": "the environment's name under stacks/, or its folder",
    "render": "the folder that YAML is written to",
    "secrets": "the content of Secrets, by <namespace>/<name>",
}
_TEXTS = ("cluster", "clusterIdentifier", "context", "kubeconfig")
_SWITCHES = ("deleteUnreachable", "skipUpdateUnreachable")


class Settings(NamedTuple):
    """environment is a name or a folder; render the folder that YAML goes to, None where a cluster is meant; secrets
    the content of Secrets by namespace and name; provider the arguments of pulumi_kubernetes.Provider."""

    environment: str
    render: str | None
    secrets: Mapping[tuple[str, str], Mapping[str, str]]
    provider: Mapping[str, Any]


def read() -> Settings:
    """The settings of the stack. The keys of `kubernetes:` mean what they mean to the provider."""
    faults = list(_unknown(_keys()))
    if faults:
        raise pulumi.RunError("\n".join(faults))
    own = pulumi.Config(NAMESPACE)
    render = own.get("render")
    if render is not None and render.strip().lower() in ("", "true", "false"):
        raise pulumi.RunError(f"{NAMESPACE}:render takes a folder, this is {json.dumps(render)}; for example rendered/")
    environment = own.get("environment")
    if environment is not None and not environment.strip():
        raise pulumi.RunError(f"{NAMESPACE}:environment is empty; take it out, or name a folder under stacks/")
    provider = {"render_yaml_to_directory": render} if render else _provider()
    return Settings(environment or pulumi.get_stack(), render, _secrets(), provider)


def _keys() -> list[str]:
    """The configuration's keys in Basalt's namespace, as the engine or the Automation API hands them over."""
    every = {**runtime.get_config_env(), **runtime.CONFIG.get()}
    return sorted(key.partition(":")[2] for key in every if key.startswith(f"{NAMESPACE}:"))


def _unknown(keys: Iterable[str]) -> Iterable[str]:
    for key in keys:
        if key not in KEYS:
            hint = names.did_you_mean(key, KEYS, most=0)
            known = "; ".join(f"{name}: {meaning}" for name, meaning in KEYS.items())
            yield f"{NAMESPACE}:{key} is not known; {hint + '; ' if hint else ''}there are {known}"


def _provider() -> dict[str, Any]:
    given = pulumi.Config("kubernetes")
    found: dict[str, Any] = {_snake(key): value for key in _TEXTS if (value := given.get(key))}
    if _is_secret("kubernetes:kubeconfig"):
        found["kubeconfig"] = given.get_secret("kubeconfig")
    switches = {_snake(key): given.get_bool(key) for key in _SWITCHES}
    return {**found, **{key: value for key, value in switches.items() if value is not None}}


def _is_secret(key: str) -> bool:
    return runtime.is_config_secret(key) or key in runtime.get_config_secret_keys_env()


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def _secrets() -> dict[tuple[str, str], dict[str, str]]:
    """basalt:secrets, whose values nothing but Pulumi's secrets may hold."""
    text = runtime.get_config(f"{NAMESPACE}:secrets")
    if text is None:
        return {}
    where, example = (
        f"{NAMESPACE}:secrets",
        "pulumi config set --secret --path 'basalt:secrets[\"dex/dex-ldap\"].password'",
    )
    if not _is_secret(where):
        raise pulumi.RunError(f"{where} is not encrypted; set it with --secret: {example}")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    found: dict[tuple[str, str], dict[str, str]] = {}
    for key, content in value.items() if isinstance(value, dict) else [("", None)]:
        namespace, slash, name = key.partition("/")
        is_named = namespace and slash and name
        if not is_named or not isinstance(content, dict) or not all(isinstance(each, str) for each in content.values()):
            raise pulumi.RunError(f"{where} maps <namespace>/<name> to keys and texts: {example}")
        found[namespace, name] = content
    return found
