"""The names that a job leads to: of pods, Services, volumes, and of the scheduler it asks for."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from basalt import names
from basalt.api.versions import Version
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import mapping
from basalt.pointers import Pointer
from basalt.rules.rule import Rule
from basalt.views import job_names, schedulers
from basalt.views.job_names import CRON_LIMIT, LIMIT, Derived, NamedJob

_RELAXED_SERVICE_NAMES = Version(1, 36)  # RelaxedServiceNameValidation is on in pkg/features/kube_features.go


def _named_jobs(index: Index) -> Iterator[NamedJob]:
    return job_names.named_jobs(index.workloads, index.of_kind("JobFlow"))


class _Excess(NamedTuple):
    """How many characters too many, and what is said about them."""

    amount: int
    problem: Problem


def job_name_fits(index: Index) -> Iterator[Problem]:
    worst: dict[int, _Excess] = {}  # of the jobs of one object: its name is one mistake
    for job in _named_jobs(index):
        found = _excess(job)
        if found.amount > 0 and (id(job.object) not in worst or found.amount > worst[id(job.object)].amount):
            worst[id(job.object)] = found
    yield from (found.problem for found in worst.values())


def _excess(job: NamedJob) -> _Excess:
    """By the name that is longest; a CronJob's own is limited too."""
    longest = max(job_names.derived(job), key=lambda each: each.length)
    own = sum(part.length for part in job.parts)
    amount = own + longest.length - LIMIT
    first = job.parts[0]
    if job.object.ref.kind == "CronJob" and first.length - CRON_LIMIT > amount:
        message = f"{first.shown} has {first.length} characters, {CRON_LIMIT} are allowed in a CronJob's name"
        hint = f"shorten it to {CRON_LIMIT} characters: Volcano puts up to {LIMIT - CRON_LIMIT} behind it"
        return _Excess(first.length - CRON_LIMIT, Problem(job.object, ("metadata", "name"), message, hint))
    return _Excess(amount, _too_long(job, longest, own, amount))


def _too_long(job: NamedJob, longest: Derived, own: int, amount: int) -> Problem:
    total = own + longest.length
    parts = [f"{part.length} of {part.what}" for part in job.parts]
    parts += [f"{longest.length} of {longest.suffix}"] if longest.length else []
    shown = f"{longest.bearer} {job.shown}{longest.suffix}"
    sums = f" ({' + '.join(parts)})" if len(parts) > 1 else ""
    message = f"{shown} has {total} characters{sums}, {LIMIT} are allowed"
    changed = [part for part in job.parts if part.pointer is not None]
    at, room = changed[-1].pointer or (), changed[-1].length - amount
    hint = f"shorten it to {room} characters"
    if len(changed) > 1:
        count = f"{amount} character{'s' if amount > 1 else ''}"
        hint = f"take {count} out of the JobFlow's name, the template's or the task's"
    elif room < 1 and longest.pointer:
        at, hint = longest.pointer, "shorten the task's name"
    return Problem(job.object, at, message, hint)


def job_name_is_dns1035(index: Index) -> Iterator[Problem]:
    are_digits_taken = _takes_digits(index)
    told: set[tuple[int, Pointer]] = set()
    for job in _named_jobs(index):
        for position, part in enumerate(job.parts):
            message = _dotted(job, part.shown) if part.pointer else ""
            if not message and position == 0 and part.shown[0].isdigit() and not are_digits_taken:
                message = _after_digit(job, part.shown)
            if message and part.pointer and (id(job.object), part.pointer) not in told:
                told.add((id(job.object), part.pointer))
                yield Problem(job.object, part.pointer, message, _hint(part.shown))


def _takes_digits(index: Index) -> bool:
    """Whether Services may start with a digit: only by a version that somebody wrote, older ones do not take it."""
    written = mapping(index.environment.spec.get("kubernetes")).get("version") if index.environment else None
    return written is not None and index.catalog.versions["kubernetes"] >= _RELAXED_SERVICE_NAMES


def _dotted(job: NamedJob, name: str) -> str:
    bearer = next((bearer for condition, bearer in (
        ("svc" in job.plugins, "the Service that svc makes"),
        ("ssh" in job.plugins, "the volume that ssh mounts"),
        (job.has_volumes, "the volume that Volcano mounts"),
    ) if condition), "")  # fmt: skip
    return (
        f"{name.lstrip('-')} has a dot, and {bearer} is named after it: it takes none" if bearer and "." in name else ""
    )


def _after_digit(job: NamedJob, name: str) -> str:
    if "svc" not in job.plugins:
        return ""
    return f"{name} starts with a digit, and the Service that svc makes is named after it: it starts with a letter"


def _hint(name: str) -> str:
    sound = name.lstrip("-").replace(".", "-")
    return f"name it {f'job-{sound}' if name[0].isdigit() else sound}"


def job_is_scheduled_by_volcano(index: Index) -> Iterator[Problem]:
    known = schedulers.names(index.chart_values, index.of_kind("Deployment"))
    called = " or ".join(known)
    for workload in index.workloads:
        if (own := _strange(workload.spec, known)) is not None:
            message = f"schedulerName is {own}, and Volcano's scheduler is called {called}"
            yield Problem(workload.object, (*workload.pointer, "schedulerName"), message, _instead(own, known))
        for task in workload.tasks:
            if (pods := _strange(task.pod, known)) is not None:
                message = f"its pods ask for the scheduler {pods}, and Volcano's is called {called}"
                yield Problem(workload.object, (*task.pod_pointer, "schedulerName"), message, _instead(pods, known))


def _strange(spec: Mapping[str, Any], known: tuple[str, ...]) -> str | None:
    """The scheduler that it asks for, where that is none of Volcano's; unsaid, Volcano's own is filled in."""
    name = spec.get("schedulerName")
    return name if isinstance(name, str) and name not in ("", *known) else None


def _instead(name: str, known: tuple[str, ...]) -> str:
    nearest = names.nearest(name, known)
    return f"did you mean {nearest}?" if nearest else "leave it out: Volcano fills it in"


RULES = (
    Rule("job-name-fits", Severity.ERROR, job_name_fits),
    Rule("job-name-is-dns1035", Severity.ERROR, job_name_is_dns1035),
    Rule("job-is-scheduled-by-volcano", Severity.ERROR, job_is_scheduled_by_volcano),
)
