"""Whether a gang runs on the empty cluster: by a quick packing, by a count that rules it out, or by the solver."""

from basalt.fit import packing, reasons
from basalt.fit.packing import Room
from basalt.fit.problem import Gang, Problem
from basalt.fit.solver import Answer, Outcome


def alone(problem: Problem, gang: Gang, time: float = packing.SOLVER_TIME) -> Answer:
    """The answer; the solver has so much of its time left."""
    room = Room(problem, {})
    if room.put(gang):
        return Answer(Outcome.FOUND, room.placement)
    if len(gang.shapes) == 1 and gang.shapes[0].tier is None and problem.is_free(gang):
        return Answer(Outcome.IMPOSSIBLE, {}, "its pods are alike, and no domain holds as many")  # nothing to search
    if (reason := reasons.plain(problem, gang)) is not None:
        return Answer(Outcome.IMPOSSIBLE, {}, reason.message)
    return packing.decide(problem, [gang], time)
