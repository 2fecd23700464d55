"""Pods for the environments: any, or two kinds that together fill given nodes. Pure."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

GPU = "nvidia.com/gpu"
_MOST_PODS = 9  # of a gang: more only take time


class Shape(NamedTuple):
    """So many pods that each request so much."""

    pods: int
    cpus: int
    gpus: int


def any_shape(draw: Random) -> Shape:
    return Shape(draw.randint(1, 4), draw.randint(1, 14), draw.randint(1, 6))


def snug(rooms: Sequence[tuple[int, int]], draw: Random) -> list[Shape] | None:
    """Two shapes, of which just as many pods as the nodes hold that have so many CPUs and GPUs free, or one less: one
    shape takes many GPUs and few CPUs, the other what that leaves. None where this gives no such pair."""
    cpus, gpus = draw.choice(rooms)
    many = draw.randint(gpus // 2, gpus - 1)
    few = draw.randint(max(1, cpus // 4), max(1, cpus // 2))
    big, small = Shape(0, few, many), Shape(0, cpus - few, draw.randint(1, max(1, gpus - many)))
    counts = [0, 0]
    for room in rooms:
        both = draw.choice(_fullest(room, big, small))
        if sum(counts) + sum(both) <= _MOST_PODS:
            counts = [counts[0] + both[0], counts[1] + both[1]]
    counts[draw.randint(0, 1)] -= draw.choice([0, 0, 1])
    if min(counts) < 1:
        return None
    pair = [big._replace(pods=counts[0]), small._replace(pods=counts[1])]
    return pair if draw.random() < 0.5 else pair[::-1]


def _fullest(room: tuple[int, int], big: Shape, small: Shape) -> list[tuple[int, int]]:
    """How many pods of each a node can hold, where not one more of either goes on top."""
    found = []
    for first in range(_MOST_PODS):
        rest = [have - first * each for have, each in zip(room, big[1:], strict=True)]
        if min(rest) < 0:
            break
        second = min(left // each for left, each in zip(rest, small[1:], strict=True))
        found.append((first, second))
    return [each for each in found if (each[0] + 1, each[1]) not in found]
