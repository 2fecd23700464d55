"""What the real scheduler did with each environment, kept in a file for verdicts to be compared with."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from basalt.api.versions import Version
from basalt.fit import checking
from basalt.fit.problem import Counts, Key
from basalt.sandbox import programs
from modules import scheduler
from tools.agreement import clusters
from tools.agreement.clusters import Drawn
from tools.agreement.expecting import Expected
from tools.agreement.scheduling import Played

FILE = Path(__file__).with_name("outcomes.txt")
_RAN, _PENDING, _UNTRIED = "r", "p", "-"
_SOUND, _UNSOUND = "ok", "unsound"


class Outcome(NamedTuple):
    """Of an environment's jobs, in their order, which ran alone, and which together, of none where that was not tried;
    is_sound where Basalt's own checker accepts all of what then stood where. digest tells the environment from another
    of its number."""

    digest: str
    alone: tuple[bool, ...]
    together: tuple[bool, ...]
    is_sound: bool


def digest(drawn: Drawn) -> str:
    """What changes when the environment does, or the scheduler that it is put to."""
    asked = {"documents": drawn.documents(), "volcano": programs.VOLCANO, "scheduler": _configuration()}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


@cache
def _configuration() -> str:
    version = Version(*map(int, programs.VOLCANO.removeprefix("v").split(".")[:2]))
    return json.dumps(scheduler.default_configuration(version))


def outcome(drawn: Drawn, expected: Expected, played: Played) -> Outcome:
    names = drawn.job_names()
    alone, together = (tuple(ran[name] for name in names if ran) for ran in (played.alone, played.together))
    return Outcome(digest(drawn), alone, together, fault(expected, played) is None)


def fault(expected: Expected, played: Played) -> str | None:
    """What Basalt's checker has against the places of the gangs that ran together."""
    gangs = {gang.key: gang for gang in expected.problem.gangs}
    found: dict[Key, Counts] = {}
    for key, gang in gangs.items():
        counts = {
            (index, node): count
            for index, shape in enumerate(gang.shapes)
            for node, count in played.placement.get((key.name, shape.name), {}).items()
        }
        if sum(counts.values()) >= gang.minimum:  # one that is being evicted may be there in part
            found[key] = counts
    return checking.fault(expected.problem, found)


def read() -> dict[int, Outcome]:
    """The outcomes by number."""
    return dict(map(_outcome, FILE.read_text(encoding="utf-8").splitlines()))


def write(found: Mapping[int, Outcome]) -> None:
    FILE.write_text("".join(f"{_line(number, found[number])}\n" for number in sorted(found)), encoding="utf-8")


def is_current(found: Mapping[int, Outcome], number: int) -> bool:
    return number in found and found[number].digest == digest(clusters.drawn(number))


def _line(number: int, each: Outcome) -> str:
    alone, together = (
        "".join(_RAN if ran else _PENDING for ran in jobs) or _UNTRIED for jobs in (each.alone, each.together)
    )
    return f"{number} {each.digest} {alone} {together} {_SOUND if each.is_sound else _UNSOUND}"


def _outcome(line: str) -> tuple[int, Outcome]:
    number, digest, alone, together, sound = line.split()
    return int(number), Outcome(digest, _ran(alone), _ran(together), sound == _SOUND)


def _ran(jobs: str) -> tuple[bool, ...]:
    return tuple(each == _RAN for each in jobs if jobs != _UNTRIED)
