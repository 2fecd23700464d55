"""The pack as the Pulumi engine knows it: one policy for each level, since each costs reading all resources once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    PolicyResource,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
    policy,
)
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY, deserialize_properties, serialize_properties

from basalt.findings import Severity
from policies import judging, unknowns
from policies.judging import Config, Violation
from policies.manifests import Resource

PROJECT = Path(__file__).resolve().parent.parent  # where relative paths of the configuration begin
_CONFIG = {
    "environment": "The folder of the environment that the stack is: it tells all the rest, and waives what it waives.",
    "inventory": "A file or folder with the cluster's nodes, as `kubectl get nodes -o json` prints them.",
    "guardrails": "A file or folder with Guardrails.",
    "kubernetes": 'The cluster\'s version of Kubernetes, such as "1.34".',
    "volcano": "Its version of Volcano, such as 1.15.1.",
}
_LEVELS = (
    ("basalt-errors", "What Basalt finds that would not work.", EnforcementLevel.MANDATORY, {Severity.ERROR}),
    (
        "basalt-warnings",
        "What Basalt finds that may not do what is meant.",
        EnforcementLevel.ADVISORY,
        {Severity.WARNING, Severity.INFO},
    ),
)


def serve() -> None:
    """Answers the engine until it is done."""
    _keep_secrets()
    PolicyPack(name="basalt", policies=[*policies()], enforcement_level=EnforcementLevel.MANDATORY)


def policies() -> Iterable[StackValidationPolicy]:
    schema = PolicyConfigSchema({key: {"type": "string", "description": words} for key, words in _CONFIG.items()})
    for name, description, level, severities in _LEVELS:
        validate = _validation(severities)
        yield StackValidationPolicy(name, description, validate, enforcement_level=level, config_schema=schema)


def _validation(severities: set[Severity]) -> Any:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        resources = [[each.urn, each.resource_type, each.name, _props(each.props)] for each in args.resources]
        given = {key: str(value) for key, value in args.get_config().items() if key in _CONFIG}
        config = Config(**{"environment": _own_environment(args.resources), **given})
        for each in _judged(json.dumps(resources), config):
            if each.severity in severities:
                report(each.message, each.urn or None)

    return validate


def _own_environment(resources: Sequence[PolicyResource]) -> str:
    """The environment of a stack of this project; "" for other people's stacks."""
    urns = (each.urn.split("::") for each in resources)
    stack, project = next(((urn[0].rpartition(":")[2], urn[1]) for urn in urns if len(urn) > 2), ("", ""))
    folder = Path("stacks", stack)
    is_own = project == yaml.safe_load((PROJECT / "Pulumi.yaml").read_text(encoding="utf-8"))["name"]
    return str(folder) if stack and is_own and (PROJECT / folder).is_dir() else ""


@lru_cache(maxsize=1)
def _judged(resources: str, config: Config) -> tuple[Violation, ...]:
    """Of the same resources once: the policies see them one after the other."""
    given = [Resource(*each) for each in json.loads(resources)]
    return tuple(judging.judge(given, config, PROJECT))


def _props(props: Mapping[str, Any]) -> Any:
    """The properties as plain values; reading an unknown one off the proxies would end the policy."""
    return _plain(serialize_properties(props))


def _plain(value: Any) -> Any:
    """Assets and archives have no place in an object, and their content is not known here."""
    if isinstance(value, Mapping):
        is_marked = SPECIAL_SIG_KEY in value
        return unknowns.SECRET if is_marked else {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _keep_secrets() -> None:
    """Makes the SDK give secrets to the policies as values that are unknown: it would unwrap them without a mark, and
    the text of a violation could show one."""
    assert hasattr(policy, deserialize_properties.__name__), "pulumi-policy reads properties in another way than 1.21"
    policy.deserialize_properties = _without_secrets  # type: ignore[attr-defined]  # a name of its own


def _without_secrets(props: dict[str, Any], proxy_secrets: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = deserialize_properties(_hidden(props), proxy_secrets)
    return found


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SPECIAL_SIG_KEY) == SPECIAL_SECRET_SIG:
            return unknowns.SECRET
        return {key: _hidden(each) for key, each in value.items()}
    return [_hidden(each) for each in value] if isinstance(value, list) else value
