"""Environments put to the real scheduler, side by side in one sandbox: their node selectors keep them apart. Each of an
environment's jobs runs alone first, one after the other; then, in every second environment, all of them together.

Time is counted in the scheduler's own sessions, by small pods that it places one after the other: as many sessions as
it has placed have gone over everything else, too.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from basalt.cluster import parallel
from basalt.cluster.connection import Cluster, Refusal
from basalt.findings import Ref
from basalt.gathering.documents import ref_of
from tools.agreement import clusters
from tools.agreement.clusters import BALLAST, JOB, Drawn, Value
from tools.agreement.expecting import Expected, called
from tools.agreement.probing import Stuck, wait

_PAUSE = 0.2  # seconds between two looks
_STUCK = 90  # seconds for one session
_AT_ONCE = 30  # environments: the scheduler looks at all HyperNodes for each job
# After how many sessions without any change a job that does not run is believed to stay Pending, by what it is called.
_ALONE = {"fits": 25, "tight": 10, "unknown": 10, "never": 2}
_TOGETHER = 4
_AGAIN = "-too"  # the name of a job that has just been removed is not free at once
_GROUP = ("scheduling.volcano.sh/v1beta1", "PodGroup")
_POD = ("v1", "Pod")
_TASK = "volcano.sh/task-spec"  # an annotation of pods
_JOB = "volcano.sh/job-name"

Placement = Mapping[tuple[str, str], Mapping[str, int]]  # by job and task, how many pods each node has


class Played(NamedTuple):
    """Of an environment's jobs, by name: which ran alone, and which together, of none where that was not tried; and
    where their pods were then."""

    alone: dict[str, bool]
    together: dict[str, bool]
    placement: Placement


class Case(NamedTuple):
    """An environment with what Basalt says of it."""

    drawn: Drawn
    expected: Expected


def play(cluster: Cluster, cases: Sequence[Case]) -> dict[int, Played]:
    """What became of the environments, by number. Their nodes are there already."""
    for value in (*clusters.priorities(), *_silence()):
        _create(value, cluster)
    games = [_Game(each) for each in cases]
    clock = _Clock(cluster)
    while waiting := [game for game in games if not game.is_over]:
        look = _Look(cluster, clock.session())
        steps = [step for game in waiting[:_AT_ONCE] for step in game.steps(look)]
        parallel.each(lambda step: step(cluster), steps)
        time.sleep(_PAUSE)
    return {game.drawn.number: game.played() for game in games}


def _silence() -> list[Value]:
    """A policy that takes no events: four of ten requests, and nobody reads them."""
    policy, rule = "no-events", {"apiGroups": ["", "events.k8s.io"], "apiVersions": ["*"], "resources": ["events"]}
    version = "admissionregistration.k8s.io/v1"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{**rule, "operations": ["CREATE", "UPDATE"]}]},
        "validations": [{"expression": "false"}],
    }
    metadata = {"name": policy}
    bound = {"policyName": policy, "validationActions": ["Deny"]}
    return [
        {"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec},
        {"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": bound},
    ]


class _Clock:
    """How many sessions the scheduler has had, at least."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._placed = 0
        self._send()

    def session(self) -> int:
        if time.monotonic() - self._sent > _STUCK:
            raise Stuck(f"the scheduler places nothing any more for {_STUCK} s: has it ended?")
        pod = self._cluster.get(self._ref)
        if pod is not None and pod["spec"].get("nodeName"):
            self._cluster.delete(self._ref)
            self._placed += 1
            self._send()
        return self._placed

    @property
    def _ref(self) -> Ref:
        return Ref(*_POD, "default", f"tick-{self._placed}")

    def _send(self) -> None:
        self._sent = time.monotonic()
        container = {"name": "a", "image": "registry.example.com/a:1", "resources": {"requests": {"cpu": "1"}}}
        spec = {
            "schedulerName": "volcano",
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {BALLAST: "true"},
            "tolerations": [{"key": BALLAST, "operator": "Exists"}],
            "containers": [container],
        }
        _create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self._ref.name}, "spec": spec}, self._cluster)


class _Look:
    """The jobs as they are now, by name."""

    def __init__(self, cluster: Cluster, session: int) -> None:
        self.session = session
        self._cluster = cluster
        jobs = cluster.list(*JOB, "default")
        self._jobs = {each["metadata"]["name"]: each for each in jobs}
        names = {each["metadata"]["uid"]: each["metadata"]["name"] for each in jobs}
        self._groups: dict[str, Value] = {}
        for group in cluster.list(*_GROUP, "default"):
            for owner in group["metadata"].get("ownerReferences") or ():
                self._groups[names.get(owner["uid"], "")] = group

    def pods(self) -> list[Value]:
        return self._cluster.list(*_POD, "default")

    def has(self, name: str) -> bool:
        return name in self._jobs

    def runs(self, name: str) -> bool:
        """The scheduler says Running as soon as it has placed the gang."""
        return self._phase(name) in ("Running", "Completed")

    def signs(self, name: str) -> tuple[Any, ...]:
        """What changes as long as something happens to the job; () where it has not come before the scheduler."""
        status = self._jobs.get(name, {}).get("status") or {}
        conditions = self._groups.get(name, {}).get("status", {}).get("conditions") or ()
        is_told = any(each["type"] == "Unschedulable" for each in conditions)
        phase = self._phase(name)
        if phase == "Running" or (phase == "Inqueue" and is_told) or phase == "Pending":
            return phase, status.get("pending"), status.get("running")
        return ()

    def _phase(self, name: str) -> str:
        return str(self._groups.get(name, {}).get("status", {}).get("phase") or "")


Step = Callable[[Cluster], None]


class _Game:
    """One environment's way through its rounds: jobs are sent under new names, watched until nothing happens to them
    any more, and removed."""

    def __init__(self, case: Case) -> None:
        self.drawn = case.drawn
        self._verdicts = case.expected.verdicts
        names = self.drawn.job_names()
        self._rounds = [[name] for name in names] + ([] if self.drawn.number % 2 else [names])
        self._ran: list[dict[str, bool]] = []
        self._signs: dict[str, tuple[Any, ...]] = {}
        self._since = 0
        self._now: dict[str, bool] = {}
        self._next: Callable[[_Look], list[Step]] = self._prepared
        self._pods: list[Value] = []

    @property
    def is_over(self) -> bool:
        return len(self._ran) == len(self._rounds)

    def steps(self, look: _Look) -> list[Step]:
        """What is to be done next."""
        return self._next(look)

    def _prepared(self, _: _Look) -> list[Step]:
        self._next = self._submitted
        return [partial(_prepare, self.drawn)]

    def _submitted(self, look: _Look) -> list[Step]:
        self._next, self._since = self._watched, look.session
        self._now = dict.fromkeys(self._names, False)
        due = [job for job in self.drawn.jobs if job["metadata"]["name"] in self._names]
        return [partial(_send, self._job(job)) for job in due]

    def _watched(self, look: _Look) -> list[Step]:
        if not self._is_settled(look):
            return []
        self._next = self._ended
        if self._is_joint:
            self._keep_pods(look)
        return [partial(_remove, sent) for sent in self._names.values()]

    def _ended(self, look: _Look) -> list[Step]:
        if any(map(look.has, self._names.values())):
            return []
        self._next = self._submitted
        self._ran.append(self._now)
        return [partial(_clear, self.drawn)] if self.is_over else []

    def _is_settled(self, look: _Look) -> bool:
        names = self._names
        signs = {name: look.signs(sent) for name, sent in names.items()}
        if signs != self._signs:
            self._signs, self._since = signs, look.session
        for name, sent in names.items():
            self._now[name] = self._now[name] or look.runs(sent)
        waited = all(signs.values()) and look.session - self._since > self._patience
        return all(self._now.values()) or waited

    @property
    def _patience(self) -> int:
        return _TOGETHER if self._is_joint else _ALONE[called(self._verdicts[next(iter(self._names))])]

    @property
    def _is_joint(self) -> bool:
        return len(self._ran) == len(self.drawn.jobs)

    @property
    def _names(self) -> dict[str, str]:
        """The jobs of the round, with the names that they are sent under."""
        return {name: self._sent(name) for name in self._rounds[len(self._ran)]}

    def _sent(self, name: str) -> str:
        return f"{name}{_AGAIN}" if self._is_joint else name

    def _job(self, job: Value) -> Value:
        return {**job, "metadata": {**job["metadata"], "name": self._sent(job["metadata"]["name"])}}

    def _keep_pods(self, look: _Look) -> None:
        names = set(self._names.values())
        self._pods = [each for each in look.pods() if (each["metadata"].get("labels") or {}).get(_JOB) in names]

    def played(self) -> Played:
        placement: dict[tuple[str, str], Counter[str]] = {}
        for pod in self._pods:
            metadata, node = pod["metadata"], pod["spec"].get("nodeName")
            if node and "deletionTimestamp" not in metadata:
                job, task = metadata["labels"][_JOB].removesuffix(_AGAIN), metadata["annotations"][_TASK]
                placement.setdefault((job, task), Counter())[node] += 1
        jobs = len(self.drawn.jobs)
        alone, together = ({name: ran for each in rounds for name, ran in each.items()}
                           for rounds in (self._ran[:jobs], self._ran[jobs:]))  # fmt: skip
        return Played(alone, together, placement)


def _send(value: Value, cluster: Cluster) -> None:
    wait(f"{value['metadata']['name']} is taken", partial(_is_taken, cluster, value))


def _is_taken(cluster: Cluster, value: Value) -> bool:
    """Whether the object is there: webhooks see a new queue a little later."""
    try:
        _create(value, cluster)
    except Refusal as refusal:
        if refusal.reason != "AlreadyExists" and "queue" not in refusal.message:
            raise
        return refusal.reason == "AlreadyExists"
    return True


def _prepare(drawn: Drawn, cluster: Cluster) -> None:
    for each in drawn.hyper_nodes:
        _create(each, cluster)
    for each in drawn.queues:  # parents first, which the webhook has to have seen
        _send(each, cluster)


def _create(value: Value, cluster: Cluster) -> None:
    cluster.create(value, _ref(value))


def _clear(drawn: Drawn, cluster: Cluster) -> None:
    """Parents first: the scheduler of v1.14.1 ends with a nil pointer where one names a HyperNode that is gone."""
    for each in reversed(drawn.hyper_nodes):
        cluster.delete(_ref(each))


def _ref(value: Value) -> Ref:
    ref = ref_of(value)
    assert ref is not None
    return ref


def _remove(name: str, cluster: Cluster) -> None:
    """The job is gone only after its pods are."""
    path = f"{cluster.collection(*JOB, 'default')}/{name}"
    cluster.request("DELETE", path, {"propagationPolicy": "Foreground"})
