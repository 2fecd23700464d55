"""Server-side apply, phase by phase: each waits until what comes after it can build on it.

Every step can be repeated: a run that is killed at any moment is finished by the next one.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from basalt import names
from basalt.cluster import parallel, planning, settling
from basalt.cluster.connection import Cluster, Refusal, Unreachable
from basalt.cluster.planning import MANAGER
from basalt.objects import KubeObject
from basalt.rendering.layout import Phase

_PAUSE = 0.1  # seconds between two looks


class Failed(Exception):
    """What keeps the apply from going on, in one line; what was applied stays."""


@dataclass(frozen=True)
class Applier:
    """How a cluster is applied to: whether fields of others are taken over, the seconds each phase has, and who is told
    what is waited for."""

    cluster: Cluster
    force: bool
    patience: float
    waiting: Callable[[str], None]
    _stop: threading.Event = field(default_factory=threading.Event)

    def apply(self, phase: Phase) -> None:
        """Applies the phase, and returns when it has settled. Failed where that does not come about."""
        end = time.monotonic() + self.patience
        self._until(end, lambda: self._missing_kinds(phase))
        try:
            for wave in phase.waves:
                parallel.each(lambda each: self._apply(each, end), wave)
                self._until(end, lambda wave=wave: self._unsettled(wave))  # type: ignore[misc]
        finally:
            self._stop.set()  # for those that still try again

    def _apply(self, declared: KubeObject, end: float) -> None:
        while not self._stop.is_set():
            try:
                self.cluster.apply(declared.value, declared.ref, MANAGER, force=self.force)
            except (Refusal, Unreachable) as error:
                passes = isinstance(error, Unreachable) or error.may_pass
                if not passes or time.monotonic() > end:
                    raise Failed(f"{declared.ref}: {error}") from None
                self.waiting(f"{declared.ref}: {error}")
                self._stop.wait(_PAUSE)
            else:
                return

    def _until(self, end: float, obstacle: Callable[[], str]) -> None:
        """Until nothing is in the way."""
        while found := obstacle():
            if time.monotonic() > end:
                raise Failed(f"waited {self.patience:g} s for {found}")
            self.waiting(f"waiting for {found}")
            time.sleep(_PAUSE)

    def _missing_kinds(self, phase: Phase) -> str:
        missing = planning.strange_kinds(self.cluster, [phase])
        if missing:
            self.cluster.forget_kinds()
        return "the cluster to serve " + names.listed(kind for _, kind in missing) if missing else ""

    def _unsettled(self, wave: Sequence[KubeObject]) -> str:
        waited = [each for each in wave if each.ref.kind in settling.WAITS_FOR]
        if any(each.ref.kind == "CustomResourceDefinition" for each in waited):
            self.cluster.forget_kinds()
        seen = [(each.ref, self.cluster.get(each.ref) or {}) for each in waited]
        if closed := [ref for ref, live in seen if settling.is_hopeless(ref, live)]:
            raise Failed(f"{closed[0]} is Closed: open it, or take it out")
        unsettled = [ref for ref, live in seen if not settling.is_settled(ref, live)]
        return f"{names.listed(map(str, unsettled))} {settling.WAITS_FOR[unsettled[0].kind]}" if unsettled else ""
