"""Cron schedules as Volcano's CronJobs take them.

Source: validateCronjobSpec in pkg/webhooks/admission/cronjobs/validate/validate_cronjob.go, and ParseStandard in
parser.go of github.com/robfig/cron/v3.
"""

import difflib
import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from basalt import names
from basalt.api import durations, time_zones

Fault = tuple[str, str]  # the fact, and the way out


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    words: Mapping[str, int]
    instead: str = ""  # what people mean by the number above most


def _numbered(words: str, *, start: int) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), start)}


_FIELDS = (
    _Field("minute", 0, 59, {}, "the full hour is 0"),
    _Field("hour", 0, 23, {}, "midnight is 0"),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", start=1)),
    _Field("day of week", 0, 6, _numbered("sun mon tue wed thu fri sat", start=0), "Sunday is 0"),
)
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_ORDER = "minute, hour, day of month, month, day of week"
_QUARTZ = {6: "leave out the seconds", 7: "leave out the seconds and the year"}
# unicode.IsSpace; Python's own split() also takes U+001C to U+001F.
_BLANKS = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NUMBER = re.compile(r"\+?0*([0-9]+)")
_MOST = 2**63 - 1  # int of Go
_DIGITS = 19  # of _MOST
_NEAR = 0.8


def schedule_fault(schedule: str) -> Fault | None:
    """Why the schedule is refused, else None."""
    if "TZ" in schedule:
        return "the schedule contains TZ, which is refused there", "name the zone in timeZone"
    if schedule.startswith("@"):
        return _descriptor_fault(schedule)
    fields = [field for field in _BLANKS.split(schedule) if field]
    if len(fields) != len(_FIELDS):
        found = f"the schedule has {len(fields)} field{'' if len(fields) == 1 else 's'}, {len(_FIELDS)} are read"
        hint = _QUARTZ.get(len(fields), 'such as "0 3 * * *", or @daily')
        return f"{found}: {_ORDER}", "leave out the blank before the @" if fields[:1] and fields[0][0] == "@" else hint
    for text, field in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, text.split(",")):
            if fault := _range_fault(expression, field):
                return fault
    return None


def _descriptor_fault(schedule: str) -> Fault | None:
    if schedule.startswith(_EVERY):
        duration = schedule.removeprefix(_EVERY)
        reason = durations.fault(duration)
        return (
            (f'the duration "{duration}" of @every {reason}', "such as @every 24h, or @every 1h30m") if reason else None
        )
    if schedule in _DESCRIPTORS:
        return None
    return f'the schedule "{schedule}" is not known', names.did_you_mean(schedule, [*_DESCRIPTORS, "@every 1h"])


def _range_fault(expression: str, field: _Field) -> Fault | None:
    """getRange: `*`, a number, or two joined by a hyphen, with a step behind a slash."""
    span, *steps = expression.split("/")
    ends = span.split("-")
    if len(steps) > 1:
        return f"the {field.name} {expression} has {len(steps)} slashes", "one step at most, such as */15"
    if ends[0] in ("*", "?"):
        ends = [str(field.least), str(field.most)]  # what stands behind a hyphen is not read
    if len(ends) > 2:
        return f"the {field.name} {expression} has {len(ends) - 1} hyphens", "join several by commas"
    numbers = [_number(end, field.words) for end in ends]
    for end, number in zip(ends, numbers, strict=True):
        if fault := _number_fault(end or expression, number, field):
            return fault
    if numbers[-1] < numbers[0]:
        message = f"the {field.name} {span} begins above its end"
        return message, f"write {ends[0]}-{field.most},{field.least}-{ends[-1]}"
    return _step_fault(steps[0], field) if steps else None


def _number_fault(text: str, number: int, field: _Field) -> Fault | None:
    if number < 0:
        hint = f"a number from {field.least} to {field.most}"
        if close := names.nearest(text, field.words):
            hint = f"did you mean {close.upper()}?"
        elif field.words:
            hint += f", or {', '.join(field.words).upper()}"
        return f'the {field.name} "{text}" is no number' + (" and no name" if field.words else ""), hint
    if number < field.least:
        return f"the {field.name} {text} is below {field.least}", f"a number from {field.least} to {field.most}"
    if number > field.most:
        hint = field.instead if number == field.most + 1 and field.instead else ""
        return f"the {field.name} {text} is above {field.most}", hint or f"a number from {field.least} to {field.most}"
    return None


def _step_fault(text: str, field: _Field) -> Fault | None:
    number = _number(text)
    if 0 < number <= _MOST:
        return None
    return f'the step "{text}" of the {field.name} is no number of 1 or more', "such as */2"


def _number(text: str, words: Mapping[str, int] = {}) -> int:
    """The number that the text or the name stands for; -1 where it is none, _MOST + 1 where it is above Go's int."""
    word = text.replace("\u0130", "i").lower()  # Go lowers the dotted capital I to one letter, Python to two
    if word in words:
        return words[word]
    found = _NUMBER.fullmatch(text)
    if found is None:
        return -1
    return int(found[1]) if len(found[1]) <= _DIGITS else _MOST + 1


def zone_fault(zone: str) -> Fault | None:
    """Why the time zone is refused, else None."""
    if zone in time_zones.NAMES:
        return None
    if zone.casefold() == "local":
        return f"timeZone {zone} is refused: each machine has another", "name a zone, such as Europe/Berlin or UTC"
    if not zone:
        return "timeZone is empty", "name a zone, such as Europe/Berlin, or leave it out"
    return f"there is no time zone {zone}", _nearest_zone(zone)


@cache  # the same mistake may stand in a thousand CronJobs
def _nearest_zone(zone: str) -> str:
    """Only what is very near: Asia/Kuching is no guess at Asia/Peking."""
    folded = {name.casefold(): name for name in sorted(time_zones.NAMES)}
    wanted = zone.replace(" ", "_").casefold()
    cities = [name for key, name in folded.items() if key.rpartition("/")[2] == wanted]
    close = cities if len(cities) == 1 else difflib.get_close_matches(wanted, folded, n=1, cutoff=_NEAR)
    if close:
        return f"did you mean {folded[close[0].casefold()]}?"
    return "name one of IANA's, such as Europe/Berlin or UTC"
