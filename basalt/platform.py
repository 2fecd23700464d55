"""What a module may take from the rest of the platform."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from basalt.api.versions import Version
from basalt.loading.nodes import Node
from basalt.objects import mapping

_GROUPS_PREFIX = "oidc:"
_SYSTEM = "system:"


def groups_prefix(spec: Mapping[str, Any]) -> str:
    """What the API server puts before the identity provider's groups; spec is the Environment's. Without an identity
    groups stay as they are written."""
    return str(mapping(spec["identity"]).get("groupsPrefix", _GROUPS_PREFIX)) if "identity" in spec else ""


def prefixed(group: str, prefix: str) -> str:
    """The group as the API server knows it: with the prefix, where it is not the cluster's own and has none yet."""
    return group if group.startswith((_SYSTEM, prefix)) else prefix + group


class Platform(NamedTuple):
    """The whole declaration, as far as it has the right form: spec is the Environment's, teams the Teams' by name."""

    name: str
    spec: Mapping[str, Any]
    teams: Mapping[str, Mapping[str, Any]]
    node_source: Callable[[], tuple[Node, ...]]
    kubernetes: Version
    volcano: Version
    is_development: bool

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.node_source()

    @property
    def groups_prefix(self) -> str:
        return groups_prefix(self.spec)

    @property
    def tenant_namespaces(self) -> Iterator[str]:
        for team in self.teams.values():
            yield from team.get("namespaces", {})
