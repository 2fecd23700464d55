"""The jobs that get verdicts."""

from dataclasses import dataclass

from basalt.fit.problem import Gang, Key
from basalt.objects import KubeObject
from basalt.pointers import Pointer, has


@dataclass(frozen=True, eq=False)
class Job:
    """One job that gets a verdict: where it is declared, its queue, its pods in all, and its gang; gap is what it asks
    for and Basalt does not model, so that its verdict is unknown; bar is the rule, and the fact, for which its queue
    never takes it."""

    key: Key
    object: KubeObject
    pointer: Pointer
    queue: str | None
    priority: int
    pods: int
    gang: Gang
    tier: str | int | None
    gap: str = ""
    tasks: tuple[int, ...] = ()  # of a job's shapes, the task that each comes from
    bar: tuple[str, str] | None = None

    @property
    def order(self) -> tuple[int, str, str, str]:
        return (-self.priority, self.key.namespace, self.key.name, self.key.kind)

    @property
    def size(self) -> Pointer:
        """Where the size of the gang is written."""
        sizes = ((*self.pointer, field) for field in ("minAvailable", "minMember", "tasks"))
        return next((each for each in sizes if has(self.object.value, each)), self.pointer)
