"""The job plugins of Volcano: their flags, the tasks they look for, and how a job's arguments are read.

Source: pkg/controllers/job/plugins of volcano-sh/volcano; the reading is that of Go's package flag (parseOne).
"""

import enum
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from basalt import names
from basalt.api import booleans
from basalt.api.versions import Version

TASK_INDEX = ("VC_TASK_INDEX", "VK_TASK_INDEX")  # plugins/env/const.go
_SSH_PORT_SINCE = Version(1, 15)
_FORM = re.compile(r"--?([^-=][^=]*)(?:=(.*))?", re.DOTALL)
# strconv.ParseInt with base 0: a sign, a prefix that names the base, underscores between digits.
_WHOLE = re.compile(r"[-+]?(0[xX](_?[0-9a-fA-F])+|0[bB](_?[01])+|0[oO]?(_?[0-7])+|0|[1-9](_?[0-9])*)")
_HIGHEST_PORT = 65535
_LONGEST_SHOWN = 40


class Kind(enum.StrEnum):
    """What a flag takes."""

    TEXT = "a text"
    WHOLE = "a whole number"
    PORT = f"a port from 1 to {_HIGHEST_PORT}"
    SWITCH = "true or false"


class Flag(NamedTuple):
    kind: Kind
    default: str
    since: Version | None = None


def _task(name: str) -> Flag:
    return Flag(Kind.TEXT, name)


def _port(number: int) -> Flag:
    return Flag(Kind.PORT, str(number))


_OFF = Flag(Kind.SWITCH, "false")
_NOT_A_SWITCH = Flag(Kind.TEXT, "")

FLAGS: Mapping[str, Mapping[str, Flag]] = {
    "env": {},
    "svc": {"publish-not-ready-addresses": _OFF, "disable-network-policy": _OFF},
    "ssh": {
        "ssh-key-file-path": Flag(Kind.TEXT, "/root/.ssh"),
        "ssh-private-key": Flag(Kind.TEXT, ""),
        "ssh-public-key": Flag(Kind.TEXT, ""),
        "ssh-port": Flag(Kind.PORT, "22", _SSH_PORT_SINCE),
    },
    "pytorch": {
        "master": _task("master"),
        "worker": _task("worker"),
        "port": _port(23456),
        "wait-master-enabled": _OFF,
        "wait-master-timeout": Flag(Kind.WHOLE, "300"),
        "wait-master-image": Flag(Kind.TEXT, "busybox:1.36.1"),
    },
    "tensorflow": {
        **{role: _task(role) for role in ("ps", "worker", "chief", "evaluator")},
        "port": _port(2222),
    },
    "mpi": {"master": _task("master"), "worker": _task("worker"), "port": _port(22)},
    "ray": {
        **{role: _task(role) for role in ("head", "worker")},
        "headContainer": Flag(Kind.TEXT, "head"),
        "workerContainer": Flag(Kind.TEXT, "worker"),
        "port": _port(6379),
        "dashboardPort": _port(8265),
        "clientPort": _port(10001),
    },
    "hcclrank": {"master": _task("master"), "worker": _task("worker")},
}


class Fault(NamedTuple):
    """What is wrong with the argument at a position in the list, and the way out."""

    at: int
    message: str
    hint: str
    is_unknown: bool = False  # a flag that the plugin does not have: what was meant is not known
    is_bare: bool = False  # no flag at all


class Reading(NamedTuple):
    """A plugin's arguments as they were meant: those behind a fault are read too, which Volcano does not do."""

    plugin: str
    values: Mapping[str, tuple[str, int]]  # flag -> its text and its position in the list
    faults: tuple[Fault, ...]

    def text(self, flag: str) -> str:
        return self.values[flag][0] if flag in self.values else FLAGS[self.plugin][flag].default

    def position(self, flag: str) -> int | None:
        return self.values[flag][1] if flag in self.values else None


class _Word(NamedTuple):
    """One flag with its value, or (flag is None) an argument that is none."""

    at: int
    flag: str | None
    value: str | None
    value_at: int


def read(plugin: str, arguments: list[str], volcano: Version | None = None) -> Reading:
    """Reads the arguments of a known plugin; volcano is the version where one is declared."""
    known = {
        name: flag for name, flag in FLAGS[plugin].items() if not (flag.since and volcano and volcano < flag.since)
    }
    values: dict[str, tuple[str, int]] = {}
    faults: list[Fault] = []
    for word in _words(known, arguments):
        fault = _fault(plugin, known, word, arguments)
        if fault is None and word.flag is not None and word.value is not None:
            values[word.flag] = (word.value, word.value_at)
        elif fault is not None and not (fault.is_bare and any(each.is_bare for each in faults)):
            faults.append(fault)
    return Reading(plugin, values, tuple(faults))


def _words(known: Mapping[str, Flag], arguments: list[str]) -> Iterator[_Word]:
    """The arguments as flags with their values, which may be the next item."""
    at = 0
    while at < len(arguments):
        form = _FORM.fullmatch(arguments[at])
        name, value, value_at = (form[1], form[2], at) if form else (None, None, at)
        if name is not None and value is None:
            after = arguments[at + 1 : at + 2]
            if name in known and known[name].kind is Kind.SWITCH:
                value = "true"
            elif after and _is_value(known, name, after[0]):
                value, value_at = after[0], at + 1
        yield _Word(at, name, value, value_at)
        at = value_at + 1


def _is_value(known: Mapping[str, Flag], name: str, following: str) -> bool:
    """Whether the next item is meant as the flag's value; Volcano takes any, be it another flag."""
    form = _FORM.fullmatch(following)
    return form is None or (name in known and form[1] not in known)


def _fault(plugin: str, known: Mapping[str, Flag], word: _Word, arguments: list[str]) -> Fault | None:
    stops = _stops(arguments, word.value_at)
    if not FLAGS[plugin]:
        shown = f"--{word.flag}" if word.flag else _quoted(arguments[word.at])
        return Fault(word.at, f"{plugin} takes no flags, and {shown} is ignored", "take it out", is_bare=True)
    if word.flag is None:
        return _stray(plugin, word, arguments, stops)
    if word.flag not in known:
        return _unknown(plugin, known, word, stops)
    if word.value is not None:
        return _wrong(word.flag, known[word.flag], word.value, word.value_at, stops)
    swallowed = f"Volcano takes {_quoted(arguments[word.at + 1])} for it" if arguments[word.at + 1 :] else stops
    hint = f"write --{word.flag}={known[word.flag].default or '...'}"
    return Fault(word.at, f"--{word.flag} has no value: {swallowed}", hint)


def _wrong(name: str, flag: Flag, value: str, at: int, stops: str) -> Fault | None:
    message = f"--{name} takes {flag.kind}, not {_quoted(value)}"
    hint = f"write --{name}={flag.default}"
    if flag.kind is Kind.SWITCH and value not in booleans.EITHER:
        return Fault(at, f"{message}: {stops}", f"write --{name}=true or --{name}=false")
    if flag.kind not in (Kind.WHOLE, Kind.PORT):
        return None
    number = _number(value)
    if number is None:
        return Fault(at, f"{message}: {stops}", hint)
    is_port = 0 < number <= _HIGHEST_PORT
    return Fault(at, message, hint) if flag.kind is Kind.PORT and not is_port else None


def _stops(arguments: list[str], at: int) -> str:
    """What Volcano does about an argument that it cannot read, up to the given position."""
    found = [f"--{form[1]}" for each in arguments[at + 1 :] if (form := _FORM.fullmatch(each))]
    lost = list(dict.fromkeys(found))
    rest = f", and {names.listed(lost)} {'are' if len(lost) > 1 else 'is'} lost" if lost else ""
    return f"Volcano stops reading there{rest}"


def _stray(plugin: str, word: _Word, arguments: list[str], stops: str) -> Fault | None:
    text = arguments[word.at]
    if text == "--" and word.at + 1 == len(arguments):
        return None
    message = f"{_quoted(text)} is not a flag: {stops}"
    before = _FORM.fullmatch(arguments[word.at - 1]) if word.at else None
    if before and FLAGS[plugin].get(before[1], _NOT_A_SWITCH).kind is Kind.SWITCH and text in booleans.EITHER:
        return Fault(word.at, message, f"write --{before[1]}={text} as one item", is_bare=True)
    return Fault(word.at, message, "write flags as --name=value, each an item of its own", is_bare=True)


def _unknown(plugin: str, known: Mapping[str, Flag], word: _Word, stops: str) -> Fault:
    flag = str(word.flag)
    name, space, value = flag.partition(" ")
    if not known:
        return Fault(word.at, f"{plugin} takes no flags, and --{name} is ignored", "take it out", is_unknown=True)
    if since := flag in FLAGS[plugin] and FLAGS[plugin][flag].since:
        message = f"{plugin} has no flag --{flag} before Volcano {since}: {stops}"
        return Fault(word.at, message, f"raise spec.volcano.version to {since}, or take it out", is_unknown=True)
    if space and name in known:
        message = f"--{name} and its value are one item, which is not a flag of {plugin}: {stops}"
        return Fault(word.at, message, f"write --{name}={_quoted(value.strip())}", is_unknown=True)
    hint = names.did_you_mean(f"--{flag}", [f"--{each}" for each in known])
    return Fault(word.at, f"{plugin} has no flag --{flag}: {stops}", hint, is_unknown=True)


def _number(text: str) -> int | None:
    """What Go's strconv.ParseInt reads with base 0; None where it refuses."""
    if not _WHOLE.fullmatch(text):
        return None
    digits = text.replace("_", "").lower()
    unsigned = digits.lstrip("+-")
    is_old_octal = len(unsigned) > 1 and unsigned.isdecimal() and unsigned[0] == "0"
    number = int(unsigned, 8) if is_old_octal else int(unsigned, 0)
    signed = -number if digits[0] == "-" else number
    return signed if -(2**63) <= signed < 2**63 else None


def _quoted(text: str) -> str:
    """The text, short enough to be shown: a key that went astray is not repeated."""
    if not text:
        return "an empty text"
    return text if len(text) <= _LONGEST_SHOWN and "\n" not in text else f"a text of {len(text)} characters"


# The tasks that a plugin looks for, by the flags that name them: it needs one of them.
ROLES: Mapping[str, tuple[str, ...]] = {
    "pytorch": ("master",),
    "mpi": ("master",),
    "ray": ("head",),
    "tensorflow": ("ps", "worker", "chief", "evaluator"),
}


def injected(task: str) -> tuple[str, str]:
    """The variables that svc makes for a task (EnvTaskHostFmt and EnvHostNumFmt in plugins/svc/const.go)."""
    key = task.replace("-", "_").upper()
    return f"VC_{key}_HOSTS", f"VC_{key}_NUM"
