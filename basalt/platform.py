"""What a module may take from the rest of the platform."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt.api.versions import Version
from basalt.loading.nodes import Node


class Platform(NamedTuple):
    """The whole declaration, as far as it has the right form: spec is the Environment's, teams the Teams' by name."""

    name: str
    spec: Mapping[str, Any]
    teams: Mapping[str, Mapping[str, Any]]
    nodes: tuple[Node, ...]
    kubernetes: Version
    volcano: Version
    is_development: bool

    @property
    def tenant_namespaces(self) -> Iterator[str]:
        for team in self.teams.values():
            yield from team.get("namespaces", {})
