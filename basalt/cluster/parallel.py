"""Requests side by side, which end together: the first that fails, or Ctrl-C, ends the others."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from basalt.cluster.connection import PARALLEL

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def each(do: Callable[[_In], _Out], values: Iterable[_In]) -> list[_Out]:
    """What comes of each value, in their order."""
    pool = ThreadPoolExecutor(PARALLEL)
    try:
        return list(pool.map(do, values))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
